"""The figures of memory that runs short: swap, faults, who was killed, how well programs get on.

Models: free, vmstat and sar -W -B every few seconds, the kernel's log, programs' own counts.
Linux counterpart: procps, sysstat's formulas, dmesg.
Invariants: as for sim/study/metrics.py, whose families these are. Rates are of the measured part.
Left out: figures by cgroup.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sim.results import RunResult
from sim.study.observation import Metric, Observation, mean
from sim.tools.parse import parse_meminfo, parse_vmstat
from sim.units import NS_PER_MS, NS_PER_S

KIB: Final = 1024
STALL_MS: Final = 100.0  # what people notice


def swap_used_bytes(seen: Observation) -> float | None:
    """Mean of SwapTotal - SwapFree at the readings of the measured part."""
    return mean(
        float(memory.get("SwapTotal", 0) - memory.get("SwapFree", 0)) * KIB
        for memory in _meminfo(seen)
    )


def mem_cached_bytes(seen: Observation) -> float | None:
    """Mean of Cached at these readings."""
    return mean(float(memory["Cached"]) * KIB for memory in _meminfo(seen))


def mem_free_bytes(seen: Observation) -> float | None:
    """Mean of MemFree at these readings."""
    return mean(float(memory["MemFree"]) * KIB for memory in _meminfo(seen))


def oom_kills(seen: Observation) -> float:
    """Programs that the kernel killed for want of memory, in all of the run."""
    return len(list(seen.result.marks("oom_kill")))


def oom_kill_s(seen: Observation) -> float | None:
    """Time of the first OOM kill since the run began."""
    at_ns = seen.result.first_ns("oom_kill")
    return None if at_ns is None else at_ns / NS_PER_S


def work_per_s(seen: Observation) -> float | None:
    """Units of work that programs did in the measured part, per second."""
    length_ns = seen.end_ns - seen.begin_ns
    done = sum(float(record.value) for record in seen.marked("work_done"))
    return done * NS_PER_S / length_ns if length_ns else None


def work_done_last(seen: Observation) -> float | None:
    """How far a program had come that counts what it has: its last count."""
    counts = list(seen.result.marks("progress"))
    return float(counts[-1].value) if counts else None


def transaction_max_ms(seen: Observation) -> float | None:
    """Longest response time of the transactions of the measured part."""
    times = (float(record.value) / NS_PER_MS for record in seen.marked("transaction_ns"))
    return max(times, default=None)


def stalled_pct(seen: Observation) -> float | None:
    """Share of these that took more than a tenth of a second."""
    times = [float(record.value) / NS_PER_MS for record in seen.marked("transaction_ns")]
    return 100 * sum(ms > STALL_MS for ms in times) / len(times) if times else None


def walk_first_s(seen: Observation) -> float | None:
    """Time of the first walk over a tree of files, in all of the run."""
    return next(_walks_s(seen), None)


def walk_last_s(seen: Observation) -> float | None:
    """Time of the last such walk."""
    return next(iter(reversed(list(_walks_s(seen)))), None)


def slab_reclaimable_bytes(seen: Observation) -> float | None:
    """Mean of SReclaimable (2.6.28 on) at the readings of the measured part."""
    return mean(float(memory.get("SReclaimable", 0)) * KIB for memory in _meminfo(seen))


def _walks_s(seen: Observation) -> Iterator[float]:
    return (float(record.value) / NS_PER_S for record in seen.result.marks("find_ns"))


def _meminfo(seen: Observation) -> list[dict[str, int]]:
    samples = (s for s in seen.result.samples if seen.begin_ns <= s.t_ns <= seen.end_ns)
    return [parse_meminfo(sample.text("meminfo")) for sample in samples]


def _event(name: str, unit: str, counter: str) -> Metric:
    """Return the rate of a counter of /proc/vmstat."""

    def compute(seen: Observation) -> float | None:
        counts = _counts(seen.result, counter, seen.begin_ns, seen.end_ns)
        if len(counts) < 2 or counts[-1][0] == counts[0][0]:
            return None
        return (counts[-1][1] - counts[0][1]) * NS_PER_S / (counts[-1][0] - counts[0][0])

    compute.__doc__ = f"Increase of {counter} in /proc/vmstat per second of the measured part."
    return Metric(name, unit, compute)


def _counts(result: RunResult, counter: str, begin_ns: int, end_ns: int) -> list[tuple[int, int]]:
    samples = (s for s in result.samples if begin_ns <= s.t_ns <= end_ns)
    return [(s.t_ns, parse_vmstat(s.text("vmstat")).get(counter, 0)) for s in samples]


FAMILIES: Final[Mapping[str, tuple[Metric, ...]]] = {
    "memory": (
        Metric("swap_used_bytes", "B", swap_used_bytes),
        Metric("mem_cached_bytes", "B", mem_cached_bytes),
        Metric("mem_free_bytes", "B", mem_free_bytes),
        _event("swap_in_per_s", "pages/s", "pswpin"),
        _event("swap_out_per_s", "pages/s", "pswpout"),
        _event("major_faults_per_s", "/s", "pgmajfault"),
        Metric("oom_kills", "", oom_kills),
        Metric("oom_kill_s", "s", oom_kill_s),
    ),
    "names": (
        Metric("walk_first_s", "s", walk_first_s),
        Metric("walk_last_s", "s", walk_last_s),
        Metric("slab_reclaimable_bytes", "B", slab_reclaimable_bytes),
    ),
    "work": (
        Metric("work_per_s", "/s", work_per_s),
        Metric("progress", "", work_done_last),
    ),
    "stalls": (
        Metric("transaction_max_ms", "ms", transaction_max_ms),
        Metric("stalled_pct", "%", stalled_pct),
    ),
}
