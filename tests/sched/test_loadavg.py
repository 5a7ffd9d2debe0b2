"""The load average."""

import math

import pytest

from sim.sched.loadavg import EXP_N, FIXED_1, LoadAverage, calc_load
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE
from tests.sched.rig import CFS, EEVDF, MODERN, MS, O1, Rig, S, sleeper


def machine(kernel=MODERN, cpus=1):
    rig = Rig(cpus, kernel)
    load = LoadAverage(rig.sched)
    load.start()
    return rig, load


def shown(load):
    return [round(value / FIXED_1, 2) for value in load.avenrun]


def test_ten_counted_tasks_from_zero_give_the_computed_table():
    rig, load = machine(cpus=4)
    rig.hogs(*[0] * 10)
    seen = []
    for until_s in (5.01, 10.01, 30.04, 60.1, 120.1, 300.3):
        rig.run(until_s - rig.calendar.now / S)
        seen.append(shown(load)[0])
    assert seen == pytest.approx([0.80, 1.54, 3.94, 6.33, 8.65, 9.94], abs=0.011)


@pytest.mark.parametrize(
    ("kernel", "steady"),
    [(O1, [0.99, 0.97, 0.91]), ((2, 6, 39), [1.0, 0.99, 0.95]), (EEVDF, [1.0, 1.0, 1.0])],
)
def test_rounding_of_each_release_shows_in_the_steady_state(kernel, steady):
    rig, load = machine(kernel)
    rig.sched.spawn("waiter", sleeper(TASK_UNINTERRUPTIBLE, 20001 * S))
    rig.run(20000)
    assert [math.floor(x / FIXED_1 * 100 + 0.5) / 100 for x in load.avenrun] == pytest.approx(
        steady, abs=0.011
    )


def test_an_idle_machine_of_2_6_39_shows_the_famous_triple():
    load = [FIXED_1] * 3
    for _ in range(5000):
        load = [calc_load(old, exp, 0, "half up") for old, exp in zip(load, EXP_N, strict=True)]
    assert [(x + FIXED_1 // 200) * 100 // FIXED_1 for x in load] == [0, 1, 5]


def test_uninterruptible_sleepers_count_and_interruptible_ones_do_not():
    rig, load = machine()
    for _ in range(7):
        rig.sched.spawn("fsync", sleeper(TASK_UNINTERRUPTIBLE, 600 * S))
        rig.sched.spawn("daemon", sleeper(TASK_INTERRUPTIBLE, 600 * S))
    rig.run(500)
    assert shown(load)[0] == 7.0


def test_the_sample_is_an_instant():
    """A task that runs 4.9 of each 5 s, but not at the sample, leaves no trace (2.6.16)."""
    rig, load = machine(O1)

    def punctual(task):
        while True:
            task.charge_user(4900 * MS)
            yield
            yield from sleeper(TASK_INTERRUPTIBLE, 100 * MS, until_ns=rig.calendar.now + 1)(task)

    rig.sched.spawn("punctual", punctual)
    rig.run(600)
    assert load.avenrun == [0, 0, 0]


def test_later_releases_sample_a_tick_later_each_time():
    for kernel, period_ns in ((O1, 5 * S), (CFS, 5 * S + 4 * MS)):
        rig, load = machine(kernel)
        rig.hogs(0)
        rig.run((period_ns - 1) / S)
        assert load.avenrun[0] == 0
        rig.run(2e-9)
        assert load.avenrun[0] > 0


def test_an_uncounted_moment_between_wake_and_sleep_does_not_exist():
    """Tasks that alternate between D and R all count, whatever the sample meets."""
    rig, load = machine(cpus=2)

    def journal_user(task):
        while True:
            task.charge_system(100 * MS)
            yield
            yield from sleeper(TASK_UNINTERRUPTIBLE, 300 * MS, until_ns=rig.calendar.now + 1)(task)

    for _ in range(5):
        rig.sched.spawn("user", journal_user)
    rig.run(600)
    assert shown(load)[0] == 5.0
