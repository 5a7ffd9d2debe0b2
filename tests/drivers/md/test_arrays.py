"""Arrays over disks: what every level must do, and what each of them does with single requests."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, BIO_FUA, BIO_SYNC, READ, WRITE
from sim.block.part_stat import DiskStats
from sim.block.queue import QueueParams
from sim.drivers.md.dm_linear import DmLinear
from sim.drivers.md.md import ArrayContext
from sim.registry import lookup, names
from tests.drivers.md.arrays import KERNELS, MS, PAGE, Rig, ram

CHUNK = 128  # sectors: 64 KiB
LEVELS = names("array")
REDUNDANT = ("raid1", "raid5", "raid10")


def array(level, count=4, kernel=(2, 6, 16), **more):
    return Rig(level, [ram() for _ in range(count)], kernel, **more)


# -- Every level.


@st.composite
def workloads(draw):
    """Return bios as (op, sector, sectors of a bio, bios), few of them aligned."""
    sizes = st.sampled_from([1, 7, 8, 8, 8, 64, 128, 300, 2500])
    one = st.tuples(
        st.sampled_from([READ, WRITE]), st.integers(0, 12_000), sizes, st.integers(1, 40)
    )
    return draw(st.lists(one, min_size=1, max_size=12))


FACTORS = {"raid0": 1, "striped": 1, "raid1": 4, "raid10": 2}


@settings(max_examples=40, deadline=None)
@given(
    level=st.sampled_from(LEVELS),
    kernel=st.sampled_from(KERNELS),
    work=workloads(),
    slots=st.sampled_from([4, 128]),
)
def test_no_sector_is_lost_and_every_bio_ends_once(level, kernel, work, slots):
    queue = QueueParams(plug="task" if kernel >= (2, 6, 39) else "queue", nr_requests=slots)
    rig = array(level, 4, kernel, queue=queue)
    logical = Counter()
    bios = []
    for op, sector, size, count in work:
        count = count if size == 8 else 1
        bios.append(rig.bio(op, sector, size * count, count))
        logical[op] += size * count
    rig.do(*bios)
    ended = Counter()
    for bio, _sector, count in rig.parts:
        ended[id(bio)] += count
    assert [ended[id(bio)] for bio in bios] == [bio.count for bio in bios]
    assert rig.stats.read_sectors == logical[READ]
    assert rig.stats.write_sectors == logical[WRITE]
    if level in FACTORS:
        assert rig.sectors(READ) == logical[READ]
        assert rig.sectors(WRITE) == FACTORS[level] * logical[WRITE]


@settings(max_examples=30, deadline=None)
@given(level=st.sampled_from(REDUNDANT), kernel=st.sampled_from(KERNELS), work=workloads())
def test_a_degraded_array_touches_only_what_is_there(level, kernel, work):
    rig = Rig(level, [ram() for _ in range(3)], kernel, missing={1})
    rig.do(*(rig.bio(op, sector, size) for op, sector, size, _count in work))


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_seed_gives_the_same_times(level):
    def once():
        rig = array(level, 4, (3, 2))
        draw = random.Random(1)
        work = [(draw.choice([READ, WRITE]), draw.randrange(20_000), 64) for _ in range(50)]
        rig.do(*(rig.bio(*one) for one in work))
        return [(r.when_ns, *r.args) for r in rig.tracer.records()]

    assert once() == once()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_volume_on_an_array_and_an_array_on_volumes_lose_nothing(level, kernel):
    """Under very few request slots everything has to wait somewhere, in the middle of bios too."""
    queue = QueueParams(
        plug="task" if kernel >= (2, 6, 39) else "queue", nr_requests=4, max_bytes=65536
    )
    rig = array(level, 4, kernel, queue=queue)
    volume = DmLinear(DiskStats("dm-0", 253, 0), rig.calendar, rig.array, 63, 20_000, (2, 6, 16))
    context = ArrayContext(DiskStats("md1", 9, 1), rig.sched, kernel, [volume])
    upper = lookup("array", "striped").cls(lookup("array", "striped").params(), context)
    draw = random.Random(1)
    bios = [
        rig.bio(draw.choice([READ, WRITE]), draw.randrange(10_000), 800, 100) for _ in range(20)
    ]
    bios += [rig.bio(WRITE, draw.randrange(10_000), 3000) for _ in range(10)]

    def main(task):
        for bio in bios:
            yield from upper.submit(task, bio)
        upper.unplug()

    rig.sched.spawn("writer", main)
    rig.run()
    assert len(rig.ended) == len(bios)
    sectors = sum(bio.nr_sectors for bio in bios if bio.op == WRITE)
    for stats in (upper.stats, volume.stats, rig.array.stats):
        stats.check(rig.calendar.now)
        assert (stats.in_flight, stats.write_sectors) == (0, sectors)
    if level in FACTORS:
        assert rig.sectors(WRITE) == FACTORS[level] * sectors


@pytest.mark.parametrize("level", LEVELS)
def test_a_flush_empties_every_members_cache_before_the_data_goes_down(level):
    drivers = [ram(latency_ns=MS) for _ in range(4)]
    for driver in drivers:
        driver.write_cache = True
    rig = Rig(level, drivers, (3, 2))
    rig.do(rig.bio(WRITE, 0, PAGE, flags=BIO_FLUSH | BIO_FUA))
    issued = rig.issued()
    flushes = [number for number, op, *_ in issued[:4] if op == 2]
    assert sorted(flushes) == [0, 1, 2, 3]
    written = {number for number, op, *_ in issued if op == WRITE}
    after = Counter(number for number, op, *_ in issued[4:] if op == 2)
    assert after == Counter(written)  # the FUA of a drive without it


@pytest.mark.parametrize("level", LEVELS)
def test_an_empty_flush_ends_when_all_members_have_flushed(level):
    rig = array(level, 4, (3, 2))
    for disk in rig.disks:
        disk.driver.write_cache = True
    rig.do(rig.bio(WRITE, 0, 0, flags=BIO_FLUSH))
    assert [op for _number, op, *_ in rig.issued()] == [2] * 4


def test_barriers_came_to_all_levels_with_2_6_33_and_to_mirrors_before():
    levels = ("raid0", "raid1", "raid10", "raid5", "striped")
    releases = ((2, 6, 16), (2, 6, 33))
    support = {
        level: [array(level, 4, kernel).array.supports_barriers for kernel in releases]
        for level in levels
    }
    assert support == {
        "raid0": [False, True],
        "raid1": [True, True],
        "raid10": [False, True],
        "raid5": [False, True],
        "striped": [False, True],
    }


@pytest.mark.parametrize("level", LEVELS)
def test_a_barrier_of_2_6_33_lets_nothing_pass(level):
    rig = array(level, 4, (2, 6, 33))
    for disk in rig.disks:
        disk.driver.write_cache = True
    order = []
    before, barrier, after = (rig.bio(WRITE, s, PAGE) for s in (0, 1000, 2000))
    barrier.flags = BIO_BARRIER
    for bio in (before, barrier, after):
        bio.end_io = lambda bio: (order.append(bio), rig.ended.append(bio))
    rig.do(before, barrier, after)
    assert order == [before, barrier, after]


# -- RAID 0 and striped.


@pytest.mark.parametrize("level", ["raid0", "striped"])
def test_chunks_go_to_the_members_in_turn(level):
    rig = array(level, 3, chunk_bytes=65536)
    rig.do(rig.bio(READ, 0, 6 * CHUNK))
    found = sorted((number, sector, count) for number, _op, sector, count in rig.issued())
    assert found == [(number, 0, 2 * CHUNK) for number in range(3)]


def test_a_bio_across_a_chunk_is_counted_in_pieces_before_4_3_and_whole_after():
    counts = []
    for kernel in ((3, 2), (4, 4)):
        rig = array("raid0", 4, kernel, chunk_bytes=65536)
        rig.do(rig.bio(READ, 0, 3 * CHUNK))
        counts.append((rig.stats.reads, rig.stats.read_sectors))
    assert counts == [(3, 3 * CHUNK), (1, 3 * CHUNK)]


def test_md_counts_without_times_to_5_8():
    old, new = (array("raid0", 4, kernel) for kernel in ((5, 8), (5, 9)))
    for rig in (old, new):
        rig.do(rig.bio(READ, 0, PAGE))
    assert (old.stats.reads, old.stats.read_ns, old.stats.io_ticks_ns) == (1, 0, 0)
    assert new.stats.reads == 1
    assert new.stats.read_ns == new.stats.io_ticks_ns >= MS


# -- RAID 1.


def test_a_write_ends_with_the_slowest_mirror():
    drivers = [ram(latency_ns=ms * MS) for ms in (1, 2, 7)]
    rig = Rig("raid1", drivers, (3, 2))
    assert 7 * MS <= rig.time_ns(rig.bio(WRITE, 0, PAGE, flags=BIO_SYNC)) < 7.2 * MS


def test_an_async_write_waits_for_company_to_2_6_38():
    waits = []
    for kernel in ((2, 6, 32), (3, 2)):
        rig = array("raid1", 2, kernel)
        bio = rig.bio(WRITE, 0, PAGE)
        rig.array.submit_bio(bio)
        rig.run()
        waits.append([r.when_ns // MS for r in rig.tracer.records()])
    assert waits == [[6, 6], [0, 0]]  # the array's plug, then the disk's


# -- RAID 5.


@pytest.mark.parametrize(("count", "reads"), [(3, 1), (4, 2), (5, 2), (8, 2)])
def test_a_small_write_of_raid5_costs_two_writes_and_the_fewest_reads(count, reads):
    rig = array("raid5", count, (3, 2))
    rig.do(rig.bio(WRITE, 10 * PAGE, PAGE))
    assert rig.counts() == (reads, 2)
    assert (rig.sectors(READ), rig.sectors(WRITE)) == (reads * PAGE, 2 * PAGE)


def test_a_full_stripe_is_written_without_reading():
    rig = array("raid5", 4, (3, 2), chunk_bytes=65536)
    rig.do(rig.bio(WRITE, 0, 3 * CHUNK))
    assert (rig.sectors(READ), rig.sectors(WRITE)) == (0, 4 * CHUNK)


def test_a_stripe_in_memory_is_not_read_again():
    rig = array("raid5", 5, (3, 2))
    rig.do(rig.bio(WRITE, 0, PAGE))
    rig.do(rig.bio(WRITE, 0, PAGE))
    assert rig.counts() == (2, 4)


def test_the_stripe_cache_forgets_what_was_used_longest_ago():
    rig = array("raid5", 5, (3, 2), stripe_cache_size=17)
    rig.do(rig.bio(WRITE, 0, PAGE))
    for number in range(17):
        rig.do(rig.bio(WRITE, (number + 40) * 4 * CHUNK, PAGE))
    before = rig.counts()[0]
    rig.do(rig.bio(WRITE, 0, PAGE))
    assert rig.counts()[0] == before + 2


def test_a_sequential_writer_of_small_bios_gets_full_stripes():
    """Even though each bio by itself would have needed a read: the stripes wait for more."""
    rig = array("raid5", 4, (3, 2), chunk_bytes=65536)
    rig.do(*(rig.bio(WRITE, page * PAGE, PAGE) for page in range(3 * CHUNK // PAGE)))
    assert (rig.sectors(READ), rig.sectors(WRITE)) == (0, 4 * CHUNK)


def test_reads_bypass_the_stripe_cache_from_2_6_21():
    requests = {}
    for kernel in ((2, 6, 16), (2, 6, 32)):
        rig = array("raid5", 4, kernel)
        rig.do(rig.bio(READ, 0, CHUNK))
        rig.do(rig.bio(READ, 0, CHUNK))
        requests[kernel] = rig.sectors(READ)
    assert requests == {(2, 6, 16): CHUNK, (2, 6, 32): 2 * CHUNK}


def test_a_lost_members_chunk_is_read_from_all_others():
    rig = Rig("raid5", [ram() for _ in range(3)], (3, 2), missing={0}, chunk_bytes=65536)
    rig.do(rig.bio(READ, 0, PAGE))
    assert sorted((number, sector) for number, _op, sector, _n in rig.issued()) == [
        (0, 0),
        (1, 0),
        (2, 0),
    ]
    rig.do(rig.bio(READ, CHUNK, PAGE))
    assert rig.counts()[0] == 4  # Its neighbour is there: one read.


def test_writers_wait_for_stripes_without_being_iowait():
    rig = array("raid5", 3, (3, 2), stripe_cache_size=32)
    task = rig.spawn([rig.bio(WRITE, number * 2 * CHUNK, PAGE) for number in range(200)])
    states = []
    for _ in range(50):
        rig.calendar.run_until(rig.calendar.now + MS)
        states.append((task.state_letter, task.wchan, task.in_iowait))
    assert ("D", "get_active_stripe", False) in states
    rig.run()
    assert len(rig.ended) == 200


def test_parity_costs_cpu_time_of_the_array_s_thread():
    rig = array("raid5", 4, (3, 2))
    rig.do(rig.bio(WRITE, 0, 3 * CHUNK * 8))
    stripes = rig.sectors(WRITE) // 4 // PAGE
    system_ns = sum(cpu.system_ns for cpu in rig.sched.cpu_times)
    assert stripes * 3000 <= system_ns < stripes * 3000 * 5


# -- The bitmap.


def test_the_first_write_to_a_region_waits_for_the_bitmap():
    rig = array("raid1", 2, (3, 2), bitmap=True, bitmap_chunk_bytes=1 << 20)
    rig.do(rig.bio(WRITE, 0, PAGE, flags=BIO_SYNC), seconds=1)
    first = [(number, sector) for number, _op, sector, _n in rig.issued()]
    place = 16 * 2048 - 128 + 8
    assert first == [(0, place), (1, place), (0, 0), (1, 0)]
    rig.do(rig.bio(WRITE, 64, PAGE, flags=BIO_SYNC), seconds=1)
    assert [sector for _n, _op, sector, _s in rig.issued()[4:]] == [64, 64]


@pytest.mark.parametrize("level", REDUNDANT)
def test_a_region_that_is_left_alone_is_cleaned_after_a_while(level):
    rig = array(level, 4, (3, 2), bitmap=True)
    rig.do(rig.bio(WRITE, 0, PAGE, flags=BIO_SYNC), seconds=4)
    before = rig.counts()[1]
    rig.run(30)
    assert rig.counts()[1] == before + 4
    rig.run(60)
    assert rig.counts()[1] == before + 4
