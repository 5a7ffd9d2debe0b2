"""The questions that every twin can be asked: device, elevator, file system, memory, CPUs, load.

Models: the suggestions of somebody who has to buy.
Linux counterpart: none.
Invariants: each differs from the base in something; a device's replacement takes its data sheet's
values; what needs a part that this kernel has not is not offered.
Left out: combinations; `--set` makes them.
"""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Final

from calibration.twin.demands import SYNC
from calibration.twin.draft import Draft, process_name, processes_of
from calibration.twin.server import disk_section, profile_of, turns
from calibration.twin.sheet import Entry, Value, WhatIf, dotted
from sim.registry import lookup, names
from sim.scenario.devices import PROFILES
from sim.sched.version import kernel_version
from sim.units import format_quantity, parse_quantity

MEMORY_MIN: Final = 256 * 2**20
# name -> (profile, title, doc)
DEVICES: Final[Mapping[str, tuple[str, str, str]]] = {
    "ssd": ("ssd-sata", "A SATA SSD", "What would a device without an arm change?"),
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
    "no_barrier": ("barrier", False, "no barriers", "Commits that trust the device's cache."),
    "barrier": ("barrier", True, "barriers", "Commits that flush the device's cache."),
}
BARRIERS_SINCE: Final = (3, 1)  # ext3's default, as fs/ext3/super.c 3.1


def what_ifs_of(draft: Draft) -> list[WhatIf]:
    """Return the variants of a draft, with the values that it has now."""
    return [
        one
        for group in (_devices, _faster, _elevators, _options, _memory, _cpus, _load, _fsync)
        for one in group(draft)
    ]


def _value(draft: Draft, *path: str) -> Value | None:
    entry: Entry | None = draft.sheet.sections.get(path[:-1], {}).get(path[-1])
    return entry.value if entry is not None else None


def _devices(draft: Draft) -> Iterator[WhatIf]:
    for name, (profile, title, doc) in DEVICES.items():
        values: dict[str, Value] = {}
        device = _device_of(profile)
        for load in draft.loads:
            if turns(load.device) and profile == profile_of(load.device.guess):
                continue
            section = disk_section(load.name)
            values[dotted(*section, "device")] = device
            values[dotted(*section, "profile")] = profile
        if values:
            yield WhatIf(name=name, title=title, doc=doc, values=values)


def _device_of(profile: str) -> str:
    """Return the device model that a profile is for."""
    content = tomllib.loads((PROFILES / f"{profile}.toml").read_text(encoding="utf-8"))
    return str(content["device"])


def _faster(draft: Draft) -> Iterator[WhatIf]:
    """Half the latency and twice the transfer of devices that were fitted."""
    values: dict[str, Value] = {}
    for load in draft.loads:
        section = disk_section(load.name)
        for key in ("read", "write"):
            latency, rate = _value(draft, *section, key), _value(draft, *section, f"{key}_rate")
            if latency is not None and rate is not None:
                half_ns = max(1, parse_quantity(latency, "time_ns") // 2)
                twice = 2 * float(parse_quantity(rate, "bytes_per_s"))
                values[dotted(*section, key)] = format_quantity(half_ns, "time_ns")
                values[dotted(*section, f"{key}_rate")] = format_quantity(twice, "bytes_per_s")
    if values:
        yield WhatIf(
            name="device_twice_as_fast", title="A device of half the response time",
            doc="Would a better class of the same device pay?", values=values,
        )  # fmt: skip


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
            plain = f"elevator_{name.replace('-', '_')}"
            yield WhatIf(name=plain, title=f"Elevator {name}", doc=ELEVATORS[name], values=values)


def _options(draft: Draft) -> Iterator[WhatIf]:
    has_barriers = kernel_version(draft.server.kernel) >= BARRIERS_SINCE
    for name, (option, value, title, doc) in OPTIONS.items():
        if option == "barrier" and value == has_barriers:
            continue
        values = {
            dotted("machine", "mount", place.path, option): value
            for place in draft.server.places.values()
        }
        yield WhatIf(name=name, title=f"File system: {title}", doc=doc, values=values)


def _memory(draft: Draft) -> Iterator[WhatIf]:
    size = parse_quantity(_value(draft, "machine", "memory"), "bytes")
    doc = "More may be dirty before writers wait; reads that the cache would save are not seen."
    sizes = {"double_memory": ("Twice the memory", 2 * size)}
    if size // 2 >= MEMORY_MIN:
        sizes["half_memory"] = ("Half the memory", size // 2)
    for name, (title, changed) in sizes.items():
        values: dict[str, Value] = {"machine.memory": format_quantity(changed, "bytes")}
        yield WhatIf(name=name, title=title, doc=doc, values=values)


def _cpus(draft: Draft) -> Iterator[WhatIf]:
    cpus = draft.server.cpus
    counts = {"double_cpus": ("Twice the CPUs", 2 * cpus)}
    if cpus > 1:
        counts["half_cpus"] = ("Half the CPUs", cpus // 2)
    for name, (title, count) in counts.items():
        doc = "Does anybody wait for a CPU?"
        yield WhatIf(name=name, title=title, doc=doc, values={"machine.cpus": count})


def _load(draft: Draft) -> Iterator[WhatIf]:
    """Twice and half the load; twice is two of every class, so that a fit's ensemble carries over.

    Half of a class there is not: its rate, or its customers, are written anew.
    """
    doc = "Of every class: arrivals of open streams, customers of closed ones."
    double: dict[str, Value] = {dotted("process", name, "count"): 2 for name in draft.streams}
    yield WhatIf(name="double_load", title="Twice the load", doc=doc, values=double)
    half: dict[str, Value] = {}
    for process, key in processes_of(draft):
        changed = _half(_value(draft, "process", process, key), key)
        if changed is not None:
            half[dotted("process", process, key)] = changed
    if half:
        yield WhatIf(name="half_load", title="Half the load", doc=doc, values=half)


def _half(value: Value | None, key: str) -> Value | None:
    """Return half of a load; None where there is no half (a single customer)."""
    if key == "rate":
        return f"{parse_quantity(value, 'rate_per_s') / 2:.6g} /s"
    customers = parse_quantity(value, "count")
    return customers // 2 if customers > 1 else None


def _fsync(draft: Draft) -> Iterator[WhatIf]:
    values: dict[str, Value] = {
        dotted("process", process_name(load.name, one.kind), "fsyncs"): 0
        for load in draft.loads
        for one in load.classes
        if one.kind == SYNC
    }
    if values:
        yield WhatIf(
            name="no_fsync", title="Nobody waits for the disk",
            doc="The writes are left to writeback: what is durability worth?", values=values,
        )  # fmt: skip
