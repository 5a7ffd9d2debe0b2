"""CONFIG_PREEMPT and CONFIG_PREEMPT_NONE: who is woken waits for the kernel's code, or does not.

Somebody of nice 0 has 3 ms of CPU time before it, in the kernel or in its program, begun at 0; at
1 ms somebody of nice -15 wakes and needs 1 ms.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.sched.cpuidle import CpuidleParams
from sim.sched.guest import GuestParams
from sim.sched.init import sched_init
from sim.sched.params import PREEMPT_FULL, PREEMPT_LAZY, PREEMPT_NONE, SchedParams
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import MS, Rig, S

MODERN = (6, 18, 44)


def urgent_runs_at_ms(preemption, *, user_ms=0, system_ms=0, is_kthread=False, pieces=1):
    """When who woke at 1 ms has had its 1 ms; the other's time comes in so many pieces."""
    rig = Rig(1, MODERN, preemption=preemption, hz=100)
    ended = []

    def slow(task):
        for _ in range(pieces):
            task.charge_user(user_ms * MS // pieces)
            task.charge_system(system_ms * MS // pieces)
            yield
        yield from sleep_ns(task, S, TASK_INTERRUPTIBLE)

    def urgent(task):
        yield from sleep_ns(task, MS, TASK_INTERRUPTIBLE)
        task.charge_user(MS)
        yield
        ended.append(rig.calendar.now / MS)

    rig.sched.spawn("urgent", urgent, nice=-15)
    rig.sched.spawn("slow", slow).is_kthread = is_kthread
    rig.run(0.1)
    return ended[0]


def test_a_preemptible_kernel_gives_way_at_once():
    assert urgent_runs_at_ms(PREEMPT_FULL, system_ms=3) == 2


def test_a_kernel_that_is_not_preemptible_ends_what_it_does():
    assert urgent_runs_at_ms(PREEMPT_NONE, system_ms=3) == 4


def test_a_program_gives_way_at_once_under_all():
    for preemption in (PREEMPT_FULL, PREEMPT_NONE, PREEMPT_LAZY):
        assert urgent_runs_at_ms(preemption, user_ms=3) == 2


def test_a_program_that_enters_the_kernel_gives_way_on_its_way_back():
    """Three calls of 1 ms: who woke at the end of the first, or in it, waits for one more."""
    assert urgent_runs_at_ms(PREEMPT_NONE, system_ms=3, pieces=3) <= 3


def test_a_kernel_thread_gives_way_when_it_sleeps():
    """It has no program to go back to: the end of one thing that it does is no place to stop."""
    ended = urgent_runs_at_ms(PREEMPT_NONE, system_ms=3, pieces=3, is_kthread=True)
    assert ended == 4


@pytest.mark.parametrize("is_kthread", [False, True])
def test_a_lazily_preemptible_kernel_gives_way_at_the_next_tick(is_kthread):
    """Ticks of 10 ms: who woke at 1 ms has its turn at 10, or when the code ends before."""
    assert urgent_runs_at_ms(PREEMPT_LAZY, system_ms=30, is_kthread=is_kthread) == 11
    assert urgent_runs_at_ms(PREEMPT_NONE, system_ms=30, is_kthread=is_kthread) == 31
    assert urgent_runs_at_ms(PREEMPT_LAZY, system_ms=3, is_kthread=is_kthread) == 4


@pytest.mark.parametrize(
    ("kernel", "preemption"),
    [("2.6.16", "none"), ("6.18", "none"), ("7.0", "lazy"), ("7.2", "lazy")],
)
def test_the_default_is_the_kernel_s_own(kernel, preemption):
    default = SchedParams.kernel_defaults(kernel).get("preemption", (SchedParams().preemption, ""))
    assert default[0] == preemption


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.sampled_from((-15, 0, 10)))
def test_no_cpu_time_is_lost_or_made(tenths, nice):
    """All work is done in the time that it takes, whoever had to wait."""
    for preemption in (PREEMPT_FULL, PREEMPT_NONE, PREEMPT_LAZY):
        rig = Rig(1, MODERN, preemption=preemption)

        def work(task, ns):
            yield from sleep_ns(task, ns // 7, TASK_INTERRUPTIBLE)
            task.charge_system(ns // 2)
            task.charge_user(ns - ns // 2)
            yield

        for number, tenth in enumerate(tenths):
            ns = tenth * MS // 10
            rig.sched.spawn("t", lambda task, ns=ns: work(task, ns), nice=nice if number % 2 else 0)
        rig.run(1)
        assert rig.cpu_s("user_ns") + rig.cpu_s("nice_ns") + rig.cpu_s(
            "system_ns"
        ) == pytest.approx(sum(tenths) / 10_000)


@pytest.mark.parametrize(
    "hardware",
    [{}, {"cpuidle": CpuidleParams(table="haswell")}, {"guest": GuestParams(host_cpus=2)}],
)
def test_every_kind_of_cpu_knows_of_it(hardware):
    calendar = Calendar()
    params = SchedParams(preemption=PREEMPT_NONE)
    sched = sched_init(calendar, 2, MODERN, params, Tracer(calendar), Streams(1), hardware)
    assert [rq._preemptible for rq in sched.rqs] == [False, False]
