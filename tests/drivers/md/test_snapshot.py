"""Snapshots: contents, what is copied, what a write waits for, what happens without room."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import READ, WRITE
from sim.drivers.md.dm_exception_store import ExceptionStore, chunks_for
from sim.drivers.md.dm_snap import COW_THRESHOLD, EIO, INVALID
from sim.engine.calendar import Calendar
from tests.drivers.md.arrays import MS, S, ram
from tests.drivers.md.snapshots import KERNELS, Memory, Rig

CHUNK = 16  # sectors: 8 KiB
ORIGIN = 1024


class Contents:
    """A volume with snapshots over devices that keep contents, and what they should hold."""

    def __init__(self, chunks, kernel, delays_ns, cow_sectors=4096):
        calendar = Calendar()
        self.buffers = {}
        delays = itertools.cycle(delays_ns)
        devices = [
            Memory(f"sd{number}", calendar, max(ORIGIN, cow_sectors), delays, self.buffers)
            for number in range(len(chunks) + 1)
        ]
        self.rig = Rig(
            chunks, kernel, ORIGIN, cow_sectors, drivers=[ram(1)], below=devices, calendar=calendar
        )
        self.devices = [self.rig.origin, *self.rig.volumes]
        self.shadow = [{} for _ in self.devices]
        self.seen = {}

    def write(self, target, sector, nr_sectors, count, value):
        bio = self.rig.bio(WRITE, sector, nr_sectors, count)
        self.buffers[bio] = {s: (value, s) for s in range(sector, sector + nr_sectors)}
        self.shadow[target].update(self.buffers[bio])
        self.rig.spawn(self.devices[target], bio)

    def read(self, target, sector=0, nr_sectors=ORIGIN):
        bio = self.rig.bio(READ, sector, nr_sectors)
        self.rig.spawn(self.devices[target], bio)
        self.rig.run(5)
        return self.buffers[bio]

    def expected(self, target):
        return {s: self.shadow[target].get(s, ("old", s)) for s in range(ORIGIN)}


writes = st.lists(
    st.tuples(
        st.integers(0, 2),  # the origin or one of the snapshots
        st.integers(0, ORIGIN // 8 - 8),  # page
        st.sampled_from([(8, 1), (8, 4), (64, 1), (8, 8), (4, 2)]),  # sectors of a bio, bios
        st.integers(0, 3 * MS),  # pause before it
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(
    writes=writes,
    kernel=st.sampled_from(KERNELS),
    chunks=st.sampled_from([(16, 16), (8, 64), (16, 512)]),
    delays_ns=st.lists(st.integers(1, 2 * MS), min_size=1, max_size=7),
)
def test_a_snapshot_reads_as_the_origin_was_whatever_is_written_meanwhile(
    writes, kernel, chunks, delays_ns
):
    world = Contents(chunks, kernel, delays_ns, cow_sectors=16384)
    for value, (target, page, (size, count), pause_ns) in enumerate(writes):
        world.rig.calendar.run_until(world.rig.calendar.now + pause_ns)
        start = page * 8 + (4 if size == 4 else 0)
        sectors = set(range(start, start + size * count))
        if any(sectors & busy for busy in world.seen.get(target, ())):
            continue  # nobody says which of two concurrent writes of a sector is the last
        world.seen.setdefault(target, []).append(sectors)
        world.write(target, start, size * count, count, value)
    world.rig.run(30)
    for target in range(3):
        assert world.read(target) == world.expected(target)


def spread(rig, chunks, op=WRITE):
    """Return a write of one page in each of these chunks."""
    return [rig.bio(op, chunk * CHUNK, 8) for chunk in chunks]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("same_disk", [False, True])
def test_bytes_copied_are_chunks_first_touched_times_chunk_size(kernel, same_disk):
    rig = Rig(kernel=kernel, same_disk=same_disk)
    touched = [3, 4, 5, 90, 17, 4, 3, 400, 90]
    rig.write(*spread(rig, touched)).write(*spread(rig, touched))
    chunks = len(set(touched))
    assert rig.kcopyd.sectors_read == rig.kcopyd.sectors_written == chunks * CHUNK
    assert rig.real.stats.read_sectors == chunks * CHUNK
    assert rig.real.stats.write_sectors == 2 * len(touched) * 8
    assert sorted(rig.snaps[0].complete) == sorted(set(touched))


@settings(max_examples=30, deadline=None)
@given(
    runs=st.lists(st.tuples(st.integers(0, 900), st.integers(1, 60)), min_size=1, max_size=12),
    chunk=st.sampled_from([8, 16, 128, 512]),
    kernel=st.sampled_from(KERNELS),
)
def test_every_chunk_is_copied_once_for_each_snapshot(runs, chunk, kernel):
    rig = Rig((chunk, 16), kernel, cow_sectors=32768)
    rig.write(*(rig.bio(WRITE, page * 8, pages * 8, pages) for page, pages in runs))
    pages = {page + n for page, count in runs for n in range(count)}
    for snap, size in zip(rig.snaps, (chunk, 16), strict=True):
        assert set(snap.complete) == {page * 8 // size for page in pages}
        assert len(set(snap.complete.values())) == len(snap.complete)
    assert rig.kcopyd.sectors_written == sum(
        len(snap.complete) * snap.chunk_sectors for snap in rig.snaps
    )
    assert rig.origin.stats.writes == sum(count for _, count in runs)
    assert rig.real.stats.write_sectors == rig.origin.stats.write_sectors


def test_a_write_takes_read_copy_metadata_and_itself():
    """1 ms each on an idle disk; asynchronous ones first wait 3 ms behind the queue's plug.

    Nobody waits for the device but who writes the metadata. Context switches take microseconds.
    """
    rig = Rig()
    start = rig.calendar.now
    rig.write(rig.bio(WRITE, 0, 8))
    [(end, _)] = rig.ended
    read = copy = 3 * MS + 1 * MS
    metadata = 1 * MS
    itself = 3 * MS + 1 * MS
    assert end - start == pytest.approx(read + copy + metadata + itself, abs=0.02 * MS)


def test_the_second_write_of_a_chunk_takes_as_long_as_without_a_snapshot():
    rig = Rig()
    rig.write(rig.bio(WRITE, 0, 8))
    start = rig.calendar.now
    rig.write(rig.bio(WRITE, 8, 8))
    assert rig.ended[-1][0] - start == pytest.approx(1 * MS, abs=0.02 * MS)


def test_a_chunk_written_in_full_is_copied_all_the_same():
    rig = Rig()
    rig.write(rig.bio(WRITE, 0, CHUNK))
    assert rig.kcopyd.sectors_read == CHUNK


def test_writes_of_a_chunk_wait_together_and_end_in_order():
    rig = Rig()
    bios = [rig.bio(WRITE, 0, 8), rig.bio(WRITE, 8, 8), rig.bio(WRITE, 0, 8)]
    rig.write(*bios)
    assert rig.kcopyd.sectors_read == CHUNK
    assert [bio for _, bio in rig.ended] == bios
    assert rig.snaps[0].store.metadata_writes == 2  # the empty area at first, and one commit


def test_reads_of_the_origin_wait_for_nothing():
    rig = Rig()
    bios = [rig.bio(WRITE, 0, 8), rig.bio(READ, 64, 8)]
    rig.write(*bios)
    assert [bio for _, bio in rig.ended] == bios[::-1]


def test_metadata_is_written_when_nothing_is_under_way_or_an_area_is_full():
    rig = Rig(cow_sectors=32768, origin_sectors=16384)
    per_area = rig.snaps[0].store.exceptions_per_area
    assert per_area == 8192 // 16
    rig.write(rig.bio(WRITE, 0, (per_area + 100) * CHUNK, (per_area + 100) * 2))
    # Area 0 zeroed when made; then full, area 1 zeroed, and the rest of 100.
    assert rig.snaps[0].store.metadata_writes == 1 + 2 + 1
    assert rig.snaps[0].store.current_committed == 100


def test_no_place_is_metadata_and_none_is_given_out_twice():
    rig = Rig(cow_sectors=65536)
    store = ExceptionStore(rig.disks[1], 8, (2, 6, 16))
    stride = store.exceptions_per_area + 1
    given_out = []
    while True:
        first, got = store.prepare(77)
        if not got:
            break
        given_out += range(first, first + got)
    metadata = {0} | {1 + stride * area for area in range(len(given_out) // stride + 2)}
    assert len(set(given_out)) == len(given_out)
    assert not set(given_out) & metadata
    assert chunks_for(len(given_out), 8) <= 64 * 2048 // 8


def test_kcopyd_has_a_megabyte_of_pages_in_flight_to_2_6_39():
    rig = Rig(origin_sectors=16384, drivers=[ram(64, 50 * MS, 64) for _ in range(2)])
    rig.spawn(rig.origin, rig.bio(WRITE, 0, 8192, 1024))
    rig.calendar.run_until(rig.calendar.now + 20 * MS)
    assert rig.snaps[0].client.free_pages == 0
    assert sum(r.args[3] for r in rig.tracer.records() if r.args[:2] == ("sdb", READ)) == 2048
    rig.run()


@pytest.mark.parametrize(("kernel", "in_order"), [((2, 6, 29), False), ((2, 6, 30), True)])
def test_to_2_6_29_who_finds_no_pages_goes_to_the_end_of_the_line(kernel, in_order):
    rig = Rig(kernel=kernel, origin_sectors=16384, cow_sectors=32768)
    rig.write(rig.bio(WRITE, 0, 8192, 1024))
    reads = [r.args[2] for r in rig.tracer.records() if r.args[:2] == ("sdb", READ)]
    assert (reads == sorted(reads)) == in_order
    assert rig.kcopyd.sectors_read == 8192


def test_from_4_20_writers_wait_while_too_many_chunks_are_copied():
    rig = Rig((8,), (5, 4), origin_sectors=65536, cow_sectors=131072, drivers=[ram(64), ram(64)])
    most = [0]

    def watch(_):
        most[0] = max(most[0], len(rig.snaps[0].pending))
        if rig.calendar.now < 20 * S:
            rig.calendar.post(MS // 2, watch, None)

    watch(None)
    rig.write(*(rig.bio(WRITE, n * 512, 512, 64) for n in range(128)))
    assert COW_THRESHOLD <= most[0] < COW_THRESHOLD + 64 + 512
    assert len(rig.snaps[0].complete) == 8192


def test_a_full_snapshot_fails_and_the_origin_goes_on():
    rig = Rig(cow_sectors=20 * CHUNK)  # header, metadata, 18 chunks
    rig.write(*spread(rig, range(18)))
    assert rig.snaps[0].valid and not rig.log
    rig.write(*spread(rig, range(16, 40)))
    assert not rig.snaps[0].valid
    assert rig.log == [INVALID]
    assert rig.origin.stats.writes == 18 + 24
    read = rig.bio(READ, 0, 8)
    rig.write(read, device=rig.volumes[0])
    assert read.error == EIO
    assert rig.volumes[0].stats.reads == 1
    assert all(bio.error == 0 for _, bio in rig.ended if bio is not read)


def test_a_write_of_the_snapshot_that_finds_no_room_fails():
    rig = Rig(cow_sectors=20 * CHUNK)
    write = rig.bio(WRITE, 0, 40 * CHUNK, 80)
    rig.write(write, device=rig.volumes[0])
    assert write.error == EIO
    assert rig.origin.stats.writes == 0


def test_one_snapshot_without_room_leaves_the_others():
    world = Contents((16, 16), (2, 6, 16), [MS], cow_sectors=60 * CHUNK)
    for chunk in range(50):
        world.write(1, chunk * CHUNK, 8, 1, chunk)  # fills the first snapshot
    world.rig.run(30)
    for chunk in range(40, 64):
        world.write(0, chunk * CHUNK, 8, 1, 100 + chunk)
    world.rig.run(30)
    assert [snap.valid for snap in world.rig.snaps] == [False, True]
    assert world.read(2) == world.expected(2)
    assert world.read(0) == world.expected(0)


def test_activation_reads_the_exception_table():
    new, old = Rig(), Rig(copied=600, cow_sectors=32768, origin_sectors=16384)
    assert new.disks[1].stats.reads == 1  # the header
    assert old.disks[1].stats.read_sectors == (1 + 2) * CHUNK  # header, areas of 512 and 88
    old.write(old.bio(WRITE, 0, 600 * CHUNK, 1200))
    assert old.kcopyd.sectors_read == 0
    old.write(old.bio(WRITE, 600 * CHUNK, 8))
    assert old.snaps[0].complete[600] == 2 + 600 + 1


def test_long_bios_are_split_at_chunks():
    rig = Rig()
    rig.write(rig.bio(WRITE, 0, 1024))
    rig.write(rig.bio(READ, 0, 1024))
    assert (rig.origin.stats.writes, rig.real.stats.writes) == (1, 64)
    assert (rig.origin.stats.reads, rig.real.stats.reads) == (1, 64 + 64)


def test_a_full_request_queue_loses_nothing():
    rig = Rig(origin_sectors=65536, cow_sectors=100000, drivers=[ram(64, 5 * MS), ram(64, 5 * MS)])
    scattered = [(n * 37) % 4096 for n in range(3000)]
    rig.write(*spread(rig, scattered), seconds=200)
    rig.write(*spread(rig, scattered), seconds=200)
    assert rig.origin.stats.writes == 6000
    assert len(rig.snaps[0].complete) == len(set(scattered))
