"""Read [machine.cgroup.NAME] and how processes compete: limits, weights, affinity, policy, slice.

Models: what the files of the memory, cpu and cpuset controllers, taskset and chrt say.
Linux counterpart: mm/memcontrol.c, kernel/sched/core.c (cpu_files, cpu_legacy_files),
 kernel/cgroup/cpuset.c.
Invariants: every cgroup that a process is in, and every parent of a group, is described; each
 process has a CPU that affinity, group and parents of the group all allow.
Left out: memory limits of groups in groups.
"""

from collections.abc import Mapping

from sim.scenario.errors import unknown
from sim.scenario.layers import Leaf, Table
from sim.scenario.reading import Reading
from sim.scenario.spec import CgroupSpec, ProcessSpec, ServerSpec
from sim.sched.bandwidth import BANDWIDTH_SINCE, BURST_SINCE
from sim.sched.task_group import GROUPS_SINCE, UNIFIED_SINCE
from sim.sched.terms import CPUS_MAX, POLICY_SINCE, SLICE_SINCE, parse_cpus
from sim.sched.version import KernelVersion, kernel_version, numbers
from sim.units import given_text

OWN_VERSION = {"cpu_shares": 1, "cpu_weight": 2}  # keys that one version of the interface has
# The keys of the cpu controller, and the release that each came with.
SINCE = {
    "cpu_weight": UNIFIED_SINCE, "cpu_shares": GROUPS_SINCE, "cpu_quota": BANDWIDTH_SINCE,
    "cpu_period": BANDWIDTH_SINCE, "cpu_burst": BURST_SINCE,
}  # fmt: skip


def parent_of(name: str) -> str:
    """Return the name of the group that a group lies in, "" for one at the top."""
    return name.rpartition("/")[0]


def read_cgroups(
    reading: Reading, machine: Table, release: KernelVersion | None, cpus: int
) -> dict[str, CgroupSpec]:
    """Return the control groups by name, parents before children."""
    found = {}
    tables = {}
    for name, table, path in reading.named_tables(machine, ("machine",), "cgroup"):
        [values] = reading.values(table, path, [CgroupSpec])
        tables[name] = table
        if values is not None:
            found[name] = CgroupSpec(**values, name=name)
    for name, spec in found.items():
        table = tables[name]
        _check_place(reading, table, spec, tables)
        _check_cpu_keys(reading, table, spec, release)
        _check_cpus(reading, table, f"machine.cgroup.{name}.cpus", spec.cpus, cpus)
    return dict(sorted(found.items(), key=_by_depth))


def _by_depth(item: tuple[str, CgroupSpec]) -> int:
    return item[0].count("/")


def _check_place(
    reading: Reading, table: Table, spec: CgroupSpec, tables: Mapping[str, Table]
) -> None:
    """Note a group in a group that is not there, or with a limit of memory below another."""
    parent = parent_of(spec.name)
    if not all(spec.name.split("/")):
        reading.error(table.place, f"a cgroup is named as below /sys/fs/cgroup: '{spec.name}'")
    elif parent and parent not in tables:
        where = f" (of '{spec.name}')"
        reading.problems.append(unknown(table.place, "parent cgroup", parent, tables, where))
    elif parent and spec.memory_bytes is not None:
        reading.error(table.place, f"cgroup '{spec.name}': memory is limited at the top only")
    if spec.swap_bytes is not None and spec.memory_bytes is None:
        reading.error(table.place, f"cgroup '{spec.name}' lacks 'memory' beside 'swap'")


def _check_cpu_keys(
    reading: Reading, table: Table, spec: CgroupSpec, release: KernelVersion | None
) -> None:
    """Note keys of the cpu controller that the release, or the interface's version, lacks."""
    for key in SINCE:
        leaf = table.leaf(key)
        if leaf is None or release is None:
            continue
        since = SINCE[key]
        if OWN_VERSION.get(key, spec.version) != spec.version:
            right = next(other for other in OWN_VERSION if other != key)
            reading.error(
                leaf.key, f"machine.cgroup.{spec.name}.{key}: no such file in version"
                f" {spec.version} of the interface", allowed=f"{right}, or another 'version'",
            )  # fmt: skip
        elif spec.version > 1 and release < UNIFIED_SINCE:
            reading.error(
                leaf.key, f"machine.cgroup.{spec.name}: version 2 has a cpu controller from"
                f" {numbers(UNIFIED_SINCE)} on", given=numbers(release), allowed="version = 1",
            )  # fmt: skip
        elif release < since:
            reading.error(
                leaf.key, f"machine.cgroup.{spec.name}.{key}: came with {numbers(since)}",
                given=numbers(release),
            )  # fmt: skip
        elif key in ("cpu_period", "cpu_burst") and spec.cpu_quota_ns is None:
            reading.error(leaf.key, f"machine.cgroup.{spec.name}.{key}: there is no 'cpu_quota'")
    quota_ns = spec.cpu_quota_ns
    if quota_ns is not None and spec.cpu_burst_ns > quota_ns:
        leaf = table.leaf("cpu_burst")
        reading.error(
            leaf.at if leaf else table.place,
            f"machine.cgroup.{spec.name}.cpu_burst: more than the quota",
        )  # fmt: skip


def _check_cpus(
    reading: Reading, table: Table, path: str, text: str | None, cpus: int
) -> frozenset[int] | None:
    """Return the CPUs of a list; note one that is none, or has CPUs that are not there."""
    leaf = table.leaf("cpus")
    if leaf is None or text is None:
        return None
    allowed = f'such as "0" or "0-{cpus - 1}"' if cpus > 1 else '"0"'
    try:
        found = parse_cpus(text)
    except ValueError as problem:
        reading.error(leaf.at, f"{path}: {problem}", allowed=allowed)
        return None
    if max(found) >= cpus:
        reading.error(
            leaf.at, f"{path}: there is no CPU {max(found)}", given=given_text(text),
            allowed=allowed,
        )  # fmt: skip
        return None
    return found


def allowed_cpus(process: ProcessSpec, cgroups: Mapping[str, CgroupSpec]) -> frozenset[int] | None:
    """Return the CPUs that a process may run on, None for all: its own, its groups' in common."""
    texts = [process.cpus]
    name = process.cgroup or ""
    while name:
        texts.append(cgroups[name].cpus)
        name = parent_of(name)
    sets = [parse_cpus(text) for text in texts if text is not None]
    return frozenset.intersection(*sets) if sets else None


def check_cgroups(
    reading: Reading, root: Table, processes: Mapping[str, ProcessSpec], server: ServerSpec | None
) -> None:  # fmt: skip
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
        before = len(reading.problems)
        _check_cpus(reading, table, f"process.{name}.cpus", process.cpus, cpus)
        if server is None or len(reading.problems) > before:
            continue
        if allowed_cpus(process, server.cgroups) == frozenset():
            leaf = table.leaf("cpus") or leaf
            reading.error(
                leaf.at if leaf else table.place,
                f"process.{name}: no CPU is left of 'cpus' and those of cgroup '{process.cgroup}'",
            )  # fmt: skip


def _check_terms(reading: Reading, table: Table, process: ProcessSpec) -> None:
    """Note what a program outside the server can't have, and what the release lacks."""
    for key in ("policy", "slice", "cpus", "cgroup"):
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


def _check_release(reading: Reading, leaf: Leaf, what: str, since: KernelVersion) -> None:
    """Note that a release does not have it yet."""
    if reading.kernel and kernel_version(reading.kernel) < since:
        reading.error(leaf.at, f"{what} came with {numbers(since)}", given=reading.kernel)
