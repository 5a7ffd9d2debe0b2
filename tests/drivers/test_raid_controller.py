"""RAID controllers: what ends in their memory, what reaches the drive, what the battery is for."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import FLUSH, READ, WRITE
from sim.drivers.hdd import Hdd, HddParams
from sim.drivers.raid_controller import RaidController, RaidControllerParams
from sim.scenario import ScenarioError
from sim.syscall import O_CREAT, O_WRONLY
from tests.block.disks import Serial
from tests.drivers.test_ssd import Alone
from tests.fs.test_power_cut import left
from tests.user.servers import boot, run_program

US = 1000
MS = 1_000_000
KIB = 2  # sectors
PAGE = 8 * KIB


class Noting(Serial):
    """A drive that serves one request at a time, and keeps what it was given."""

    def __init__(self, service_ns=8 * MS, queue_depth=31):
        super().__init__(service_ns, queue_depth)
        self.given = []

    def submit(self, request):
        self.given.append((request.op, request.sector, request.end))
        super().submit(request)


def controller(drive=None, **changes):
    return RaidController(RaidControllerParams(**changes), drive or Noting())


def times_us(front, *requests):
    """Return how long each request takes, submitted one second after the other."""
    alone = Alone(front)
    found = []
    for op, sector, sectors in requests:
        begun_ns = alone.calendar.now
        request = alone.submit(op, sector, sectors)
        alone.calendar.run_until(begun_ns + 1000 * MS)
        found.append((alone.ended[request] - begun_ns) / US)
    return found


# -- Estimates


def test_a_write_ends_in_the_memory_whatever_the_drive():
    """15 us of the processor, 8 KiB at 2 GB/s 4 us, 20 us to the interrupt."""
    for service_ms in (1, 8, 100):
        [took_us] = times_us(controller(Noting(service_ms * MS)), (WRITE, 0, PAGE))
        assert took_us == pytest.approx(15 + 8192 / 2e3 + 20, abs=0.1)


@pytest.mark.parametrize("battery", ["learning", "missing"])
def test_without_a_good_battery_a_write_ends_on_the_drive(battery):
    [took_us] = times_us(controller(battery=battery), (WRITE, 0, PAGE))
    assert took_us == 15 + 8000 + 20


def test_who_writes_through_by_policy_waits_for_the_drive():
    [took_us] = times_us(controller(policy="write-through"), (WRITE, 0, PAGE))
    assert took_us == 15 + 8000 + 20


def test_in_the_long_run_it_is_what_the_drive_takes_in_ascending_order():
    """Pages as near to each other as those that fill 384 MiB of 500 GB: 2 + 4.2 ms each.

    490 pages in the memory, written anywhere in a hundredth of the disk.
    """
    disk = HddParams(
        capacity_bytes=500 * 10**9,
        outer_rate_bytes_per_s=64.8e6,
        inner_rate_bytes_per_s=31e6,
        heads=10,
        rpm=7200,
        seek_track_ns=int(0.8 * MS),
        seek_average_ns=int(8.5 * MS),
        seek_full_ns=17 * MS,
        write_settle_ns=MS,
        order="fifo",
    )
    drive = Hdd(disk)
    alone = Alone(controller(drive, cache_bytes=490 * 8192))
    draw = random.Random(1)
    places = drive.capacity_sectors // 100 // PAGE
    for _ in range(1500):
        alone.submit(WRITE, draw.randrange(places) * PAGE, PAGE)
    alone.calendar.run()
    ends = sorted(alone.ended.values())
    assert len(ends) == 1500
    per_s = 900 / ((ends[1499] - ends[599]) / 1e9)
    assert per_s == pytest.approx(1 / (2e-3 + 4.17e-3), rel=0.15)


# -- Laws


def test_what_is_not_on_the_drive_yet_is_joined_and_goes_there_in_ascending_order():
    """The first is on its way when the others come; then from its end on, and from the lowest."""
    drive = Noting(queue_depth=1)
    alone = Alone(controller(drive))
    for page in (70, 30, 31, 90, 32, 10, 50):
        alone.submit(WRITE, page * PAGE, PAGE)
    alone.calendar.run()
    pages = [(start // PAGE, end // PAGE) for _, start, end in drive.given]
    assert pages == [(70, 71), (90, 91), (10, 11), (30, 33), (50, 51)]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 31), st.integers(1, 64), st.integers(0, 1 << 16))
def test_every_write_reaches_the_drive_and_no_more_waits_than_the_memory_holds(depth, pages, seed):
    drive = Noting(MS, depth)
    front = controller(drive, cache_bytes=pages * 8192)
    alone = Alone(front)
    draw = random.Random(seed)
    written = set()
    most = 0

    def write():
        page = draw.randrange(200)
        written.add(page)
        alone.submit(WRITE, page * PAGE, PAGE)

    def look():
        nonlocal most
        under_way = sum(end - start for start, end in front.unsafe_runs())
        most = max(most, under_way)

    for number in range(150):
        alone.calendar.post_at(number * 100 * US, lambda _: write(), None)
        alone.calendar.post_at(number * 100 * US + 50 * US, lambda _: look(), None)
    alone.calendar.run()
    given = {page for _, start, end in drive.given for page in range(start // PAGE, end // PAGE)}
    assert given == written
    assert front.unsafe_runs() == []
    assert len(alone.ended) == 150
    assert most <= (pages + 4 * 64) * PAGE


def test_a_read_of_what_is_in_the_memory_does_not_wait_for_the_drive():
    alone = Alone(controller(Noting(100 * MS, queue_depth=1)))
    alone.submit(WRITE, 0, PAGE)
    alone.submit(WRITE, 100 * PAGE, PAGE)
    alone.calendar.run_until(MS)
    hit = alone.submit(READ, 100 * PAGE, PAGE)
    miss = alone.submit(READ, 200 * PAGE, PAGE)
    alone.calendar.run()
    assert alone.ended[hit] - MS < 0.1 * MS
    assert alone.ended[miss] - MS >= 100 * MS


def test_a_flush_is_answered_at_once_and_linux_does_not_even_send_it():
    front = controller()
    [_, took_us] = times_us(front, (WRITE, 0, PAGE), (FLUSH, 0, 0))
    assert took_us == 15 + 20
    assert not front.write_cache


def test_the_hosts_requests_go_before_what_is_in_the_memory():
    drive = Noting(10 * MS, queue_depth=4)
    alone = Alone(controller(drive))
    for page in range(0, 400, 2):
        alone.submit(WRITE, page * PAGE, PAGE)
    alone.calendar.run_until(100 * MS)
    read = alone.submit(READ, 1000 * PAGE, PAGE)
    alone.calendar.run()
    # Behind the four writes that are in the drive, and before the 186 in the memory.
    assert alone.ended[read] - 100 * MS == pytest.approx(50 * MS, rel=0.01)


# -- The power goes

ROOT = 'mount."/" = { type = "ext4", device = "sda" }'


def server(front, disk="write_cache = false"):
    text = f'disk.sda = {{ profile = "sata-7200", {disk}, frontend = "raid-controller", {front} }}'
    return boot(machine=f"{text}\n{ROOT}", sets=['machine.kernel="6.1"'])


@pytest.mark.parametrize(
    ("front", "survives"),
    [
        ('front.battery = "good"', True),
        ('front.battery = "learning"', True),
        ('front.battery = "learning", front.policy = "force-write-back"', False),
    ],
)
def test_what_was_synced_survives_unless_the_battery_is_forced(front, survives):
    machine = server(front)
    for _, mounted in machine.vfs.mounts:
        mounted.expect_power_cut()
    found = []

    def program(sys):
        fd = yield from sys.open("/a", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 8192)
        yield from sys.fsync(fd)
        found.append(left(machine))

    run_program(machine, program)
    assert found[0].has("/a", 8192) == survives


# -- What cannot be


@pytest.mark.parametrize(
    ("front", "disk", "told"),
    [
        ('front.cache = "1 TB"', "write_cache = false", "front.cache of 1 TB, more than the drive"),
        ('front.cache = "1 GiB"', "write_cache = true", r"\(accepted: write_cache = false\)"),
        ('front.battery = "flat"', "write_cache = false", '"good", "learning", "missing"'),
    ],
)
def test_what_cannot_stand_before_a_drive_is_refused(front, disk, told):
    with pytest.raises(ScenarioError, match=told) as caught:
        server(front, disk)
    assert "small.toml:" in str(caught.value)
