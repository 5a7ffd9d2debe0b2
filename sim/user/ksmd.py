"""ksmd: looks for equal pages of guests and merges them.

Models: every `sleep` it checks `pages_to_scan` pages: a check sum each, sometimes a comparison.
Counterpart: mm/ksm.c (ksm_do_scan), a kernel thread of nice 5; /sys/kernel/mm/ksm/.
Invariants: it computes and sleeps, nothing else.
Left out: what merging saves, and the faults of who writes to a merged page.

By hand: 100 pages of 1.5 us every 20 ms are 0.75 % of one CPU of the host.
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
        100, dim="count", minimum=0, doc="pages checked at a time",
        source="mm/ksm.c: ksm_thread_pages_to_scan",
    )  # fmt: skip
    sleep_ns: int = param(
        "20 ms", dim="time_ns", minimum=10**6, doc="between two times",
        source="mm/ksm.c: ksm_thread_sleep_millisecs",
    )  # fmt: skip
    page_ns: int = param(
        "1.5 us", dim="time_ns", minimum=0, doc="CPU time of a page",
        source="assumed: jhash of 4 KiB at 3 bytes a cycle, and a tree of pages to look in",
    )  # fmt: skip


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
        while True:
            sys.compute_system(params.pages_to_scan * params.page_ns)
            yield from sys.sleep(params.sleep_ns)
