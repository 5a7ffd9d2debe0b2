"""Bisection as Python's; sets of ranges against plain sets; maps of ranges cover what is asked."""

import bisect
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sim.engine.ranges import ExtentMap, RangeSet, bisect_left, bisect_right

VALUES = st.integers(-(1 << 62), 1 << 62) | st.integers(0, 20)
SORTED = st.lists(VALUES, max_size=40).map(sorted)
BOUND = 40
spans = st.tuples(st.integers(0, BOUND), st.integers(1, 12)).map(lambda pair: (pair[0], sum(pair)))
steps = st.lists(st.tuples(st.booleans(), spans), max_size=40)


BLOCKS = 40
DISTANCE = 1000  # of a file block and its device block, were it all one run


def pages(ranges):
    return {page for start, end in ranges for page in range(start, end)}


def build(changes):
    ranges, model = RangeSet(), set()
    for adds, (start, end) in changes:
        span = set(range(start, end))
        if adds:
            assert ranges.add(start, end) == len(span - model)
            model |= span
        else:
            assert ranges.remove(start, end) == len(span & model)
            model -= span
        ranges.check()
    return ranges, model


@given(steps)
def test_adding_and_removing_is_what_it_is_for_sets(changes):
    ranges, model = build(changes)
    assert pages(ranges) == model
    assert ranges.count == len(model)


@given(steps, spans)
def test_questions_about_a_span_agree_with_the_set(changes, span):
    ranges, model = build(changes)
    start, end = span
    inside = set(range(start, end)) & model
    outside = set(range(start, end)) - model
    assert pages(ranges.overlap(start, end)) == inside
    assert pages(ranges.missing(start, end)) == outside
    assert ranges.count_in(start, end) == len(inside)
    assert ranges.intersects(start, end) == bool(inside)
    assert ranges.covers(start, end) == (not outside)
    assert ranges.first(start, end) == min(inside, default=-1)
    assert min(ranges.covered_until(start), end) == min(outside, default=end)
    assert ranges.contains(start) == (start in model)
    first, stop = ranges.first_run(start, end)
    assert first == min(inside, default=-1)
    assert set(range(first, stop)) <= inside
    assert first < 0 or stop == end or stop not in model


@given(steps)
def test_ranges_are_as_few_as_can_be(changes):
    ranges, model = build(changes)
    assert ranges.ranges() == sum(1 for page in model if page - 1 not in model)


def test_appending_keeps_one_range():
    ranges = RangeSet()
    for page in range(0, 1_000_000, 100):
        ranges.add(page, page + 100)
    assert list(ranges) == [(0, 1_000_000)]


@given(SORTED, VALUES)
def test_bisect_left_is_pythons(values: list[int], value: int) -> None:
    assert bisect_left(values, value) == bisect.bisect_left(values, value)


@given(SORTED, VALUES)
def test_bisect_right_is_pythons(values: list[int], value: int) -> None:
    assert bisect_right(values, value) == bisect.bisect_right(values, value)


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
