"""Processes: pids, parents and children, exit and reaping.

Models: a task that exits is a zombie until its parent has waited for it. A parent that ignores
SIGCHLD has no zombies; orphans belong to init (here: have no parent), which reaps at once.
Linux counterpart: kernel/fork.c alloc_pid, kernel/exit.c exit_notify, release_task, do_wait.
Invariants: a pid is given once; every live task and zombie is in the table; a zombie has a parent.
Left out: exit codes, process groups, waiting for state changes other than exit, pid wrap-around.
"""

from typing import Any, Final

from sim.sched.task import EXIT_DEAD, EXIT_ZOMBIE, TASK_INTERRUPTIBLE, Blocking, Scheduler, Task
from sim.sched.wait import WaitQueue

INIT_PID: Final = 1  # Reserved: init itself is not modelled.


class ProcessTable:
    """All tasks of a machine."""

    __slots__ = ("_exit_waits", "last_pid", "tasks", "total_forks")

    def __init__(self) -> None:
        self.tasks: dict[int, Task] = {}
        self._exit_waits: dict[int, WaitQueue] = {}  # where parents wait for children, by pid
        self.last_pid: int = INIT_PID
        self.total_forks: int = 0

    def create(
        self, sched: Scheduler, comm: str, parent: Task | None, nice: int, weight: int
    ) -> Task:
        """Make a task with the next pid."""
        self.last_pid += 1
        self.total_forks += 1
        task = Task(sched, self.last_pid, comm, parent, nice, weight)
        self.tasks[task.pid] = task
        if parent is not None:
            parent.children[task.pid] = task
        return task

    def ioprio(self, pid: int) -> int:
        """Return a process's I/O priority, 0 (highest) to 7, from nice (task_nice_ioprio)."""
        task = self.tasks.get(pid)
        return ((0 if task is None else task.nice) + 20) // 5

    def blkcg(self, pid: int) -> Any:
        """Return a process's control group of block I/O, None: the root group (task_blkcg)."""
        task = self.tasks.get(pid)
        return None if task is None else task.blkcg

    def exit_notify(self, task: Task) -> None:
        """Hand the task's children to init, and the task to its parent."""
        for child in list(task.children.values()):
            child.parent = None
            if child.state == EXIT_ZOMBIE and not child.on_rq:
                self._release(child)
        task.children.clear()
        parent = task.parent
        if parent is None or parent.ignores_sigchld:
            self._release(task)
        if parent is not None and parent.pid in self._exit_waits:
            self._exit_waits[parent.pid].wake_all()

    def waitpid(self, task: Task, pid: int) -> Blocking[None]:
        """Sleep until that child has exited, and reap it."""
        child = task.children.get(pid)
        if child is None:
            raise ChildProcessError(f"{task}: no child {pid}")
        while child.on_rq or child.state < EXIT_ZOMBIE:
            yield from self._exit_wait(task).sleep_on(task, TASK_INTERRUPTIBLE, "do_wait")
        if child.state == EXIT_ZOMBIE:
            self._release(child)

    def wait(self, task: Task) -> Blocking[int]:
        """Sleep until some child has exited, reap it, and return its pid."""
        while task.children:
            for child in task.children.values():
                if child.state == EXIT_ZOMBIE and not child.on_rq:
                    self._release(child)
                    return child.pid
            yield from self._exit_wait(task).sleep_on(task, TASK_INTERRUPTIBLE, "do_wait")
        raise ChildProcessError(f"{task}: no child")

    def _exit_wait(self, task: Task) -> WaitQueue:
        found = self._exit_waits.get(task.pid)
        if found is None:
            found = self._exit_waits[task.pid] = WaitQueue()
        return found

    def _release(self, task: Task) -> None:
        """Forget a zombie (release_task)."""
        assert task.state == EXIT_ZOMBIE
        task.state = EXIT_DEAD
        del self.tasks[task.pid]
        self._exit_waits.pop(task.pid, None)
        if task.parent is not None:
            task.parent.children.pop(task.pid, None)
