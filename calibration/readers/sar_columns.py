"""The titles of sar's tables, of all its generations, and where their columns go.

Models: the manual page's list of what sar reports.
Linux counterpart: sysstat sar.c (4 to 8.0), activity.c and pr_stats.c (8.1.1 on); mpstat.c, whose
table is that of `sar -u ALL` in another order.
Invariants: a column is found by its title and by the family of its table; bytes, ms, pct: a kB is
1024 bytes, a sector or block 512.
Left out: -R -v -y -m (but CPU) -H -I (but the sum) -F -x and -n but DEV, %ufsused: nothing of the
twin has them; their tables are known as tables and reported once.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from calibration.samples import Kind

KIB: Final = 1024.0
SECTOR: Final = 512.0


class Cell(NamedTuple):
    """Where a column of the tool goes: `factor` times the number printed."""

    column: str
    factor: float = 1.0


Cells = Mapping[str, Cell | None]  # None: known, and not taken


@dataclass(frozen=True, slots=True)
class Family:
    """Tables about one kind of thing; `named` if a column says which of them a row is about."""

    kind: Kind
    named: bool
    cells: Cells
    rows: str | None = None  # the only name that is taken, as the whole system's


_CPU: Final[Cells] = {
    "%user": Cell("user_pct"),
    "%usr": Cell("user_pct"),  # %usr: without guests
    "%nice": Cell("nice_pct"),
    "%system": Cell("system_pct"),
    "%sys": Cell("system_pct"),  # %sys: without interrupts
    "%iowait": Cell("iowait_pct"),
    "%steal": Cell("steal_pct"),
    "%irq": Cell("irq_pct"),
    "%soft": Cell("soft_pct"),
    "%guest": Cell("guest_pct"),
    "%gnice": Cell("gnice_pct"),  # 8.1.5 on, 10.1.2 on
    "%idle": Cell("idle_pct"),
    "MHz": Cell("clock_mhz"),  # -m; 9.0.0 on
    "intr/s": None,  # mpstat up to 9.0
}
_DISK: Final[Cells] = {
    "tps": Cell("io_per_s"),
    "sect/s": Cell("bytes_per_s", SECTOR),  # 4.0.4 to 4.1.6
    "rd_sec/s": Cell("read_bytes_per_s", SECTOR),  # 4.1.7 to 11.5.6
    "wr_sec/s": Cell("write_bytes_per_s", SECTOR),
    "rkB/s": Cell("read_bytes_per_s", KIB),  # 11.5.7 on
    "wkB/s": Cell("write_bytes_per_s", KIB),
    "dkB/s": Cell("discard_bytes_per_s", KIB),  # 12.1.2 on
    "avgrq-sz": Cell("areq_bytes", SECTOR),  # up to 11.5.6
    "areq-sz": Cell("areq_bytes", KIB),
    "avgqu-sz": Cell("aqu_sz"),
    "aqu-sz": Cell("aqu_sz"),
    "await": Cell("await_ms"),
    "svctm": Cell("svctm_ms"),  # up to 12.1.1
    "%util": Cell("util_pct"),
}
_INTERFACE: Final[Cells] = {
    "rxpck/s": Cell("rx_packets_per_s"),
    "txpck/s": Cell("tx_packets_per_s"),
    "rxbyt/s": Cell("rx_bytes_per_s"),
    "txbyt/s": Cell("tx_bytes_per_s"),  # up to 7.1.1
    "rxkB/s": Cell("rx_bytes_per_s", KIB),
    "txkB/s": Cell("tx_bytes_per_s", KIB),
    "rxcmp/s": None,
    "txcmp/s": None,
    "rxmcst/s": Cell("rx_multicast_per_s"),
    "%ifutil": Cell("ifutil_pct"),  # 10.1.7 on
}
_SYSTEM: Final[Cells] = {
    # -q; runq-sz leaves the reader itself out
    "runq-sz": Cell("procs_running"),
    "plist-sz": Cell("procs_total"),
    "ldavg-1": Cell("load1"),
    "ldavg-5": Cell("load5"),
    "ldavg-15": Cell("load15"),
    "blocked": Cell("procs_blocked"),  # 9.1.7 on
    # -w; up to 8.1.2 proc/s was a table of its own, -c
    "proc/s": Cell("forks_per_s"),
    "cswch/s": Cell("ctxt_per_s"),
    # -W
    "pswpin/s": Cell("swapin_pages_per_s"),
    "pswpout/s": Cell("swapout_pages_per_s"),
    # -R, to 11.5: how memory grew
    "frmpg/s": Cell("mem_free_pages_per_s"),
    "bufpg/s": Cell("mem_buffers_pages_per_s"),
    "campg/s": Cell("mem_cached_pages_per_s"),
    # -B; what the kernel calls pgpgin is KiB
    "pgpgin/s": Cell("pgin_bytes_per_s", KIB),
    "pgpgout/s": Cell("pgout_bytes_per_s", KIB),
    "fault/s": Cell("pgfault_per_s"),
    "majflt/s": Cell("pgmajfault_per_s"),
    "pgfree/s": Cell("pgfree_per_s"),
    "pgscank/s": Cell("pgscan_kswapd_per_s"),
    "pgscand/s": Cell("pgscan_direct_per_s"),
    "pgsteal/s": Cell("pgsteal_per_s"),
    "%vmeff": Cell("vmeff_pct"),
    "pgprom/s": None,
    "pgdem/s": None,
    # 4.0 and 5.0, with Linux 2.4
    "activepg": None,
    "inadtypg": None,
    "inaclnpg": None,
    "inatarpg": None,
    # -b
    "tps": Cell("all_io_per_s"),
    "rtps": Cell("all_r_per_s"),
    "wtps": Cell("all_w_per_s"),
    "dtps": Cell("all_d_per_s"),
    "bread/s": Cell("all_read_bytes_per_s", SECTOR),
    "bwrtn/s": Cell("all_write_bytes_per_s", SECTOR),
    "bdscd/s": Cell("all_discard_bytes_per_s", SECTOR),
    # -r, and -S from 8.1.5 on; used memory leaves out cache from 11.7.4 on
    "kbmemfree": Cell("mem_free_bytes", KIB),
    "kbavail": Cell("mem_available_bytes", KIB),
    "kbmemused": Cell("mem_used_bytes", KIB),
    "%memused": Cell("mem_used_pct"),
    "kbmemshrd": Cell("mem_shared_bytes", KIB),
    "kbbuffers": Cell("mem_buffers_bytes", KIB),
    "kbcached": Cell("mem_cached_bytes", KIB),
    "kbcommit": Cell("mem_committed_bytes", KIB),
    "%commit": Cell("mem_committed_pct"),
    "kbactive": Cell("mem_active_bytes", KIB),
    "kbinact": Cell("mem_inactive_bytes", KIB),
    "kbdirty": Cell("mem_dirty_bytes", KIB),
    "kbanonpg": Cell("mem_anon_bytes", KIB),
    "kbslab": Cell("mem_slab_bytes", KIB),
    "kbkstack": Cell("mem_kstack_bytes", KIB),
    "kbpgtbl": Cell("mem_pagetables_bytes", KIB),
    "kbvmused": Cell("mem_vmalloc_bytes", KIB),
    "kbswpfree": Cell("swap_free_bytes", KIB),
    "kbswpused": Cell("swap_used_bytes", KIB),
    "%swpused": Cell("swap_used_pct"),
    "kbswpcad": Cell("swap_cached_bytes", KIB),
    "%swpcad": Cell("swap_cached_pct"),
    # -q PSI, 12.3.3 on: of the interval; before it stand the kernel's own averages
    "%scpu": Cell("pressure_cpu_some_pct"),
    "%sio": Cell("pressure_io_some_pct"),
    "%fio": Cell("pressure_io_full_pct"),
    "%smem": Cell("pressure_memory_some_pct"),
    "%fmem": Cell("pressure_memory_full_pct"),
    **dict.fromkeys(
        f"%{name}-{seconds}"
        for name in ("scpu", "sio", "fio", "smem", "fmem")
        for seconds in (10, 60, 300)
    ),
}
SYSTEM: Final = Family("system", named=False, cells=_SYSTEM)
# The title of the column with the names -> what the table is about.
FAMILIES: Final[Mapping[str, Family]] = {
    "CPU": Family("cpu", named=True, cells=_CPU),
    "DEV": Family("device", named=True, cells=_DISK),
    "IFACE": Family("interface", named=True, cells=_INTERFACE),
    "INTR": Family("system", named=True, cells={"intr/s": Cell("intr_per_s")}, rows="sum"),
}

# The releases of sysstat (its CHANGES) that had a title first and last.
SINCE: Final[Mapping[str, tuple[int, ...]]] = {
    "%steal": (6, 1, 1),
    "pgfree/s": (7, 1, 6),
    "rxkB/s": (7, 1, 2),
    "kbcommit": (8, 1, 5),
    "blocked": (9, 1, 7),
    "kbactive": (9, 1, 7),
    "kbdirty": (10, 1, 2),
    "%gnice": (10, 1, 2),
    "%ifutil": (10, 1, 7),
    "kbavail": (11, 5, 3),
    "areq-sz": (11, 5, 7),
    "dkB/s": (12, 1, 2),
    "dtps": (12, 1, 2),
    "%scpu": (12, 3, 3),
}
UNTIL: Final[Mapping[str, tuple[int, ...]]] = {
    "sect/s": (4, 1, 6),
    "rxbyt/s": (7, 1, 1),
    "rd_sec/s": (11, 5, 6),
    "svctm": (12, 1, 1),
}


def generation(titles: Collection[str]) -> str:
    """Return which releases of sysstat have all these titles; "" if that cannot be told."""
    since = max((SINCE[title] for title in titles if title in SINCE), default=None)
    until = min((UNTIL[title] for title in titles if title in UNTIL), default=None)
    if since is None:
        return f"sysstat {_release(until)} or earlier" if until is not None else ""
    if until is None:
        return f"sysstat {_release(since)} or later"
    # A distribution's patches, or two tools in one file, else.
    return f"sysstat {_release(since)} to {_release(until)}" if since <= until else ""


def _release(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


@dataclass(frozen=True, slots=True)
class Layout:
    """A header understood: its titles, and which of them holds the names."""

    titles: tuple[str, ...]
    family: Family
    name_at: int | None

    @property
    def is_taken(self) -> bool:
        """Tell whether any column is taken."""
        return any(self.family.cells.get(title) is not None for title in self.titles)

    @property
    def unknown(self) -> list[str]:
        """Return the titles that no generation of the family has."""
        others = [title for at, title in enumerate(self.titles) if at != self.name_at]
        return [title for title in others if title not in self.family.cells]


def layout_of(titles: Sequence[str]) -> Layout:
    """Return what the titles of a header mean; the names stand first, or last with -p of 12."""
    for at in (0, len(titles) - 1):
        family = FAMILIES.get(titles[at])
        if family is not None:
            return Layout(tuple(titles), family, at)
    return Layout(tuple(titles), SYSTEM, None)
