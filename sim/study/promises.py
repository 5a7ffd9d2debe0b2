"""What programs have promised, and what a power cut leaves of it.

Models: the comparison of the queue after the next boot with what the senders were told. A promise
(promise__made) is kept once somebody else has it (promise__kept), or if all its files are there and
complete after recovery. It may come to rest on other files of the same machine, a mailbox, with a
note beside the first ones that says so (promise__moved): then it is kept if those are there, or the
first ones without the note, which makes the program do it again.
Linux counterpart: none.
Invariants: accepted = handed on + in mailboxes + in the queue + lost. To look changes nothing: one
 run shows what several power cuts would leave, each as if it were the only one.
Left out: what the programs do after the next boot.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sim.component import mount_point_of
from sim.engine.trace import Record
from sim.fs.super import Remains
from sim.machine import Machine
from sim.scenario import Scenario
from sim.units import NS_PER_MS

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

Progress = Callable[[int, int], None]
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


@dataclass(frozen=True, kw_only=True)
class Left:
    """What recovery finds on a mount, but for the names of its files."""

    kind: str  # such as "ext3, data=ordered"
    files: int
    last_durable: int  # the newest transaction on the medium, 0 where there are none
    damage: tuple[str, ...]  # what recovery cannot mend


class Watcher:
    """Looks at the moments at which the power may go; simulate() takes watch and told()."""

    def __init__(self, scenario: Scenario, moments_ns: Sequence[int]) -> None:
        """Be ready for a run of what ending_at() has returned for the moments."""
        step_ns = scenario.measure.interval_ns
        self._due_ns = [moment_ns // step_ns * step_ns for moment_ns in moments_ns]
        self._found: dict[int, dict[str, float]] = {}
        self._machines: list[Machine] = []
        self._promises = Promises()
        self.left: dict[str, Left] = {}  # at the latest look, by mount point

    @property
    def has_promises(self) -> bool:
        """Whether any program has promised anything."""
        return bool(self._promises.made)

    @property
    def figures(self) -> tuple[dict[str, float], ...]:
        """The figures of each moment, in the order of the moments."""
        return tuple(self._found[due_ns] for due_ns in self._due_ns)

    def watch(self, machine: Machine) -> None:
        """Begin with a machine that has just booted."""
        self._machines.append(machine)
        machine.tracer.start("usdt", sink=self._promises.take)
        for _path, file_system in machine.vfs.mounts:
            file_system.expect_power_cut()

    def told(self, progress: Progress | None) -> Progress:
        """Return what simulate() tells of its progress: it looks, and tells `progress` in turn."""

        def look(done_ns: int, total_ns: int) -> None:
            if done_ns in self._due_ns:
                self._look(done_ns)
            if progress is not None:
                progress(done_ns, total_ns)

        return look

    def _look(self, now_ns: int) -> None:
        """Note what would be left; raise UnmodelledError where no mechanism tells."""
        [machine] = self._machines
        mounts = {path or "/": fs.remains() for path, fs in machine.vfs.mounts if path != "/dev"}
        self._found[now_ns] = _figures(self._promises, mounts)
        self.left = {
            path: Left(
                kind=one.kind,
                files=len(one.files),
                last_durable=one.last_durable,
                damage=one.damage,
            )
            for path, one in mounts.items()
        }


def ending_at(scenario: Scenario, moments_ns: Sequence[int]) -> Scenario:
    """Return a scenario that ends at the last of these moments, with a reading at each.

    Readings have equal distances; one comes less than a microsecond before its moment. Raise
    ValueError for several moments that are multiples of nothing longer than a millisecond.
    """
    common_ns = math.gcd(*moments_ns)
    if len(moments_ns) > 1 and common_ns <= NS_PER_MS:
        raise ValueError(f"moments that are multiples of {common_ns} ns alone")
    step_ns = max(1, common_ns // max(1, common_ns // scenario.measure.interval_ns))
    last_ns = max(moments_ns) // step_ns * step_ns
    run = replace(scenario.run, duration_ns=last_ns, until=None)
    return replace(scenario, run=run, measure=replace(scenario.measure, interval_ns=step_ns))


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
