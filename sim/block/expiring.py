"""A process's requests by age, for elevators that look once a turn whether one waits too long.

Models: the FIFO of a queue of cfq or bfq, and its mark that this turn has looked.
Linux counterpart: cfq_check_fifo (block/cfq-iosched.c, 2.6.16) and bfq_check_fifo
 (block/bfq-iosched.c, 5.4), one function twice.
Invariants: at most one request of a turn is chosen for its age.
Left out: what "too long" is; the elevator says.
"""

from sim.block.request import ElevatorData, Request


class ExpiringQueue(ElevatorData):
    """Requests by age."""

    def __init__(self) -> None:
        self.fifo: list[Request] = []
        self.fifo_expired: bool = False  # this turn has looked

    def expired_head(self, since_ns: int) -> Request | None:
        """Return the oldest request if it came before `since_ns`; once a turn."""
        if self.fifo_expired or not self.fifo or self.fifo[0].start_ns >= since_ns:
            return None
        self.fifo_expired = True
        return self.fifo[0]
