"""The sums that notice a change: their theory, and what they must never do."""

import itertools
import math
import random
from statistics import fmean

import pytest

from calibration.follow.detector import (
    LEARNED_MIN,
    Channel,
    as_normal,
    run_length,
    threshold_for,
)

LEAST = 0.2
THRESHOLD = threshold_for(11, 5.0)


def channel() -> Channel:
    return Channel(least=LEAST, threshold=THRESHOLD)


def feed(one: Channel, values: list[float], begin: int = 0) -> list[tuple[int, float, float]]:
    """Return the number of each reading that was an alarm, since which, and the change."""
    found = []
    for number, value in enumerate(values, start=begin):
        parting = one.take(float(number), value, 0.01)
        if parting is not None:
            found.append((number, parting.since_s, parting.now - parting.before))
    return found


def test_the_threshold_is_that_of_the_hand_estimate() -> None:
    assert threshold_for(11, 5.0) == pytest.approx(6.6, abs=0.1)
    assert run_length(threshold_for(11, 5.0)) == pytest.approx(2 * 11 * 7 * 86400 / 5.0, rel=1e-4)


def test_more_figures_and_more_readings_need_a_higher_threshold() -> None:
    assert threshold_for(5, 5.0) < threshold_for(50, 5.0)
    assert threshold_for(5, 15.0) < threshold_for(5, 5.0)


@pytest.mark.parametrize(
    ("t", "freedom", "normal"),
    # Tables of Student's t: 97.5 % and 99.5 %, whose normal deviates are 1.960 and 2.576.
    [(2.571, 5, 1.960), (2.228, 10, 1.960), (4.032, 5, 2.576), (3.169, 10, 2.576)],
)
def test_t_becomes_the_normal_deviate_that_is_as_seldom(
    t: float, freedom: int, normal: float
) -> None:
    assert as_normal(t, freedom) == pytest.approx(normal, abs=0.02)
    assert as_normal(-t, freedom) == -as_normal(t, freedom)


@pytest.mark.parametrize("seed", range(5))
def test_chance_alone_is_no_alarm_for_a_day(seed: int) -> None:
    chance = random.Random(seed)
    assert feed(channel(), [chance.gauss(3.0, 0.3) for _ in range(17_280)]) == []


def test_without_a_least_change_false_alarms_are_as_seldom_as_siegmund_says() -> None:
    chance = random.Random(1)
    lengths = []
    for _ in range(400):
        one = Channel(least=0.0, threshold=2.0)
        one.mean, one.known, one.squares, one.freedom = 0.0, 10_000, 9_999.0, 9_999
        readings = (one.take(0.0, chance.gauss(0.0, 1.0), 0.01) for _ in itertools.count())
        lengths.append(next(n for n, parting in enumerate(readings, 1) if parting is not None))
    # Run lengths are exponential: their mean is known to 1 / sqrt(400) = 5 %.
    assert fmean(lengths) == pytest.approx(run_length(2.0) / 2, rel=0.2)


# t = ln 2 / scatter / sqrt(1 + 1/12) is z = 4 (cut), 4 and 2.8 with 11 degrees of freedom; the sum
# gains z - 1 each time, until 6.6: after 3, 3 and 4 readings, the last with 2 more for its scatter.
@pytest.mark.parametrize(("scatter", "most"), [(0.04, 3), (0.08, 4), (0.2, 6)])
@pytest.mark.parametrize("seed", range(5))
def test_twice_as_much_is_noticed_in_time(seed: int, scatter: float, most: int) -> None:
    chance = random.Random(seed)
    values = [chance.gauss(3.0, scatter) for _ in range(12)]
    values += [chance.gauss(3.0 + math.log(2), scatter) for _ in range(30)]
    [(number, since, change), *more] = feed(channel(), values)
    assert 12 + 2 <= number < 12 + most
    assert 11 <= since <= 13
    assert change == pytest.approx(math.log(2), abs=3 * scatter)
    assert all(abs(change) < 0.5 for _number, _since, change in more)


def test_one_reading_however_odd_is_no_alarm() -> None:
    chance = random.Random(3)
    values = [chance.gauss(3.0, 0.05) for _ in range(40)]
    values[20] = 30.0
    assert feed(channel(), values) == []


def test_what_is_too_little_to_matter_is_learned_without_a_word() -> None:
    one = channel()
    chance = random.Random(4)
    values = [chance.gauss(3.0, 0.01) for _ in range(20)]
    values += [chance.gauss(3.0 + LEAST / 2, 0.01) for _ in range(20)]
    assert feed(one, values) == []
    assert one.mean > 3.0


def test_a_change_between_two_figures_that_are_too_small_is_not_told() -> None:
    chance = random.Random(6)
    values = [chance.gauss(level, 0.05) for level in (0.0, 1.0) for _ in range(20)]
    assert feed(Channel(least=LEAST, threshold=THRESHOLD, floor=1.5), values) == []
    assert len(feed(Channel(least=LEAST, threshold=THRESHOLD, floor=0.5), values)) == 1


def test_nothing_is_judged_before_something_is_known() -> None:
    one = channel()
    assert feed(one, [0.0, 9.0, 0.0, 9.0, 0.0][: LEARNED_MIN - 1]) == []
    assert not one.is_learned


def test_a_paused_figure_is_judged_by_what_the_twin_says_that_changed() -> None:
    chance = random.Random(5)
    steady = [chance.gauss(1.0, 0.05) for _ in range(20)]
    slower = [chance.gauss(1.7, 0.05) for _ in range(10)]
    expected, surprised = channel(), channel()
    for one in (expected, surprised):
        feed(one, steady)
        one.pause()
        assert feed(one, slower, begin=20) == []
    assert expected.resume(0.7, 0.05, 20.0) is None
    parting = surprised.resume(0.0, 0.05, 20.0)
    assert parting is not None
    assert parting.now - parting.before == pytest.approx(0.7, abs=0.1)
