"""Fork, exit, zombies, reaping; waiting for SimPy events."""

import pytest

from sim.engine.environment import Environment
from sim.sched.core import Sched
from sim.sched.params import SchedParams
from sim.sched.task import EXIT_ZOMBIE, TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import CFS, MS, Rig, compute


def family(rig, *, child_ns=5 * MS, then=None, ignores=False):
    """A parent with one child; the parent then sleeps 50 ms and does `then`."""

    def parent(task):
        task.ignores_sigchld = ignores
        child = rig.sched.spawn("child", compute(child_ns), task)
        rig.child = child
        yield from sleep_ns(task, 50 * MS, TASK_INTERRUPTIBLE)
        if then is not None:
            yield from then(task, child)

    return rig.sched.spawn("parent", parent)


def test_an_exited_child_is_a_zombie_until_reaped():
    rig = Rig()

    def reap(task, child):
        rig.note(child.state_letter)
        yield from rig.sched.waitpid(task, child.pid)
        rig.note(child.state_letter)

    family(rig, then=reap)
    rig.run(0.02)
    assert (rig.child.state, rig.sched.nr_threads, rig.sched.nr_running) == (EXIT_ZOMBIE, 2, 0)
    rig.run(0.1)
    assert (rig.log, rig.sched.nr_threads) == ([(50 * MS, "Z"), (50 * MS, "X")], 0)


def test_a_parent_that_ignores_sigchld_has_no_zombies():
    rig = Rig()
    family(rig, ignores=True)
    rig.run(0.02)
    assert rig.sched.nr_threads == 1


def test_an_orphan_zombie_is_reaped_by_init():
    rig = Rig()
    family(rig)
    assert rig.run(0.1).sched.nr_threads == 0


def test_an_orphan_that_lives_loses_its_parent_and_leaves_no_zombie():
    rig = Rig()
    family(rig, child_ns=200 * MS)
    rig.run(0.1)
    assert (rig.child.ppid, rig.sched.nr_threads) == (0, 1)
    assert rig.run(0.2).sched.nr_threads == 0


def test_waiting_for_any_child_takes_each_once():
    rig = Rig()

    def parent(task):
        pids = {rig.sched.spawn("c", compute(ms * MS), task).pid for ms in (30, 10, 20)}
        for _ in range(3):
            pids.remove((yield from rig.sched.wait(task)))
        assert not pids
        with pytest.raises(ChildProcessError):
            yield from rig.sched.wait(task)
        with pytest.raises(ChildProcessError):
            yield from rig.sched.waitpid(task, 1)
        rig.note("done")

    rig.sched.spawn("parent", parent)
    assert rig.run(1).log == [(60 * MS, "done")]


def test_exit_costs_are_paid_before_the_parent_hears_of_it():
    rig = Rig()

    def child(task):
        task.charge_system(10 * MS)
        return
        yield

    def parent(task):
        pid = rig.sched.spawn("child", child, task).pid
        yield from rig.sched.waitpid(task, pid)
        rig.note("reaped")

    rig.sched.spawn("parent", parent)
    assert rig.run(1).log == [(10 * MS, "reaped")]


def test_forks_and_pids_are_counted():
    rig = Rig()
    family(rig)
    rig.run(1)
    assert (rig.sched.total_forks, rig.sched.last_pid, rig.child.pid) == (2, 3, 3)


def test_zero_cpus_are_refused():
    with pytest.raises(ValueError, match="0 CPUs"):
        Rig(cpus=0)


def outside():
    env = Environment()
    return env, Sched(env.calendar, 1, CFS, SchedParams(context_switch_ns=0))


def test_a_task_waits_for_a_simpy_event_and_gets_its_value():
    env, sched = outside()
    log = []

    def main(task):
        task.charge_user(MS)
        log.append((yield env.timeout(5 * MS, value="ring")))
        log.append(env.now)

    task = sched.spawn("main", main)
    env.run(until=2 * MS)
    assert task.state_letter == "S"
    env.run(until=10 * MS)
    assert log == ["ring", 5 * MS]


def test_an_event_processed_before_the_debt_is_burnt_does_not_end_the_debt():
    env, sched = outside()
    log = []

    def main(task):
        task.charge_user(8 * MS)
        yield env.timeout(5 * MS)
        log.append(env.now)

    sched.spawn("main", main)
    env.run(until=20 * MS)
    assert log == [8 * MS]


def test_a_failed_event_is_raised_in_the_task():
    env, sched = outside()
    event = env.event()
    log = []

    def main(task):
        try:
            yield event
        except OSError as error:
            log.append(str(error))

    sched.spawn("main", main)
    env.run(until=MS)
    event.fail(OSError("reset"))
    env.run(until=2 * MS)
    assert log == ["reset"]


def test_a_simpy_process_waits_for_a_task():
    env, sched = outside()
    done = env.event()

    def main(task):
        task.charge_user(3 * MS)
        yield
        done.succeed("computed")

    def client():
        return (yield done), env.now

    sched.spawn("main", main)
    assert env.run(until=env.process(client())) == ("computed", 3 * MS)
