"""fio's job files: values, options, and sections of options, as jobs for the program `fio`.

Models: fio's parameter types "int", "time", "bool", "float" and its lists; its table of options as
 far as it concerns I/O of files and devices on one server: what each sets, and why others are
 refused; an INI file: comments from ; or # on, [global] for the sections behind it, any other
 section a job; `numjobs` makes several of one, `stonewall` lets a job wait for those before.
Linux counterpart: fio parse.c (get_mult_bytes, get_mult_time, str_to_decimal), options.c
 (fio_options), init.c (parse_jobs_ini, add_job, fixup_options), HOWTO "Parameter types", "Job file
 format", 3.36.
Invariants: a text that fio would not take raises FioValueError with what is allowed. With
 kb_base=1024, which is the default, "k" is 1024 and "ki" is 1000: fio keeps its old meaning of k,
 against the standard; with kb_base=1000 it is the other way round. A name is in exactly one of
 OPTIONS, ALIASES, REFUSED, or fio has no such option; an option of OPTIONS sets fields of
 FioParams, or one of the few that are the reader's own. Every option has been understood or is a
 problem, with line, column and the nearest name; all problems of a file are told together.
Left out: arithmetic in parentheses; environment variables; include files, options without a
 section; what REFUSED tells.

`randrepeat`: the chance of a run depends on its seed alone, so that each run can be repeated and
each seed is another run, whether the file asks for it or not.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sim.registry import nearest
from sim.toml.errors import Place, Problem, ScenarioError, unreadable
from sim.user.fio import (
    ADVICE,
    DIRECTIONS,
    ENGINES,
    FALLOCATES,
    IO_URING,
    KINDS,
    SYNC_FLAGS,
    SYNCHRONOUS,
    TRIM,
    URING_OPTIONS,
    FioParams,
)

_PREFIXES: Final = "kmgtp"
_TIME_NS: Final[Mapping[str, int]] = {
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "msec": 1_000_000,
    "us": 1000,
    "usec": 1000,
}
SECOND: Final = "s"
MICROSECOND: Final = "us"
COUNT_MAX: Final = 2**31 - 1
Values = dict[str, Any]
Reader = Callable[[str, int], Values]  # of the text and kb_base
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


# --- values


class FioValueError(ValueError):
    """A value that an option does not take; `allowed` says what it takes."""

    def __init__(self, problem: str, allowed: str) -> None:
        super().__init__(f"{problem} (accepted: {allowed})")
        self.problem = problem
        self.allowed = allowed


def amount(text: str, kb_base: int) -> int:
    """Return a number with fio's suffix: "4k", "1m", "2gib", "512"."""
    found = re.fullmatch(r"(0x[0-9a-f]+|\d+)(?:([kmgtp])(i?)b?|b?)", text.strip().lower())
    if found is None:
        raise FioValueError("no amount", '512, "4k", "1m", "2g"')
    number = int(found[1], 0) if found[1].startswith("0x") else int(found[1])
    if found[2] is None:
        return number
    base = kb_base if not found[3] else 2024 - kb_base
    return int(number * base ** (1 + _PREFIXES.index(found[2])))


def share(text: str) -> float | None:
    """Return the per cent of "20%", None if it is no share."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)%", text.strip())
    if found is None:
        return None
    if not 0 < float(found[1]) <= 100:
        raise FioValueError("a share", "1% to 100%")
    return float(found[1])


def duration_ns(text: str, unit: str) -> int:
    """Return a time, ns; `unit` is that of a bare number."""
    found = re.fullmatch(r"(\d+)([a-z]*)", text.strip().lower())
    if found is None or (found[2] or unit) not in _TIME_NS:
        raise FioValueError("no time", '30, "30s", "10m", "1h", "500ms", "20us"')
    return int(found[1]) * _TIME_NS[found[2] or unit]


def whole(text: str, low: int, high: int) -> int:
    """Return a whole number within bounds."""
    if not re.fullmatch(r"\d+", text.strip()) or not low <= int(text) <= high:
        raise FioValueError("no such number", f"{low} to {high}")
    return int(text)


def boolean(text: str) -> bool:
    """Return a flag: 0 or 1, and 1 where only the option's name is given."""
    words = {"": True, "1": True, "true": True, "0": False, "false": False}
    if text.strip().lower() not in words:
        raise FioValueError("no flag", "0, 1")
    return words[text.strip().lower()]


def amounts(text: str, kb_base: int) -> tuple[int, int]:
    """Return the values for reads and for writes: "4k" for both, "4k,8k", ",8k", "4k,"."""
    parts = text.split(",")
    if len(parts) > 2:
        raise FioValueError("trims have the value of writes", '"4k", "4k,8k"')
    first = amount(parts[0], kb_base) if parts[0].strip() else 0
    if len(parts) == 1:
        return first, first
    return first, amount(parts[1], kb_base) if parts[1].strip() else 0


def weights(text: str, kb_base: int) -> tuple[tuple[int, float], ...]:
    """Return the sizes of a bssplit with their per cents: "4k/60:64k/40"; the rest is shared."""
    allowed = '"4k/60:64k/40", "4k/50:64k:1m"'
    found = []
    for part in text.split(":"):
        size, slash, weight = part.partition("/")
        if slash and not re.fullmatch(r"\d+", weight):
            raise FioValueError("no weight", allowed)
        found.append((amount(size, kb_base), int(weight) if weight else -1))
    told = sum(weight for _, weight in found if weight >= 0)
    open_ones = sum(weight < 0 for _, weight in found)
    if told > 100 or (told < 100 and not open_ones):
        raise FioValueError(f"weights of {told} %", f"100 % in all: {allowed}")
    rest = (100 - told) / open_ones if open_ones else 0.0
    return tuple((size, float(weight) if weight >= 0 else rest) for size, weight in found)


def splits(text: str, kb_base: int) -> tuple[tuple[tuple[int, float], ...], ...]:
    """Return a bssplit for reads and one for writes."""
    parts = [weights(part, kb_base) for part in text.split(",")]
    if len(parts) > 2:
        raise FioValueError("trims have the sizes of writes", "one for reads, one for writes")
    return parts[0], parts[-1]


def law(text: str) -> tuple[str, float]:
    """Return the name and the parameter of a random_distribution."""
    allowed = "random, zipf:THETA (not 1), pareto:H (0 to 1)"
    name, _, given = text.strip().partition(":")
    defaults = {"random": 0.0, "zipf": 1.1, "pareto": 0.2}
    if name not in defaults:
        raise FioValueError(f"'{name}' is not modelled", allowed)
    if not re.fullmatch(r"\d*\.?\d*", given):
        raise FioValueError("no number", allowed)
    value = float(given) if given else defaults[name]
    if (name == "zipf" and (value <= 0 or value == 1)) or (name == "pareto" and not 0 < value < 1):
        raise FioValueError(f"{name} with {value:g}", allowed)
    return name, value


# --- options


def _flag(field: str) -> Reader:
    return lambda text, kb_base: {field: boolean(text)}


def _count(field: str, low: int = 0, high: int = COUNT_MAX) -> Reader:
    return lambda text, kb_base: {field: whole(text, low, high)}


def _time(field: str, unit: str) -> Reader:
    return lambda text, kb_base: {field: duration_ns(text, unit)}


def _choice(field: str, choices: tuple[str, ...]) -> Reader:
    def read(text: str, kb_base: int) -> Values:
        if text not in choices:
            raise FioValueError(f"'{text}' is not modelled", ", ".join(choices))
        return {field: text}

    return read


def _extent(field: str) -> Reader:
    """Read an amount, or a share of the file or device."""

    def read(text: str, kb_base: int) -> Values:
        part = share(text)
        if part is not None:
            return {f"{field}_pct": part, f"{field}_bytes": 0}
        return {f"{field}_pct": None, f"{field}_bytes": amount(text, kb_base)}

    return read


def _pair(read_field: str, write_field: str) -> Reader:
    def read(text: str, kb_base: int) -> Values:
        first, second = amounts(text, kb_base)
        return {read_field: float(first), write_field: float(second)}

    return read


def _sizes(text: str, kb_base: int) -> Values:
    read, write = amounts(text, kb_base)
    parts = text.split(",")
    if len(parts) == 2 and not (read and write):  # fio keeps the default for the one left away
        read, write = read or 4096, write or 4096
    if not read or not write:
        raise FioValueError("a size of 0", '"4k", "4k,8k"')
    return {"read_split": ((read, 100.0),), "write_split": ((write, 100.0),)}


def _split(text: str, kb_base: int) -> Values:
    read, write = splits(text, kb_base)
    if not all(size for size, _ in (*read, *write)):
        raise FioValueError("a size of 0", '"4k/60:64k/40"')
    return {"read_split": read, "write_split": write}


def _law(text: str, kb_base: int) -> Values:
    name, theta = law(text)
    return {"random_distribution": name, "theta": theta}


def _kind(text: str, kb_base: int) -> Values:
    word = "rw" if text == "readwrite" else text
    if "trim" in word and word not in KINDS:
        raise FioValueError("mixtures with trims are not modelled", ", ".join(KINDS))
    if ":" in word:
        raise FioValueError("several of a kind in turn are not modelled", ", ".join(KINDS))
    return _choice("rw", KINDS)(word, kb_base)


def _synced(text: str, kb_base: int) -> Values:
    word = {"0": "none", "1": "sync", "": "sync"}.get(text, text)
    return _choice("sync", tuple(SYNC_FLAGS))(word, kb_base)


def _file(text: str, kb_base: int) -> Values:
    if ":" in text:
        raise FioValueError("several files a job are not modelled", "one path")
    if not text:
        raise FioValueError("no name", "a path, a device such as /dev/sda")
    return {"filename": text}


def _directory(text: str, kb_base: int) -> Values:
    if not text.startswith("/") or ":" in text:
        raise FioValueError("no path from /", "a directory such as /data")
    return {"directory": text}


def _text(field: str) -> Reader:
    return lambda text, kb_base: {field: text}


OPTIONS: Final[Mapping[str, Reader]] = {
    "name": _text("name"),
    "description": _text("description"),
    "rw": _kind,
    "rwmixread": _count("rwmixread", 0, 100),
    "rwmixwrite": lambda text, kb_base: {"rwmixread": 100 - whole(text, 0, 100)},
    "bs": _sizes,
    "bssplit": _split,
    "ioengine": _choice("ioengine", ENGINES),
    "iodepth": _count("iodepth", 1, 65536),
    "iodepth_batch": _count("iodepth_batch"),
    "iodepth_batch_complete_min": _count("iodepth_batch_complete_min"),
    "iodepth_batch_complete_max": _count("iodepth_batch_complete_max"),
    "iodepth_low": _count("iodepth_low"),
    "hipri": _flag("hipri"),
    "fixedbufs": _flag("fixedbufs"),
    "registerfiles": _flag("registerfiles"),
    "sqthread_poll": _flag("sqthread_poll"),
    "sqthread_poll_cpu": _count("sqthread_poll_cpu"),
    "nonvectored": _flag("nonvectored"),
    "numjobs": _count("numjobs", 1, 10_000),
    "direct": _flag("direct"),
    "buffered": lambda text, kb_base: {"direct": not boolean(text)},
    "sync": _synced,
    "fsync": _count("fsync"),
    "fdatasync": _count("fdatasync"),
    "end_fsync": _flag("end_fsync"),
    "size": _extent("size"),
    "filesize": lambda text, kb_base: {"filesize_bytes": amount(text, kb_base)},
    "offset": _extent("offset"),
    "filename": _file,
    "directory": _directory,
    "runtime": _time("runtime_ns", SECOND),
    "time_based": _flag("time_based"),
    "ramp_time": _time("ramp_ns", SECOND),
    "startdelay": _time("start_ns", SECOND),
    "rate": _pair("read_rate_bytes_per_s", "write_rate_bytes_per_s"),
    "rate_iops": _pair("read_iops", "write_iops"),
    "thinktime": _time("think_ns", MICROSECOND),
    "thinktime_blocks": _count("think_blocks", 1),
    "random_distribution": _law,
    "norandommap": _flag("norandommap"),
    "randrepeat": _flag("randrepeat"),
    "randseed": _count("randseed"),
    "group_reporting": _flag("group_reporting"),
    "stonewall": _flag("stonewall"),
    "new_group": _flag("new_group"),
    "loops": _count("loops", 1),
    "create_on_open": _flag("create_on_open"),
    "overwrite": _flag("overwrite"),
    "fallocate": _choice("fallocate", FALLOCATES),
    "invalidate": _flag("invalidate"),
    "fadvise_hint": _choice("fadvise_hint", ADVICE),
    "nrfiles": _count("nrfiles", 1, 1),
    "kb_base": _choice("kb_base", ("1024", "1000")),
}
ALIASES: Final[Mapping[str, str]] = {
    "readwrite": "rw",
    "blocksize": "bs",
    "wait_for_previous": "stonewall",
    "fsync_on_close": "end_fsync",
    "start_delay": "startdelay",
    "nr_files": "nrfiles",
    "iodepth_max": "iodepth",
    "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
}

_TRIM = "trims are jobs of their own, rw=trim or randtrim"
_DATA = "a simulated file has a size and no contents"
_HOST = "there is one host and one address space, whose CPUs the scheduler of the twin shares out"
_SUBMITTER = "a job submits its operations itself, and does not look whether their places overlap"
_REAP = "completions of libaio are fetched with io_getevents()"
_ASYNC = "the kernel alone decides what io_uring gives to a worker (no IOSQE_ASYNC)"
_NOWAIT = "an operation that has to wait does so (no RWF_NOWAIT)"
_UNCACHED = "pages of buffered operations stay in the page cache (no RWF_DONTCACHE)"
_LOGS = 'use the records of a scenario\'s [process.NAME] with program = "fio"'
_FILES = "a job has one file"
_PLACES = "the only orders of places are sequential, random, zipf and pareto"
_TARGET = "fio runs as it is told, it does not search"
_OUTPUT = "the output is that of --output-format"
# Options that fio knows and this reader refuses -> why.
REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("trim_percentage", "trim_verify_zero", "trim_backlog", "trim_backlog_batch"), _TRIM
    ),
    **dict.fromkeys(
        (
            "verify",
            "do_verify",
            "verify_fatal",
            "verify_pattern",
            "verify_interval",
            "verify_backlog",
            "verify_async",
            "verify_dump",
            "verifysort",
            "buffer_compress_percentage",
            "buffer_compress_chunk",
            "buffer_pattern",
            "dedupe_percentage",
            "refill_buffers",
            "scramble_buffers",
            "zero_buffers",
        ),
        _DATA,
    ),
    **dict.fromkeys(
        (
            "thread",
            "cpus_allowed",
            "cpus_allowed_policy",
            "cpumask",
            "numa_cpu_nodes",
            "numa_mem_policy",
            "nice",
            "prio",
            "prioclass",
            "cgroup",
            "cgroup_weight",
            "mem",
            "iomem",
            "iomem_align",
            "mem_align",
            "hugepage-size",
            "lockmem",
            "uid",
            "gid",
        ),
        _HOST,
    ),
    **dict.fromkeys(("io_submit_mode", "serialize_overlap"), _SUBMITTER),
    "userspace_reap": _REAP,
    "force_async": _ASYNC,
    "nowait": _NOWAIT,
    "uncached": _UNCACHED,
    **dict.fromkeys(
        (
            "write_lat_log",
            "write_bw_log",
            "write_iops_log",
            "write_hist_log",
            "log_avg_msec",
            "log_offset",
            "log_hist_msec",
            "per_job_logs",
            "write_iolog",
            "read_iolog",
            "replay_redirect",
            "replay_no_stall",
        ),
        _LOGS,
    ),
    **dict.fromkeys(
        (
            "openfiles",
            "file_service_type",
            "filename_format",
            "unique_filename",
            "opendir",
            "lockfile",
            "unlink",
            "unlink_each_loop",
            "create_serialize",
            "create_fsync",
            "create_only",
            "pre_read",
            "file_append",
            "fill_device",
            "fill_fs",
            "allow_mounted_write",
        ),
        _FILES,
    ),
    **dict.fromkeys(
        ("number_ios", "io_size", "io_limit"),
        "a pass is of 'size' bytes; 'loops', or 'runtime' with time_based, make it more or less",
    ),
    **dict.fromkeys(
        (
            "percentage_random",
            "random_generator",
            "softrandommap",
            "randommap_ignore",
            "offset_increment",
            "offset_align",
            "bsrange",
            "blocksize_range",
            "bs_unaligned",
            "blocksize_unaligned",
            "blockalign",
            "ba",
            "bs_is_seq_rand",
            "rw_sequencer",
            "zonesize",
            "zonerange",
            "zoneskip",
            "zonemode",
            "allrandrepeat",
            "experimental_verify",
            "unified_rw_reporting",
        ),
        _PLACES,
    ),
    **dict.fromkeys(
        (
            "latency_target",
            "latency_window",
            "latency_percentile",
            "max_latency",
            "rate_min",
            "rate_iops_min",
            "rate_process",
            "rate_cycle",
            "rate_ignore_thinktime",
            "steadystate",
            "steadystate_duration",
            "thinktime_spin",
            "thinktime_blocks_type",
            "thinktime_iotime",
            "continue_on_error",
            "ignore_error",
            "error_dump",
            "exitall",
            "exit_what",
            "exitall_on_error",
            "flow",
            "flow_id",
            "idle_prof",
        ),
        _TARGET,
    ),
    **dict.fromkeys(
        (
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement",
            "gtod_reduce",
            "gtod_cpu",
            "clocksource",
            "clat_percentiles",
            "lat_percentiles",
            "slat_percentiles",
            "percentile_list",
            "significant_figures",
            "bwavgtime",
            "iopsavgtime",
            "disk_util",
            "unit_base",
            "stats",
            "eta",
        ),
        _OUTPUT,
    ),
    **dict.fromkeys(
        (
            "include",
            "wait_for",
            "exec_prerun",
            "exec_postrun",
            "ioscheduler",
            "hostname",
            "port",
            "sync_file_range",
            "profile",
            "cpuload",
            "cpuchunks",
        ),
        "it concerns what a job file of the twin has no say in (the machine is another file)",
    ),
}


# --- the file


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
    places: Mapping[str, Place]  # of the options that were given, those of [global] too

    def place_of(self, option: str) -> Place:
        """Return where an option was given; the section where it was not."""
        return self.places.get(option, self.section)

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
    yield from _engine_problems(section, values)
    yield from _size_problems(section, values, is_device)


def _engine_problems(section: _Section, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what the engine does not have."""
    engine = values["ioengine"]
    for option in URING_OPTIONS:
        if engine != IO_URING and values.get(option) not in (None, False):
            message = f"{option} is an option of io_uring"
            yield Problem(section.place_of(option), message, f"ioengine={engine}", "io_uring")
    if engine == IO_URING and values.get("hipri") and not values["direct"]:
        message = "hipri: the page cache is not polled"
        yield Problem(section.place_of("hipri"), message, allowed="direct=1")
    if "sqthread_poll_cpu" in values and not values.get("sqthread_poll"):
        message = "sqthread_poll_cpu needs sqthread_poll=1"
        yield Problem(section.place_of("sqthread_poll_cpu"), message)


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
            places=section.places,
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
