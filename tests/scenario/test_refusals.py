"""What mkfs or mount would refuse is an error of the scenario, with its line."""

import re

import pytest

from sim.scenario import ScenarioError
from tests.user.servers import scenario

XFS = 'machine.mount."/".type="xfs"'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["delaylog=true"], "delaylog = true needs kernel 2.6.35 or later, this is 2.6.16"),
        (["crc=true"], "inodes of 512 bytes or more"),
        (["log='2 GiB'"], "at most 2097148 KiB"),
        (["log='1.5 GiB'"], "does not fit into an allocation group"),
        (["agcount=2000"], "a group has 4 MiB or more"),
        (["logbsize='33 KiB'"], 'not one of the choices, got "33 KiB" (accepted: 16384, 32768, '),
        (["logbufs=9"], "must be at most 8"),
        (["logbuf=4"], "did you mean 'logbufs'"),
    ],
)
def test_bad_options_of_xfs_are_refused_with_their_place(options: list[str], message: str) -> None:
    sets = [XFS, *(f'machine.mount."/".{option}' for option in options)]
    with pytest.raises(ScenarioError, match=re.escape(message)) as caught:
        scenario(sets=sets)
    assert "Traceback" not in str(caught.value)
    assert re.search(r"small\.toml:\d+|--set", str(caught.value))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (
            ['machine.mount."/".type="ext3"', 'machine.mount."/".max_batch_time="1 ms"'],
            "min_batch_time and max_batch_time are jbd2's (ext4: kernel 2.6.29; ext3 mounted by it:"
            " 4.3), this is 2.6.16",
        ),
        (
            ['machine.mount."/".type="ext3"', 'machine.mount."/".max_batch="1 ms"'],
            "did you mean 'max_batch_time'",
        ),
        (['machine.mount."/".type="ext3"', 'machine.mount."/".atime="strict"'], "strictatime"),
    ],
)
def test_bad_options_of_ext3_are_refused_with_their_place(sets: list[str], message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)) as caught:
        scenario(sets=sets)
    assert re.search(r"small\.toml:\d+|--set", str(caught.value))


def test_a_device_too_small_for_xfs_is_refused() -> None:
    with pytest.raises(ScenarioError, match="8 MiB in 1 allocation groups hold no xfs"):
        scenario(sets=[XFS, 'machine.disk.sda.capacity="8 MiB"'])
