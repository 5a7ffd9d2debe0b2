"""Utilisation of tasks: half forgotten after 32 periods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.sched.pelt import HALF_LIFE_NS, decayed, utilisation
from tests.sched.rig import EEVDF, MS, Rig

LEVELS = st.floats(0, 1)


@given(LEVELS, LEVELS)
def test_half_of_the_way_is_gone_after_a_half_life(value, towards):
    assert decayed(value, towards, HALF_LIFE_NS) == pytest.approx((value + towards) / 2)


@given(LEVELS, LEVELS, st.integers(0, 200 * MS), st.integers(0, 200 * MS))
def test_two_steps_on_the_way_to_one_level_are_one(value, towards, first, second):
    once = decayed(value, towards, first + second)
    assert decayed(decayed(value, towards, first), towards, second) == pytest.approx(once)


def test_a_hog_that_had_half_of_a_cpu_is_seen_to_fill_one_after_57_ms():
    rig = Rig(1, EEVDF)
    first, second = rig.hogs(0, 0)
    for _ in range(100):  # a tick each
        rig.run(0.004)
        rig.sched.update()
        utilisation(first, rig.calendar.now)
    assert first.util_avg == pytest.approx(0.5, abs=0.05)
    first.util_avg = 0.5
    since = rig.calendar.now
    first.util_ran_ns = first.utime_ns
    rig.sched.rqs[0].detach(second if second in rig.sched.rqs[0].queue.waiting() else first)
    alone = rig.sched.rqs[0].curr
    alone.util_avg, alone.util_ns, alone.util_ran_ns = 0.5, since, alone.utime_ns
    rig.run(0.056)
    rig.sched.update()
    assert utilisation(alone, rig.calendar.now) < 100 / 117
    rig.run(0.004)
    rig.sched.update()
    assert utilisation(alone, rig.calendar.now) > 100 / 117
