"""Which processes were busy: CPU time, I/O and memory of each, over the whole recording.

Models: the colleague who asks "and who does that?".
Linux counterpart: none; pidstat's averages.
Invariants: a process that has no row in a report did nothing in it, as pidstat leaves out who was
idle: rates are means over all reports of the table, sizes over those that show the process.
Figures since boot are left out. A recorder's samples have each command once, with all its tasks.
Left out: which of them a transaction is of.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Final

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
ASLEEP: Final = "process_asleep"
CENSUSES: Final = ("tasks_uninterruptible", "procs_uninterruptible")  # of all commands
KERNELS: Final = "["  # begins the name of a task of the kernel
KERNEL_THREADS: Final = ("jbd2/", "kworker", "xfsaild/", "kswapd", "flush-")  # as pidstat has them
CHANCE_MAX: Final = 1 / 16


@dataclass(frozen=True, kw_only=True)
class ProcessLook:
    """One process; None for what no table told."""

    name: str  # command[pid]; of a recorder's the command alone, [command] if it is the kernel's
    cpu_pct: float | None = None  # of one CPU
    wait_pct: float | None = None
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    majflt_per_s: float | None = None
    rss_bytes: float | None = None
    asleep: float | None = None  # tasks in uninterruptible sleep, at the recorder's samples


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
    for name, asleep in sleepers(recordings).items():
        means.setdefault(name, {})["asleep"] = asleep
    found = [ProcessLook(name=name, **values) for name, values in means.items()]
    chosen: dict[str, ProcessLook] = {}
    for busy in (_cpu, _bytes, _asleep):
        ranked = sorted((one for one in found if busy(one)), key=busy, reverse=True)
        chosen |= {one.name: one for one in ranked[:SHOWN]}
    return list(chosen.values())


def sleepers(recordings: Sequence[Recording]) -> dict[str, float]:
    """Return how many tasks of each command slept uninterruptibly, on average of the samples."""
    samples = [one for recording in recordings for one in recording.samples]
    censuses = sum(one.column in CENSUSES for one in samples)
    return {name: count / censuses for name, count in _sightings(samples).items() if censuses}


def likeliest_writer(recordings: Sequence[Recording]) -> tuple[str, str] | None:
    """Return the command that most of the waiting is of, and what says so; None: nothing does.

    Most tasks seen in D are its, by more than chance, or it wrote most. The kernel's are not asked.
    By hand: of somebody with half of the tasks four sightings of four have the chance 1 / 16.
    """
    samples = [one for recording in recordings for one in recording.samples if not one.since_boot]
    seen = {k: n for k, n in _sightings(samples).items() if not k.startswith(KERNELS)}
    written: dict[str, float] = {}
    for process, per_s in _means(samples, "process_write_bytes_per_s", of_all=True).items():
        name = process.rpartition("[")[0].partition(":")[0]  # of "postgres: walwriter[50]"
        if not name.startswith(KERNEL_THREADS):
            written[name] = written.get(name, 0.0) + per_s
    if seen:
        most = max(seen, key=lambda name: seen[name])
        number, own = round(sum(seen.values())), round(seen[most])
        by_chance = sum(comb(number, n) for n in range(own, number + 1)) / 2**number
        return (most, f"most tasks seen in D are {most}'s") if by_chance <= CHANCE_MAX else None
    most = max(written, key=lambda name: written[name], default="")
    if written and written[most] > sum(written.values()) / 2:
        return most, f"{most} wrote most"
    return None


def _sightings(samples: Sequence[Sample]) -> dict[str, float]:
    """Return how often each command's tasks were seen asleep, all samples together."""
    counts: dict[str, float] = {}
    for one in samples:
        if one.column == ASLEEP:
            counts[one.name] = counts.get(one.name, 0.0) + one.value
    return counts


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


def _asleep(one: ProcessLook) -> float:
    return one.asleep or 0.0
