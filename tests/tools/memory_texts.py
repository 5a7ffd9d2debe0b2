"""/proc of a server that swaps, as texts: the memory that a recorded top showed, and processes."""

from __future__ import annotations

from sim.tools.snapshot import Snapshot
from tests.tools.tool_texts import NS_PER_S

MEMINFO = """\
MemTotal:      1695600 kB
MemFree:         13440 kB
Buffers:          1400 kB
Cached:          45348 kB
SwapCached:      12000 kB
Active:         900000 kB
Inactive:       500000 kB
SwapTotal:     2096120 kB
SwapFree:      1093032 kB
SReclaimable:    20000 kB
Shmem:            4096 kB
"""
MEMINFO_NEW = MEMINFO + "MemAvailable:     80000 kB\n"
SWAPS = (
    "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n"
    "/dev/xvdk1                              partition\t2096120\t945552\t-1\n"
    "/swap/file                              file\t\t62914560\t0\t5\n"
)
NO_SWAPS = "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n"


def process(
    pid: int,
    comm: str,
    *,
    ticks: int = 0,
    state: str = "S",
    nice: int = 0,
    uid: int = 0,
    pages: tuple[int, int, int] = (0, 0, 0),
) -> dict[str, str]:
    """Return the files of a process; `pages` are its size, what is in memory, of that of files."""
    size, resident, shared = pages
    user, system = ticks - ticks // 3, ticks // 3
    stat = (
        f"{pid} ({comm}) {state} 1 {pid} {pid} 0 -1 4202752 1000 0 10 0 {user} {system} 0 0"
        f" {20 + nice} {nice} 1 0 100 {size * 4096} {resident} 18446744073709551615"
        f"{' 0' * 27}\n"
    )
    status = f"Name:\t{comm}\nState:\t{state}\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t1\n"
    return {
        f"{pid}/stat": stat,
        f"{pid}/statm": f"{size} {resident} {shared} 100 0 {size - shared} 0\n",
        f"{pid}/status": status + f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nThreads:\t1\n",
    }


def server(
    uptime_s: int, cpu: tuple[int, ...], *processes: dict[str, str], meminfo: str = MEMINFO
) -> Snapshot:
    """Return a reading with the ticks of `cpu` in all states and these processes."""
    ticks = " ".join(map(str, cpu))
    files = {
        "stat": f"cpu  {ticks} 0 0\ncpu0 {ticks} 0 0\nintr 5 0\nctxt 6\nbtime 7\nprocesses 8\n"
        "procs_running 1\nprocs_blocked 1\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
        "uptime": f"{uptime_s}.00 0.00\n",
        "loadavg": "1.55 1.73 1.67 2/108 29800\n",
        "meminfo": meminfo,
    }
    for one in processes:
        files |= one
    return Snapshot(uptime_s * NS_PER_S, files)
