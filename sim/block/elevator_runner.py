"""What an elevator may ask of its queue.

Models: one timer that moves on, running the queue soon, removing the plug, whose request it is.
Linux counterpart: struct request_queue as cfq-iosched.c and bfq-iosched.c use it; mod_timer,
kblockd_schedule_work.
Invariants: at most one timer is in the calendar, due when the elevator's is or before.
Left out: nothing.
"""

from typing import TYPE_CHECKING

from sim.block.elevator import QueueRunner

if TYPE_CHECKING:
    from sim.block.queue import Disk


class ElevatorRunner(QueueRunner):
    """What an elevator may ask of its queue."""

    def __init__(self, disk: "Disk") -> None:
        super().__init__(disk.calendar, disk.rotational)
        self._disk = disk
        self._due_ns: int = 0
        self._timer: bool = False  # in the calendar, at _due_ns or before

    def run_after(self, delay_ns: int) -> None:
        self._due_ns = self.calendar.now + delay_ns
        # One timer that moves on (mod_timer); cfq sets it two or three times for each request.
        if not self._timer:
            self._timer = True
            self.calendar.post(delay_ns, self._timeout, None)

    def _timeout(self, _: object) -> None:
        left_ns = self._due_ns - self.calendar.now
        self._timer = left_ns > 0
        if self._timer:
            self.calendar.post(left_ns, self._timeout, None)
        else:
            self._disk.elevator.timeout()

    def schedule_run(self) -> None:
        self._disk.schedule_run()

    def start_queueing(self) -> None:
        if self._disk.plugged:
            self._disk.unplug()
        else:
            self._disk.run_queue()

    def ioprio(self, pid: int) -> int:
        return self._disk.ioprio(pid)
