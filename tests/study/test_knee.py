"""Kneedle finds the knee of curves whose knee is known, and none in a straight line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.study.knee import knee

EVEN = list(range(1, 33))


@given(st.integers(3, 28), st.floats(0.01, 1e6), st.floats(0.01, 1e6))
def test_a_line_that_becomes_flat_has_its_knee_there(full: int, unit: float, height: float) -> None:
    loads = [unit * n for n in EVEN]
    found = knee(loads, [height * min(n, full) for n in EVEN])
    assert found is not None
    assert EVEN[found] == full


def test_the_estimate_by_hand() -> None:
    assert knee([1, 2, 4, 8], [1, 2, 4, 4]) == 2


def test_the_example_of_the_paper() -> None:
    """Figure 2 of Satopaa and others: y = -1 / x + 5 at 0, 0.1 ... 1: the knee is at 0.22."""
    loads = [n / 9 for n in range(10)]
    heights = [-1 / (load + 0.1) + 5 for load in loads]
    found = knee(loads, heights)
    assert found is not None
    assert loads[found] == pytest.approx(0.22, abs=0.01)


@given(st.floats(0.01, 1e6), st.integers(3, 40))
def test_a_straight_line_has_no_knee(slope: float, points: int) -> None:
    assert knee(list(range(points)), [slope * n for n in range(points)]) is None


@pytest.mark.parametrize("heights", [[], [1], [1, 2], [3, 3, 3, 3], [4, 3, 2, 1]])
def test_no_knee_where_nothing_rises(heights: list[float]) -> None:
    assert knee(list(range(len(heights))), heights) is None


def test_a_bend_within_chance_is_no_knee() -> None:
    heights = [100.0, 101.0, 102.0, 102.0, 102.0]
    assert knee([1, 2, 3, 4, 5], heights) == 2
    assert knee([1, 2, 3, 4, 5], heights, noise=1.5) is None


def test_a_server_that_gets_worse_has_its_knee_before() -> None:
    assert knee([1, 2, 4, 8, 16], [10, 20, 40, 30, 20]) == 2
