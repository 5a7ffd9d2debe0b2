"""Bisection finds what Python's bisect finds."""

import bisect

from hypothesis import given
from hypothesis import strategies as st

from sim.engine.bisection import bisect_left, bisect_right

VALUES = st.integers(-(1 << 62), 1 << 62) | st.integers(0, 20)
SORTED = st.lists(VALUES, max_size=40).map(sorted)


@given(SORTED, VALUES)
def test_bisect_left_is_pythons(values: list[int], value: int) -> None:
    assert bisect_left(values, value) == bisect.bisect_left(values, value)


@given(SORTED, VALUES)
def test_bisect_right_is_pythons(values: list[int], value: int) -> None:
    assert bisect_right(values, value) == bisect.bisect_right(values, value)
