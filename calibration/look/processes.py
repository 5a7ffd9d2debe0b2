"""Which processes were busy: CPU time, I/O and memory of each, over the whole recording.

Models: the colleague who asks "and who does that?".
Linux counterpart: none; pidstat's averages.
Invariants: a process that has no row in a report did nothing in it, as pidstat leaves out who was
idle: rates are means over all reports of the table, sizes over those that show the process.
Figures since boot are left out.
Left out: which of them a transaction is of.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from calibration.samples import Recording, Sample

SHOWN = 5  # of each way to be busy
_RATES = {
    "cpu_pct": "process_cpu_pct",
    "wait_pct": "process_wait_pct",
    "read_bytes_per_s": "process_read_bytes_per_s",
    "write_bytes_per_s": "process_write_bytes_per_s",
    "majflt_per_s": "process_majflt_per_s",
}
_SIZES = {"rss_bytes": "process_rss_bytes"}


@dataclass(frozen=True, kw_only=True)
class ProcessLook:
    """One process; None for what no table told."""

    name: str  # command[pid]
    cpu_pct: float | None = None  # of one CPU
    wait_pct: float | None = None
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    majflt_per_s: float | None = None
    rss_bytes: float | None = None


def look_at_processes(recordings: Sequence[Recording]) -> list[ProcessLook]:
    """Return the busiest processes, those with most CPU time first, then those with most I/O."""
    samples = [
        sample
        for one in recordings
        for sample in one.samples
        if sample.kind == "process" and not sample.since_boot
    ]
    means: dict[str, dict[str, float]] = {}
    for field, column in (_RATES | _SIZES).items():
        for name, value in _means(samples, column, of_all=field in _RATES).items():
            means.setdefault(name, {})[field] = value
    found = [ProcessLook(name=name, **values) for name, values in means.items()]
    chosen: dict[str, ProcessLook] = {}
    for busy in (_cpu, _bytes):
        ranked = sorted((one for one in found if busy(one)), key=busy, reverse=True)
        chosen |= {one.name: one for one in ranked[:SHOWN]}
    return list(chosen.values())


def _means(samples: Sequence[Sample], column: str, *, of_all: bool) -> dict[str, float]:
    """Return the mean of a column by process; `of_all`: over all reports that have the column."""
    values: dict[str, list[float]] = {}
    reports = set()
    for sample in samples:
        if sample.column == column:
            values.setdefault(sample.name, []).append(sample.value)
            reports.add(sample.report)
    return {
        name: sum(those) / (len(reports) if of_all else len(those))
        for name, those in values.items()
    }


def _cpu(one: ProcessLook) -> float:
    return one.cpu_pct or 0.0


def _bytes(one: ProcessLook) -> float:
    return (one.read_bytes_per_s or 0.0) + (one.write_bytes_per_s or 0.0)
