"""drop_caches: a cron job that empties the page cache "to free memory".

Models: echo 1 > /proc/sys/vm/drop_caches at a given time, once or again and again.
Counterpart: sh -c 'echo 1 > /proc/sys/vm/drop_caches'.
Invariants: records: "dropped_pages" each time.
Left out: sync before it; what is dirty stays.

Estimate: whoever lives from the cache reads all of his working set again: W / (random read rate).
"""

from dataclasses import dataclass
from typing import ClassVar

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.program import ServerProgram


@dataclass(frozen=True, kw_only=True)
class DropCachesParams:
    """When."""

    start_ns: int = param("0 s", dim="time_ns", minimum=0, source="scenario", doc="the first time")
    period_ns: int = param(
        "0 s", dim="time_ns", minimum=0, source="scenario",
        doc="from one time to the next; 0: only once",
    )  # fmt: skip


@register("program", "drop_caches", params=DropCachesParams, doc="empties the page cache")
class DropCaches(ServerProgram):
    """The job."""

    marks: ClassVar[tuple[str, ...]] = ("dropped_pages",)

    def __init__(self, params: DropCachesParams) -> None:
        self.params = params

    def main(self, sys: Sys) -> Blocking[None]:
        """Wait, drop, and once more."""
        yield from sys.sleep(self.params.start_ns)
        sys.trace_marker("dropped_pages", sys.drop_caches())
        while self.params.period_ns:
            yield from sys.sleep(self.params.period_ns)
            sys.trace_marker("dropped_pages", sys.drop_caches())
