"""memtouch: processes that use their memory at random, to see what happens when it does not fit.

Models: a parent that forks `procs` children, each with an area of its own. A child fills its area
once, waits for the others, and then does transactions: some touches of random pages, a share of
them writes, and some CPU time. A touch that does not fault takes time as well: two random numbers,
and a page that is in neither cache nor TLB. So with no CPU time asked for, 8 touches are 0.85 us,
and a process ends when its share of the table of transactions is full.
Counterpart: memtouch.c of the rigs, some fifty lines; stress-ng --vm.
Invariants: records of each child at its end: "memtouch_tx" (transactions), "memtouch_ns" (time of
all of them), "memtouch_majflt" (while measuring); one that is killed leaves none. The parent leaves
"memtouch_done" when the last child is gone.
Left out: threads.

Estimate: areas of W pages in M of memory: a touch faults with 1 - M / W.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from sim.param import param
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.program import ServerProgram

PAGE: Final = 4096
FILL_PAGES: Final = 64  # filled at a time
POLL_NS: Final = 10_000_000


@dataclass(frozen=True, kw_only=True)
class MemtouchParams:
    """The command line of the benchmark."""

    size_bytes: int = param(
        "64 MiB", dim="bytes", minimum=PAGE, source="scenario", doc="areas of all processes"
    )
    procs: int = param(
        1, dim="count", minimum=1, maximum=10_000, source="scenario", doc="processes"
    )
    runtime_ns: int = param("10 s", dim="time_ns", minimum=1, source="scenario", doc="how long")
    touches: int = param(
        8, dim="count", minimum=0, source="scenario", doc="pages touched in a transaction"
    )
    write_share: float = param(
        0.3, dim="number", minimum=0, maximum=1, source="scenario", doc="share of them written to"
    )
    transaction_user_ns: int = param(
        "1 ms", dim="time_ns", minimum=0, source="scenario", doc="CPU time of a transaction"
    )
    touch_user_ns: int = param(
        "0.1 us",
        dim="time_ns",
        minimum=0,
        source="assumed: a miss of the caches and of the TLB, and two random numbers",
        doc="CPU time of a touch",
    )
    clock_ns: int = param(
        50,
        dim="time_ns",
        minimum=0,
        source="assumed: the loop's two calls of clock_gettime(), 25 ns each in the vDSO",
        doc="CPU time of timing a transaction",
    )
    transactions: int = param(
        2_000_000,
        dim="count",
        minimum=1,
        source="manual: memtouch.c: MAXM, the table of their times",
        doc="transactions of all processes at most",
    )
    fill_user_ns: int = param(
        "1 us",
        dim="time_ns",
        minimum=0,
        source="assumed: 512 stores to a page that is in no cache, 4 GB/s",
        doc="CPU time of filling a page",
    )


class Memtouch(ServerProgram):
    """The parent and its children."""

    marks: ClassVar[tuple[str, ...]] = (
        "memtouch_done",
        "memtouch_filled",
        "memtouch_majflt",
        "memtouch_ns",
        "memtouch_tx",
    )

    def __init__(self, params: MemtouchParams) -> None:
        self.params = params
        self.ready: int = 0  # in memory that all share

    def main(self, sys: Sys) -> Blocking[None]:
        """Start the children and wait for them."""
        pids = []
        for _ in range(self.params.procs):
            pids.append((yield from sys.fork("memtouch", self._child)))
        for pid in pids:
            yield from sys.waitpid(pid)
        sys.trace_marker("memtouch_done", self.params.procs)

    def _child(self, sys: Sys) -> Blocking[None]:
        """Fill, wait for the others, do transactions."""
        params = self.params
        pages = params.size_bytes // PAGE // params.procs
        region = sys.mmap(pages * PAGE)
        try:
            for page in range(0, pages, FILL_PAGES):
                step = min(FILL_PAGES, pages - page)
                yield from sys.touch(region, page * PAGE, step * PAGE)
                sys.compute(step * params.fill_user_ns)
        finally:  # The parent counts those that are killed.
            self.ready += 1
        sys.trace_marker("memtouch_filled", pages)
        while self.ready < params.procs:
            yield from sys.sleep(POLL_NS)
        pool = region.pools[0]
        faults = sys.faults()[1]
        begun_ns = before_ns = sys.clock_ns()
        transactions = 0
        most = max(params.transactions // params.procs, 1)
        user_ns = (
            params.transaction_user_ns + params.touches * params.touch_user_ns + params.clock_ns
        )
        while before_ns - begun_ns < params.runtime_ns and transactions < most:
            yield from sys.touch_at_random(pool, params.touches, params.write_share)
            sys.compute(user_ns)
            yield
            before_ns = sys.clock_ns()
            transactions += 1
        sys.trace_marker("memtouch_tx", transactions)
        sys.trace_marker("memtouch_ns", before_ns - begun_ns)
        sys.trace_marker("memtouch_majflt", sys.faults()[1] - faults)
