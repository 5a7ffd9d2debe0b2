"""The round of CFQ's queues: which wait for a turn, and which is next.

Models: the round under way, those that wait for the next one, longest unserved first, and those
that have requests in the driver, which come when nobody else does.
Linux counterpart: cur_rr, rr_list and busy_rr of struct cfq_data; cfq_resort_rr_list,
cfq_set_active_queue, block/cfq-iosched.c (2.6.16).
Invariants: a queue is in one list, its ``home``, or in none.
Left out: one rr_list for each I/O priority, idle_rr.
"""

from sim.block.cfq_queue import CfqQueue


class CfqRound:
    """The three lists."""

    def __init__(self) -> None:
        self._rr: list[CfqQueue] = []
        self._cur_rr: list[CfqQueue] = []
        self._busy_rr: list[CfqQueue] = []

    def resort(self, queue: CfqQueue, preempted: bool) -> None:
        """File a queue where it waits for its turn; in front if its last one was cut short."""
        self.leave(queue)
        target = self._busy_rr if queue.on_dispatch else self._rr
        queue.home = target
        if preempted:
            target.insert(0, queue)
            return
        at = len(target)
        if target is self._rr:
            while at and target[at - 1].service_last_ns:
                if target[at - 1].service_last_ns < queue.service_last_ns:
                    break
                at -= 1
        target.insert(at, queue)

    def leave(self, queue: CfqQueue) -> None:
        """Take a queue out: it has no requests any more."""
        if queue.home is not None:
            queue.home.remove(queue)
            queue.home = None

    def next_queue(self) -> CfqQueue | None:
        """Return whose turn it is, beginning a new round if this one is over."""
        if not self._cur_rr and self._rr:
            for queue in self._rr:
                queue.home = self._cur_rr
            self._cur_rr.extend(self._rr)
            self._rr.clear()
        if self._cur_rr:
            return self._cur_rr[0]
        return self._busy_rr[0] if self._busy_rr else None

    def put_back_current(self) -> None:
        """Let what is left of this round wait for the next one, in front."""
        for queue in list(self._cur_rr):
            self.resort(queue, preempted=True)

    def queues(self) -> list[CfqQueue]:
        """Return all queues that have requests."""
        return [*self._rr, *self._busy_rr, *self._cur_rr]
