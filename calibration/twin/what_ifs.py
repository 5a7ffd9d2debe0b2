"""The questions that every twin can be asked: device, elevator, file system, memory, CPUs, load.

Models: the suggestions of somebody who has to buy.
Linux counterpart: none.
Invariants: each differs from the base in something; a device's replacement takes its data sheet's
values; what needs a part that this kernel has not is not offered, nor another file system for a
swap area; a multiple is said as one, so that it is of each member of an ensemble and not of the
values that the file happens to have.
Left out: combinations; `--set` makes them.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from calibration.twin.demands import SYNC
from calibration.twin.draft import FILES_EACH, SEGMENT, Draft, process_name
from calibration.twin.server import (
    Place,
    disk_section,
    file_systems,
    needs_device,
    profile_of,
    turns,
)
from calibration.twin.sheet import Entry, Value, WhatIf, dotted
from sim.drivers.disk import PROFILES
from sim.fs.features import features as file_system_features
from sim.registry import lookup, names
from sim.sched.version import kernel_version
from sim.units import format_quantity, parse_quantity

MEMORY_MIN: Final = 256 * 2**20
# name -> (profile, title, doc)
DEVICES: Final[Mapping[str, tuple[str, str, str]]] = {
    "ssd": ("ssd-sata", "A SATA SSD", "What would a device without an arm change?"),
    "nvme": ("ssd-nvme", "An NVMe SSD", "And one with queues of its own?"),
    "disk_15k": ("sas-15k", "A 15K disk", "What would a fast disk with an arm change?"),
    "disk_7200": ("sata-7200", "A 7200 rpm disk", "Would a cheap disk be enough?"),
}
ELEVATORS: Final[Mapping[str, str]] = {
    "cfq": "Shares of time for each process.",
    "deadline": "By place, with a limit of age.",
    "mq-deadline": "By place, with a limit of age.",
    "noop": "In order of arrival: the device's own queue decides.",
    "none": "In order of arrival: the device's own queue decides.",
}
# name -> (option, value, title, doc)
OPTIONS: Final[Mapping[str, tuple[str, Value, str, str]]] = {
    "data_writeback": ("data", "writeback", "data=writeback", "Commits that do not wait for data."),
    "data_journal": ("data", "journal", "data=journal", "Data goes through the journal too."),
    "journal": (
        "has_journal",
        True,
        "a journal",
        "A log that is written first, and shared commits.",
    ),
    "no_barrier": ("barrier", False, "no barriers", "Commits that trust the device's cache."),
    "barrier": ("barrier", True, "barriers", "Commits that flush the device's cache."),
}
FILE_SYSTEMS: Final[Mapping[str, str]] = {
    "ext3": "Block maps, no delayed allocation.",
    "ext4": "Extents and delayed allocation, the same journal.",
    "xfs": "Another log, of changes instead of blocks.",
}
MIB: Final = 2**20
# name -> (title, multiple of CPU times)
SPEEDS: Final[Mapping[str, tuple[str, float]]] = {
    "fast_cpus": ("CPUs of twice the speed", 0.5),
    "slow_cpus": ("CPUs of half the speed", 2.0),
}

FASTER: Final = "device_twice_as_fast"
TMPFS: Final = "tmpfs"
NO_FSYNC: Final = "no_fsync"
OF_MEMORY: Final = ("double_memory", "half_memory")
OF_CPUS: Final = ("double_cpus", "half_cpus", *SPEEDS)
OF_LOAD: Final = ("double_load", "half_load")


def every_name() -> tuple[str, ...]:
    """Return the names of all variants that some draft has."""
    on_devices = (name for name in names("filesystem") if needs_device(name))
    return (
        *DEVICES,
        FASTER,
        *map(_of_elevator, ELEVATORS),
        *on_devices,
        TMPFS,
        *OPTIONS,
        *OF_MEMORY,
        *OF_CPUS,
        *OF_LOAD,
        NO_FSYNC,
    )


def what_ifs_of(draft: Draft) -> list[WhatIf]:
    """Return the variants of a draft, with the values that it has now."""
    return [one for group in GROUPS for one in group(draft)]


def _value(draft: Draft, *path: str) -> Value | None:
    entry: Entry | None = draft.sheet.sections.get(path[:-1], {}).get(path[-1])
    return entry.value if entry is not None else None


def _devices(draft: Draft) -> Iterator[WhatIf]:
    for name, (profile, title, doc) in DEVICES.items():
        values: dict[str, Value] = {}
        device = device_of(profile)
        for load in draft.loads:
            if turns(load.device) and profile == profile_of(load.device.guess):
                continue
            section = disk_section(load.name)
            values[dotted(*section, "device")] = device
            values[dotted(*section, "profile")] = profile
        if values:
            yield WhatIf(name=name, title=title, doc=doc, values=values)


def device_of(profile: str) -> str:
    """Return the device model that a profile is for."""
    content = tomllib.loads((PROFILES / f"{profile}.toml").read_text(encoding="utf-8"))
    return str(content["device"])


def _faster(draft: Draft) -> Iterator[WhatIf]:
    """Half of every service time of the devices that were fitted, whatever the fit says it is."""
    sections = [disk_section(load.name) for load in draft.loads if not turns(load.device)]
    values: dict[str, Value] = {dotted(*section, "service_scale"): 0.5 for section in sections}
    if values:
        yield WhatIf(
            name=FASTER,
            title="A device of half the service time",
            doc="Would a better class of the same device pay?",
            values=values,
        )


def _elevators(draft: Draft) -> Iterator[WhatIf]:
    version = kernel_version(draft.server.kernel)
    for name in names("elevator"):
        paths = [(*disk_section(load.name), "scheduler") for load in draft.loads]
        if not lookup("elevator", name).is_in(version) or name not in ELEVATORS:
            continue
        values: dict[str, Value] = {
            dotted(*path): name for path in paths if _value(draft, *path) != name
        }
        if values:
            yield WhatIf(
                name=_of_elevator(name),
                title=f"Elevator {name}",
                doc=ELEVATORS[name],
                values=values,
            )


def _of_elevator(name: str) -> str:
    return f"elevator_{name.replace('-', '_')}"


def _file_systems(draft: Draft) -> Iterator[WhatIf]:
    """Every file system that this kernel has; in memory, what is there must fit into it."""
    places = _file_places(draft)
    for name in file_systems(draft.server.kernel):
        values: dict[str, Value] = {
            dotted("machine", "mount", place.path, "type"): name
            for place in places
            if place.type != name
        }
        if values:
            doc = FILE_SYSTEMS.get(name, "Another file system on the same device.")
            yield WhatIf(name=name, title=f"File system {name}", doc=doc, values=values)
    if places:
        yield _tmpfs(draft, places)


def _file_places(draft: Draft) -> list[Place]:
    """Return where files are: what stands in for a swap area stays as it is."""
    return [draft.server.places[load.name] for load in draft.loads if not load.is_swap]


def _file_streams(draft: Draft) -> list[str]:
    """Return the classes that read and write files."""
    swap = {
        process_name(load.name, one.kind)
        for load in draft.loads
        if load.is_swap
        for one in load.classes
    }
    return [name for name in draft.streams if name not in swap]


def _tmpfs(draft: Draft, places: Sequence[Place]) -> WhatIf:
    values: dict[str, Value] = {}
    for place in places:
        values[dotted("machine", "mount", place.path, "type")] = "tmpfs"
    memory = int(parse_quantity(_value(draft, "machine", "memory"), "bytes"))
    # A tmpfs may have half of the memory (mm/shmem.c); all files together take half of that.
    streams = _file_streams(draft)
    share = memory // (4 * len(streams))
    area = _whole_mib(share)
    for name in streams:
        section = ("process", name)
        if _value(draft, *section, "reads"):
            values[dotted(*section, "direct")] = False
            values[dotted(*section, "working_set")] = area
        if _value(draft, *section, "writes"):
            values[dotted(*section, "write_pattern")] = "sequential"
            each = share // _most_files(draft, section)
            if _value(draft, *section, "group_commit"):  # a log, written over as it is
                each = min(each, int(parse_quantity(SEGMENT, "bytes")))
            values[dotted(*section, "write_area")] = _whole_mib(each)
    return WhatIf(
        name=TMPFS,
        title="Everything in memory: tmpfs",
        values=values,
        doc=f"If {area} of each file were enough: what does the device cost at all?",
    )


def _most_files(draft: Draft, section: Sequence[str]) -> int:
    """Return how many files a class writes, of all the ways in which it is asked."""
    if section[-1] not in draft.left_open.logs:
        files = _value(draft, *section, "write_files")
        return files if isinstance(files, int) else 1
    of_programs = dict(one.split("=", 1) for one in draft.left_open.others)
    return int(of_programs.get(dotted(*section, "write_files"), FILES_EACH))


def _whole_mib(size_bytes: int) -> str:
    return format_quantity(max(MIB, size_bytes // MIB * MIB), "bytes")


def _options(draft: Draft) -> Iterator[WhatIf]:
    for name, (option, value, title, doc) in OPTIONS.items():
        values = {
            dotted("machine", "mount", place.path, option): value
            for place in _file_places(draft)
            if _differs(place, option, value, draft.server.kernel)
            and _takes(place.type, option, value, draft.server.kernel)
        }
        if values:
            yield WhatIf(name=name, title=f"File system: {title}", doc=doc, values=values)


def _differs(place: Place, option: str, value: Value, kernel: str) -> bool:
    """Return whether an option would change something; without a journal none of its modes does."""
    if option == "has_journal":
        return not place.journalled
    of_journal: Sequence[str] = getattr(lookup("filesystem", place.type).cls, "journal_options", ())
    if not place.journalled and option in of_journal:
        return False
    return _default(place.type, option, kernel) not in (None, value)


def _default(kind: str, option: str, kernel: str) -> Value | None:
    """Return what a file system does if nothing is said; None where it has no such option."""
    params: Any = lookup("filesystem", kind).params
    known: dict[str, Any] = {one.name: one.default for one in fields(params)}
    if option not in known:
        return None
    changed: Mapping[str, tuple[Value, str]] = {}
    if hasattr(params, "kernel_defaults"):
        changed = params.kernel_defaults(kernel)
    found: Value = changed[option][0] if option in changed else known[option]
    return found


def _takes(kind: str, option: str, value: Value, kernel: str) -> bool:
    """Return whether a release's file system takes an option: XFS's barriers became a must."""
    if (kind, option, value) != ("xfs", "barrier", False):
        return True
    return not file_system_features(kernel_version(kernel)).only_barrier


def _memory(draft: Draft) -> Iterator[WhatIf]:
    """Other sizes, where the recording tells what they change.

    Not if the recorded one is short: how much would be swapped is not known. Not if files are read
    and nothing tells whether they had been in the cache before; never less, if files are read.
    """
    if draft.memory_unknown or any(load.is_swap for load in draft.loads):
        return
    size = parse_quantity(_value(draft, "machine", "memory"), "bytes")
    doc = "More may be dirty before writers wait."
    values: dict[str, Value] = {"machine.memory": format_quantity(2 * size, "bytes")}
    reading = [name for name in draft.streams if _value(draft, "process", name, "reads")]
    if draft.cache is not None and reading:
        least, most = (f"{100 * share:.0f} %" for share in (draft.cache.least, draft.cache.most))
        doc += f" Refaults say that the cache then takes {least} of the reads, and {most} at most."
        values |= with_twice_the_cache(draft)
    yield WhatIf(name="double_memory", title="Twice the memory", doc=doc, values=values)
    if size // 2 >= MEMORY_MIN and not reading:
        half: dict[str, Value] = {"machine.memory": format_quantity(size // 2, "bytes")}
        doc = "Less may be dirty before writers wait."
        yield WhatIf(name="half_memory", title="Half the memory", doc=doc, values=half)


def with_twice_the_cache(draft: Draft) -> dict[str, Value]:
    """Return what is left of the reads, at most, if the cache were twice as large."""
    if draft.cache is None:
        return {}
    left = float(f"{1 - draft.cache.least:.3g}")
    reading = [name for name in draft.streams if _value(draft, "process", name, "reads")]
    return {dotted("process", name, "load_scale"): left for name in reading}


def _cpus(draft: Draft) -> Iterator[WhatIf]:
    cpus = draft.server.cpus
    counts = {"double_cpus": ("Twice the CPUs", 2 * cpus)}
    if cpus > 1:
        counts["half_cpus"] = ("Half the CPUs", cpus // 2)
    for name, (title, count) in counts.items():
        doc = "Does anybody wait for a CPU?"
        yield WhatIf(name=name, title=title, doc=doc, values={"machine.cpus": count})
    processes = [path[1] for path in draft.sheet.sections if path[0:1] == ("process",)]
    for name, (title, scale) in SPEEDS.items():
        values: dict[str, Value] = {dotted("process", x, "cpu_scale"): scale for x in processes}
        doc = "The CPU time of every class; the calls modelled stay as they are."
        yield WhatIf(name=name, title=title, doc=doc, values=values)


def _load(draft: Draft) -> Iterator[WhatIf]:
    """Twice and half the load, as multiples: half of what each member of an ensemble has."""
    doc = "Of every class: arrivals of open streams, customers of closed ones."
    double: dict[str, Value] = {dotted("process", x, "load_scale"): 2.0 for x in draft.streams}
    yield WhatIf(name="double_load", title="Twice the load", doc=doc, values=double)
    half: dict[str, Value] = {
        dotted("process", name, "load_scale"): 0.5
        for name in draft.streams
        if name not in draft.closed or _value(draft, "process", name, "concurrency") != 1
    }
    if half:
        yield WhatIf(name="half_load", title="Half the load", doc=doc, values=half)


def _fsync(draft: Draft) -> Iterator[WhatIf]:
    values: dict[str, Value] = {
        dotted("process", process_name(load.name, one.kind), key): 0
        for load in draft.loads
        for one in load.classes
        for key in (("fsyncs", "directory_fsyncs") if one.directories[1] else ("fsyncs",))
        if one.kind == SYNC
    }
    if values:
        yield WhatIf(
            name=NO_FSYNC,
            title="Nobody waits for the disk",
            doc="The writes are left to writeback: what is durability worth?",
            values=values,
        )


GROUPS: Final[tuple[Callable[[Draft], Iterator[WhatIf]], ...]] = (
    _devices,
    _faster,
    _elevators,
    _file_systems,
    _options,
    _memory,
    _cpus,
    _load,
    _fsync,
)
