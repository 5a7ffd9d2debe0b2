"""fstrim: what is free is discarded, all of it, and is free as before; who knows none refuses."""

import errno

import pytest

from sim.machine import Machine
from sim.scenario import load

SERVER = """\
title = "An SSD with a file system"
[machine]
kernel = "5.10"
cpus = 2
memory = "1 GiB"
disk.sda = { device = "DEVICE", capacity = "1 GiB" }
[machine.mount."/"]
type = "FILE_SYSTEM"
device = "sda"
[process.writer]
program = "fio"
filename = "/file"
rw = "write"
size = "16 MiB"
block_size = "1 MiB"
direct = true
[process.trim]
program = "fstrim"
minimum = "MINIMUM"
start = "1 s"
[run]
duration = "3 s"
[measure]
interval = "1 s"
families = ["disk"]
"""


@pytest.fixture(name="run")
def run_(tmp_path):
    """Return a function that runs a server and gives back its machine and what fstrim told."""

    def run(device="ssd", file_system="ext4", minimum="0 B"):
        text = SERVER.replace("DEVICE", device).replace("FILE_SYSTEM", file_system)
        path = tmp_path / "server.toml"
        path.write_text(text.replace("MINIMUM", minimum))
        machine = Machine(load(str(path)), 1)
        machine.run_until(machine.end_ns)
        machine.check()
        told = {record.name: record.value for record in machine.records}
        return machine, told

    return run


@pytest.mark.parametrize("file_system", ["ext3", "ext4", "xfs"])
def test_what_is_free_is_discarded(run, file_system):
    machine, told = run(file_system=file_system)
    trimmed = told["fstrim_bytes"]
    stats = machine.disks[0].stats
    assert stats.discard_sectors * 512 == trimmed
    _, mounted = machine.vfs.mounts[-1]
    free = mounted.statfs().blocks_free * 4096
    assert 0.9 * free <= trimmed <= 1.04 * free  # XFS keeps 32 MiB from users, not from the drive
    page_map = machine.disks[0].driver.flash.ftl._map
    assert page_map.used == pytest.approx((1 << 30) / 4096 - trimmed / 4096, abs=16)


def test_short_runs_are_left_out(run):
    _, told = run(minimum="1 GiB")
    assert told["fstrim_bytes"] == 0


@pytest.mark.parametrize("device, file_system", [("hdd", "ext4"), ("hdd", "xfs")])
def test_who_knows_no_discard_refuses(run, device, file_system):
    _, told = run(device=device, file_system=file_system)
    assert told["fstrim_errno"] == errno.EOPNOTSUPP
