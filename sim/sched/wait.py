"""Wait queues: where tasks sleep until somebody wakes them.

Models: a FIFO of sleeping tasks. A waker takes the task off the queue (autoremove_wake_function).
All other blocking things are made of this one, and are used in a loop:

    while not condition:
        yield from queue.sleep_on(task, TASK_UNINTERRUPTIBLE, "where")

Linux counterpart: include/linux/wait.h, kernel/wait.c.
Invariants: a task is on at most one queue; it is off the queue when sleep_on() returns.
Left out: waiting on several queues at once (select), wake functions, wake-up keys.
"""

from sim.sched.task import Blocking, Task


class WaitQueue:
    """A wait queue (wait_queue_head_t); all waiters are equal, wake_one() takes the oldest."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: list[Task] = []  # oldest first; others only look whether it is empty

    def __len__(self) -> int:
        return len(self.waiters)

    def add(self, task: Task) -> None:
        """Put a task that has set its state at the end of the queue."""
        assert task.waiting_on is None
        task.waiting_on = self.waiters
        self.waiters.append(task)

    def remove(self, task: Task) -> None:
        """Take the task off, if it still is on the queue (finish_wait)."""
        if task.waiting_on is self.waiters:
            task.waiting_on = None
            self.waiters.remove(task)

    def sleep_on(self, task: Task, state: int, wchan: str) -> Blocking[None]:
        """Sleep until woken; check the condition again after it."""
        task.state = state
        task.wchan = wchan
        self.add(task)
        yield
        if task.waiting_on is self.waiters:  # Woken by something else.
            self.remove(task)

    def io_sleep_on(self, task: Task, state: int, wchan: str) -> Blocking[None]:
        """Sleep until woken, as one who waits for I/O: the CPU's idle time becomes iowait."""
        task.state = state
        task.wchan = wchan
        self.add(task)
        task.in_iowait = True
        yield
        task.in_iowait = False
        if task.waiting_on is self.waiters:
            self.remove(task)

    def sleep_on_timeout(self, task: Task, ns: int, state: int, wchan: str) -> Blocking[bool]:
        """Sleep until woken, or for `ns`; return False when the time was over."""
        sched = task.sched
        timer = sched.calendar.call_after(ns, sched.process_timeout, task)
        yield from self.sleep_on(task, state, wchan)
        return timer.cancel()

    def sleep_until(self, task: Task, ends_ns: int, state: int, wchan: str) -> Blocking[bool]:
        """Sleep until woken, or until then; return False, at once, if that is past."""
        left_ns = ends_ns - task.sched.calendar.now
        if left_ns <= 0:
            return False
        yield from self.sleep_on_timeout(task, left_ns, state, wchan)
        return True

    def io_sleep_on_timeout(self, task: Task, ns: int, state: int, wchan: str) -> Blocking[bool]:
        """Like sleep_on_timeout(), as one who waits for I/O (io_schedule_timeout)."""
        sched = task.sched
        timer = sched.calendar.call_after(ns, sched.process_timeout, task)
        yield from self.io_sleep_on(task, state, wchan)
        return timer.cancel()

    def wake_one(self) -> bool:
        """Wake the oldest waiter that is not awake already; return False when there is none."""
        waiters = self.waiters
        while waiters:
            task = waiters.pop(0)
            task.waiting_on = None
            if task.sched.wake_up(task):
                return True
        return False

    def wake_all(self) -> int:
        """Wake all waiters, oldest first; return how many slept."""
        waiters = self.waiters
        if not waiters:
            return 0
        self.waiters = []
        woken = 0
        for task in waiters:
            task.waiting_on = None
            if task.sched.wake_up(task):
                woken += 1
        return woken
