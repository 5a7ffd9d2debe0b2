"""Waiting for a device that is not congested any more.

Models: a writer that found nothing to write, or a device with enough to do, sleeps until a write
ends. What writeback knows about a device is in address_space.py.
Linux counterpart: mm/backing-dev.c; blk_congestion_wait, block/ll_rw_blk.c (to 2.6.18).
Invariants: a task waits 100 ms at most.
Left out: reads: nobody waits for a congested device to read from it.
"""

from typing import Final

from sim.mm.address_space import Vm
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task

CONGESTION_WAIT_NS: Final = 100_000_000  # HZ/10


def congestion_wait(task: Task, vm: Vm) -> Blocking[None]:
    """Wait until a write ends on a device that is not congested, 100 ms at most.

    blk_congestion_wait(), block/ll_rw_blk.c to 2.6.18; congestion_wait(), mm/backing-dev.c.
    """
    vm.wb.nr_congestion_waiters += 1
    yield from vm.wb.congestion_wqh.io_sleep_on_timeout(
        task, CONGESTION_WAIT_NS, TASK_UNINTERRUPTIBLE, "blk_congestion_wait"
    )
    vm.wb.nr_congestion_waiters -= 1
