"""Wait queues, timeouts, kernel threads."""

import pytest

from sim.sched.kthread import kthread_run, schedule_timeout
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, sleep_ns
from sim.sched.wait import WaitQueue
from tests.sched.rig import MS, O1, US, Rig

D = TASK_UNINTERRUPTIBLE


def waiters(rig, queue, count, work_ns=0):
    def main(task):
        task.charge_system(work_ns)
        yield from queue.sleep_on(task, D, "test")
        rig.note(task.comm)

    return [rig.sched.spawn(f"w{number}", main) for number in range(count)]


def test_wake_one_wakes_the_oldest():
    rig, queue = Rig(kernel=O1), WaitQueue()
    waiters(rig, queue, 3)
    for ms in (1, 2, 3):
        rig.at(ms * MS, lambda _: queue.wake_one())
    assert rig.run(1).log == [(MS, "w0"), (2 * MS, "w1"), (3 * MS, "w2")]


def test_wake_all_wakes_everybody_in_order():
    rig, queue = Rig(kernel=O1), WaitQueue()
    waiters(rig, queue, 3)
    rig.at(MS, lambda _: rig.note(queue.wake_all()))
    assert rig.run(1).log == [(MS, 3), (MS, "w0"), (MS, "w1"), (MS, "w2")]


def test_waking_an_empty_queue_does_nothing():
    queue = WaitQueue()
    assert (queue.wake_one(), queue.wake_all(), len(queue)) == (False, 0, 0)


def test_a_wake_up_before_the_debt_is_burnt_cancels_the_sleep():
    """The task has announced its sleep and still runs; it never leaves the CPU."""
    rig, queue = Rig(kernel=O1), WaitQueue()
    task = waiters(rig, queue, 1, work_ns=10 * MS)[0]
    rig.at(5 * MS, lambda _: queue.wake_one())
    assert rig.run(1).log == [(10 * MS, "w0")]
    assert (task.nvcsw, rig.sched.nr_uninterruptible) == (1, 0)  # The exit alone.


def test_a_task_that_burns_its_debt_is_running_although_it_will_sleep():
    rig, queue = Rig(kernel=O1), WaitQueue()
    waiters(rig, queue, 1, work_ns=10 * MS)
    rig.run(0.005)
    assert (rig.sched.nr_running, rig.sched.nr_uninterruptible) == (1, 0)
    rig.run(0.006)
    assert (rig.sched.nr_running, rig.sched.nr_uninterruptible) == (0, 1)


def test_a_task_woken_by_something_else_leaves_the_queue():
    rig, queue = Rig(kernel=O1), WaitQueue()
    task = waiters(rig, queue, 2)[0]
    rig.at(MS, rig.sched.process_timeout, task)
    rig.run(0.01)
    assert (rig.log, len(queue)) == ([(MS, "w0")], 1)
    assert queue.wake_one()
    assert rig.run(0.01).log[1][1] == "w1"


@pytest.mark.parametrize(("wake_ms", "expected"), [(3, (3 * MS, True)), (30, (10 * MS, False))])
def test_a_timeout_ends_the_wait(wake_ms, expected):
    rig, queue = Rig(kernel=O1), WaitQueue()

    def main(task):
        woken = yield from queue.sleep_on_timeout(task, 10 * MS, D, "test")
        rig.note(woken)

    rig.sched.spawn("main", main)
    rig.at(wake_ms * MS, lambda _: queue.wake_one())
    assert rig.run(1).log == [expected]
    assert len(queue) == 0


def test_sleep_takes_its_time_and_a_signal_cuts_it_short():
    rig = Rig(kernel=O1)

    def main(task):
        yield from sleep_ns(task, 7 * US, TASK_INTERRUPTIBLE)
        rig.note("slept")
        yield from sleep_ns(task, 100 * MS, TASK_INTERRUPTIBLE)
        rig.note("woken")
        yield from sleep_ns(task, MS, TASK_INTERRUPTIBLE)
        rig.note("slept")

    task = rig.sched.spawn("main", main)
    rig.at(10 * MS, rig.sched.process_timeout, task)
    assert rig.run(1).log == [(7 * US, "slept"), (10 * MS, "woken"), (11 * MS, "slept")]


def test_kernel_timeouts_end_at_a_tick():
    rig = Rig(hz=100)

    def main(task):
        yield from sleep_ns(task, 3 * MS, TASK_INTERRUPTIBLE)
        yield from schedule_timeout(rig.sched, task, 10 * MS, D)
        rig.note("tick")

    rig.sched.spawn("main", main)
    assert rig.run(1).log == [(20 * MS, "tick")]


def test_kernel_threads_have_no_parent():
    rig = Rig(kernel=O1)
    task = kthread_run(rig.sched, "kjournald", lambda task: sleep_ns(task, MS, D))
    assert (task.is_kthread, task.nice, task.ppid, task.comm) == (True, 0, 0, "kjournald")


def test_a_task_that_never_uses_cpu_time_is_reported():
    def spin(task):
        while True:
            yield

    rig = Rig(kernel=O1)
    rig.sched.spawn("spin", spin)
    with pytest.raises(RuntimeError, match=r"spin\[2\].*without using CPU time"):
        rig.run(1)


def test_an_error_names_the_task_and_the_time():
    def fail(task):
        yield from sleep_ns(task, MS, D)
        raise ValueError("broken")

    rig = Rig(kernel=O1)
    rig.sched.spawn("program", fail)
    with pytest.raises(ValueError, match="broken") as caught:
        rig.run(1)
    assert caught.value.__notes__ == ["in task program[2] R schedule_timeout at 0.001000000 s"]
