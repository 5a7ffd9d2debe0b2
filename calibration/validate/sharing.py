"""How processes shared the CPUs: shares by nice level, and what they waited on run queues.

Models: arithmetic on what each process says of itself, measured or simulated.
Linux counterpart: CLOCK_PROCESS_CPUTIME_ID; /proc/PID/schedstat's second number, the time on run
 queues, which was not recorded: for one who computes all the time it is wall less CPU time, for one
 who reads the time of a read less that of its request.
Invariants: the shares of all hogs, each times the number of its level, add up to 1.
Left out: the system call's own time in a reader's wait (microseconds).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, kw_only=True)
class Hog:
    """A process that computed all the time, s."""

    nice: int
    cpu_s: float
    wall_s: float


def sharing(hogs: Sequence[Hog], read_ms: float | None, await_ms: float) -> dict[str, float | None]:
    """Return the mean share (1 = all hogs' time) and wait (s) of a hog by nice; a read's wait (ms).

    `read_ms` is the mean time of the readers' reads, `await_ms` that of the disk's requests.
    """
    total = sum(hog.cpu_s for hog in hogs)
    levels: Mapping[int, list[Hog]] = defaultdict(list)
    for hog in hogs:
        levels[hog.nice].append(hog)
    found: dict[str, float | None] = {}
    for nice, level in sorted(levels.items()):
        cpu_s = fmean(hog.cpu_s for hog in level)
        found[f"share, nice {nice}"] = cpu_s / total if total else None
        found[f"wait s, nice {nice}"] = fmean(hog.wall_s for hog in level) - cpu_s
    if read_ms is not None:
        found["read ms"] = read_ms
        found["read's CPU wait ms"] = read_ms - await_ms
    return found
