"""Exercise tables: the same transfers on arrays of disks, and on devices of all kinds.

Models: somebody who runs fio on one machine after the other and writes a table. Nothing in it is
a formula: a cell is a run, but for the capacity, and for how many disks may be lost.
Linux counterpart: none; fio in the runs, mdadm(8) for the layouts.
Invariants: a row's machines differ from the next one's by what the row says; all runs have one
 seed; a layout that cannot be is refused before anything runs.
Left out: file systems (devices are used directly, past the page cache); layouts of the device
 mapper, which `[machine.array]` has too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from sim.drivers.disk import profile_names
from sim.drivers.md.md import Array
from sim.registry import lookup
from sim.scenario import Scenario, load_text
from sim.scenario.fio_file import read_fio_text
from sim.study.fio_run import run_fio
from sim.study.laboratory import Laboratory
from sim.units import NS_PER_S
from sim.user.fio import READ, WRITE

Fact = str | int | float

SEED: Final = 1
MEGA: Final = 1e6
KERNEL: Final = "3.13"
CPUS: Final = 8
JOBS: Final = 2  # of random access with many at a time: one process may be short of CPU
LEVELS: Final = ("raid0", "raid1", "raid5", "raid10")
DEVICES: Final = tuple(range(2, 9))
PROFILE: Final = "ec2/m3.xlarge"
GIGA: Final = 1e9
_LETTERS: Final = "bcdefghi"
_SECONDS: Final = 0.5
_ARM_SECONDS: Final = 8.0
_GUEST: Final = 'frontend = "xen-blkfront"\nscheduler = "deadline"\n'
_EBS_CLASSES: Final = ("ebs-standard", "ebs-gp2")
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


def raid(
    levels: Sequence[str] = LEVELS, counts: Sequence[int] = DEVICES, profile: str = PROFILE
) -> Exercise:
    """Return arrays of so many disks of a profile, one disk alone first."""
    subjects = [_array(None, 1, profile)]
    for level in levels:
        # Who asks for one number of disks alone is told where a level cannot have it.
        least = 0 if len(counts) == 1 else _level(level).min_devices
        subjects += [_array(level, n, profile) for n in counts if n >= least]
    headings = {
        "level": "level",
        "disks": "disks",
        "capacity_gb": "capacity GB",
        "may_lose": "may lose",
    }
    title = f"Arrays of {profile} ({_machine_text()}, chunks of 512 KiB)"
    return Exercise(name="raid", title=title, headings=headings, subjects=tuple(subjects))


def access() -> Exercise:
    """Return devices of all kinds, in order and at random."""
    profiles = [name for name in profile_names() if "/" not in name]
    subjects = [_device(name, f'profile = "{name}"\n') for name in profiles]
    subjects.append(_device("ec2/m3.xlarge", f'profile = "ec2/m3.xlarge"\n{_GUEST}'))
    subjects += [
        _device(name, f'device = "{name}"\ncapacity = "1 TB"\n{_GUEST}') for name in _EBS_CLASSES
    ]
    title = "In order (1 MiB) and at random (4 KiB, one or 32 at a time), all in MB/s"
    return Exercise(
        name="access",
        title=title,
        headings={"device": "device"},
        subjects=tuple(subjects),
        loads=ACCESS_LOADS,
    )


def _machine_text() -> str:
    return f"kernel {KERNEL}, {CPUS} CPUs, xen-blkfront"


def _array(level: str | None, count: int, profile: str) -> Subject:
    """Return an array of equal disks, or one disk; raise ScenarioError for an impossible one."""
    arm = _has_arm(profile)
    named: dict[str, Fact] = {"level": level or "-", "disks": count}
    subject = Subject(
        facts=named,
        devices=_disks(profile, count) + _md(level, count),
        device="md0" if level else "xvdb",
        disks=count,
        seconds=_ARM_SECONDS if arm else _SECONDS,
    )
    return _with_capacity(subject, {"may_lose": _may_lose(subject, level, count)})


def _device(name: str, described: str) -> Subject:
    seconds = _ARM_SECONDS if _has_arm(name) else _SECONDS
    return Subject(
        facts={"device": name},
        devices=f"[machine.disk.xvdb]\n{described}",
        device="xvdb",
        seconds=seconds,
    )


def _disks(profile: str, count: int) -> str:
    return "".join(
        f'[machine.disk.xvd{letter}]\nprofile = "{profile}"\n{_GUEST}'
        for letter in _LETTERS[:count]
    )


def _md(level: str | None, count: int) -> str:
    if level is None:
        return ""
    members = ", ".join(f'"xvd{letter}"' for letter in _LETTERS[:count])
    return f'[machine.array.md0]\nlevel = "{level}"\ndevices = [{members}]\n'


def _with_capacity(subject: Subject, more: dict[str, Fact]) -> Subject:
    """Return the subject with the capacity that its scenario lists."""
    path = f"machine.{'array' if subject.device == 'md0' else 'disk'}.{subject.device}.capacity"
    parameters = {one.path: one.value for one in subject.scenario(0).parameters}
    capacity = parameters[path]
    assert isinstance(capacity, int)
    return replace(subject, facts=dict(subject.facts) | {"capacity_gb": capacity / GIGA} | more)


def _may_lose(subject: Subject, level: str | None, count: int) -> int:
    if level is None:
        return 0
    return _level(level).may_lose(subject.scenario(0).server.all("array")["md0"].params, count)


def _level(level: str) -> type[Array]:
    cls: type[Array] = lookup("array", level).cls
    return cls


def _has_arm(profile: str) -> bool:
    return profile.startswith(("sata-", "sas-", "ebs-standard"))


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
    exercise: Exercise, seed: int, laboratory: Laboratory | None = None
) -> list[dict[str, Fact]]:
    """Return the rows, facts first; raise ScenarioError before the first run."""
    for subject in exercise.subjects:
        subject.scenario(seed)
    cells = [(subject, one) for subject in exercise.subjects for one in exercise.loads]
    names = [f"{exercise.name}: {one.heading}" for _subject, one in cells]
    found = iter((laboratory or Laboratory()).map(partial(_cell, seed), cells, names))
    return [
        dict(subject.facts) | {one.key: next(found) for one in exercise.loads}
        for subject in exercise.subjects
    ]


def _cell(seed: int, cell: tuple[Subject, Load]) -> float:
    return measure(*cell, seed)
