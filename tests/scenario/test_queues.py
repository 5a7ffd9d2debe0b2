"""A disk's queue in a scenario: every elevator by its name, limits, throttling, and refusals."""

import pytest

from sim.machine import Machine
from sim.registry import lookup, names
from sim.scenario import ScenarioError, load
from sim.sched.version import numbers

SERVER = """\
title = "Readers beside a writer"
[machine]
kernel = "KERNEL"
cpus = 2
memory = "256 MiB"
disk.sda = { device = "hdd", capacity = "20 GiB", MORE }
[machine.mount."/"]
type = "ext3"
device = "sda"
[process.reader]
program = "fio"
count = 2
filename = "/table"
runtime = "2 s"
time_based = true
[process.writer]
program = "fio"
filename = "/copy"
rw = "write"
direct = false
block_size = "1 MiB"
runtime = "2 s"
time_based = true
[run]
duration = "2 s"
[measure]
interval = "1 s"
families = ["disk"]
"""


@pytest.fixture(name="server")
def server_(tmp_path):
    """Return a function that reads a server with these words about its disk."""

    def server(kernel, more):
        path = tmp_path / "server.toml"
        path.write_text(SERVER.replace("KERNEL", kernel).replace("MORE", more))
        return load(str(path))

    return server


@pytest.mark.parametrize("elevator", names("elevator"))
def test_each_elevator_serves_readers_and_a_writer(server, elevator):
    entry = lookup("elevator", elevator)
    kernel = numbers(entry.since or (2, 6, 16))
    machine = Machine(server(kernel, f'scheduler = "{elevator}"'), 1)
    machine.run_until(machine.end_ns)
    stats = machine.disks[0].stats
    assert stats.reads > 5 and stats.write_sectors > 2000
    machine.disks[0].check()


@pytest.mark.parametrize(
    "kernel, more, told",
    [
        ("2.6.32", 'scheduler = "kyber"', "Linux 2.6.32 has no elevator 'kyber' (from 4.12)"),
        ("2.6.33", 'scheduler = "anticipatory"', "no elevator 'anticipatory' (to 2.6.32)"),
        ("5.10", 'scheduler = "bfg"', "unknown elevator 'bfg' - did you mean 'bfq'?"),
        ("2.6.36", "throttle.wbps = '1 MB/s'", "has no limits of I/O (throttle)"),
        ("5.10", "throttle.wpbs = '1 MB/s'", "did you mean 'wbps'?"),
        ("5.10", "throttle.wiops = 0", "must be at least"),
        ("4.9", "queue.wbt = true", "has no writeback throttling (wbt)"),
        ("4.9", "queue.wbt_lat = '2 ms'", "(accepted: from 4.10)"),
    ],
)
def test_what_a_release_has_not_is_refused(server, kernel, more, told):
    with pytest.raises(ScenarioError) as error:
        server(kernel, more)
    assert told in str(error.value)


@pytest.mark.parametrize(
    "kernel, more, way",
    [
        ("6.1", 'scheduler = "cfq"', "mq-deadline"),
        ("4.18", 'scheduler = "anticipatory"', "cfq"),
        ("6.1", 'scheduler = "deadline", frontend = "virtio-blk"', "mq-deadline"),
    ],
)
def test_an_elevator_that_a_release_has_not_is_refused_with_the_releases_own(
    server, kernel, more, way
):
    with pytest.raises(ScenarioError) as error:
        server(kernel, more)
    told = f"; --set machine.disk.sda.scheduler={way} is what this release takes itself)"
    assert told in str(error.value)


@pytest.mark.parametrize("kernel, elevator", [("2.6.32", "cfq"), ("6.1", "mq-deadline")])
def test_the_server_known_by_its_demands_has_its_releases_elevator(kernel, elevator):
    disk = load("generic", sets=(f"machine.kernel={kernel}",)).server.all("disk")["sda"]
    assert disk.scheduler == elevator


@pytest.mark.parametrize(
    "more, has_it",
    [
        ('scheduler = "none"', True),
        ('scheduler = "bfq"', False),
        ('scheduler = "none", queue.wbt = false', False),
    ],
)
def test_writeback_is_throttled_from_4_10_but_beside_bfq(server, more, has_it):
    assert (Machine(server("5.10", more), 1).disks[0].wbt is not None) is has_it


def test_limits_are_kept(server):
    machine = Machine(server("5.10", "throttle.riops = 20, throttle.wbps = '1 MB/s'"), 1)
    machine.run_until(machine.end_ns)
    stats = machine.disks[0].stats
    assert stats.reads <= 20 * 2.2 + 1
    assert stats.write_sectors * 512 <= 1e6 * 2.2 + (1 << 20)


NVME = """\
title = "An NVMe drive for which nobody chose an elevator"
[machine]
kernel = "KERNEL"
cpus = 8
memory = "2 GiB"
disk.sda = { device = "ram" }
disk.nvme0n1 = { profile = "ssd-nvme" }
mount."/" = { type = "ext4", device = "sda" }
[process.job]
program = "fio"
filename = "/dev/nvme0n1"
count = 8
ioengine = "libaio"
iodepth = 64
rw = "randread"
block_size = "4 KiB"
size = "64 GiB"
runtime = "10 ms"
time_based = true
[run]
duration = "10 ms"
[measure]
interval = "10 ms"
families = ["disk"]
"""


@pytest.mark.parametrize("kernel", ["4.4", "6.8"])
def test_nvme_has_no_elevator_and_serves_what_its_maker_says(tmp_path, kernel):
    """Intel DC P3700, 2 TB, product specification: 460,000 random reads of 4 KiB a second."""
    path = tmp_path / "nvme.toml"
    path.write_text(NVME.replace("KERNEL", kernel))
    machine = Machine(load(str(path)), 1)
    machine.run_until(machine.end_ns)
    drive = machine.devices["nvme0n1"]
    assert drive.stats.reads / 0.010 == pytest.approx(460_000, rel=0.05)


def listed(scenario, path):
    """Return value and source of a parameter, as `iotwin params` lists it."""
    [found] = [one for one in scenario.parameters if one.path == path]
    return found.value, found.source


def test_params_tells_who_chose_the_elevator(server):
    path = "machine.disk.sda.scheduler"
    value, source = listed(server("4.18", "queue.nr_requests = 64"), path)
    assert value == "cfq" and source.startswith("block/elevator.c")
    value, source = listed(server("4.18", 'scheduler = "deadline"'), path)
    assert value == "deadline" and source.endswith("server.toml:6")


@pytest.mark.parametrize(
    "kernel, frontend, elevator",
    [
        ("4.4", "virtio-blk", "none"),
        ("5.10", "virtio-blk", "mq-deadline"),
        ("2.6.18", "xen-blkfront", "noop"),
        ("4.3", "xen-blkfront", "none"),
        ("4.4", "ide-emulated", "cfq"),
    ],
)
def test_behind_a_front_end_its_driver_counts(server, kernel, frontend, elevator):
    scenario = server(kernel, f'frontend = "{frontend}"')
    assert listed(scenario, "machine.disk.sda.scheduler")[0] == elevator


STREAM = """\
title = "One sequential reader through the page cache"
[machine]
kernel = "KERNEL"
cpus = 2
memory = "256 MiB"
disk.nvme0n1 = { profile = "ssd-nvme" }
mount."/" = { type = "xfs", device = "nvme0n1" }
[process.stream]
program = "fio"
filename = "/file"
rw = "read"
ioengine = "psync"
direct = false
fadvise_hint = "HINT"
block_size = "BLOCK"
size = "32 MiB"
[run]
duration = "2 s"
until = "stream.fio_done"
[measure]
interval = "10 ms"
families = ["disk"]
"""


@pytest.mark.parametrize(
    "kernel, block, hint, kib",
    [
        ("4.9", "1 MiB", "0", 128),
        ("4.9", "1 MiB", "1", 256),  # POSIX_FADV_SEQUENTIAL: twice as far
        ("4.18", "1 MiB", "0", 1024),
        ("4.18", "1 MiB", "1", 1024),
        ("6.1", "1 MiB", "0", 683),  # 256, 128 and 128 pages in turn: sim/mm/readahead.py
        ("6.18", "1 MiB", "0", 1024),
        ("6.18", "128 KiB", "0", 128),
        ("6.18", "128 KiB", "1", 256),
    ],
)
def test_one_stream_reads_as_its_read_calls_are_large(tmp_path, kernel, block, hint, kib):
    """mm/readahead.c from 4.10 on: windows up to what the device takes at a time (io_pages)."""
    path = tmp_path / "stream.toml"
    stream = STREAM.replace("KERNEL", kernel).replace("BLOCK", block).replace("HINT", hint)
    path.write_text(stream)
    machine = Machine(load(str(path)), 1)
    machine.run_until(machine.end_ns)
    stats = machine.disks[0].stats
    assert stats.read_sectors >= 32 << 11
    assert stats.read_sectors / 2 / stats.reads == pytest.approx(kib, rel=0.03)
