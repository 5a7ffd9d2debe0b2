"""The write cache: fast until it is full, and what a flush waits for."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.block.bio import BIO_FLUSH, BIO_SYNC, READ, WRITE
from sim.drivers.hdd import Extents, Hdd, HddParams, WriteCache
from sim.scenario import ScenarioError, load
from tests.block.disks import MS, PAGE, Rig


def rig_with_cache(**changes):
    values = {"rpm": 7200, "write_cache": True, "buffer_bytes": 8 << 20, "queue_depth": 32}
    return Rig(Hdd(HddParams(**(values | changes))))


def flush(rig):
    bio = rig.bio(WRITE, 0, 1, BIO_FLUSH)
    bio.nr_sectors = bio.size = 0
    rig.disk.submit_bio(bio)
    return bio


def scattered(rig, count, seed=1):
    draw = random.Random(seed)
    for _ in range(count):
        rig.write(draw.randrange(10_000_000), flags=BIO_SYNC)


def test_a_write_ends_when_it_is_in_the_cache():
    rig = rig_with_cache()
    rig.write(1000, flags=BIO_SYNC)
    rig.calendar.run_until(MS)
    assert len(rig.ended) == 1
    assert rig.ended[0][0] < 0.2 * MS


def test_a_flush_ends_when_all_before_it_is_on_the_platter():
    rig = rig_with_cache()
    scattered(rig, 20)
    bio = flush(rig)
    rig.run()
    times = {id(bio): time for time, bio in rig.ended}
    # Twenty random writes in ascending order, some 5 ms each.
    assert 60 * MS < times[id(bio)] < 200 * MS


def test_an_empty_flush_is_quick():
    rig = rig_with_cache()
    flush(rig)
    assert rig.run().calendar.now < MS


def test_a_flush_does_not_wait_for_what_comes_later():
    rig = rig_with_cache()
    scattered(rig, 20)
    first = flush(rig)
    for number in range(200):
        rig.at(1 + number * MS, rig.write, 100 * number, flags=BIO_SYNC)
    rig.run()
    ends = {id(bio): time for time, bio in rig.ended}
    assert ends[id(first)] < 200 * MS


def test_flushes_wanted_while_one_runs_share_the_next():
    rig = rig_with_cache()
    wanted = []
    for round_ in range(3):
        scattered(rig, 5, seed=round_)
        wanted.append(flush(rig))
    rig.run()
    ends = {id(bio): time for time, bio in rig.ended}
    first, second, third = (ends[id(bio)] for bio in wanted)
    assert first < second == third
    assert rig.stats.flushes == 2


def test_reads_and_a_full_cache_take_turns():
    """Writes always wait for room: the arm reads once between two destages, not once in a while."""
    rig = rig_with_cache(buffer_bytes=64 << 10)
    draw = random.Random(1)

    def again(op):
        def submit(_=None):
            bio = rig.bio(op, draw.randrange(10_000_000), flags=BIO_SYNC)
            bio.end_io = submit
            rig.disk.submit_bio(bio)

        return submit

    for op, in_flight in ((WRITE, 8), (READ, 4)):
        for _ in range(in_flight):
            again(op)()
    rig.calendar.run_until(4000 * MS)
    assert 0.8 < rig.stats.reads / rig.stats.writes < 1.25


def test_a_full_cache_writes_as_fast_as_the_platter():
    rig = rig_with_cache(buffer_bytes=64 << 10)
    draw = random.Random(1)
    left = 600

    def write(_=None):
        nonlocal left
        if left:
            left -= 1
            bio = rig.bio(WRITE, draw.randrange(10_000_000), flags=BIO_SYNC)
            bio.end_io = write
            rig.disk.submit_bio(bio)

    write()
    rig.run()
    assert 80 < 600e9 / rig.calendar.now < 260


def test_a_read_of_cached_data_needs_no_arm():
    rig = rig_with_cache()
    scattered(rig, 50)
    rig.write(777, flags=BIO_SYNC)
    rig.at(MS, rig.read, 777)
    rig.at(MS, rig.disk.unplug)
    rig.run()
    read_ns = [time for time, bio in rig.ended if bio.op == READ]
    assert read_ns[0] < 1.3 * MS


def test_reads_go_before_writing_back():
    rig = rig_with_cache()
    scattered(rig, 100)
    rig.at(5 * MS, rig.read, 5_000_000)
    rig.at(5 * MS, rig.disk.unplug)
    rig.run()
    read_ns = [time for time, bio in rig.ended if bio.op == READ]
    assert read_ns[0] < 40 * MS


stretches = st.tuples(st.integers(0, 60), st.integers(1, 20))


@given(st.lists(stretches, max_size=30))
def test_extents_hold_the_union_of_what_was_added(added):
    extents = Extents()
    union = set()
    for start, length in added:
        extents.add(start, start + length)
        union |= set(range(start, start + length))
        assert extents.sectors == len(union)
    held = [
        sector
        for start, end in zip(extents.starts, extents.ends, strict=True)
        for sector in range(start, end)
    ]
    assert held == sorted(union)
    gaps = zip(extents.ends, extents.starts[1:], strict=False)
    assert all(end < start for end, start in gaps)  # joined where they touch


@given(st.lists(stretches, max_size=30), st.integers(0, 80), st.integers(1, 10))
def test_extents_are_given_up_once(added, sector, most):
    extents = Extents()
    for start, length in added:
        extents.add(start, start + length)
    total = extents.sectors
    taken = []
    while extents.sectors:
        start, end = extents.take(sector, most)
        assert 0 < end - start <= most
        taken += range(start, end)
        sector = end
    assert len(taken) == len(set(taken)) == total


def test_the_cache_gives_up_what_a_flush_wants_first():
    cache = WriteCache(1000)
    cache.add(500, 508)
    cache.begin_flush()
    cache.add(100, 108)
    assert cache.take(0, 100) == (500, 508)
    assert cache.flush_done()
    assert cache.take(0, 100) == (100, 108)


def test_an_empty_cache_takes_a_write_of_any_length():
    cache = WriteCache(8)
    assert cache.has_room(PAGE * 100)
    cache.add(0, 800)
    assert not cache.has_room(1)


@pytest.mark.parametrize("profile", ["sata-7200", "sas-15k"])
def test_a_buffer_larger_than_the_disk_is_refused_where_it_is_said(tmp_path, profile):
    file = tmp_path / "one.toml"
    file.write_text(
        'title = "one"\n[machine]\nkernel = "6.8"\nmemory = "1 GiB"\n[machine.disk.sda]\n'
        f'profile = "{profile}"\ncapacity = "100 GB"\nbuffer = "200 GB"\n'
        '[machine.mount."/"]\ntype = "xfs"\ndevice = "sda"\n'
    )
    with pytest.raises(ScenarioError) as caught:
        load(str(file))
    told = "buffer: larger than the drive, got 200 GB (accepted: up to 100 GB)"
    assert told in str(caught.value)
    assert "one.toml:8" in str(caught.value)
