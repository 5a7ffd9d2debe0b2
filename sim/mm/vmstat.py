"""Paging events since boot, as /proc/vmstat counts them.

Models: faults, pages in and out, what reclaim scanned and took.
Linux counterpart: struct vm_event_state, mm/vmstat.c (count_vm_events), 2.6.16 to 6.5.
Invariants: no count ever decreases.
Left out: counts of each CPU, and with them the lag of the sum.
"""

from __future__ import annotations


class VmEvents:
    """How often each of them happened; pages, unless the name says otherwise."""

    __slots__ = (
        "allocstall",
        "oom_kills",
        "pageoutrun",
        "pgactivate",
        "pgdeactivate",
        "pgfault",
        "pgfree",
        "pgmajfault",
        "pgpgin_sectors",
        "pgpgout_sectors",
        "pgrefill",
        "pgscan_direct",
        "pgscan_kswapd",
        "pgsteal_direct",
        "pgsteal_kswapd",
        "pswpin",
        "pswpout",
        "workingset_refault",
        "workingset_refault_anon",
    )

    def __init__(self) -> None:
        self.pgpgin_sectors: int = 0  # up to date after update()
        self.pgpgout_sectors: int = 0  # up to date after update()
        self.pgfault: int = 0
        self.pgmajfault: int = 0
        self.pswpin: int = 0
        self.pswpout: int = 0
        self.pgfree: int = 0
        self.pgactivate: int = 0
        self.pgdeactivate: int = 0
        self.pgrefill: int = 0  # active pages scanned
        self.pgscan_kswapd: int = 0  # inactive pages scanned by kswapd
        self.pgscan_direct: int = 0  # inactive pages scanned by direct reclaim
        self.pgsteal_kswapd: int = 0  # pages freed by kswapd
        self.pgsteal_direct: int = 0  # pages freed by direct reclaim
        self.allocstall: int = 0  # direct reclaims
        self.pageoutrun: int = 0  # times that kswapd was woken
        self.workingset_refault: int = 0
        self.workingset_refault_anon: int = 0
        self.oom_kills: int = 0
