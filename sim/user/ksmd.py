"""ksmd: looks for equal pages of guests and merges them.

Models: every `sleep` it checks `pages_to_scan` pages: a check sum each, sometimes a comparison. It
is the host's thread: where the host has more CPUs than those that are simulated, it is on one of
these for its part of the time only, and stays where it is until it finds its CPU taken.
Counterpart: mm/ksm.c (ksm_do_scan), a kernel thread of nice 5; /sys/kernel/mm/ksm/.
Invariants: it computes and sleeps, nothing else; its scans are as many as the host's times the part
 of the host's CPUs that is simulated.
Left out: what merging saves, and the faults of who writes to a merged page.

By hand: 100 pages of 1.5 us every 20 ms are 0.75 % of one CPU of the host. They cost a guest less
than they give: who wakes a CPU every 20 ms keeps intel_pstate's looks from being late, so that its
controller sees a busy CPU and climbs; the guest's task that comes there finds the highest clock.
"""

from dataclasses import dataclass
from typing import ClassVar

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.program import ServerProgram


@dataclass(frozen=True, kw_only=True)
class KsmdParams:
    """/sys/kernel/mm/ksm."""

    pages_to_scan: int = param(
        100,
        dim="count",
        minimum=0,
        doc="pages checked at a time",
        source="mm/ksm.c: ksm_thread_pages_to_scan",
    )
    sleep_ns: int = param(
        "20 ms",
        dim="time_ns",
        minimum=10**6,
        doc="between two times",
        source="mm/ksm.c: ksm_thread_sleep_millisecs",
    )
    page_ns: int = param(
        "1.5 us",
        dim="time_ns",
        minimum=0,
        doc="CPU time of a page",
        source="assumed: jhash of 4 KiB at 3 bytes a cycle, and a tree of pages to look in",
    )
    host_cpus: int = param(
        0,
        dim="count",
        minimum=0,
        doc="CPUs of the host; 0: those that are simulated",
        source="scenario",
    )
    stay_ns: int = param(
        "0.5 s",
        dim="time_ns",
        minimum=10**6,
        doc="mean time on one CPU of a larger host",
        source="assumed: one wake-up in 25 finds its CPU taken, by guests that are 4 % busy",
    )


@register(
    "program", "ksmd", params=KsmdParams, doc="merges equal pages of guests", since=(2, 6, 32)
)
class Ksmd(ServerProgram):
    """The thread."""

    marks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: KsmdParams) -> None:
        self.params = params

    def main(self, sys: Sys) -> Blocking[None]:
        """Scan and sleep, for ever."""
        params = self.params
        chance = sys.stream("place")
        cpus = sys.cpus_online()
        host_cpus = max(params.host_cpus, cpus)
        while True:
            stays_ns = round(chance.expovariate(1.0) * params.stay_ns)
            if chance.randrange(host_cpus) < cpus:
                yield from self._scan(sys, sys.clock_ns() + stays_ns)
            else:
                yield from sys.sleep(stays_ns)

    def _scan(self, sys: Sys, until_ns: int) -> Blocking[None]:
        """Scan and sleep until then."""
        params = self.params
        while sys.clock_ns() < until_ns:
            sys.compute_system(params.pages_to_scan * params.page_ns)
            yield from sys.sleep(params.sleep_ns)
