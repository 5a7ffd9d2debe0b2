"""Idle states: how deep the governor lets a CPU sleep, and what that costs who wakes it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.scenario import ScenarioError
from sim.sched.cpuidle import (
    TABLES,
    US,
    CpuidleParams,
    HaltPoll,
    Menu,
    typical_interval_us,
    which_bucket,
)
from sim.sched.irq import InterruptLine
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE
from tests.sched.clocks import HASWELL, ClockedRig, bursts
from tests.sched.rig import CFS, MODERN, MS, Rig, S
from tests.user.servers import boot

C1E, C6 = 2, 4


def menu(kernel=MODERN, **more):
    params = CpuidleParams(table="haswell", **more)
    return Menu(params.states(), params.latency_limit_ns, kernel)


def test_a_long_sleep_is_a_deep_one():
    assert menu().select(S, 0) == C6


def test_a_timer_that_is_near_keeps_a_cpu_from_sleeping_deeply():
    assert [menu().select(us * US, 0) for us in (1, 5, 50, 150, 1000)] == [0, 1, C1E, 3, C6]


def test_who_waits_for_io_gets_a_cpu_that_wakes_fast():
    """The examples at the head of cpuidle.py: 0.3 ms with a waiter, 5 ms with a waiter."""
    assert menu().select(300 * US, 1) == C1E
    assert menu().select(5 * MS, 1) == C6
    assert menu((6, 12)).select(300 * US, 1) == 3


def test_idle_times_that_are_alike_are_believed_more_than_the_timer():
    one = menu()
    for _ in range(8):
        one.select(S, 0)
        one.reflect(30 * US)
    assert one.select(S, 0) == C1E


def test_the_governor_learns_that_timers_are_not_what_wakes_it():
    one = menu((2, 6, 32))
    for number in range(40):
        one.select(20 * MS, 0)
        one.reflect((30 + number % 7 * 20) * US)
    assert one.select(20 * MS, 0) < C6


@pytest.mark.parametrize(
    ("limit", "deepest"),
    [
        ({"max_cstate": 0}, 0),
        ({"max_cstate": 1}, 1),
        ({"latency_limit_ns": 0}, 0),
        ({"latency_limit_ns": 15 * US}, C1E),
    ],
)
def test_a_limit_is_kept(limit, deepest):
    assert menu(**limit).select(S, 0) == deepest


@pytest.mark.parametrize("name", TABLES)
def test_deeper_states_take_longer_to_leave_and_pay_later(name):
    states = TABLES[name]
    for upper, lower in pairwise(states):
        assert upper.exit_latency_ns < lower.exit_latency_ns
        assert upper.target_residency_ns <= lower.target_residency_ns


def woken_us(kernel=MODERN, **idle):
    """Return how long after its timer a program that sleeps for 20 ms at a time goes on, us."""
    rig = ClockedRig(1, kernel, cpuidle=CpuidleParams(table="haswell", **idle))
    log = []
    rig.sched.spawn("sleeper", bursts(10 * US, 20 * MS, log))
    rig.run(2)
    return log[-1] / US - 10


def test_the_exit_latency_is_paid_by_who_wakes():
    assert woken_us() == 133
    assert woken_us(max_cstate=2) == 10
    assert woken_us(max_cstate=0) == 0
    assert woken_us(exit_scale=0.5) == 66.5


def test_an_interrupt_wakes_its_cpu_first_and_the_task_on_another_cpu_after_it():
    """Both sleep in C6: the interrupt's CPU wakes, serves it, wakes the other."""
    rig = ClockedRig(2, CFS, cpuidle=HASWELL)
    woken = []

    def waiter(task):
        while True:
            task.set_state(TASK_INTERRUPTIBLE, "packet")
            yield
            task.charge_user(US)
            yield
            woken.append(rig.calendar.now)

    task = rig.sched.spawn("waiter", waiter)
    rig.run(0.1)
    task.cpu = 1
    rig.at(S, lambda _: (InterruptLine(rig.sched, 0, 3 * US).serve(), rig.sched.wake_up(task)))
    rig.run(1.5)
    assert woken == [S + 2 * 133 * US + US]


def test_on_one_cpu_the_task_waits_for_the_interrupt_and_one_exit():
    rig = ClockedRig(1, CFS, cpuidle=HASWELL)
    log = []

    def waiter(task):
        task.set_state(TASK_UNINTERRUPTIBLE, "disk")
        yield
        task.charge_user(US)
        yield
        log.append(rig.calendar.now)

    task = rig.sched.spawn("waiter", waiter)
    rig.run(0.1)
    rig.at(S, lambda _: (InterruptLine(rig.sched, 0, 3 * US).serve(), rig.sched.wake_up(task)))
    rig.run(1)
    assert log == [S + (133 + 3 + 1) * US]


def test_waking_is_idle_time_not_work():
    rig = ClockedRig(1, CFS, cpuidle=HASWELL)
    plain = Rig(1, CFS)
    for one in (rig, plain):
        one.sched.spawn("sleeper", bursts(10 * US, 20 * MS))
        one.run(2)
    assert rig.cpu_s("user_ns") == pytest.approx(plain.cpu_s("user_ns"), rel=0.02)
    assert rig.cpu_s("softirq_ns") == 0


def test_buckets_are_powers_of_ten():
    assert [which_bucket(ns * US, 0) for ns in (5, 50, 500, 5_000, 50_000, 500_000)] == [*range(6)]
    assert which_bucket(5 * US, 1) == 6


def test_a_typical_interval_forgets_two_long_ones():
    assert typical_interval_us([100, 101, 99, 100, 102, 98, 9000, 70_000]) == 100
    assert typical_interval_us([1, 10, 100, 1000, 10_000, 5, 50, 500]) is None


# -- haltpoll

GUEST = CpuidleParams(table="haltpoll", governor="haltpoll", exit_scale=40)


def answers_us(every_us, params=GUEST, wanted=12):
    """Ask a device that takes so long, one question after the other; return what each took, us."""
    rig = ClockedRig(1, cpuidle=params)
    log = []

    def asker(task):
        while len(log) < wanted:
            began_ns = rig.calendar.now
            rig.calendar.post(every_us * US, rig.sched.wake_up, task)
            task.set_state(TASK_UNINTERRUPTIBLE, "disk")
            yield
            task.charge_user(US)
            yield
            log.append((rig.calendar.now - began_ns) / US - 1)

    rig.sched.spawn("asker", asker)
    rig.run(1)
    return log, rig


def test_a_guest_polls_for_answers_that_come_soon_and_halts_for_others():
    """The example at the head of cpuidle.py."""
    assert answers_us(100)[0] == [140, 140] + 10 * [100]
    assert answers_us(5000)[0] == 12 * [5040]


def test_an_answer_that_takes_as_long_as_a_guest_polls_at_most_is_never_polled_for():
    assert set(answers_us(201)[0]) == {241}


def test_without_polling_each_answer_costs_an_exit():
    params = CpuidleParams(
        table="haltpoll", governor="haltpoll", exit_scale=40, guest_halt_poll_ns=0
    )
    assert set(answers_us(100, params)[0]) == {140}


def test_what_was_polled_and_what_was_halted_sum_to_the_idle_time():
    _, rig = answers_us(100)
    polled, halted = rig.residency_ns()
    idle_ns = S - 12 * US
    assert polled + halted == pytest.approx(idle_ns, abs=US)
    assert polled == (50 + 10 * 100) * US  # and what the CPU does now is not known yet


@given(st.lists(st.integers(1, 1000), max_size=40))
def test_a_guest_polls_for_nothing_or_for_50_to_200_us(idle_times_us):
    one = HaltPoll(GUEST)
    for idle_us in idle_times_us:
        before_ns = one.poll_limit_ns
        assert one.reflect(idle_us * US) == min(idle_us * US, before_ns)
        assert one.poll_limit_ns == 0 or 50 * US <= one.poll_limit_ns <= 200 * US


def test_a_release_without_haltpoll_refuses_it():
    table = '[machine.mount."/"]\ntype = "tmpfs"\n'
    table += '[machine.cpuidle]\ntable = "haltpoll"\ngovernor = "haltpoll"'
    boot(machine=table, sets=['machine.kernel = "5.4"'])
    with pytest.raises(ScenarioError) as refused:
        boot(machine=table, sets=['machine.kernel = "5.3"'])
    assert "Linux 5.3 has no governor haltpoll" in str(refused.value)
    assert "5.4 and later, or menu" in str(refused.value)
