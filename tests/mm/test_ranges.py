"""RangeSet against a plain set of numbers."""

from hypothesis import given
from hypothesis import strategies as st

from sim.mm.ranges import RangeSet

BOUND = 40
spans = st.tuples(st.integers(0, BOUND), st.integers(1, 12)).map(lambda pair: (pair[0], sum(pair)))
steps = st.lists(st.tuples(st.booleans(), spans), max_size=40)


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


@given(steps)
def test_ranges_are_as_few_as_can_be(changes):
    ranges, model = build(changes)
    assert ranges.ranges() == sum(1 for page in model if page - 1 not in model)


def test_appending_keeps_one_range():
    ranges = RangeSet()
    for page in range(0, 1_000_000, 100):
        ranges.add(page, page + 100)
    assert list(ranges) == [(0, 1_000_000)]
