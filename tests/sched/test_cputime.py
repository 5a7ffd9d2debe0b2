"""Where CPU time goes: columns of /proc/stat."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.irq import InterruptLine
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, sleep_ns
from tests.sched.rig import CFS, MS, O1, RELEASES, US, Rig, S, compute, sleeper

D, I = TASK_UNINTERRUPTIBLE, TASK_INTERRUPTIBLE  # noqa: E741


def test_one_waiter_makes_one_of_two_cpus_wait():
    rig = Rig(cpus=2)
    rig.sched.spawn("reader", sleeper(D, 10 * MS, in_iowait=True))
    rig.run(10)
    assert (rig.cpu_s("iowait_ns"), rig.cpu_s("idle_ns")) == (10, 10)


def test_two_waiters_on_two_cpus_make_both_wait():
    rig = Rig(cpus=2)
    for task in [rig.sched.spawn("reader", compute(MS)) for _ in range(2)]:
        task.gen = sleeper(D, 10 * MS, in_iowait=True)(task)
    rig.run(10)
    assert rig.cpu_s("iowait_ns") == pytest.approx(20, abs=0.01)


def test_uninterruptible_sleep_outside_io_schedule_is_idle_time():
    rig = Rig()
    rig.sched.spawn("log_wait_commit", sleeper(D, 10 * MS))
    rig.run(10)
    assert (rig.cpu_s("iowait_ns"), rig.cpu_s("idle_ns")) == (0, 10)


def test_work_hides_iowait():
    rig = Rig()
    rig.sched.spawn("reader", sleeper(D, 10 * MS, in_iowait=True))
    rig.hogs(0)
    rig.run(10)
    assert (rig.cpu_s("iowait_ns"), rig.cpu_s("user_ns")) == (0, 10)


def test_procs_blocked_counts_io_sleepers_only():
    rig = Rig(cpus=2)
    rig.sched.spawn("reader", sleeper(D, S, in_iowait=True))
    rig.sched.spawn("fsync", sleeper(D, S))
    rig.sched.spawn("daemon", sleeper(I, S))
    rig.run(0.5)
    assert (rig.sched.nr_iowait, rig.sched.nr_uninterruptible, rig.sched.nr_running) == (1, 2, 0)


def test_columns_tell_user_nice_and_system_apart():
    rig = Rig()

    def main(task):
        task.charge_user(3 * MS)
        task.charge_system(2 * MS)
        yield

    rig.sched.spawn("plain", main)
    rig.sched.spawn("niced", main, nice=5)
    rig.run(1)
    cpu = rig.sched.cpu_times[0]
    assert (cpu.user_ns, cpu.nice_ns, cpu.system_ns) == (3 * MS, 3 * MS, 4 * MS)


def test_a_context_switch_is_system_time():
    rig = Rig(switch_ns=2 * US)
    rig.sched.spawn("sleeper", sleeper(I, MS, until_ns=100 * MS))
    rig.run(1)
    assert rig.sched.cpu_times[0].system_ns == rig.sched.nr_switches // 2 * 2 * US


def test_going_idle_and_coming_back_are_two_switches():
    rig = Rig()
    rig.sched.spawn("sleeper", sleeper(I, 10 * MS))
    rig.run(1.0001)
    assert rig.sched.nr_switches == 2 + 2 * 100


def test_interrupts_delay_the_running_task_and_are_softirq_time():
    rig = Rig()
    task = rig.sched.spawn("victim", compute(10 * MS))
    for ms in (1, 2, 3):
        rig.at(ms * MS, lambda _: InterruptLine(rig.sched, 0, 100 * US).serve())
    rig.run(0.0102)
    assert task.on_rq
    rig.run(0.0001)
    assert not task.on_rq
    cpu = rig.sched.cpu_times[0]
    assert (cpu.softirq_ns, cpu.user_ns, rig.sched.nr_interrupts) == (300 * US, 10 * MS, 3)


def test_interrupts_of_an_idle_cpu_are_not_idle_time():
    rig = Rig()
    rig.at(MS, lambda _: InterruptLine(rig.sched, 0, 100 * US).serve())
    rig.run(1)
    assert rig.sched.cpu_times[0].idle_ns == S - 100 * US


programs = st.lists(
    st.tuples(
        st.sampled_from([I, D]),
        st.integers(0, 3 * MS),
        st.integers(0, 3 * MS),
        st.integers(20 * US, 5 * MS),
        st.booleans(),
        st.integers(-20, 19),
    ),
    min_size=1,
    max_size=8,
)


def mixed(state, user, system, sleep, in_iowait):
    def main(task):
        while True:
            task.charge_user(user)
            task.charge_system(system)
            yield
            task.in_iowait = in_iowait
            yield from sleep_ns(task, sleep, state)
            task.in_iowait = False

    return main


@settings(max_examples=60, deadline=None)
@given(programs, st.integers(1, 4), st.sampled_from(RELEASES), st.integers(0, 20 * US))
def test_states_sum_to_elapsed_time_and_tasks_to_busy_time(programs, cpus, kernel, switch_ns):
    rig = Rig(cpus, kernel, switch_ns=switch_ns)
    tasks = [rig.sched.spawn("mixed", mixed(*program[:5]), nice=program[5]) for program in programs]
    for ms in range(0, 200, 7):
        rig.at(ms * MS, lambda _: InterruptLine(rig.sched, 0, 50 * US).serve())
    for _ in range(10):
        rig.run(0.02)
        times = rig.sched.cpu_times
        assert [cpu.total_ns() for cpu in times] == [rig.calendar.now] * cpus
        busy = sum(cpu.busy_ns() - cpu.softirq_ns for cpu in times)
        assert busy == sum(task.utime_ns + task.stime_ns for task in tasks)
        asleep = [task for task in tasks if not task.on_rq]
        assert rig.sched.nr_running == len(tasks) - len(asleep)
        assert rig.sched.nr_uninterruptible == sum(task.state == D for task in asleep)
        assert rig.sched.nr_iowait == sum(task.in_iowait for task in asleep)


@pytest.mark.parametrize("kernel", [O1, CFS])
def test_a_cpu_is_never_idle_while_its_own_queue_waits(kernel):
    rig = Rig(cpus=2, kernel=kernel)
    rig.hogs(0, 0, 0, 5)
    rig.run(5)
    assert rig.cpu_s("idle_ns") == 0
