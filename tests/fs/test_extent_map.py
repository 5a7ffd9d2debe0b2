"""Extent maps: whatever is mapped, the pieces of a range cover it, and its holes are the rest."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sim.fs.extent_map import ExtentMap

BLOCKS = 40
DISTANCE = 1000  # of a file block and its device block, were it all one run


def map_of(mapped: set[int]) -> ExtentMap:
    """Return a map of single blocks; neighbours in the file are not on the device."""
    found = ExtentMap()
    for block in sorted(mapped):
        found.insert(block, DISTANCE + 2 * block, 1)
    return found


@given(st.sets(st.integers(0, BLOCKS - 1)), st.integers(0, BLOCKS), st.integers(0, BLOCKS))
def test_holes_are_what_is_not_mapped(mapped: set[int], one: int, other: int) -> None:
    start, end = min(one, other), max(one, other) + 1
    holes = map_of(mapped).holes(start, end)
    missing = [block for at, stop in holes for block in range(at, stop)]
    assert missing == [block for block in range(start, end) if block not in mapped]
    assert all(stop < following for (_, stop), (following, _) in pairwise(holes))


@given(
    st.integers(0, BLOCKS), st.integers(1, 8), st.integers(0, BLOCKS + 8), st.integers(1, BLOCKS)
)
def test_a_range_is_one_run_if_it_is_one_mapped_piece(
    mapped: int, length: int, start: int, count: int
) -> None:
    found = ExtentMap()
    found.insert(mapped, DISTANCE + mapped, length)
    pieces = found.pieces(start, start + count)
    expected = pieces[0][0] if len(pieces) == 1 else -1
    assert found.run_of(start, start + count) == expected


@given(st.sets(st.integers(0, BLOCKS - 1)), st.integers(0, BLOCKS))
def test_pieces_cover_the_range_in_order(mapped: set[int], start: int) -> None:
    at = start
    for block, count in map_of(mapped).pieces(start, BLOCKS + 1):
        for own in range(at, at + count):
            expected = DISTANCE + 2 * own if own in mapped else -1
            assert (block if block < 0 else block + own - at) == expected
        at += count
    assert at == BLOCKS + 1
