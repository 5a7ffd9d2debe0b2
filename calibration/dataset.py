"""Recorded data sets: a folder with raw text, untouched, and dataset.toml, which says what it is.

Models: a labelled drawer.
Linux counterpart: none.
Invariants: every raw file stands in `files` (readers take it) or `attachments` (for people alone)
and has its SHA-256 in [sha256], which is checked when it is read; a key that is not in KEYS is a
mistake, told with line and nearest name; what was not recorded is left out, never filled in.
Left out: the figures ([figures.NAME], sim/study/recorded.py).

    title = "..."           what happened, a line
    hardware = "..."        the machine, in words          kernel = "2.6.32"   as uname -r says
    hostname, arch, cpus, memory = "8 GiB"                 as far as known
    command = "iostat -x 5; vmstat -S M 5"  what was typed: readers take units and -y from it
    interval = "5 s"        between reports
    when = "..."            date and time, or that they were not recorded
    warm_up = "0 s"         not to be used, from the beginning; cool_down: up to the end
    files, attachments      names of raw files             devices              names in them
    notes = "..."           how figures were taken, what is odd
    [sha256]                file = "hex digits"            [figures.NAME]       recorded figures
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from calibration.host import Host, read_host
from calibration.readers import UnreadableRecording, read_file
from calibration.readers.prompt import commands_of
from calibration.record import HOST, PROC
from calibration.samples import Recording
from sim.registry import did_you_mean
from sim.scenario.cases import DATASET, RECORDING, data_sets, name_of_data_set
from sim.study.recorded import DatasetError
from sim.toml.errors import Place, Problem, unknown
from sim.toml.lines import LineMap, check_bounds, key_positions
from sim.units import NS_PER_S, UnitError, parse_quantity

# key -> type, and the dimension of a quantity
KEYS: Final[Mapping[str, tuple[type, str]]] = {
    "title": (str, ""),
    "hardware": (str, ""),
    "kernel": (str, ""),
    "hostname": (str, ""),
    "arch": (str, ""),
    "cpus": (int, ""),
    "memory": (str, "bytes"),
    "command": (str, ""),
    "interval": (str, "time_ns"),
    "when": (str, ""),
    "warm_up": (str, "time_ns"),
    "cool_down": (str, "time_ns"),
    "files": (list, ""),
    "attachments": (list, ""),
    "devices": (list, ""),
    "notes": (str, ""),
    "sha256": (dict, ""),
    "figures": (dict, ""),
}
_RELEASE: Final = re.compile(r"\d+\.\d+")
_TYPES: Final[Mapping[type, str]] = {
    str: "a text",
    int: "a whole number",
    list: "a list of texts",
    dict: "a table",
}


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """What dataset.toml says; None where it says nothing."""

    name: str
    folder: Path
    title: str
    files: tuple[str, ...]
    attachments: tuple[str, ...]
    sha256: Mapping[str, str]
    hardware: str | None = None
    kernel: str | None = None
    hostname: str | None = None
    arch: str | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    command: str | None = None
    interval_s: float | None = None
    when: str | None = None
    warm_up_s: float = 0.0
    cool_down_s: float = 0.0
    notes: str = ""

    def recordings(self) -> list[Recording]:
        """Read the raw files, after checking that they are as they were; DatasetError."""
        for name in (*self.files, *self.attachments):
            self._check(name)
        return [self._read(name) for name in self.files]

    def _check(self, name: str) -> None:
        path = self.folder / name
        if not path.is_file():
            raise DatasetError(f"{self.folder / DATASET}: no file {name} beside it")
        found = sha256_of(path)
        if found != self.sha256.get(name):
            raise DatasetError(
                f"{path}: changed since it was recorded: its SHA-256 is {found},"
                f" {DATASET} has {self.sha256.get(name, 'none')}"
            )

    def _read(self, name: str) -> Recording:
        try:
            typed = commands_of(self.command or "")
            recording = read_file(self.folder / name, self.interval_s, typed)
        except UnreadableRecording as error:
            raise DatasetError(f"{error}; list it under attachments") from None
        return replace(recording, facts=self._facts() | dict(recording.facts))

    def _facts(self) -> dict[str, str]:
        """Return the facts that the raw text may lack."""
        known = {
            "kernel": self.kernel,
            "hostname": self.hostname,
            "arch": self.arch,
            "cpus": self.cpus,
            "memory_bytes": self.memory_bytes,
            "command": self.command,
            "interval_s": f"{self.interval_s:g}" if self.interval_s else None,
        }
        return {name: str(value) for name, value in known.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Recordings of one server, from wherever they came.

    `left_aside` says of each file beside them that is empty or understood, and has no figures, why.
    """

    name: str
    recordings: tuple[Recording, ...]
    host: Host | None = None
    data_set: DataSet | None = None
    left_aside: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, str]:
        """Return what is known of the server: host.txt first, then the files in their order."""
        facts: dict[str, str] = {}
        for recording in reversed(self.recordings):
            facts |= recording.facts
        return facts | (self.host.facts() if self.host is not None else {})


def open_source(paths: Sequence[str]) -> Source:
    """Return the recordings at paths: files of one server, or one folder, or a data set's name.

    Raise DatasetError, OSError or UnreadableRecording.
    """
    folder = _only_folder(paths)
    if folder is not None:
        return _folder(folder)
    recordings, left_aside = _together(paths)
    return Source(name=" ".join(paths), recordings=recordings, left_aside=left_aside)


def recorded_files(paths: Sequence[str]) -> list[Path]:
    """Return the files that open_source() reads; raise DatasetError.

    What else is in a folder is no part of the recording: the twins that were made there, and the
    scratch files of a command that is at work.
    """
    top = _only_folder(paths)
    if top is None:
        return [Path(path) for path in paths]
    folder = _of_case(top)
    if (folder / DATASET).is_file():
        names: tuple[str, ...] = (DATASET, *load_data_set(folder).files, HOST)
    else:
        names = (PROC, HOST)
    return [folder / name for name in sorted(set(names)) if (folder / name).is_file()]


def _only_folder(paths: Sequence[str]) -> Path | None:
    """Return the folder that is named, or that of a data set; None for files. DatasetError."""
    first = Path(paths[0])
    if len(paths) == 1 and not first.exists():
        first = data_sets().get(paths[0], first)
    if first.is_dir():
        if len(paths) > 1:
            raise DatasetError(f"{first} is a folder: give one folder, or files")
        return first
    for path in map(Path, paths):
        if not path.exists():
            raise DatasetError(_no_such(path))
        if path.is_dir():
            raise DatasetError(f"{path} is a folder: give one folder, or files")
    return None


def _together(paths: Sequence[str]) -> tuple[tuple[Recording, ...], tuple[str, ...]]:
    """Read files of one server; return the recordings, and why the others are left aside.

    What is empty is left aside where others have figures: its program was not there, or printed
    nothing yet. `free -m` without its command line has no unit. The memory that one of the files
    tells is known to the others: beside a file with MemTotal it has one. Else it is left aside as
    well.
    """
    read: dict[str, Recording] = {}
    refused: dict[str, UnreadableRecording] = {}
    for path in paths:
        try:
            read[path] = read_file(Path(path))
        except UnreadableRecording as error:
            refused[path] = error
    sizes = (one.facts.get("memory_bytes") for one in read.values())
    memory = next((size for size in sizes if size is not None), None)
    left_aside: list[str] = []
    for path, why in refused.items():
        if not why.is_blank or not read:
            raise why
        try:
            if memory is None:
                raise why
            read[path] = read_file(Path(path), known={"memory_bytes": memory})
        except UnreadableRecording as error:
            left_aside.append(str(error))
    return tuple(read[path] for path in paths if path in read), tuple(left_aside)


def load_data_set(folder: Path) -> DataSet:
    """Return what a folder's dataset.toml says; DatasetError with every mistake and its line."""
    path = folder / DATASET
    try:
        text = path.read_text(encoding="utf-8-sig")
        check_bounds(text)
        content = tomllib.loads(text)
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise DatasetError(f"{path}: not valid TOML: {error}") from None
    problems = list(_problems(content, text, str(path)))
    if problems:
        raise DatasetError("\n".join(problem.render() for problem in problems))
    return _data_set(folder, content)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _folder(folder: Path) -> Source:
    folder = _of_case(folder)
    if (folder / DATASET).is_file():
        data_set = load_data_set(folder)
        return Source(
            name=data_set.name,
            recordings=tuple(data_set.recordings()),
            data_set=data_set,
            host=read_host(folder),
        )
    if (folder / PROC).is_file():
        recording = read_file(folder / PROC)
        return Source(name=folder.name, recordings=(recording,), host=read_host(folder))
    raise DatasetError(
        f"{folder}: neither a data set (no {DATASET}) nor of iotwin record (no {PROC}, {HOST})"
    )


def _of_case(folder: Path) -> Path:
    """Return where a case has its recording; any other folder is that itself."""
    return folder / RECORDING if (folder / RECORDING / DATASET).is_file() else folder


def _no_such(path: Path) -> str:
    known = data_sets()
    meant = did_you_mean(str(path), known)
    return f"no file, folder or data set '{path}'{meant} (data sets: {', '.join(known)})"


def _data_set(folder: Path, content: Mapping[str, Any]) -> DataSet:
    as_is = ("hardware", "kernel", "hostname", "arch", "cpus", "command", "when")
    memory = content.get("memory")
    interval = content.get("interval")
    return DataSet(
        name=name_of_data_set(folder),
        folder=folder,
        title=content["title"],
        files=tuple(content.get("files", ())),
        attachments=tuple(content.get("attachments", ())),
        sha256=content.get("sha256", {}),
        memory_bytes=parse_quantity(memory, "bytes") if memory else None,
        interval_s=_seconds(interval) if interval else None,
        warm_up_s=_seconds(content.get("warm_up", "0 s")),
        cool_down_s=_seconds(content.get("cool_down", "0 s")),
        notes=content.get("notes", "").strip(),
        **{key: content[key] for key in as_is if key in content},
    )


def _seconds(text: str) -> float:
    return parse_quantity(text, "time_ns") / NS_PER_S


def _problems(content: Mapping[str, Any], text: str, file: str) -> Iterator[Problem]:
    places = _Places(text, file)
    if "title" not in content:
        yield Problem(Place(file, 1, 1, 0, ""), "a data set needs a title")
    for key, value in content.items():
        if key in KEYS:
            yield from _value_problems(places.of(key), key, value)
        else:
            yield unknown(places.of(key), "key", key, KEYS)
    for key in ("files", "attachments"):
        for name in _texts(content.get(key)):
            yield from _file_problems(places, key, name, content.get("sha256"))


def _value_problems(place: Place, key: str, value: Any) -> Iterator[Problem]:
    kind, dimension = KEYS[key]
    is_of_kind = isinstance(value, kind) and not isinstance(value, bool)
    if not is_of_kind or (kind is list and len(_texts(value)) < len(value)):
        yield Problem(place, f"{key} is {_TYPES[kind]}")
    elif key == "kernel" and not _RELEASE.match(value):
        yield Problem(place, "no kernel release", f'"{value}"', 'as uname -r says: "2.6.32"')
    elif dimension:
        try:
            parse_quantity(value, dimension)
        except UnitError as error:
            yield Problem(place, error.problem, given=error.given, allowed=error.allowed)


def _file_problems(places: "_Places", key: str, name: str, hashed: object) -> Iterator[Problem]:
    if Path(name).name != name:
        yield Problem(places.of(key), f"'{name}' is not the name of a file beside {DATASET}")
    elif not isinstance(hashed, dict) or name not in hashed:
        yield Problem(places.of(key), f"'{name}' has no SHA-256 in [sha256]")


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


class _Places:
    """Where the top-level keys of a text are written."""

    def __init__(self, text: str, file: str) -> None:
        self._lines = LineMap(text)
        self._positions = key_positions(text)
        self._file = file

    def of(self, key: str) -> Place:
        """Return the place of a key."""
        span = self._positions[(key,)].key
        line, col = self._lines.line_col(span.start)
        return Place(self._file, line, col, span.end - span.start, self._lines.line_text(line))
