"""Read what happens on and around the server: links, processes, the run, figures, neighbours.

Models: an experiment plan. A neighbour, [neighbour.NAME], is another guest of the same host and a
 scenario of its own: it stands in for the other guests of a host where their programs are known.
 Their vCPUs and this server's share the host's CPUs; each has its disks, network and programs for
 itself.
Linux counterpart: none.
Invariants: `via` names a link and `target` a process of this scenario, a program's host a process
 outside the server; a program outside the server is behind a link, one on it is not. A neighbour is
 a complete scenario, with what-if or without, and has no neighbours; the host is that of
 [machine.guest] of the scenario that names it.
Left out: routes of several links; disks and links that guests share; what a neighbour measures
 (its figures are those of its own scenario, run by itself or with this one as its neighbour).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sim.cgroup import allowed_cpus, check_cpus
from sim.component import Described
from sim.fs.features import features, since
from sim.observation import MeasureSpec, figures_of, timed_by
from sim.param import param, params_of
from sim.registry import Entry, lookup
from sim.scenario.calibrate import recorded_metrics
from sim.scenario.cases import DATASET, file_of_program
from sim.scenario.spec import (
    LinkSpec,
    ProcessSpec,
    RecordedSpec,
    RunSpec,
    Scenario,
    ServerSpec,
)
from sim.sched.features import POLICY_SINCE, SLICE_SINCE
from sim.sched.guest import GuestParams
from sim.sched.syscalls import CPUS_MAX
from sim.sched.version import KernelVersion, kernel_version, numbers
from sim.toml.errors import ScenarioError, unknown
from sim.toml.layers import Leaf, Table
from sim.toml.reading import Reading, dotted
from sim.units import format_quantity, given_text

# Families of figures of every server (sim/study/metrics.py); programs have more of their own.
FAMILIES = (
    "load",
    "cpu",
    "disk",
    "transfers",
    "host",
    "busy",
    "blocks",
    "memory",
    "waits",
    "throttling",
)
UNASKED = ("blocks", "throttling")  # shown only if named: blocks have to be traced, quotas are rare
KERNEL_MARKS = ("oom_kill", "programs_exited")  # sim.machine


def read_links(reading: Reading, root: Table) -> dict[str, LinkSpec]:
    """Return the links by name."""
    links = {}
    for name, table, path in reading.named_tables(root, (), "link"):
        [values] = reading.values(table, path, [LinkSpec])
        if values is not None:
            links[name] = LinkSpec(**values, name=name)
    return links


def read_processes(reading: Reading, root: Table) -> dict[str, ProcessSpec]:
    """Return the processes by name."""
    processes = {}
    group = root.table("process")
    if group is None or not group.children:
        reading.error(root.place, "nothing runs: a scenario needs a [process.NAME]")
    for name, table, path in reading.named_tables(root, (), "process"):
        process = _process(reading, name, table, path)
        if process is not None:
            processes[name] = process
    return processes


def _process(
    reading: Reading, name: str, table: Table, path: tuple[str, ...]
) -> ProcessSpec | None:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        reading.error(table.place, f"a process is named with letters, digits, - and _: '{name}'")
    program = table.leaf("program")
    if program is None:
        reading.error(table.place, f"[{dotted(path)}] lacks 'program' (the program)")
        reading.check_keys_of_any(table, path, "program", [ProcessSpec])
        return None
    entry = reading.entry("program", program)
    if entry is None:
        file = file_of_program(str(program.value))
        if file:
            told = reading.problems.pop()
            message = f'{told.message}: it needs uses = ["{file}"] at the top'
            reading.problems.append(replace(told, message=message, nearest=None))
        return None
    own, params = reading.values(table, path, [ProcessSpec, entry.params], floor=program.layer)
    if own is None or params is None:
        return None
    runs = str(getattr(entry.cls, "runs", "server"))
    process = ProcessSpec(**own, name=name, runs=runs, params=entry.params(**params))
    refusal = getattr(entry.cls, "refusal", None)
    reading.refuses(table, ("process", name), refusal and refusal(process.params), "program")
    _check_effects(reading, table, process, entry)
    needs = getattr(entry.cls, "kernel_needs", None)
    if needs is not None and reading.kernel:
        for key, release in lacking(needs(process.params), kernel_version(reading.kernel)):
            leaf = table.leaf(key)
            message = f"process.{name}: Linux {reading.kernel} has no such {key}"
            given = given_text(leaf.value) if leaf else ""
            place = leaf.at if leaf else table.place
            reading.error(place, message, given=given, allowed=f"from {release}")
    return process


def _check_effects(reading: Reading, table: Table, process: ProcessSpec, entry: Entry) -> None:
    """Note keys that do nothing beside another one, unless a layer above them has set that."""
    without_effect = getattr(entry.cls, "without_effect", None)
    found = {} if without_effect is None else without_effect(process.params)
    for key, (other, wanted) in found.items():
        leaf, decides = table.leaf(key), table.leaf(other)
        if leaf is not None and decides is not None and leaf.layer >= decides.layer:
            reading.error(
                leaf.at,
                f"process.{process.name}.{key}: has no effect beside"
                f" {other} = {given_text(decides.value)}",
                given=given_text(leaf.value),
                allowed=f'no {key}, or {other} = "{wanted}"',
            )


def lacking(needs: Mapping[str, str], kernel: KernelVersion) -> list[tuple[str, str]]:
    """Return the options whose feature the kernel lacks, each with the first release that has it.

    `needs` has the features by option (sim/fs/features.py).
    """
    has = features(kernel)
    return [
        (option, since(feature)) for option, feature in needs.items() if not getattr(has, feature)
    ]


def check_references(reading: Reading, root: Table, processes: dict[str, ProcessSpec]) -> None:
    """Note processes behind missing links, or talking to missing processes."""
    group = root.table("process") or Table(root.place, root.layer)
    known_links = (root.table("link") or group.without(*group.children)).children
    for name, table in group.tables():
        process = processes.get(name)
        if process is None:
            continue
        via, target = table.leaf("via"), table.leaf("target")
        if process.runs == "outside" and via is None:
            reading.error(
                table.place,
                f"'{process.program}' runs outside the server: it needs a link 'via'",
                allowed=", ".join(known_links) or "none",
            )
        if process.runs == "server" and via is not None:
            reading.error(via.key, f"'{process.program}' runs on the server, behind no link")
        if via is not None and process.via not in known_links:
            reading.problems.append(unknown(via.at, "link", str(process.via), known_links))
        if target is not None and process.target not in group.children:
            reading.problems.append(
                unknown(target.at, "process", str(process.target), group.children)
            )


def check_hosts(
    reading: Reading,
    root: Table,
    processes: dict[str, ProcessSpec],
    mounts: Mapping[str, Any],
) -> None:
    """Note programs and mounts that need a host outside the server which is not there."""
    outside = [process for process in processes.values() if process.runs == "outside"]
    hosts = [host for process in outside for host in process.instances()]
    group = root.table("process") or Table(root.place, root.layer)
    hosts += [name for name, _ in group.tables() if name not in processes]  # told of already
    for name, table in group.tables():
        if name in processes:
            _check_host(reading, table, processes[name].params, f"process.{name}", hosts)
    machine = root.table("machine")
    mounted = machine and machine.table("mount")
    for where, table in mounted.tables() if mounted else ():
        if where in mounts:
            path = dotted(("machine", "mount", where))
            _check_host(reading, table, mounts[where].params, path, hosts)


def _check_host(
    reading: Reading, table: Table, params: object, path: str, hosts: list[str]
) -> None:
    """Note a parameter that names a host which is not among those."""
    for declared in params_of(type(params)):
        host = getattr(params, declared.name)
        if declared.names_host and host not in hosts:
            leaf = table.leaf(declared.key)
            where = "" if leaf else f", the default of '{declared.key}' in [{path}]"
            place = leaf.at if leaf else table.place
            reading.problems.append(unknown(place, "host outside the server", host, hosts, where))


def read_run(reading: Reading, root: Table) -> RunSpec | None:
    """Return when the run ends."""
    table = reading.table(root, (), "run")
    [values] = reading.values(table, ("run",), [RunSpec])
    return None if values is None else RunSpec(**values)


def read_measure(
    reading: Reading, root: Table, described: Described, processes: Mapping[str, ProcessSpec]
) -> MeasureSpec | None:
    """Return which figures are taken; most families and all devices where none are named.

    The default of a mark that no program here can leave is none: "".
    """
    table = reading.table(root, (), "measure")
    [values] = reading.values(table, ("measure",), [MeasureSpec], others=("families", "devices"))
    families = reading.texts(table, ("measure",), "families")
    programs = tuple(dict.fromkeys(process.program for process in processes.values()))
    of_programs = [
        family.name for program in programs for family in figures_of(lookup("program", program).cls)
    ]
    all_families = tuple(dict.fromkeys((*of_programs, *FAMILIES)))
    group = root.table("process")
    are_all_read = group is not None and len(processes) == len(group.children)
    for name in families or ():
        if name not in all_families and are_all_read:
            place = _leaf_place(table, "families")
            reading.problems.append(unknown(place.at, "family of figures", name, all_families))
    named = reading.texts(table, ("measure",), "devices")
    for name in named or ():
        if name not in described.sizes:
            place = _leaf_place(table, "devices")
            reading.problems.append(unknown(place.at, "device", name, described.sizes))
    if values is None:
        return None
    chosen = named
    if chosen is None:
        kinds = ("disk", "array", "volume")
        chosen = tuple(name for kind in kinds for name in described.tables.get(kind, {}))
    known = marks_of(processes)
    if known is not None:
        values |= {key: "" for key in ("begin", "end") if values[key] not in known}
    asked = families or tuple(name for name in all_families if name not in UNASKED)
    measure = MeasureSpec(**values, families=asked, devices=chosen, programs=programs)
    if measure.steady and are_all_read and timed_by(measure) is None:
        reading.error(
            table.place_of("steady"),
            "measure.steady: times of transactions tell a steady state, and no figure here has any",
            allowed="false, or a family of a program that measures times",
        )
    return measure


def check_terms(
    reading: Reading, root: Table, processes: Mapping[str, ProcessSpec], server: ServerSpec | None
) -> None:
    """Note processes in a cgroup that is not there, on no CPU, or of a policy yet to come.

    `server` is None where its description has mistakes already.
    """
    machine = root.table("machine")
    group = None if machine is None else machine.table("cgroup")
    known = {} if group is None else group.children
    cpus = CPUS_MAX if server is None else server.cpus
    for name, table in (root.table("process") or Table(root.place, root.layer)).tables():
        process = processes.get(name)
        if process is None:
            continue
        leaf = table.leaf("cgroup")
        if leaf is not None and process.cgroup not in known:
            reading.problems.append(unknown(leaf.at, "cgroup", str(process.cgroup), known))
            continue
        _check_terms(reading, table, process)
        _check_warm(reading, table, process, server)
        before = len(reading.problems)
        check_cpus(reading, table, f"process.{name}.cpus", process.cpus, cpus)
        if server is None or len(reading.problems) > before:
            continue
        if _is_nowhere(process, server):
            leaf = table.leaf("cpus") or leaf
            reading.error(
                leaf.at if leaf else table.place,
                f"process.{name}: no CPU is left of 'cpus' and those of cgroup '{process.cgroup}'",
            )


def _is_nowhere(process: ProcessSpec, server: ServerSpec) -> bool:
    return allowed_cpus(process.cpus, process.cgroup, server.all("cgroup")) == frozenset()


def _check_terms(reading: Reading, table: Table, process: ProcessSpec) -> None:
    """Note what a program outside the server can't have, and what the release lacks."""
    for key in ("policy", "slice", "cpus", "cgroup", "warm"):
        leaf = table.leaf(key)
        if leaf is None:
            continue
        if process.runs == "outside":
            reading.error(leaf.key, f"'{process.program}' runs outside the server: no '{key}'")
        elif key == "policy":
            what = f'policy "{process.policy}"'
            _check_release(reading, leaf, what, POLICY_SINCE[process.policy])
        elif key == "slice":
            _check_release(reading, leaf, "slices of a program's own", SLICE_SINCE)


def _check_warm(
    reading: Reading, table: Table, process: ProcessSpec, server: ServerSpec | None
) -> None:
    """Note a warm cache in a group that limits it: what of it would be there is not modelled."""
    leaf = table.leaf("warm")
    groups = {} if server is None else server.all("cgroup")
    top = groups.get((process.cgroup or "").partition("/")[0])
    if leaf is not None and process.warm and top is not None and top.memory_bytes is not None:
        reading.error(
            leaf.at,
            f"process.{process.name}: no warm cache in '{process.cgroup}', which limits memory",
        )


def _check_release(reading: Reading, leaf: Leaf, what: str, since: KernelVersion) -> None:
    """Note that a release does not have it yet."""
    if reading.version is not None and reading.version < since:
        reading.error(leaf.at, f"{what} came with {numbers(since)}", given=reading.kernel)


def check_marks(reading: Reading, root: Table, processes: dict[str, ProcessSpec]) -> None:
    """Note moments of [run] and [measure] that nothing in this scenario can mark."""
    known = marks_of(processes)
    group = root.table("process")
    if known is None or group is None or len(processes) < len(group.children):
        return
    own = {f"{name}.{mark}" for name in processes for mark in _marks_of_one(processes[name])}
    for name, key, more in (
        ("run", "until", own),
        ("measure", "begin", ()),
        ("measure", "end", ()),
    ):
        table = root.table(name)
        leaf = table.leaf(key) if table else None
        allowed = known.union(more)
        if leaf is not None and isinstance(leaf.value, str) and leaf.value not in ("", *allowed):
            where = f" in [{name}] {key}: no program here leaves it"
            reading.problems.append(unknown(leaf.at, "mark", leaf.value, sorted(known), where))


def _marks_of_one(process: ProcessSpec) -> set[str]:
    """Return the records that a process itself can leave."""
    return (marks_of({process.name: process}) or set()) - set(KERNEL_MARKS)


def check_storms(reading: Reading, root: Table, processes: dict[str, ProcessSpec]) -> None:
    """Note a second process whose begin and end would be the storm's."""
    group = root.table("process") or Table(root.place, root.layer)
    marking = [
        name for name, process in processes.items() if getattr(process.params, "marks_storm", False)
    ]
    for name in marking[1:]:
        leaf = (group.table(name) or root).leaf("marks_storm")
        place = leaf.at if leaf else group.place
        reading.error(place, f"process.{name}: the storm is that of process.{marking[0]} already")


def check_interval(
    reading: Reading, root: Table, run: RunSpec | None, measure: MeasureSpec | None
) -> None:
    """Note an interval that the run is over before: there would be no report."""
    if run is None or measure is None or measure.interval_ns <= run.duration_ns:
        return
    leaf = (root.table("measure") or root).leaf("interval")
    if leaf is None:
        return  # the default, which a short run need not reach
    most = format_quantity(run.duration_ns, "time_ns")
    reading.error(
        leaf.at,
        "measure.interval: must be at most run.duration",
        given=given_text(leaf.value),
        allowed=f"{most} or less",
    )


def marks_of(processes: Mapping[str, ProcessSpec]) -> set[str] | None:
    """Return the records that the programs and the kernel can leave, None if one does not say."""
    found = set(KERNEL_MARKS)
    for process in processes.values():
        cls = lookup("program", process.program).cls
        marks: tuple[str, ...] | None = getattr(cls, "marks", None)
        if marks is None:
            return None
        unmade = getattr(cls, "unmade_marks", None)
        found |= set(marks) - set(unmade(process.params) if unmade else ())
    return found


def _leaf_place(table: Table, name: str) -> Leaf:
    leaf = table.leaf(name)
    assert leaf is not None
    return leaf


def read_recorded(
    reading: Reading, root: Table, known: Mapping[str, Path]
) -> tuple[RecordedSpec, ...]:
    """Return the recorded figures that this variant stands beside.

    `known` has the folders of the recordings that may be named.
    """
    recorded = []
    for figures, child in reading.table(root, (), "recorded").children.items():
        if isinstance(child, Leaf) and isinstance(child.value, str):
            _check_recorded(reading, figures, child, child.value, known)
            if child.value in known:
                recorded.append(RecordedSpec(figures=figures, folder=known[child.value]))
        else:
            place = child.at if isinstance(child, Leaf) else child.place
            reading.error(place, f"recorded.{figures} must name a data set", allowed='"sendmail"')
    return tuple(recorded)


def _check_recorded(
    reading: Reading, figures: str, leaf: Leaf, data_set: str, known: Mapping[str, Path]
) -> None:
    """Note a data set that is not there, or a set of figures that it lacks."""
    if data_set not in known:
        reading.problems.append(unknown(leaf.at, "data set", data_set, known))
        return
    sets = recorded_metrics(known[data_set])
    if sets and figures not in sets:
        where = f" in {'/'.join(known[data_set].parts[-2:])}/{DATASET}"
        reading.problems.append(unknown(leaf.key, "set of figures", figures, sorted(sets), where))


# --- other guests of the same host


@dataclass(frozen=True, kw_only=True)
class NeighbourParams:
    """Which scenario a neighbour is."""

    scenario: str = param(dim="text", source="scenario", doc="its scenario, by name or file")
    what_if: str = param("", dim="text", source="scenario", doc="a what-if of that; empty: none")


def read_neighbours(
    reading: Reading,
    root: Table,
    server: ServerSpec | None,
    read: Callable[[str, str | None], Scenario],
) -> dict[str, Scenario]:
    """Return the neighbours by name; `read` reads a scenario by name and what-if."""
    found: dict[str, Scenario] = {}
    for name, table, path in reading.named_tables(root, (), "neighbour"):
        [values] = reading.values(table, path, [NeighbourParams])
        if values is None:
            continue
        guest = server.one("guest") if server is not None else None
        if server is not None and not (isinstance(guest, GuestParams) and guest.host_cpus):
            reading.error(
                table.place,
                "neighbours share a host's CPUs: none is described",
                given="no machine.guest.host_cpus",
                allowed="machine.guest.host_cpus = 1 or more",
            )
        asked = NeighbourParams(**values)
        leaf = table.leaf("what_if" if asked.what_if else "scenario")
        place = leaf.at if leaf is not None else table.place
        try:
            found[name] = read(asked.scenario, asked.what_if or None)
        except LookupError as error:
            reading.error(place, f"neighbour.{name}: {error}")
        except ScenarioError as error:
            reading.error(place, f"neighbour.{name}: {error.problems[0].render()}")
    return found
