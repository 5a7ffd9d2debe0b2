"""fio's job files: sections of options, as jobs for the program `fio`.

Models: an INI file: comments from ; or # on, [global] for the sections behind it, any other section
a job; `numjobs` makes several of one, `stonewall` lets a job wait for those before.
Linux counterpart: fio init.c (parse_jobs_ini, add_job, fixup_options), HOWTO "Job file format".
Invariants: every option has been understood or is a problem, with line, column and the nearest
 name; all problems of a file are told together.
Left out: include files, environment variables, options without a section.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sim.registry import nearest
from sim.scenario.fio_options import ALIASES, OPTIONS, REFUSED
from sim.scenario.fio_values import FioValueError
from sim.toml.errors import Place, Problem, ScenarioError, unreadable
from sim.user.fio import DIRECTIONS, SYNCHRONOUS, TRIM, FioParams

SECTOR: Final = 512
# fio's own defaults of what FioParams has others for (options.c).
_DEFAULTS: Final[Mapping[str, Any]] = {
    "rw": "read",
    "ioengine": "psync",
    "direct": False,
    "norandommap": False,
    "time_based": False,
    "theta": 1.1,
    "latency_log": False,
    "read_split": ((4096, 100.0),),
    "write_split": ((4096, 100.0),),
    "size_bytes": 0,
}
_OWN: Final = (  # what the reader does itself
    "name",
    "description",
    "numjobs",
    "group_reporting",
    "stonewall",
    "new_group",
    "directory",
    "size_pct",
    "offset_pct",
    "filesize_bytes",
    "randrepeat",
    "randseed",
    "nrfiles",
    "kb_base",
    "create_on_open",
)


@dataclass(frozen=True, kw_only=True)
class FioJob:
    """A job: one process of fio. A share is of the file's or the device's size, per cent."""

    name: str
    group: int  # of those that may report together (groupid)
    wave: int  # jobs of a wave run at the same time, when the wave before has ended
    description: str
    reports_group: bool
    options: Mapping[str, str]  # of its own section, as given
    params: FioParams
    iodepth: int  # as given; an engine that waits for each operation has one in flight
    filesize_bytes: int
    size_pct: float | None
    offset_pct: float | None
    section: Place

    def sized(self, whole_bytes: int) -> FioParams:
        """Return the parameters with shares of `whole_bytes` worked out, in whole blocks."""
        params = self.params
        block = min(size for split in params.splits() for size, _ in split)
        offset = params.offset_bytes
        if self.offset_pct is not None:
            offset = int(whole_bytes * self.offset_pct / 100) // block * block
        size = params.size_bytes
        if self.size_pct is not None:
            share = min(int(whole_bytes * self.size_pct / 100), whole_bytes - offset)
            size = share // block * block
        elif not size:
            size = whole_bytes - offset
        return replace(params, offset_bytes=offset, size_bytes=size)


@dataclass(frozen=True, kw_only=True)
class FioFile:
    """What a job file says."""

    path: Path
    global_options: Mapping[str, str]
    jobs: tuple[FioJob, ...]


@dataclass
class _Section:
    """Options with their places, and what they set."""

    name: str
    place: Place
    options: dict[str, str] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def inherit(self, other: "_Section") -> None:
        """Begin with what [global] said so far."""
        self.places |= other.places
        self.values |= other.values

    def place_of(self, option: str) -> Place:
        """Return where an option was given; the section where it was not."""
        return self.places.get(option, self.place)


def read_fio_file(path: Path) -> FioFile:
    """Return the jobs of a file; raise ScenarioError with everything that is wrong."""
    shown = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError([unreadable(shown, error)]) from None
    return read_fio_text(text, path)


def read_fio_text(text: str, path: Path) -> FioFile:
    """Return the jobs of a text; `path` names it."""
    problems: list[Problem] = []
    shared = _Section("global", Place(str(path), 1, 1, 1, ""))
    sections = _sections(text, str(path), shared, problems)
    if not sections and not problems:
        problems.append(Problem(shared.place, "no job: a section such as [reads] is one"))
    jobs: list[FioJob] = []
    group = wave = 0
    for section in sections:
        found = list(_problems(section))
        problems += found
        if jobs and section.values.get("stonewall"):
            wave += 1
        if jobs and (section.values.get("stonewall") or section.values.get("new_group")):
            group += 1
        if not found:
            jobs += _jobs(section, group, wave)
    if problems:
        raise ScenarioError(problems)
    return FioFile(path=path, global_options=dict(shared.options), jobs=tuple(jobs))


def _sections(text: str, file: str, shared: _Section, problems: list[Problem]) -> list[_Section]:
    """Return the jobs' sections; [global] is collected in `shared`."""
    sections: list[_Section] = []
    current: _Section | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in ";#":
            continue
        place = Place(file, number, line.index(stripped) + 1, len(stripped), line)
        header = re.fullmatch(r"\[([^]]+)\]\s*(?:[;#].*)?", stripped)
        if header is not None:
            current = shared
            if header[1].strip() != "global":
                current = _Section(header[1].strip(), place)
                current.inherit(shared)
                sections.append(current)
        elif current is None:
            problems.append(Problem(place, "an option before the first section", stripped))
        else:
            _option(current, stripped, place, problems)
    return sections


def _option(section: _Section, text: str, place: Place, problems: list[Problem]) -> None:
    """Read one line into a section."""
    given, equals, value = text.partition("=")
    name, value = given.strip().lower(), value.strip()
    named = replace(place, width=len(given.strip()))
    if name in REFUSED:
        problems.append(Problem(named, f"'{name}' is not modelled: {REFUSED[name]}"))
        return
    read = OPTIONS.get(ALIASES.get(name, name))
    if read is None:
        known = (*OPTIONS, *ALIASES, *REFUSED)
        hint = nearest(name, known)
        problems.append(
            Problem(named, f"fio has no option '{name}'", allowed=", ".join(OPTIONS), nearest=hint)
        )
        return
    if equals and not value:
        problems.append(Problem(named, f"'{name}=' lacks a value"))
        return
    if "${" in value:
        problems.append(Problem(named, "environment variables are not read", given=value))
        return
    try:
        section.values |= read(value, int(section.values.get("kb_base", 1024)))
    except FioValueError as error:
        start = text.index(value, len(given)) if value else 0
        at = replace(place, col=place.col + start, width=len(value) or len(text))
        shown = value or "nothing"
        problems.append(Problem(at, f"{name}: {error.problem}", shown, error.allowed))
        return
    if value:  # fio notes what has a value (parse_option)
        section.options[name] = value
    section.places[ALIASES.get(name, name)] = named


def _problems(section: _Section) -> Iterator[Problem]:
    """Yield what does not fit together in a job."""
    values = {**_DEFAULTS, **section.values}
    is_device = str(values.get("filename", "")).startswith("/dev/")
    has_size = any(values.get(key) for key in ("size_bytes", "size_pct", "filesize_bytes"))
    if not is_device and not has_size:
        yield Problem(section.place, f"[{section.name}] lacks 'size' (of its file)")
    whole_known = is_device or values.get("filesize_bytes")
    if not whole_known and (values.get("size_pct") or values.get("offset_pct")):
        option = "size" if values.get("size_pct") else "offset"
        message = f"{option}: a share of a file needs 'filesize', or a device as 'filename'"
        yield Problem(section.place_of(option), message)
    if values["time_based"] and not values.get("runtime_ns"):
        yield Problem(section.place_of("time_based"), "time_based needs 'runtime'")
    if values["ioengine"] == "io_uring" and not values["direct"]:
        yield Problem(
            section.place_of("ioengine"),
            "io_uring through the page cache is not modelled",
            allowed="direct=1",
        )
    yield from _size_problems(section, values, is_device)


def _size_problems(
    section: _Section, values: Mapping[str, Any], is_device: bool
) -> Iterator[Problem]:
    """Yield what is wrong with sizes, and with how a device may be used."""
    splits = (values["read_split"], values["write_split"])
    used = [size for split in splits for size, _ in split]
    place = section.place_of("bssplit" if "bssplit" in section.places else "bs")
    trims = TRIM in DIRECTIONS[str(values["rw"])]
    if (values["direct"] or trims) and any(size % SECTOR for size in used):
        yield Problem(place, "direct I/O is in whole sectors", allowed="multiples of 512")
    if trims and not is_device:
        yield Problem(section.place_of("rw"), "trims are of a device", allowed="filename=/dev/...")
    size = values["size_bytes"]
    if size and size < min(used):
        yield Problem(section.place_of("size"), "size is smaller than one block of 'bs'")


def _jobs(section: _Section, group: int, wave: int) -> Iterator[FioJob]:
    """Yield the jobs of a section, `numjobs` of them."""
    values = {**_DEFAULTS, **section.values}
    own = {key: values[key] for key in _OWN if key in values}
    params = {key: value for key, value in values.items() if key not in _OWN}
    name = str(own.get("name", section.name))
    iodepth = int(params.get("iodepth", 1))
    if params["ioengine"] in SYNCHRONOUS:
        params["iodepth"] = 1
    params["laid_out"] = not own.get("create_on_open", False)
    if not own.get("size_pct") and not params["size_bytes"]:
        params["size_bytes"] = max(
            0, own.get("filesize_bytes", 0) - int(params.get("offset_bytes", 0))
        )
    for number in range(int(own.get("numjobs", 1))):
        yield FioJob(
            name=name,
            group=group,
            wave=wave,
            description=str(own.get("description", "")),
            reports_group=bool(own.get("group_reporting", False)),
            options=section.options,
            iodepth=iodepth,
            filesize_bytes=int(own.get("filesize_bytes", 0)),
            size_pct=own.get("size_pct"),
            offset_pct=own.get("offset_pct"),
            section=section.place,
            params=FioParams(
                **{
                    **params,
                    "filename": _filename(values, name, number),
                    "stream": f"{own.get('randseed', '')}{section.name}.{number}.",
                }
            ),
        )


def _filename(values: Mapping[str, Any], name: str, number: int) -> str:
    """Return the path of a job's file; without a name it is fio's JOB.NUMBER.FILE."""
    given = str(values.get("filename", f"{name}.{number}.0"))
    if given.startswith("/"):
        return given
    return f"{str(values.get('directory', '/')).rstrip('/')}/{given}"
