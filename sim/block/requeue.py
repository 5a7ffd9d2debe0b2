"""kblockd: the kworker that takes a flush sequence from one step to the next.

Theory of operation (block/blk-flush.c, block/blk-mq.c). A bio that wants the cache flushed becomes
a sequence: flush, write, flush. A step ends in an interrupt, and the next one is not dispatched
there. It goes to a list of the queue, and a kworker is woken that gives the list to the driver. So
each step needs a CPU, which may be busy. The record and the commit block of a commit each wait for
such steps. On an idle disk that is the time between two writes of the log.

Estimate: a user mode Linux guest switches tasks in 10 us; the kworker takes 10: with the disk's
driver 40 us a flush takes 60 (recorded with one writer: 52 to 62 on ext3).
Models: the list, and the kworker of nice -20 (WQ_HIGHPRI).
Linux counterpart: block/blk-mq.c blk_mq_kick_requeue_list, blk_mq_requeue_work; block/blk-flush.c
 blk_kick_flush, blk_flush_complete_seq (6.x); block/blk-core.c alloc_workqueue("kblockd",
 WQ_MEM_RECLAIM | WQ_HIGHPRI).
Invariants: what is put there is dispatched once, in order, data before flushes that wait.
Every multi-queue kernel has it; what the work itself takes is assumed (limits.py).
Left out: a driver's own requeueing (BLK_STS_RESOURCE); one kworker a CPU; before 6.5 data that need
no flush first went this way, too.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from sim.block.request import FLUSH, Request
from sim.sched.core import Sched
from sim.sched.task import Blocking, Task
from sim.sched.workqueue import Workqueue

HIGHPRI_NICE: Final = -20  # kernel/workqueue.c: HIGHPRI_NICE_LEVEL


class RequeueList:
    """Requests on their way to the front of a queue, through a kworker."""

    def __init__(
        self, scheduler: Sched, work_ns: int, dispatch: deque[Request],
        run_queue: Callable[[], None],
    ) -> None:  # fmt: skip
        """Have a kworker take `work_ns` of CPU time, then dispatch what is there."""
        self._kblockd = Workqueue(scheduler, "kworker/0:1H-kblockd", 1, HIGHPRI_NICE)
        self._work_ns = work_ns
        self._dispatch = dispatch
        self._run_queue = run_queue
        self._requests: deque[Request] = deque()
        self._is_kicked: bool = False

    def add(self, request: Request) -> None:
        """Dispatch the request soon; callable in interrupt context."""
        self._requests.append(request)
        if not self._is_kicked:
            self._is_kicked = True
            self._kblockd.queue(self._work)

    def _work(self, task: Task) -> Blocking[None]:
        """Put all that waits before the driver (blk_mq_requeue_work)."""
        task.charge_system(self._work_ns)
        yield  # Until the CPU time of it is used.
        self._is_kicked = False
        while self._requests:
            put_before(self._dispatch, self._requests.popleft())
        self._run_queue()


def put_before(dispatch: deque[Request], request: Request) -> None:
    """Put a sequence's data first, a flush last."""
    if request.op == FLUSH:
        dispatch.append(request)
    else:
        dispatch.appendleft(request)
