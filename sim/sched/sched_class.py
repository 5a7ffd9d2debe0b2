"""What a run queue asks of its scheduling class.

Models: the policy behind one CPU's queue: in which order tasks run, for how long, and who preempts
whom. The running task is not in the class's queue; the run queue holds it.
Linux counterpart: struct sched_class (kernel/sched/sched.h, 2.6.23 on). fair.py implements it as
 CFS, eevdf.py as what came after it in 6.6, prio_array.py as the O(1) scheduler before;
 group_queue.py has a queue of theirs for each group of tasks.
"""

from sim.sched.task import Task


class SchedClass:
    """The tasks that wait for one CPU, and the policy that orders them."""

    __slots__ = ("bounded", "load", "nr_queued", "quotas", "told_of_sleep")

    def __init__(self) -> None:
        self.nr_queued: int = 0
        self.load: int = 0  # weights of the queued
        self.told_of_sleep: bool = False  # put_to_sleep() does something
        self.quotas: int = 0  # groups whose time is limited, and
        self.bounded: bool = False  # the current task is in one: its turn ends although it is alone

    def total_load(self, curr: Task | None) -> int:
        """Return the weights of the queued and of the current task."""
        return self.load if curr is None else self.load + curr.weight

    def load_of(self, task: Task) -> int:
        """Return what a queued task is of that."""
        return task.weight

    def is_throttled(self, task: Task) -> bool:
        """Return whether a group that the task is in has been taken off this CPU."""
        return False

    def place_new(self, task: Task, curr: Task | None) -> None:
        """Give a task that was just forked its first place (task_new)."""
        raise NotImplementedError

    def place_woken(self, task: Task, slept_as: int, now_ns: int) -> None:
        """Give a task its place that has slept in the state `slept_as`."""
        raise NotImplementedError

    def migrate_out(self, task: Task) -> None:
        """Make the task's place relative, to be taken to another CPU."""
        raise NotImplementedError

    def migrate_in(self, task: Task) -> None:
        """Make a relative place one of this queue."""
        raise NotImplementedError

    def enqueue(self, task: Task) -> None:
        """Add a new or woken task."""
        raise NotImplementedError

    def requeue(self, curr: Task) -> None:
        """Add the task that was current until now (put_prev_task)."""
        raise NotImplementedError

    def switched_away(self) -> None:
        """The task that requeue() put back last is not the next to run: its turn is over."""

    def dequeue(self, task: Task) -> None:
        """Take out a task that another CPU will run."""
        raise NotImplementedError

    def pick_next(self) -> Task | None:
        """Take out and return the task that runs next; its slice begins."""
        raise NotImplementedError

    def run_alone(self, task: Task) -> bool:
        """Begin the slice of a task that need not wait: this is enqueue() and pick_next().

        Return False if it is queued although the CPU is idle: its group's quota is used up.
        """
        raise NotImplementedError

    def put_to_sleep(self, curr: Task) -> None:
        """Let go of the current task, if `told_of_sleep`: it sleeps from now on, or has exited."""

    def waiting(self) -> list[Task]:
        """Return the queued tasks, next first."""
        raise NotImplementedError

    def account(self, curr: Task, ns: int) -> None:
        """The current task has run for `ns`."""
        raise NotImplementedError

    def reweight(self, curr: Task, weight: int) -> None:
        """Give the current task, or group, another weight (reweight_entity)."""
        curr.weight = weight

    def renew_weights(self) -> None:
        """Give groups that run now the weights that they are due (update_cfs_group)."""

    def slice_left_ns(self, curr: Task) -> int:
        """Return how long `curr` may go on while others wait; <= 0 when it has to yield."""
        raise NotImplementedError

    def preempts(self, curr: Task, woken: Task) -> bool:
        """Return whether a woken task takes the CPU from the current one at once."""
        raise NotImplementedError
