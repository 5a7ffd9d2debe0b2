"""The fair class: shares by weight, slices, sleepers, preemption."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.fair import PRIO_TO_WEIGHT, fair_tunables, nice_to_weight
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import CFS, EEVDF, MODERN, MS, Rig, S, compute, hog


def weights_as_shares(nices):
    total = sum(nice_to_weight(nice) for nice in nices)
    return [nice_to_weight(nice) / total for nice in nices]


@pytest.mark.parametrize("kernel", [(2, 6, 24), CFS, MODERN, EEVDF])
def test_hogs_share_one_cpu_by_weight_within_one_percent(kernel):
    nices = (0, 0, 5, 10)
    rig = Rig(kernel=kernel)
    hogs = rig.hogs(*nices)
    assert rig.run(60).shares(hogs) == pytest.approx(weights_as_shares(nices), rel=0.01)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(-5, 10), min_size=1, max_size=6))
def test_shares_follow_any_nice_values(nices):
    rig = Rig(kernel=MODERN)
    hogs = rig.hogs(*nices)
    assert rig.run(60).shares(hogs) == pytest.approx(weights_as_shares(nices), rel=0.05)


def test_each_nice_step_is_a_quarter_more_weight():
    steps = [PRIO_TO_WEIGHT[i] / PRIO_TO_WEIGHT[i + 1] for i in range(39)]
    assert min(steps) > 1.15
    assert max(steps) < 1.35


def test_nice_out_of_range_is_refused():
    with pytest.raises(ValueError, match="nice 20"):
        Rig().hogs(20)


def test_tunables_are_scaled_by_the_number_of_cpus():
    small, large = fair_tunables((4, 4), 2), fair_tunables((4, 4), 8)
    assert (small.latency_ns, small.min_granularity_ns) == (12 * MS, 1_500_000)
    assert (large.latency_ns, large.wakeup_granularity_ns) == (24 * MS, 4 * MS)


def test_two_hogs_take_turns_of_whole_ticks():
    """4.4 on one CPU: 3 ms each, found out at the tick, every 4 ms."""
    rig = Rig(kernel=MODERN, hz=250)
    rig.hogs(0, 0)
    rig.run(10)
    assert rig.sched.nr_switches == pytest.approx(10 * 250, abs=3)


def test_turns_are_finer_with_a_finer_tick():
    rig = Rig(kernel=MODERN, hz=1000)
    rig.hogs(0, 0)
    rig.run(10)
    assert rig.sched.nr_switches == pytest.approx(10 * 333, rel=0.01)


def test_a_hog_alone_is_never_interrupted():
    rig = Rig()
    rig.hogs(0)
    assert rig.run(10).sched.nr_switches == 1


def waits_of_a_sleeper(rig, sleep, work):
    """How long a task that sleeps and works a little waits for the CPU, each time."""
    waits = []

    def main(task):
        while True:
            yield from sleep_ns(task, sleep, TASK_INTERRUPTIBLE)
            before = rig.calendar.now
            task.charge_user(work)
            yield
            waits.append(rig.calendar.now - before - work)

    rig.sched.spawn("sleeper", main)
    return waits


@pytest.mark.parametrize("kernel", [(2, 6, 24), CFS, MODERN, EEVDF])
def test_a_sleeper_preempts_a_hog_at_once(kernel):
    rig = Rig(kernel=kernel)
    rig.hogs(0)
    waits = waits_of_a_sleeper(rig, sleep=30 * MS, work=100_000)
    rig.run(10)
    assert len(waits) > 300
    assert sorted(waits)[len(waits) * 9 // 10] == 0


def test_a_sleeper_gets_no_more_than_its_credit():
    """Having slept for a minute, a task may not run for a minute without the hog."""
    rig = Rig(kernel=MODERN)
    other = rig.hogs(0)[0]
    rig.run(1)

    def late(task):
        yield from sleep_ns(task, 60 * S, TASK_INTERRUPTIBLE)
        yield from hog(task)

    woken = rig.sched.spawn("late", late)
    rig.run(60)
    before = other.utime_ns
    rig.run(1)
    rig.sched.update()
    assert woken.utime_ns == pytest.approx(0.5 * S, rel=0.02)
    assert other.utime_ns - before == pytest.approx(0.5 * S, rel=0.02)


def test_a_new_task_starts_behind():
    """START_DEBIT: a fork does not delay who already runs by more than a slice or two."""
    rig = Rig(kernel=MODERN)
    hogs = rig.hogs(0, 0)
    rig.run(1)
    before = sum(task.utime_ns for task in hogs)
    rig.sched.spawn("new", compute(S))
    rig.run(0.008)
    rig.sched.update()
    assert sum(task.utime_ns for task in hogs) - before >= 4 * MS


def test_run_time_measured_in_ticks_charges_who_runs_at_the_tick():
    """UML: two hogs share alike, and nobody is ever charged a part of 10 ms."""
    rig = Rig(kernel=EEVDF, notsc=True, hz=100)
    hogs = rig.hogs(0, 0)
    began = [task.vruntime for task in hogs]
    rig.run(20)
    assert rig.shares(hogs) == pytest.approx([0.5, 0.5], abs=0.01)
    charged = [task.vruntime - at for task, at in zip(hogs, began, strict=True)]
    assert [ns % (10 * MS) for ns in charged] == [0, 0]


@pytest.mark.parametrize(("count", "turn_us"), [(2, 3000), (4, 1500), (8, 750), (20, 750)])
def test_nobody_s_turn_is_shorter_than_the_minimum_granularity(count, turn_us):
    """4.4 on one CPU: 6 ms for all, or 0.75 ms for each of more than eight; ticks of 0.1 ms."""
    rig = Rig(kernel=MODERN, hz=10_000)
    rig.hogs(*[0] * count)
    rig.run(2)
    assert 2e6 / rig.sched.nr_switches == pytest.approx(turn_us, rel=0.1)
