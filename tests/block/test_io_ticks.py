"""io_ticks, of which iostat makes %util: exact to 4.20, sampled in jiffies from 5.0 on."""

import random

import pytest

from sim.block.bio import READ
from sim.block.features import features
from sim.block.part_stat import DiskStats
from sim.machine import Machine
from sim.scenario import load
from sim.sched.version import kernel_version
from sim.units import NS_PER_S

US = 1_000
MS = 1_000_000
KERNELS = ["2.6.32", "4.20", "5.0", "5.4.69", "5.4.70", "5.7", "5.15", "6.1", "6.9", "6.10", "6.18"]


def row(kernel, hz=1000):
    """Return the counters of a disk under a release."""
    stats = DiskStats("sda", 8, 0)
    stats.sample(features(kernel_version(kernel)), NS_PER_S // hz)
    return stats


def util(stats, reads, seconds):
    """Return the share of the time that io_ticks say, after (begin, end) of each read in ns."""
    changes = [(begin, 1) for begin, _ in reads] + [(end, -1) for _, end in reads]
    for at, change in sorted(changes):
        if change > 0:
            stats.start(1, at)
        else:
            stats.done(READ, 1, 8, 0, at)
    stats.update(seconds * NS_PER_S)
    stats.check(seconds * NS_PER_S)
    return stats.io_ticks_ns / (seconds * NS_PER_S)


def at_random(length_ns, per_s, seconds, seed=1):
    """Return reads of one length that begin at random, one at a time."""
    draw = random.Random(seed)
    pause_ns = NS_PER_S // per_s - length_ns
    found = []
    end = 0
    while end + 2 * pause_ns + length_ns < seconds * NS_PER_S:
        start = end + draw.randrange(2 * pause_ns)
        end = start + length_ns
        found.append((start, end))
    return found


@pytest.mark.parametrize(
    "kernel, hz, expected",
    [
        ("4.20", 250, 0.008),  # part_round_stats
        # A read begins in a jiffy that has seen none, and one in 12.5 (50) ends in another.
        ("5.0", 1000, 0.108),
        ("5.0", 250, 0.408),
        ("5.15", 1000, 0.108),
        ("6.1", 250, 0.408),
        ("6.10", 1000, 0.008),  # 99dc422335d8
        ("6.18", 250, 0.008),
    ],
)
def test_a_hundred_reads_a_second_of_80_us(kernel, hz, expected):
    reads = at_random(80 * US, 100, 200)
    assert util(row(kernel, hz), reads, 200) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    "kernel, expected",
    [
        ("4.20", 1.0),
        ("5.0", 1.5 / 12.5),  # the jiffies of a begin and an end (5b18b5a73760)
        ("5.4.69", 1.5 / 12.5),
        ("5.4.70", 1.0),  # the end counts them all (2b8bd423614c)
        ("5.6", 1.5 / 12.5),
        ("5.7", 1.0),
        ("6.18", 1.0),
    ],
)
def test_a_disk_that_is_never_idle(kernel, expected):
    """A read every 12.5 ms, begun half a jiffy after the end of the last: often in the same one."""
    step_ns = 12_500 * US
    reads = [(at, at + step_ns - MS // 2) for at in range(0, 20 * NS_PER_S, step_ns)]
    assert util(row(kernel), reads, 20) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("length_us, per_s", [(30, 2000), (80, 100), (700, 900), (9000, 60)])
@pytest.mark.parametrize("kernel", ["4.20", "6.10", "6.18"])
def test_what_is_exact_on_average_is_busy_time(kernel, length_us, per_s):
    seconds = 60
    reads = at_random(length_us * US, per_s, seconds)
    assert util(row(kernel), reads, seconds) == pytest.approx(length_us * per_s / 1e6, rel=0.15)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("hz", [100, 250, 1000])
@pytest.mark.parametrize("kernel", KERNELS)
def test_io_ticks_never_fall_nor_pass_the_clock(kernel, hz, seed):
    draw = random.Random(seed)
    stats = row(kernel, hz)
    now = in_flight = before = 0
    for _ in range(2000):
        now += draw.randrange(3 * MS)
        if draw.random() < 0.1:
            stats.update(now)
        elif in_flight and draw.random() < 0.5:
            stats.done(READ, 1, 8, 0, now)
            in_flight -= 1
        else:
            stats.start(1, now)
            in_flight += 1
        assert before <= stats.io_ticks_ns <= now
        before = stats.io_ticks_ns
    stats.check(now)


@pytest.mark.parametrize("kernel, counts", [("5.17", False), ("5.18", True), ("6.18", True)])
def test_who_reads_the_row_counts_what_hangs(kernel, counts):
    """One request that does not end: 86d7331299fd."""
    stats = row(kernel)
    stats.start(1, 10 * MS)
    before = stats.io_ticks_ns
    stats.update(1000 * MS)
    assert stats.io_ticks_ns - before == (990 * MS if counts else 0)


SERVER = """\
title = "A hundred reads a second"
[machine]
kernel = "KERNEL"
cpus = 1
memory = "256 MiB"
sched.hz = HZ
disk.sda = { device = "ram", latency = "80 us" }
mount."/" = { type = "ext4", device = "sda" }
[process.reader]
program = "fio"
filename = "/dev/sda"
rw = "randread"
block_size = "4 KiB"
size = "512 MiB"
read_iops = 100
runtime = "1 s"
time_based = true
[run]
duration = "1 s"
[measure]
interval = "1 s"
families = ["disk"]
"""


@pytest.mark.parametrize(
    "kernel, hz, expected", [("6.1", 1000, 10), ("6.1", 250, 40), ("4.18", 250, 0.8)]
)
def test_diskstats_says_so(tmp_path, kernel, hz, expected):
    """sysstat's %util is the difference of the tenth number after the name."""
    path = tmp_path / "server.toml"
    path.write_text(SERVER.replace("KERNEL", kernel).replace("HZ", str(hz)))
    machine = Machine(load(str(path)), 1)
    machine.run_until(machine.end_ns)
    [line] = [one for one in machine.proc.read("diskstats").splitlines() if " sda " in one]
    assert int(line.split()[12]) / 10 == pytest.approx(expected, rel=0.12, abs=0.3)
