"""Make a data set of recorded text: find out what the text says, and say what it does not.

Models: putting a label on a drawer, from what lies in it.
Linux counterpart: none.
Invariants: raw files are copied byte for byte; the folder appears whole or not at all, and never in
place of another; nothing is filled in that the text does not say: such a key stands in dataset.toml
as a comment with what may be written there.
Left out: hiding names (a host's name is in many places of a text: edit the text before).
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calibration.dataset import load_data_set, sha256_of
from calibration.host import Host, read_host
from calibration.readers import UnreadableRecording, read_file
from calibration.readers.prompt import Command, commands_of
from calibration.samples import Problem, Recording, merge
from sim.scenario.cases import DATASET
from sim.study.recorded import DatasetError

# key of dataset.toml -> what to write where the text does not say it
ASKED: Final[Mapping[str, str]] = {
    "hardware": '"in words: CPUs, disks, controllers, what is virtual"',
    "kernel": '"2.6.32-131.el6.x86_64", as uname -r says',
    "hostname": '"mail1"',
    "arch": '"x86_64"',
    "cpus": "4",
    "memory": '"8 GiB"',
    "command": '"iostat -x 5"',
    "interval": '"5 s"',
    "when": '"2026-11-21 07:36"',
}
_FACTS: Final[Mapping[str, str]] = {
    "kernel": "kernel",
    "hostname": "hostname",
    "arch": "arch",
    "command": "command",
}
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """A file to be copied; `recording` None where no reader understands it, and then `why`."""

    path: Path
    recording: Recording | None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A data set before it is written: what was found, by key, and what was not."""

    name: str
    title: str
    files: tuple[RawFile, ...]
    found: Mapping[str, str | int]
    devices: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """Return the keys that the text does not say."""
        return [key for key in ASKED if key not in self.found]

    @property
    def problems(self) -> list[tuple[str, Problem]]:
        """Return the lines that were not understood, with their file's name."""
        return [
            (raw.path.name, problem)
            for raw in self.files
            if raw.recording is not None
            for problem in raw.recording.problems
        ]


def examine(
    paths: Sequence[Path], *, name: str | None = None, title: str | None = None, command: str = ""
) -> Draft:
    """Read files (or folders of iotwin record) of one server; DatasetError, OSError.

    `command` is what was typed, where it does not stand in the text.
    """
    typed = commands_of(command)
    files = [_raw(path, typed) for path in _files(paths)]
    _check_names(files)
    recordings = [raw.recording for raw in files if raw.recording is not None]
    if not recordings:
        told = "; ".join(f"{raw.path}: {raw.why}" for raw in files)
        raise DatasetError(f"nothing to import: {told}")
    recording = merge(recordings, "")
    hosts = [read_host(path) for path in paths if path.is_dir()]
    found = _found(recording, next((host for host in hosts if host is not None), None))
    if command:
        found["command"] = command
    chosen = name or _slug(str(found.get("hostname", files[0].path.stem)))
    if not _NAME.fullmatch(chosen):
        raise DatasetError(f"no name of a data set: '{chosen}' (accepted: a-z, 0-9, ., _, -)")
    return Draft(
        name=chosen,
        title=title or f"{chosen}: {', '.join(recording.formats)}",
        files=tuple(files),
        found=found,
        devices=tuple(recording.names("device")),
    )


def write(draft: Draft, parent: Path) -> Path:
    """Make the folder and return it; DatasetError if it is there already."""
    folder = parent / draft.name
    if folder.exists():
        raise DatasetError(f"{folder} is there already; name another with --name")
    if not parent.is_dir():
        raise DatasetError(f"no folder {parent} to make {draft.name} in")
    beside = Path(tempfile.mkdtemp(prefix=f".{draft.name}.", dir=parent))
    try:
        for raw in draft.files:
            shutil.copyfile(raw.path, beside / raw.path.name)
        (beside / DATASET).write_text(_toml(draft, beside), encoding="utf-8")
        load_data_set(beside)
        beside.chmod(0o755)
        beside.rename(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return folder


def _files(paths: Sequence[Path]) -> Iterable[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.iterdir() if p.is_file() and p.name != DATASET)
        elif path.exists():
            yield path
        else:
            raise DatasetError(f"no file {path}")


def _raw(path: Path, typed: tuple[Command, ...]) -> RawFile:
    try:
        return RawFile(path=path, recording=read_file(path, commands=typed))
    except UnreadableRecording as error:
        return RawFile(path=path, recording=None, why=str(error).removeprefix(f"{path}: "))


def _check_names(files: Sequence[RawFile]) -> None:
    if not files:
        raise DatasetError("nothing to import: no files")
    by_name: dict[str, Path] = {}
    for raw in files:
        other = by_name.setdefault(raw.path.name, raw.path)
        if other is not raw.path:
            raise DatasetError(f"two files of the same name: {other} and {raw.path}; rename one")


def _found(recording: Recording, host: Host | None) -> dict[str, str | int]:
    """Return values for keys of dataset.toml."""
    facts = dict(recording.facts) | (host.facts() if host is not None else {})
    found: dict[str, str | int] = {
        key: facts[name] for key, name in _FACTS.items() if name in facts
    }
    singles = [name for name in recording.names("cpu") if name.isdigit()]
    if "cpus" in facts or singles:
        found["cpus"] = int(facts.get("cpus", len(singles)))
    if "memory_bytes" in facts:
        found["memory"] = f"{int(float(facts['memory_bytes'])) // 1024} KiB"
    if "interval_s" in facts:
        found["interval"] = f"{float(facts['interval_s']):g} s"
    when = facts.get("start") or facts.get("date")
    if when:
        found["when"] = when
    if host is not None and host.cpu_model:
        found["hardware"] = _hardware(host)
    return found


def _hardware(host: Host) -> str:
    disks = [
        f"{device.name}: {device.size_bytes / 1e9:.0f} GB, "
        + ("rotational" if device.is_rotational else "not rotational")
        + (f", {device.model}" if device.model else "")
        for device in host.devices.values()
        if device.size_bytes
    ]
    return "; ".join([f"{host.cpus} CPUs, {host.cpu_model}", *disks])


def _toml(draft: Draft, folder: Path) -> str:
    """Return dataset.toml; what is missing is a comment."""
    lines = [f"title = {_quoted(draft.title)}"]
    for key, example in ASKED.items():
        value = draft.found.get(key)
        if value is None:
            lines.append(f"# {key} = {example}  # not in the text")
        else:
            lines.append(f"{key} = {value if isinstance(value, int) else _quoted(value)}")
    read = [raw.path.name for raw in draft.files if raw.recording is not None]
    kept = [raw.path.name for raw in draft.files if raw.recording is None]
    lines += [
        'warm_up = "0 s"  # at the beginning, not to be used',
        'cool_down = "0 s"  # at the end, not to be used',
        f"files = {_list(read)}",
        f"attachments = {_list(kept)}",
        f"devices = {_list(draft.devices)}",
        f"notes = {_quoted(_notes(draft))}",
        "",
        "[sha256]",
        *(f"{_quoted(name)} = {_quoted(sha256_of(folder / name))}" for name in [*read, *kept]),
        "",
        "# [figures.before]  # what was recorded without raw text, as in the other data sets",
        '# title = "as it was"',
        '# kind = "reproduction"',
        "# [figures.before.metrics]",
        '# throughput_per_s = { value = 11, within = "10 %" }',
    ]
    return "\n".join(lines) + "\n"


def _notes(draft: Draft) -> str:
    number = len(draft.problems)
    return f"Imported. {number} lines were not understood." if number else "Imported."


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def _quoted(text: str) -> str:
    """Return a TOML string: JSON's escapes are TOML's too, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._") or "recording"
