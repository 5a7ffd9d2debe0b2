"""Servers whose file system lies on an array: every level, releases from 2.6.16 on."""

import pytest

from sim.machine import Machine
from sim.registry import names
from sim.syscall import O_CREAT, O_WRONLY
from tests.user.servers import boot, run_for, run_program

DISK = (
    '[machine.disk.{}]\ndevice = "ram"\ncapacity = "256 MiB"\nlatency = "1 ms"\nqueue_depth = 1\n'
)
DISKS = "".join(DISK.format(name) for name in ("sda", "sdb", "sdc", "sdd"))
KERNELS = ("2.6.16", "2.6.32", "2.6.34", "3.2", "4.4", "5.10")
FILE = 4 << 20


def server(
    level: str, kernel: str, devices: str = '"sda", "sdb", "sdc", "sdd"', more: str = ""
) -> Machine:
    machine = f"""\
{DISKS}
[machine.array.md0]
level = "{level}"
devices = [{devices}]
{more}
[machine.volume.dm-0]
on = "md0"
size = "128 MiB"
[machine.mount."/"]
type = "ext3"
device = "dm-0"
"""
    return boot(machine=machine, sets=(f'machine.kernel="{kernel}"',))


def write_and_read(machine: Machine) -> None:
    """Write a file with an fsync every half megabyte, and read it again, all through the array."""

    def body(sys):
        fd = yield from sys.open("/file", O_CREAT | O_WRONLY)
        for _ in range(8):
            yield from sys.write(fd, FILE // 8)
            yield from sys.fsync(fd)
        yield from sys.close(fd)

    run_program(machine, body, 60)
    run_for(machine, 1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("level", names("array"))
def test_a_file_system_works_on_every_array(level: str, kernel: str) -> None:
    machine = server(level, kernel)
    write_and_read(machine)
    md0 = machine.devices["md0"].stats
    assert md0.write_sectors >= FILE // 512
    assert machine.devices["dm-0"].stats.write_sectors == md0.write_sectors


@pytest.mark.parametrize("level", ["raid1", "raid5", "raid10"])
def test_a_degraded_array_works(level: str) -> None:
    machine = server(level, "3.2", '"sda", "missing", "sdb", "sdc"')
    write_and_read(machine)
    assert machine.devices["md0"].stats.write_sectors >= FILE // 512


def test_md_has_no_times_before_5_9_and_a_volume_always_has() -> None:
    old, new = (server("raid5", kernel) for kernel in ("4.4", "5.10"))
    for machine in (old, new):
        write_and_read(machine)
        assert machine.devices["dm-0"].stats.write_ns > 0
    assert (old.devices["md0"].stats.write_ns, old.devices["md0"].stats.io_ticks_ns) == (0, 0)
    assert new.devices["md0"].stats.write_ns > 0
    assert new.devices["md0"].stats.io_ticks_ns > 0


def test_rows_are_those_of_their_drivers() -> None:
    text = server("raid5", "3.2").proc.read("diskstats")
    numbers = {line.split()[2]: tuple(map(int, line.split()[:2])) for line in text.splitlines()}
    assert (numbers["md0"], numbers["dm-0"]) == ((9, 0), (253, 0))
