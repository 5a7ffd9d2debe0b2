"""What hdparm measures."""

import pytest

from tests.user.mail import process
from tests.user.servers import boot, run_for, values_of

DISK = """\
[machine.disk.sda]
profile = "sata-7200"
scheduler = "cfq"
[machine.mount."/"]
type = "ext3"
device = "sda"
"""


def test_cached_reads_are_copies_and_buffered_ones_the_disks_outer_rate() -> None:
    text = process("test", "hdparm", device="/dev/sda")
    machine = boot(
        text, machine=DISK + '[machine.vfs]\npage_copy = "4 us"\n', uses=("exim_io/hdparm.py",)
    )
    run_for(machine, 8)
    [cached] = values_of(machine, "hdparm_cached_bytes_per_s")
    [buffered] = values_of(machine, "hdparm_buffered_bytes_per_s")
    assert cached == pytest.approx(4096 / 4e-6, rel=0.05)
    assert buffered == pytest.approx(64.8e6, rel=0.05)
