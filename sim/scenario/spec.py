"""What a scenario says, as frozen records: the server, its surroundings, the run, the figures.

Models: the description that the machine boots from; nothing in it acts.
Linux counterpart: the hardware description and command line a kernel is booted with, /etc/fstab.
Invariants: frozen, picklable, every name refers to something that exists, all numbers canonical.
Left out: defaults that depend on the kernel version (None here: the kernel folders know them).
"""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sim.observation import MeasureSpec
from sim.param import param
from sim.scenario.calibrate import CalibrateSpec
from sim.scenario.cases import name_of_data_set, use
from sim.scenario.levels import LevelText
from sim.toml.reading import Parameter


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """The simulated server: its own keys, its kernel's core, and its components by name.

    `core` has the parameters of what every kernel has; `components`, in the order in which they are
    built, those of each table by its name ("" where a component has no names).
    """

    kernel: str = param(dim="text", source="scenario", doc="Linux version, such as 2.6.16")
    cpus: int = param(1, dim="count", source="scenario", doc="CPUs", minimum=1, maximum=4096)
    memory_bytes: int = param(
        dim="bytes", source="scenario", doc="memory", minimum=16 * 2**20, maximum=2**50
    )
    hostname: str = param("linux", dim="text", source="assumed: any name will do", doc="its name")
    accepts: frozenset[str] = frozenset()  # what is left out, and known (sim.scenario.omissions)
    core: Mapping[str, Any]
    components: Mapping[str, Mapping[str, Any]]

    def all(self, component: str) -> Mapping[str, Any]:
        """Return the parameters of a component's tables by name; none if it is not there."""
        return self.components.get(component, {})

    def one(self, component: str) -> Any:
        """Return the parameters of a component without names; None if it is not there."""
        return self.all(component).get("")


@dataclass(frozen=True, kw_only=True)
class LinkSpec:
    """A network between the server and hosts outside."""

    name: str
    latency_ns: int = param(
        dim="time_ns", source="scenario", doc="one-way delay of a packet", minimum=0
    )
    rate_bytes_per_s: float = param(
        "1 Gbit/s", dim="bytes_per_s", source="scenario", doc="transfer rate, each way", minimum=1
    )


@dataclass(frozen=True, kw_only=True)
class ProcessSpec:
    """A program that runs, on the server or outside it behind a link."""

    name: str
    runs: str  # "server" or "outside", as its program declares
    params: object
    program: str = param(dim="text", source="scenario", doc="the program")
    count: int = param(1, dim="count", source="scenario", doc="how many of it", minimum=0)
    nice: int = param(0, dim="count", source="scenario", doc="nice value", minimum=-20, maximum=19)
    via: str | None = param(None, dim="text", source="scenario", doc="link it is behind")
    target: str | None = param(None, dim="text", source="scenario", doc="process it talks to")
    cgroup: str | None = param(None, dim="text", source="scenario", doc="cgroup it is in")
    policy: str = param(
        "other",
        dim="text",
        source="sched(7): SCHED_OTHER",
        choices=("other", "batch", "idle"),
        doc="scheduling policy (chrt)",
    )
    slice_ns: int | None = param(
        None,
        dim="time_ns",
        source="__setparam_fair (kernel/sched/syscalls.c): the kernel's",
        minimum=100_000,
        maximum=100_000_000,
        doc="how long a turn it asks for, from 6.12 on (sched_setattr: sched_runtime)",
    )
    cpus: str | None = param(
        None,
        dim="text",
        source="sched(7): all",
        doc='CPUs that it is pinned to, such as "0-1,3" (taskset -c)',
    )

    warm: bool = param(
        False,
        dim="bool",
        source="scenario",
        doc="whether the files that are there beforehand are in the page cache at the start, as far"
        " as memory has room",
    )

    def instances(self) -> tuple[str, ...]:
        """Return the names under which `count` of it run."""
        if self.count == 1:
            return (self.name,)
        return tuple(f"{self.name}.{number}" for number in range(self.count))


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """When the run ends: at a program's marker and a while after, or when the time is up."""

    duration_ns: int = param(
        dim="time_ns", source="scenario", doc="simulated time at the most", minimum=1
    )
    until: str | None = param(
        None,
        dim="text",
        source="scenario",
        doc="marker that ends the run, of any program; PROCESS.MARKER: of that process",
    )
    after_ns: int = param(
        0, dim="time_ns", source="scenario", doc="time the run goes on after the marker", minimum=0
    )


@dataclass(frozen=True, kw_only=True)
class RecordedSpec:
    """Figures of a recorded data set: the set FIGURES in the dataset.toml of a folder."""

    figures: str
    folder: Path

    @property
    def data_set(self) -> str:
        """Return the name of the data set."""
        return name_of_data_set(self.folder)


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """A named variant: what it is called and what question it answers."""

    name: str
    title: str
    doc: str


@dataclass(frozen=True, kw_only=True)
class Option:
    """A what-if with a price, which may exclude other options, or need them."""

    what_if: WhatIf
    price: float
    unit: str  # of money; "" for none
    excludes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name by which it is taken."""
        return self.what_if.name


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario as it will be run: base or one what-if, with every value's origin."""

    name: str
    title: str
    doc: str
    path: Path
    seed: int
    what_if: WhatIf | None
    what_ifs: tuple[WhatIf, ...]
    server: ServerSpec
    links: Mapping[str, LinkSpec]
    processes: Mapping[str, ProcessSpec]
    run: RunSpec
    measure: MeasureSpec
    recorded: tuple[RecordedSpec, ...]
    parameters: tuple[Parameter, ...]
    calibrate: CalibrateSpec | None = None
    plan: CalibrateSpec | None = None  # that of the base, in each variant: what was fitted to
    slo: tuple[LevelText, ...] = ()  # service levels, as they are written
    neighbours: Mapping[str, "Scenario"] = field(default_factory=dict)  # guests of the same host
    uses: tuple[Path, ...] = ()  # files of its own parts
    omissions: tuple[str, ...] = ()  # what its author should know: a line each
    options: tuple[Option, ...] = ()  # what could be bought

    def __reduce__(self) -> tuple[Any, ...]:
        """Take the files of parts along to another process, which has not imported them."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return _restored, (self.uses, pickle.dumps(values))

    @property
    def label(self) -> str:
        """Return "name" or "name (what-if)"."""
        return f"{self.name} ({self.what_if.name})" if self.what_if else self.name


def _restored(uses: tuple[Path, ...], values: bytes) -> Scenario:
    for path in uses:
        use(path)
    return Scenario(**pickle.loads(values))
