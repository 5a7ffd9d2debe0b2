"""The power goes at a moment: what was promised and is lost.

Models: somebody who pulls the plug, boots again, and compares the queue with what the senders were
told. A promise (promise__made) is kept once somebody else has it (promise__kept), or if all its
files are there and complete after recovery. It may come to rest on other files of the same machine,
a mailbox, with a note beside the first ones that says so (promise__moved): then it is kept if those
are there, or the first ones without the note, which makes the program do it again.
Linux counterpart: none.
Invariants: accepted = handed on + in mailboxes + in the queue + lost; the run up to the cut is
that of `run`.
Left out: what the programs do after the next boot.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import sim
from sim.component import mount_point_of
from sim.engine.trace import Record
from sim.fs.super import Remains
from sim.machine import Machine, simulate
from sim.scenario import Scenario
from sim.study.laboratory import Laboratory, Progress
from sim.study.summary import Summary, summarise_all

UNITS: Final = {
    "messages_accepted": "messages",
    "messages_handed_on": "messages",
    "messages_in_mailboxes": "messages",
    "messages_in_queue": "messages",
    "messages_lost": "messages",
    "messages_sent_twice": "messages",
    "files_incomplete": "files",
    "changes_undone": "changes",
    "damage": "findings",
}


class NothingPromisedError(Exception):
    """No program of the scenario promises that anything survives."""


Files = tuple[tuple[str, int], ...]  # (path, bytes that must be there)


@dataclass(frozen=True)
class Move:
    """Where a promise has come to rest, and what says so beside the files that it rested on."""

    note: Files
    files: Files


@dataclass
class Promises:
    """What programs have said until now."""

    made: dict[str, Files] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    moved: dict[str, Move] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        """Note a probe (usdt)."""
        comm, _pid, name, _cpu_ns, *values = record.args
        if name == "promise__made":
            self.made[f"{comm} {values[0]}"] = _files(values[1:])
        elif name == "promise__kept":
            self.kept.add(f"{comm} {values[0]}")
        elif name == "promise__moved":
            note, *files = _files(values[1:])
            self.moved[f"{comm} {values[0]}"] = Move(note=(note,), files=tuple(files))


def _files(values: Sequence[object]) -> Files:
    """Return the pairs of a probe's values: path, size, path, size."""
    pairs = zip(values[::2], values[1::2], strict=True)
    return tuple((str(path), int(str(size))) for path, size in pairs)


@dataclass(frozen=True)
class Cut:
    """One run that ended in the dark."""

    seed: int
    figures: dict[str, float]
    mounts: dict[str, Remains]  # by mount point


@dataclass(frozen=True)
class PowerCut:
    """All runs of a study."""

    scenario: Scenario
    at_ns: int
    cuts: tuple[Cut, ...]
    figures: dict[str, Summary]
    version: str


def cut_power(
    scenario: Scenario, at_ns: int, replications: int, laboratory: Laboratory | None = None
) -> PowerCut:
    """Run the scenario up to ``at_ns`` under successive seeds, and look what remains.

    Raises NothingPromisedError, and UnmodelledError where no mechanism tells what remains.
    """
    seeds = [scenario.seed + number for number in range(replications)]
    names = [f"{scenario.label}, cut at {at_ns / 1e9:g} s, seed {seed}" for seed in seeds]
    work = partial(_cut, scenario, at_ns)
    cuts = (laboratory or Laboratory()).map(work, seeds, names, tells=True)
    figures = summarise_all([cut.figures for cut in cuts], UNITS)
    return PowerCut(scenario, at_ns, tuple(cuts), figures, sim.__version__)


def _cut(scenario: Scenario, at_ns: int, seed: int, progress: Progress | None = None) -> Cut:
    """Run once; the last reading of /proc comes at the cut."""
    promises = Promises()
    machines: list[Machine] = []

    def watch(machine: Machine) -> None:
        machines.append(machine)
        machine.tracer.start("usdt", sink=promises.take)
        for _path, file_system in machine.vfs.mounts:
            file_system.expect_power_cut()

    # Steps of equal length that end at the cut (but for less than a microsecond).
    step_ns = max(1, at_ns // max(1, at_ns // scenario.measure.interval_ns))
    run = replace(scenario.run, duration_ns=at_ns // step_ns * step_ns, until=None)
    measure = replace(scenario.measure, interval_ns=step_ns)
    simulate(replace(scenario, run=run, measure=measure), seed, progress, watch)
    [machine] = machines
    if not promises.made:
        raise NothingPromisedError(
            f"{scenario.name}: until {at_ns / 1e9:g} s no program has promised anything that a"
            " power cut could break (sendmail does, at its answer 250)"
        )
    mounts = {path or "/": fs.remains() for path, fs in machine.vfs.mounts if path != "/dev"}
    return Cut(seed, _figures(promises, mounts), mounts)


def _figures(promises: Promises, mounts: dict[str, Remains]) -> dict[str, float]:
    """Hold promises against what is there."""
    waiting = [key for key in promises.made if key not in promises.kept]
    in_mailboxes = [
        key
        for key in waiting
        if key in promises.moved and _is_there(promises.moved[key].files, mounts)
    ]
    in_queue = [key for key in promises.made if _is_in_queue(promises, key, mounts)]
    elsewhere = promises.kept.union(in_mailboxes)
    twice = elsewhere.intersection(in_queue)
    in_queue_alone = len(in_queue) - len(twice)
    incomplete = [
        path for one in mounts.values() for path, file in one.files.items() if not file.is_complete
    ]
    return {
        "messages_accepted": len(promises.made),
        "messages_handed_on": len(promises.made) - len(waiting),
        "messages_in_mailboxes": len(in_mailboxes),
        "messages_in_queue": in_queue_alone,
        "messages_lost": len(waiting) - len(in_mailboxes) - in_queue_alone,
        "messages_sent_twice": len(twice),
        "files_incomplete": len(incomplete),
        "changes_undone": sum(one.lost_changes for one in mounts.values()),
        "damage": sum(len(one.damage) for one in mounts.values()),
    }


def _is_in_queue(promises: Promises, key: str, mounts: dict[str, Remains]) -> bool:
    """Return whether the program will take a message up again after the next boot."""
    move = promises.moved.get(key)
    noted = move is not None and _is_there(move.note, mounts)
    return not noted and _is_there(promises.made[key], mounts)


def _is_there(files: Sequence[tuple[str, int]], mounts: dict[str, Remains]) -> bool:
    """Return whether all files of a promise are there and complete."""
    return bool(files) and all(_on_mount(path, mounts, size) for path, size in files)


def _on_mount(path: str, mounts: dict[str, Remains], size: int) -> bool:
    """Look a file up on the mount that it is on."""
    place = mount_point_of(path, mounts)
    return place in mounts and mounts[place].has(path.removeprefix(place.rstrip("/")), size)
