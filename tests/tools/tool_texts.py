"""Texts of /proc for the tools' tests, written by hand rather than by sim.fs.proc."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sim.tools.snapshot import Snapshot

NS_PER_S = 1_000_000_000


def stat_text(cpu: Sequence[int], *, cpus: int = 1, intr: int = 0, ctxt: int = 0) -> str:
    """Return /proc/stat with the ticks of `cpu` in the cpu line and all of them on CPU 0."""
    ticks = " ".join(map(str, cpu))
    others = "".join(f"cpu{n} {' '.join('0' for _ in cpu)}\n" for n in range(1, cpus))
    return (
        f"cpu  {ticks}\ncpu0 {ticks}\n{others}intr {intr} 0 0\nctxt {ctxt}\nbtime 1200000000\n"
        "processes 4000\nprocs_running 3\nprocs_blocked 7\n"
    )


def disk_text(name: str, counters: Sequence[int], *, major: int = 8, minor: int = 0) -> str:
    """Return one row of /proc/diskstats."""
    return f"{major:4d} {minor:4d} {name} {' '.join(map(str, counters))}\n"


def snapshot(
    uptime_s: float,
    disks: Iterable[str],
    *,
    cpu: Sequence[int] = (0, 0, 0, 100, 0, 0, 0, 0),
    cpus: int = 1,
) -> Snapshot:
    """Return what iostat reads, at an uptime that is also the time of the snapshot."""
    return Snapshot(
        t_ns=round(uptime_s * NS_PER_S),
        files={
            "uptime": f"{uptime_s:.2f} 0.00\n",
            "stat": stat_text(cpu, cpus=cpus),
            "diskstats": "".join(disks),
        },
    )
