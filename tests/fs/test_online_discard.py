"""mount -o discard: what is deleted reaches the drive as discards, and who waits for them."""

import pytest

from sim.machine import Machine
from sim.scenario import ScenarioError, load

MIB = 1 << 20
SERVER = """\
title = "A file that is written, then deleted by being truncated"
[machine]
kernel = "KERNEL"
cpus = 2
memory = "1 GiB"
disk.sda = { device = "ssd", capacity = "1 GiB" }
[machine.mount."/"]
type = "FILE_SYSTEM"
device = "sda"
OPTIONS
[process.dd]
program = "dd"
if = "/dev/zero"
of = "/file"
bs = "1 MiB"
blocks = 1
fsync = true
output_size = "64 MiB"
start = "1 s"
[run]
duration = "60 s"
[measure]
interval = "1 s"
families = ["disk"]
"""
DISCARD = "discard = true"


@pytest.fixture(name="run")
def run_(tmp_path):
    """Return a function that runs a server and gives back its machine."""

    def run(kernel, file_system="ext4", options=DISCARD):
        text = SERVER.replace("KERNEL", kernel).replace("FILE_SYSTEM", file_system)
        path = tmp_path / "server.toml"
        path.write_text(text.replace("OPTIONS", options))
        machine = Machine(load(str(path)), 1)
        machine.run_until(machine.end_ns)
        machine.check()
        return machine

    return run


@pytest.mark.parametrize("kernel", ["2.6.33", "4.4", "4.14", "5.10", "5.15", "6.1"])
def test_all_that_ext4_has_freed_is_discarded_once(run, kernel):
    machine = run(kernel)
    assert machine.disks[0].stats.discard_sectors * 512 == 64 * MIB
    assert machine.vfs.mounts[-1][1].check() == []


@pytest.mark.parametrize("kernel", ["2.6.39", "4.4", "6.1"])
def test_all_that_xfs_has_freed_is_discarded_once(run, kernel):
    machine = run(kernel, "xfs")
    preallocated = 64 * 1024  # behind the new end, to 2.6.39 and later
    discarded = machine.disks[0].stats.discard_sectors * 512
    assert 64 * MIB <= discarded <= 64 * MIB + preallocated
    assert machine.vfs.mounts[-1][1].check() == []


@pytest.mark.parametrize("file_system", ["ext4", "xfs"])
def test_without_the_option_nothing_is(run, file_system):
    assert run("5.10", file_system, "").disks[0].stats.discards == 0


def test_the_fsync_waits_for_the_discards_to_5_14(run):
    """The commit that frees the old blocks is the one that the fsync waits for."""
    kernels = ("4.4", "5.10", "5.15")
    plain = {kernel: _seconds(run(kernel, options="")) for kernel in kernels}
    waits = {kernel: _seconds(run(kernel)) - plain[kernel] for kernel in kernels}
    # One discard: 100 us in the drive (trim), and less than half of that to get there and back.
    assert 100e-6 <= waits["4.4"] < 150e-6
    assert 100e-6 <= waits["5.10"] < 150e-6
    # Not to the nanosecond: a flush may find kblockd on its way already, for a discard.
    assert waits["5.15"] == pytest.approx(0, abs=0.001 * plain["5.15"])


def _seconds(machine):
    """Return how long dd took, which frees, writes and syncs."""
    told = {record.name: record.value for record in machine.records}
    return told["dd_ns"] / 1e9


@pytest.mark.parametrize("kernel, file_system", [("2.6.32", "ext4"), ("2.6.38", "xfs")])
def test_a_release_without_the_option_refuses_the_mount(run, kernel, file_system):
    with pytest.raises(ScenarioError, match="discard = true needs kernel"):
        run(kernel, file_system)
