"""drop_caches: a cron job that empties the kernel's caches "to free memory".

Models: echo 1, 2 or 3 > /proc/sys/vm/drop_caches at a given time, once or again and again.
Counterpart: sh -c 'echo 3 > /proc/sys/vm/drop_caches'.
Invariants: records: "dropped_pages", "dropped_objects" (dentries and inodes), each time.
Left out: sync before it; what is dirty stays.

Estimate: whoever lives from the cache reads all of his working set again: W / (random read rate);
and whoever opens N files afterwards reads two blocks for each, less what shares a block: names of a
directory (about 100 in a block), inodes made together (16 or 32 in a block).
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.program import ServerProgram

PAGECACHE: Final = 1
SLAB: Final = 2


@dataclass(frozen=True, kw_only=True)
class DropCachesParams:
    """When."""

    start_ns: int = param("0 s", dim="time_ns", minimum=0, source="scenario", doc="the first time")
    period_ns: int = param(
        "0 s",
        dim="time_ns",
        minimum=0,
        source="scenario",
        doc="from one time to the next; 0: only once",
    )
    written: int = param(
        1,
        dim="count",
        minimum=1,
        maximum=3,
        source="Documentation/sysctl/vm.txt: drop_caches",
        doc="1: the page cache, 2: unused dentries and inodes, 3: both",
    )


@register("program", "drop_caches", params=DropCachesParams, doc="empties the kernel's caches")
class DropCaches(ServerProgram):
    """The job."""

    marks: ClassVar[tuple[str, ...]] = ("dropped_pages", "dropped_objects")

    def __init__(self, params: DropCachesParams) -> None:
        self.params = params

    def main(self, sys: Sys) -> Blocking[None]:
        """Wait, drop, and once more."""
        yield from sys.sleep(self.params.start_ns)
        self._drop(sys)
        while self.params.period_ns:
            yield from sys.sleep(self.params.period_ns)
            self._drop(sys)

    def _drop(self, sys: Sys) -> None:
        """Pages first, as the kernel does for 3."""
        if self.params.written & PAGECACHE:
            sys.trace_marker("dropped_pages", sys.drop_pagecache())
        if self.params.written & SLAB:
            sys.trace_marker("dropped_objects", sys.drop_slab())
