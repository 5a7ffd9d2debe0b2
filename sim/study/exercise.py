"""Exercise tables: the same four transfers on many layouts, instance types and devices.

Models: somebody who runs fio on one machine after the other and writes a table. Nothing in it is
a formula: a cell is a run, but for the capacity, and for how many disks may be lost.
Linux counterpart: none; fio in the runs.
Invariants: a row's machines differ from the next one's by what the row says; all runs have one
 seed; a layout that cannot be is refused before anything runs.
Left out: file systems (devices are used directly, past the page cache); the tables' subjects, which
 are in exercise_subjects.py.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sim.scenario import Scenario, load_text
from sim.scenario.fio_file import read_fio_text
from sim.study.fio_run import run_fio
from sim.units import NS_PER_S
from sim.user.fio import READ, WRITE

Progress = Callable[[int, int], None]
Fact = str | int | float

MEGA: Final = 1e6
KERNEL: Final = "3.13"
CPUS: Final = 8
JOBS: Final = 2  # of random access with many at a time: one process may be short of CPU
_MACHINE: Final = """\
title = "{name}"
seed = {seed}
[machine]
kernel = "{kernel}"
cpus = {cpus}
memory = "15 GB"
[machine.mount."/"]
type = "tmpfs"
{devices}
[process.fio]
program = "fio"
count = 0
[run]
duration = "1 h"
"""


@dataclass(frozen=True, kw_only=True)
class Load:
    """One transfer: its column, and what fio is told; `depth` requests for each disk."""

    key: str
    heading: str
    rw: str
    block: str
    depth: int
    is_rate: bool  # megabytes a second; else operations a second


LOADS: Final = (
    Load(key="read_mb_per_s", heading="read MB/s", rw="read", block="1m", depth=4, is_rate=True),
    Load(key="write_mb_per_s", heading="write MB/s", rw="write", block="1m", depth=4, is_rate=True),
    Load(
        key="random_reads_per_s",
        heading="random reads/s",
        rw="randread",
        block="4k",
        depth=32,
        is_rate=False,
    ),
    Load(
        key="random_writes_per_s",
        heading="random writes/s",
        rw="randwrite",
        block="4k",
        depth=32,
        is_rate=False,
    ),
)
# One at a time, and all as bytes, so that the columns can be compared.
ACCESS_LOADS: Final = (
    LOADS[0],
    Load(
        key="random_read_alone_mb_per_s",
        heading="random read, 1",
        rw="randread",
        block="4k",
        depth=1,
        is_rate=True,
    ),
    Load(
        key="random_read_mb_per_s",
        heading="random read, 32",
        rw="randread",
        block="4k",
        depth=32,
        is_rate=True,
    ),
    LOADS[1],
    Load(
        key="random_write_alone_mb_per_s",
        heading="random write, 1",
        rw="randwrite",
        block="4k",
        depth=1,
        is_rate=True,
    ),
    Load(
        key="random_write_mb_per_s",
        heading="random write, 32",
        rw="randwrite",
        block="4k",
        depth=32,
        is_rate=True,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A row: what is said of it, its devices as TOML, which of them is used, how many are in it."""

    facts: Mapping[str, Fact]
    devices: str
    device: str
    disks: int = 1
    seconds: float = 0.5  # of each run; an arm needs longer for as many operations

    def scenario(self, seed: int) -> Scenario:
        """Return the machine; raise ScenarioError for one that cannot be."""
        name = " ".join(str(fact) for fact in self.facts.values())
        text = _MACHINE.format(name=name, seed=seed, kernel=KERNEL, cpus=CPUS, devices=self.devices)
        return replace(load_text(text, Path(f"{name}.toml")), processes={})

    def job(self, one: Load) -> str:
        """Return fio's job file for a transfer."""
        jobs = JOBS if one.depth > 1 and one.rw.startswith("rand") else 1
        depth = max(one.depth * self.disks // jobs, 1)
        return (
            f"[transfer]\nfilename=/dev/{self.device}\nrw={one.rw}\nbs={one.block}\ndirect=1\n"
            f"ioengine=libaio\niodepth={depth}\nruntime={int(1000 * self.seconds)}ms\ntime_based\n"
            f"numjobs={jobs}\n"
        )


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """A table to be filled: its name, what it shows, the facts' headings, rows and columns."""

    name: str
    title: str
    headings: Mapping[str, str]
    subjects: tuple[Subject, ...]
    loads: tuple[Load, ...] = LOADS


def measure(subject: Subject, one: Load, seed: int) -> float:
    """Run one transfer; return megabytes or operations a second."""
    scenario = subject.scenario(seed)
    result = run_fio(scenario, read_fio_text(subject.job(one), Path("transfer.fio")))
    stats = [job.stat.directions[READ if "read" in one.rw else WRITE] for job in result.jobs]
    seconds = max(stat.runtime_ns for stat in stats) / NS_PER_S
    if one.is_rate:
        return sum(stat.total_bytes for stat in stats) / seconds / MEGA
    return sum(stat.total_ios for stat in stats) / seconds


def fill(
    exercise: Exercise, seed: int, executor: Executor | None, progress: Progress | None
) -> list[dict[str, Fact]]:
    """Return the rows, facts first; raise ScenarioError before the first run."""
    for subject in exercise.subjects:
        subject.scenario(seed)
    cells = [(subject, one) for subject in exercise.subjects for one in exercise.loads]
    tell = progress or _tell_nobody
    if executor is None:
        values = []
        for number, (subject, one) in enumerate(cells, start=1):
            values.append(measure(subject, one, seed))
            tell(number, len(cells))
    else:
        values = _fill_elsewhere(cells, seed, executor, tell)
    found = iter(values)
    return [
        dict(subject.facts) | {one.key: next(found) for one in exercise.loads}
        for subject in exercise.subjects
    ]


def _fill_elsewhere(
    cells: Sequence[tuple[Subject, Load]], seed: int, executor: Executor, tell: Progress
) -> list[float]:
    futures = [executor.submit(measure, subject, one, seed) for subject, one in cells]
    for number, _done in enumerate(as_completed(futures), start=1):
        tell(number, len(futures))
    return [future.result() for future in futures]


def _tell_nobody(_done: int, _total: int) -> None:
    """Nobody waits."""
