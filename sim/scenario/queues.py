"""What a scenario says of a disk's queue that not every kernel has.

Models: `throttle.*` of a disk (io.max); errors for what a release does not have.
Linux counterpart: block/blk-throttle.c, block/blk-wbt.c.
Invariants: a limit is refused, with its line, on a kernel that would not know it.
Left out: limits of groups of processes.
"""

from typing import Final

from sim.block.throttle import SINCE, ThrottleParams
from sim.scenario.errors import Place
from sim.scenario.layers import Layer, Table
from sim.scenario.reading import Reading
from sim.sched.version import KernelVersion, kernel_version, numbers

WBT_SINCE: Final = (4, 10)


def read_throttle(reading: Reading, disk: Table, path: tuple[str, ...]) -> ThrottleParams | None:
    """Return the limits of the disk; None if they cannot be read."""
    table = reading.table(disk, path, "throttle")
    if table.children:
        _check_release(reading, table.place, "limits of I/O (throttle)", SINCE)
    [found] = reading.values(table, (*path, "throttle"), [ThrottleParams])
    return None if found is None else ThrottleParams(**found)


def check_queue(reading: Reading, queue: Table) -> None:
    """Note what the queue's table says of writeback throttling on a kernel without it."""
    for key in ("wbt", "wbt_lat", "wbt_lat_ns"):
        leaf = queue.leaf(key)
        if leaf is not None and leaf.layer > Layer.KERNEL and leaf.value is not False:
            _check_release(reading, leaf.at, "writeback throttling (wbt)", WBT_SINCE)


def _check_release(reading: Reading, place: Place, what: str, since: KernelVersion) -> None:
    kernel = reading.kernel
    if kernel and kernel_version(kernel) < since:
        reading.error(place, f"Linux {kernel} has no {what}", allowed=f"from {numbers(since)}")
