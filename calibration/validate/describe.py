"""What a recorded run says of itself before its result: workload, disk, kernel.

Models: the description part of a run directory's run.json, as typed records.
Linux counterpart: none.
Invariants: only the keys of DESCRIPTION are ever looked at, so nothing that was measured of a run
 can reach its prediction; a run of a kind that is not simulated yet says so with its reason
 (Unsupported), a directory that describes nothing is a BadRun with the file and what is missing.
Left out: workloads of other recorders; the time at which a run was made.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calibration.host import chosen

# id, family and name only name the run; fs_plain is the file system of a run without a disk.
DESCRIPTION: Final = ("id", "family", "name", "workload", "disk", "kernel", "fs_plain")
FILE: Final = "run.json"


class BadRun(ValueError):
    """A directory that is no run, with where and why."""


class Unsupported(Exception):
    """A run whose mechanism the twin does not have yet."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """The kernel and the machine below it."""

    release: str
    hz: int
    cpus: int
    memory_kib: int
    is_guest: bool  # a user mode Linux guest; else the loop device of a real machine
    vm: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Disk:
    """An emulated disk, its queue and what is mounted on it."""

    params: Mapping[str, Any]
    elevator: str
    nr_requests: int
    max_sectors_kib: int
    read_ahead_kib: int | None  # this and the next two: None where the description is silent
    rotational: bool | None
    wbt_lat_us: int | None  # what writeback throttling aims at; 0 = off
    fs: str | None
    mount_options: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Description:
    """A run before it ran."""

    id: str
    family: str
    kind: str  # of the workload: fio, mailq, mta, cpuburn, memtouch, pcread, pg_test_fsync
    workload: Mapping[str, Any]  # its parameters
    details: Mapping[str, Any]  # what else the workload says of itself: command, options
    kernel: Kernel
    disk: Disk | None
    fs_plain: str | None

    @property
    def job_file(self) -> str | None:
        """The text of the job file that fio was given; None if options said what it did."""
        return str(self.details["job"]) if self.kind == "fio" and "job" in self.details else None


def read_run(directory: Path) -> Mapping[str, Any]:
    """Return a run's file as it is; raise BadRun if there is none or it is not JSON."""
    path = directory / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise BadRun(
            f"{path}: cannot be read: {reason} (expected a directory with {FILE})"
        ) from None
    except json.JSONDecodeError as error:
        raise BadRun(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(content, dict):
        raise BadRun(f"{path}: expected an object with the keys {', '.join(DESCRIPTION)}")
    return content


def describe(directory: Path) -> Description:
    """Return what the run says of itself; nothing else of its file is kept."""
    told = {key: value for key, value in read_run(directory).items() if key in DESCRIPTION}
    at = _At(directory / FILE)
    workload = at.table(told, "workload")
    plain = told.get("fs_plain")
    disk = told.get("disk")
    return Description(
        id=str(told.get("id") or f"{directory.resolve().parent.name}/{directory.resolve().name}"),
        family=str(told.get("family") or directory.resolve().parent.name),
        kind=at.text(workload, "type", "workload"),
        workload=at.table(workload, "params", "workload"),
        details={key: value for key, value in workload.items() if key not in ("type", "params")},
        kernel=_kernel(at, at.table(told, "kernel")),
        disk=None if disk is None else _disk(at, at.table(told, "disk")),
        fs_plain=None if plain is None else str(plain),
    )


class Told(dict[str, Any]):
    """An object of the file; asking it for what it lacks is a BadRun."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        super().__init__(table)
        self.where = where

    def __missing__(self, key: str) -> Any:
        path, _, name = self.where.rpartition(": ")
        full = f"{name}.{key}" if name else key
        raise BadRun(f"{path}: lacks '{full}' (there is {', '.join(self) or 'nothing'})")

    def __reduce__(self) -> tuple[Any, ...]:
        return Told, (dict(self), self.where)


class _At:
    """Reads values and says where one is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def value(self, table: Mapping[str, Any], key: str, where: str) -> Any:
        """Return a value that must be there."""
        return Told(table, f"{self.path}: {where}")[key]

    def table(self, table: Mapping[str, Any], key: str, where: str = "") -> Mapping[str, Any]:
        """Return an object."""
        found = self.value(table, key, where)
        if not isinstance(found, dict):
            raise BadRun(f"{self.path}: '{key}' must be an object, got {json.dumps(found)[:40]}")
        return Told(found, f"{self.path}: {where or key}")

    def text(self, table: Mapping[str, Any], key: str, where: str) -> str:
        """Return a text."""
        return str(self.value(table, key, where))

    def whole(self, table: Mapping[str, Any], key: str, where: str) -> int:
        """Return a whole number, given as one or as its digits."""
        found = self.value(table, key, where)
        try:
            return int(found)
        except (TypeError, ValueError):
            got = json.dumps(found)[:40]
            raise BadRun(
                f"{self.path}: '{where}.{key}' must be a whole number, got {got}"
            ) from None


def _kernel(at: _At, table: Mapping[str, Any]) -> Kernel:
    vm = at.table(table, "vm", "kernel")
    return Kernel(
        release=at.text(table, "release", "kernel"),
        hz=at.whole(table, "hz", "kernel"),
        cpus=at.whole(table, "ncpu", "kernel"),
        memory_kib=at.whole(table, "mem_total_kb", "kernel"),
        is_guest=bool(table.get("guest")),
        vm={key: at.whole(vm, key, "kernel.vm") for key in vm},
    )


def _disk(at: _At, table: Mapping[str, Any]) -> Disk:
    queue = at.table(table, "queue", "disk")
    fs = at.table(table, "fs", "disk") if table.get("fs") else None
    options = str(fs.get("proc_mounts", "")).split() if fs else []

    def whole_if_told(key: str) -> int | None:
        return at.whole(queue, key, "disk.queue") if key in queue else None

    rotational = whole_if_told("rotational")
    return Disk(
        params=at.table(table, "params", "disk"),
        elevator=chosen(str(queue.get("scheduler", "none")).strip()),
        nr_requests=at.whole(queue, "nr_requests", "disk.queue"),
        max_sectors_kib=at.whole(queue, "max_sectors_kb", "disk.queue"),
        read_ahead_kib=whole_if_told("read_ahead_kb"),
        rotational=None if rotational is None else bool(rotational),
        wbt_lat_us=whole_if_told("wbt_lat_usec"),
        fs=at.text(fs, "type", "disk.fs") if fs else None,
        mount_options=tuple(options[3].split(",")) if len(options) > 3 else (),
    )
