"""Where sectors lie: bijections, capacity, and contents that survive the loss of members.

Contents are symbolic: what is written is a name, parity the set of names that are in it an odd
number of times (exclusive or of sets is their symmetric difference).
"""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import READ, Bio
from sim.drivers.md.dm import Chunks, Target, cut, nothing
from sim.drivers.md.md import RESERVED_SECTORS, usable
from sim.drivers.md.raid0 import StripZones, strip_zones
from sim.drivers.md.raid5 import ALGORITHMS, Rotation
from sim.drivers.md.raid10 import Geometry, Raid10Params
from sim.registry import lookup, names
from tests.drivers.md.arrays import params_of

CHUNK = 8  # sectors: 4 KiB
SIZES = st.lists(st.integers(1, 12).map(lambda chunks: chunks * CHUNK), min_size=1, max_size=6)


class Number:
    """A member that is only known by its number."""

    def __init__(self, index: int) -> None:
        self.index = index


def places(layout: Target, sectors: int) -> list[tuple[int, int]]:
    """Return (member, sector) of every sector of an array."""
    bio = Bio(READ, 0, 1, nothing)
    found = []
    for sector in range(sectors):
        member, moved, _room = layout.map(bio, sector)
        found.append((member.index, moved))
    return found


@given(SIZES, st.booleans())
def test_raid0_uses_each_sector_of_each_member_once(sizes: list[int], alternate: bool) -> None:
    zones = strip_zones(sizes, CHUNK)
    layout = StripZones([Number(i) for i in range(len(sizes))], zones, CHUNK, alternate)
    found = places(layout, zones[-1].end)
    assert sorted(found) == [(i, s) for i, size in enumerate(sizes) for s in range(size)]


@given(SIZES)
def test_raid0_chunks_lie_together(sizes: list[int]) -> None:
    zones = strip_zones(sizes, CHUNK)
    layout = StripZones([Number(i) for i in range(len(sizes))], zones, CHUNK, False)
    found = places(layout, zones[-1].end)
    for start in range(0, zones[-1].end, CHUNK):
        member, first = found[start]
        assert found[start : start + CHUNK] == [(member, first + i) for i in range(CHUNK)]


@given(st.sampled_from(sorted(ALGORITHMS)), st.integers(3, 8), st.integers(1, 20))
def test_raid5_data_and_parity_fill_the_members(algorithm: str, count: int, stripes: int) -> None:
    rotation = Rotation(CHUNK, count, algorithm)
    sectors = stripes * (count - 1) * CHUNK
    data = [rotation.compute_sector(sector) for sector in range(sectors)]
    parity = [(rotation.parity(s // CHUNK), s) for s in range(stripes * CHUNK)]
    everything = [(m, s) for m in range(count) for s in range(stripes * CHUNK)]
    assert sorted(data + parity) == everything


@given(st.integers(3, 8), st.integers(0, 40))
def test_left_symmetric_data_goes_round_all_members(count: int, chunk: int) -> None:
    """So that any `count` chunks in a row are read from all of them."""
    rotation = Rotation(CHUNK, count, "left-symmetric")
    numbers = {rotation.compute_sector((chunk + i) * CHUNK)[0] for i in range(count)}
    assert numbers == set(range(count))


def test_left_symmetric_is_the_table_of_the_manual() -> None:
    """Five members, as in mdadm's pictures: the parity moves to the left, data begins behind it."""
    rotation = Rotation(CHUNK, 5, "left-symmetric")
    table = [["P"] * 5 for _ in range(3)]
    for chunk in range(12):
        number, sector = rotation.compute_sector(chunk * CHUNK)
        table[sector // CHUNK][number] = str(chunk)
    assert [" ".join(row) for row in table] == ["0 1 2 3 P", "5 6 7 P 4", "10 11 P 8 9"]


RAID10 = st.tuples(
    st.sampled_from(["near", "far", "offset"]),
    st.integers(2, 4),
    st.integers(2, 7),
    st.integers(4, 30),
).filter(lambda one: one[1] <= one[2])


def geometry(layout: str, copies: int, count: int, chunks: int) -> tuple[Geometry, int]:
    """Return the geometry and the sectors of the array."""
    params = Raid10Params(layout=layout, copies=copies, chunk_bytes=4096)
    made = Geometry(params, count, chunks * CHUNK)
    return made, made.array_sectors(chunks * CHUNK)


@given(RAID10)
def test_raid10_copies_are_on_different_members_and_never_share_a_sector(
    shape: tuple[str, int, int, int],
) -> None:
    made, sectors = geometry(*shape)
    taken = set()
    for sector in range(sectors):
        found = made.find_phys(sector)
        assert len({number for number, _moved in found}) == shape[1] == len(found)
        assert all(0 <= moved < shape[3] * CHUNK for _number, moved in found)
        taken |= set(found)
    assert len(taken) == shape[1] * sectors


@given(RAID10)
def test_raid10_is_found_again_from_each_of_its_members(shape: tuple[str, int, int, int]) -> None:
    made, sectors = geometry(*shape)
    for sector in range(sectors):
        for number, moved in made.find_phys(sector):
            assert made.find_virt(number, moved) == sector


def test_near_far_and_offset_are_those_of_the_manual() -> None:
    """md(4): chunks of three members, two copies; each row is a row of chunks."""
    tables = {}
    for layout in ("near", "far", "offset"):
        made, _sectors = geometry(layout, 2, 3, 4)
        table = [["-"] * 3 for _ in range(4)]
        for chunk in range(6):
            for number, moved in made.find_phys(chunk * CHUNK):
                table[moved // CHUNK][number] = str(chunk)
        tables[layout] = [" ".join(row) for row in table]
    assert tables == {
        "near": ["0 0 1", "1 2 2", "3 3 4", "4 5 5"],
        "far": ["0 1 2", "3 4 5", "2 0 1", "5 3 4"],
        "offset": ["0 1 2", "2 0 1", "3 4 5", "5 3 4"],
    }


# -- Contents.


class Shadow:
    """Members' contents as names, written through a level's layout."""

    def __init__(self, copies_of, parity_of=None):
        self.copies_of = copies_of  # sector -> [(member, sector)]
        self.parity_of = parity_of  # member's sector -> (member with parity, members)
        self.member = {}

    def write(self, sector, name):
        for number, moved in self.copies_of(sector):
            if self.parity_of is not None:
                parity, _count = self.parity_of(moved)
                old = self.member.get((number, moved), frozenset())
                self._change((parity, moved), old ^ {name})
            self.member[number, moved] = frozenset({name})

    def _change(self, place, names):
        self.member[place] = self.member.get(place, frozenset()) ^ names

    def read(self, sector, lost=frozenset()):
        """Return what is there, without the lost members; None if it cannot be had."""
        for number, moved in self.copies_of(sector):
            if number not in lost:
                return self.member.get((number, moved), frozenset())
            if self.parity_of is not None:
                others = [n for n in range(self.parity_of(moved)[1]) if n != number]
                if not lost & set(others):
                    found = frozenset()
                    for other in others:
                        found ^= self.member.get((other, moved), frozenset())
                    return found
        return None


def shadows():
    """Return (array sectors, members, shadow) of a small array of each level that keeps twice."""
    count = 5
    rotation = Rotation(CHUNK, count, "left-symmetric")
    yield (
        16 * CHUNK,
        count,
        1,
        Shadow(
            lambda s: [rotation.compute_sector(s)],
            lambda moved: (rotation.parity(moved // CHUNK), count),
        ),
    )
    yield 16 * CHUNK, 3, 2, Shadow(lambda s: [(n, s) for n in range(3)])
    for layout in ("near", "far", "offset"):
        made, sectors = geometry(layout, 3, count, 12)
        yield sectors, count, 2, Shadow(made.find_phys)


@settings(max_examples=60)
@given(st.data())
def test_what_was_written_last_is_read_also_without_the_members_that_may_be_lost(
    data: st.DataObject,
) -> None:
    sectors, count, may_lose, shadow = data.draw(st.sampled_from(list(shadows())))
    writes = data.draw(st.lists(st.integers(0, sectors - 1), max_size=60))
    last = {}
    for number, sector in enumerate(writes):
        shadow.write(sector, number)
        last[sector] = frozenset({number})
    for lost in combinations(range(count), may_lose):
        for sector in range(sectors):
            assert shadow.read(sector, set(lost)) == last.get(sector, frozenset())


# -- Capacity and what may be lost.


LENT = (1 << 21) - RESERVED_SECTORS  # of 1 GiB
CAPACITY = {
    "raid0": 4 * LENT,
    "striped": 4 << 21,
    "raid1": LENT,
    "raid5": 3 * LENT,
    "raid10": 2 * LENT,
}


@pytest.mark.parametrize("level", CAPACITY)
def test_four_equal_members_have_the_capacity_of_the_level(level: str) -> None:
    cls = lookup("array", level).cls
    assert cls.array_sectors(params_of(level), [1 << 21] * 4, 4) == CAPACITY[level]


@pytest.mark.parametrize("level", names("array"))
def test_one_member_more_is_never_less(level: str) -> None:
    cls = lookup("array", level).cls
    sizes = [cls.array_sectors(params_of(level), [1 << 21] * n, n) for n in range(3, 9)]
    assert sizes == sorted(sizes)


def test_what_may_be_lost_is_what_the_level_stands() -> None:
    for level in names("array"):
        cls = lookup("array", level).cls
        params = params_of(level)
        for count in (4, 5):
            most = cls.may_lose(params, count)
            sets = [frozenset(lost) for lost in combinations(range(count), most)]
            assert all(cls.stands(params, count, lost) for lost in sets), level
            more = [frozenset(lost) for lost in combinations(range(count), most + 1)]
            assert not all(cls.stands(params, count, lost) for lost in more), level


def test_the_smallest_member_counts_without_its_superblock() -> None:
    assert usable([1000 * RESERVED_SECTORS + 5, 1 << 30], RESERVED_SECTORS) == 999 * 128


# -- Cutting runs at borders.


@given(st.integers(0, 100), st.integers(1, 20), st.integers(1, 30), st.sampled_from([4, 8, 16, 64]))
def test_a_run_is_cut_without_loss_and_bios_stay_whole_within_a_chunk(
    start: int, size: int, count: int, chunk: int
) -> None:
    bio = Bio(READ, start, size * count, nothing, None, count)
    at = start
    for sector, sectors, bios in cut(bio, Chunks(chunk)):
        assert sector == at
        assert sector // chunk == (sector + sectors - 1) // chunk
        whole = (sector - start) % size == 0 and sectors == bios * size
        assert whole or (bios == 1 and sectors < size)
        at += sectors
    assert at == start + size * count
