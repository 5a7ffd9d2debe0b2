"""Bios within a plug of their task: when the plug lets go."""

import pytest

from sim.block.bio import WRITE, Bio, Plug
from sim.fs.buffer import within_plug
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task, sleep_ns
from tests.fs.machine import MS, Machine


def ignore(bio: Bio) -> None:
    """Do nothing when it is on the disk."""


@pytest.mark.parametrize(("sleeps", "requests"), [(False, [(8, 2)]), (True, [(8, 1), (9, 1)])])
def test_a_plug_lets_go_when_its_task_sleeps_and_at_the_end(
    sleeps: bool, requests: list[tuple[int, int]]
) -> None:
    """Two adjacent bios: one request, unless the task sleeps between them (sched_submit_work)."""
    machine = Machine("6.18")
    plug = Plug()
    early: list[tuple[int, int]] = []

    def work(task: Task) -> Blocking[int]:
        for block in (8, 9):
            bio = Bio(WRITE, block * 8, 8, ignore, None, 1, 0, task.pid)
            bio.plug = plug
            yield from machine.disk.submit(task, bio)
            if sleeps:
                yield from sleep_ns(task, 5 * MS, TASK_UNINTERRUPTIBLE)
                early.extend(machine.writes())
            else:
                task.charge_system(MS)
                yield  # The CPU time passes; the task stays on the CPU.
                assert machine.writes() == []
        return 7

    def main(task: Task) -> Blocking[None]:
        assert (yield from within_plug(task, plug, work(task))) == 7

    machine.run(main)
    assert early + machine.writes() == requests
