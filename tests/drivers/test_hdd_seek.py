"""The seek curve: the data sheet's values in either shape, and no arm that overtakes itself."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.drivers.hdd import BLEND, TWO_PART, SeekCurve

CYLINDERS = 10_001


def curve(shape, track_ns=200_000, average_ns=3_500_000, full_ns=7_400_000):
    return SeekCurve(track_ns, average_ns, full_ns, shape, CYLINDERS, 0.4)


def mean_ns(seek):
    draw = random.Random(1)
    pairs = (abs(draw.randrange(CYLINDERS) - draw.randrange(CYLINDERS)) for _ in range(100_000))
    return sum(seek.ns(far) if far else 0 for far in pairs) / 100_000


@pytest.mark.parametrize("shape", [BLEND, TWO_PART])
@pytest.mark.parametrize("average_ns", [2_700_000, 3_500_000, 4_000_000])
def test_the_seek_curve_has_the_data_sheets_three_values(shape, average_ns):
    seek = curve(shape, average_ns=average_ns)
    assert seek.base_ns == 200_000
    assert seek.ns(CYLINDERS - 1) == pytest.approx(7_400_000, rel=1e-5)
    assert mean_ns(seek) == pytest.approx(average_ns, rel=0.005)


@pytest.mark.parametrize("average_ns, nearest_ns", [(1_000_000, 2_600_000), (6_500_000, 4_485_000)])
def test_an_average_that_no_two_parts_have_gives_the_nearest(average_ns, nearest_ns):
    assert mean_ns(curve(TWO_PART, average_ns=average_ns)) == pytest.approx(nearest_ns, rel=0.005)


def test_the_parts_meet_without_step_or_bend():
    seek = curve(TWO_PART)
    steps = [seek.ns(seek.knee + i + 1) - seek.ns(seek.knee + i) for i in (-100, -1, 0, 1, 100)]
    assert max(steps) - min(steps) < 0.05 * min(steps)


@given(
    st.sampled_from([BLEND, TWO_PART]),
    # In whole ns, the average of a shorter stroke may be less than the third that a curve needs.
    st.integers(0, 2_000_000),
    st.floats(0.34, 0.53),
    st.just(0) | st.integers(1000, 20_000_000),
)
def test_a_longer_seek_takes_no_less_time(shape, track_ns, share, stroke_ns):
    average_ns = track_ns + int(share * stroke_ns)
    seek = SeekCurve(track_ns, average_ns, track_ns + stroke_ns, shape, CYLINDERS, 0.4)
    times = [seek.ns(far) for far in (1, 2, 3, 5, 8, 20, 100, 500, 1000, 2000, 5000, 9999, 10_000)]
    assert all(shorter <= longer + 1 for shorter, longer in pairwise(times))
    assert times[0] >= track_ns


def test_an_arm_that_takes_no_time_takes_none():
    for shape in (BLEND, TWO_PART):
        assert SeekCurve(0, 0, 0, shape, 1, 0.4).ns(1) == 0
