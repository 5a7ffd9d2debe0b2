"""What the members hold after an array has written: told by the bios that reached them.

The members here are doubles that know, for each sector of a bio, which write of which sector of the
array it came from. Contents are sets of such names, exclusive or is their symmetric difference, so
parity is right if the members' sectors of a stripe add up to nothing. A page that RAID 5 takes from
memory must be one that it has read or written before.
"""

import random
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import READ, WRITE, Bio, end_bios
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.drivers.md.dm import TargetIo
from sim.drivers.md.md import ArrayContext
from sim.drivers.md.raid1_10 import Copy
from sim.drivers.md.raid5 import Stripes
from sim.engine.calendar import Calendar
from sim.registry import lookup
from sim.sched.core import Sched
from tests.drivers.md.arrays import KERNELS, MS, PAGE, S

CHUNK = 4 * PAGE
SECTORS = 16 * CHUNK  # of a member: 16 chunks of 16 KiB
NOTHING = frozenset()


class Member(BlockDevice):
    """A member that takes a while, and remembers."""

    def __init__(self, world, number):
        super().__init__(DiskStats(f"sd{number}", 8, number), SECTORS + 128)  # and the superblock
        self.world = world
        self.number = number
        self.held = {}
        self.in_memory = set()  # sectors that were read or written

    def submit_bio(self, bio):
        names = {}
        if bio.op == WRITE:
            sectors = range(bio.sector, bio.sector + bio.nr_sectors)
            names = {sector: self.world.name(bio, sector, self.number) for sector in sectors}
        bio.submitted = bio.count
        delay = self.world.draw.randrange(1, 5 * MS)
        self.world.calendar.post(delay, lambda _: self._done(bio, names), None)
        return True

    def _done(self, bio, names):
        self.held.update(names)
        self.in_memory |= set(range(bio.sector, bio.sector + bio.nr_sectors))
        end_bios(bio, bio.sector, bio.count)

    def unplug(self):
        pass

    def congested(self, op):
        return False


class World:
    """An array over such members."""

    def __init__(self, level, kernel, missing=None, count=4, **given):
        self.calendar = Calendar()
        self.draw = random.Random(1)
        self.sched = Sched(self.calendar, nr_cpus=1, kernel=kernel)
        self.members = {n: Member(self, n) for n in range(count) if n != missing}
        entry = lookup("array", level)
        context = ArrayContext(
            DiskStats("md0", 9, 0),
            self.sched,
            kernel,
            list(self.members.values()),
            frozenset() if missing is None else frozenset({missing}),
        )
        self.count = count
        self.array = entry.cls(entry.params(**given), context)
        self.version = {}  # bio -> its number, kept alive
        self.last = {}

    def name(self, bio, sector, number):
        """Return what a member's bio writes to a sector."""
        origin = bio.private
        if isinstance(origin, TargetIo):
            return self._logical(origin.bio, origin.sector + sector - bio.sector)
        if isinstance(origin, Copy):
            return self._logical(origin.remaining.bio, origin.sector + sector - bio.sector)
        assert isinstance(origin, Stripes)
        if number == origin.parity:
            return self._parity(origin, sector)
        return self._new(origin, number, sector)

    def _logical(self, bio, sector):
        return frozenset({(sector, self.version[bio])})

    def _new(self, run, number, sector):
        """Return a member's new contents: from who writes, or from memory; None if neither."""
        for share in reversed(run.shares):
            if share.member == number and share.sector <= sector < share.end:
                return self._logical(share.remaining.bio, sector + share.offset)
        return self._old(run, number, sector)

    def _old(self, run, number, sector):
        """Return what memory has of a member; of a lost one, if it has all the others."""
        if number in self.members:
            if number not in run.uptodate:
                return None
            assert sector in self.members[number].in_memory
            return self.members[number].held.get(sector, NOTHING)
        others = [self._old(run, other, sector) for other in self.members]
        return None if None in others else reduce(frozenset.symmetric_difference, others)

    def _parity(self, run, sector):
        data = [n for n in range(self.count) if n != run.parity]
        new = [self._new(run, n, sector) for n in data]
        if None not in new:
            return reduce(frozenset.symmetric_difference, new)
        found = self._old(run, run.parity, sector)
        for number in run.touched:
            found = found ^ self._old(run, number, sector) ^ self._new(run, number, sector)
        return found

    def do(self, writes):
        """Write all these stretches of the array at once, and wait."""
        bios = []
        for sector, sectors, count in writes:
            bio = Bio(WRITE, sector, sectors, lambda bio: None, None, count, 0, 1)
            self.version[bio] = len(self.version)
            self.last.update((s, self._logical(bio, s)) for s in range(sector, sector + sectors))
            bios.append(bio)

        def main(task):
            for bio in bios:
                yield from self.array.submit(task, bio)
            self.array.unplug()

        self.sched.spawn("writer", main)
        self.calendar.run_until(self.calendar.now + 20 * S)
        assert all(bio.pending == 0 for bio in bios)

    def read(self, number, sector):
        """Return what a member holds, or would hold, by the parity."""
        if number in self.members:
            return self.members[number].held.get(sector, NOTHING)
        found = [member.held.get(sector, NOTHING) for member in self.members.values()]
        return reduce(frozenset.symmetric_difference, found)


@st.composite
def batches(draw, sectors):
    """Return batches of writes that do not overlap within a batch."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        writes = []
        at = draw(st.integers(0, 60))
        while at < sectors and len(writes) < 12:
            count = draw(st.sampled_from([1, 1, 3, 12]))
            size = 8 if count > 1 else draw(st.sampled_from([1, 5, 8, 8, 16, 50, 96]))
            if at + size * count > sectors:
                break
            writes.append((at, size * count, count))
            at += size * count + draw(st.sampled_from([0, 0, 0, 8, 8, 3, 40]))
        found.append(draw(st.permutations(writes)))
    return found


@settings(max_examples=60, deadline=None)
@given(
    work=batches(3 * SECTORS),
    kernel=st.sampled_from(KERNELS),
    missing=st.sampled_from([None, None, 0, 1, 3]),
    cache=st.sampled_from([17, 40, 256]),
)
def test_parity_is_right_whatever_is_written_in_whatever_pieces(work, kernel, missing, cache):
    world = World("raid5", kernel, missing, chunk_bytes=512 * CHUNK, stripe_cache_size=cache)
    for writes in work:
        world.do(writes)
    world.array.cache.check()
    rotation = world.array._rotation
    for sector, expected in world.last.items():
        number, moved = rotation.compute_sector(sector)
        assert world.read(number, moved) == expected
    if missing is None:
        for sector in {s for member in world.members.values() for s in member.held}:
            held = [world.read(number, sector) for number in range(4)]
            assert reduce(frozenset.symmetric_difference, held) == NOTHING


@settings(max_examples=30, deadline=None)
@given(
    work=batches(SECTORS),
    level=st.sampled_from(["raid0", "striped", "raid1", "raid10"]),
    kernel=st.sampled_from(KERNELS),
    lost=st.integers(0, 3),
)
def test_every_copy_is_where_the_array_looks_for_it(work, level, kernel, lost):
    world = World(level, kernel)
    for writes in work:
        world.do(writes)
    bio = Bio(READ, 0, 1, lambda bio: None)
    for member in world.array.members if level in ("raid1", "raid10") else ():
        member.in_sync = member.index != lost  # whatever was written is still to be had
    for sector, expected in world.last.items():
        member, moved, _room = world.array.reads._target.map(bio, sector)
        assert world.members[member.index].held[moved] == expected


@pytest.mark.parametrize("level", ["raid1", "raid10"])
def test_a_write_beside_a_missing_member_is_on_all_others_that_should_have_it(level):
    world = World(level, (3, 2), missing=1)
    world.do([(0, 400, 50)])
    for sector, expected in world.last.items():
        copies = world.array.writes._copies.copies(sector)
        held = [world.members[m.index].held[moved] for m, moved in copies if m.index != 1]
        assert held and set(held) == {expected}
