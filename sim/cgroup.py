"""Control groups: limits of memory and CPU time, and shares of disks: [machine.cgroup.NAME].

Models: what is written into the files of the memory, cpu, cpuset and blkio controllers at boot, and
what these files then say: below /sys/fs, in the version of the interface that a group has.
Linux counterpart: kernel/cgroup/; mm/memcontrol.c (memory_files, swap_files, memory_stat_format of
 version 2; mem_cgroup_legacy_files, memcg_stat_show of version 1); kernel/sched/core.c (cpu_files,
 cpu_legacy_files, cpu_extra_stat_show, cpu_cfs_stat_show), kernel/sched/cpuacct.c,
 kernel/cgroup/rstat.c (usage_usec), kernel/cgroup/cpuset.c; block/cfq-iosched.c
 (cfq_blkcg_files: weight, time, sectors; cfq_blkcg_files of version 2: io.weight).
Invariants: every parent of a group is described. If one group says anything to the cpu controller
 it is on for all: each competes with its siblings as one; likewise the blkio controller. Sizes are
 multiples of a page; a limit of none is "max" in version 2; times are in us, but throttled_time and
 cpuacct.usage in ns, blkio.time in ms.
Left out: memory limits and disk shares of groups in groups (they count in the top one); changes in
 a run; events of children (memory.events.local), pressure, peak, kernel memory, user_usec and
 system_usec, cgroup.procs, io.stat.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sim.block.blk_cgroup import DEFAULT_WEIGHT, UNIFIED_SCALE, BlkioCgroup
from sim.block.elevator import Elevator
from sim.block.features import BLKIO_ENDED, BLKIO_SINCE, BLKIO_UNTIL, IO_WEIGHT_SINCE, WEIGHT_MIN
from sim.component import Component, Described, GivenTable
from sim.mm.address_space import Vm
from sim.mm.anon import ACTIVE, INACTIVE
from sim.mm.memcontrol import MemCgroup
from sim.mm.mmzone import LRU_ACTIVE_ANON, LRU_ACTIVE_FILE, LRU_INACTIVE_ANON, LRU_INACTIVE_FILE
from sim.mm.page_writeback import memcg_nr_dirty, memcg_nr_unclean
from sim.mm.params import PAGE_SIZE
from sim.param import param
from sim.registry import Entry, lookup, register
from sim.sched.bandwidth import Bandwidth
from sim.sched.core import Sched
from sim.sched.features import BANDWIDTH_SINCE, BURST_SINCE, GROUPS_SINCE, UNIFIED_SINCE
from sim.sched.syscalls import CPUS_MAX, parse_cpus
from sim.sched.task_group import SHARES_DEFAULT, WEIGHT_DEFAULT, TaskGroup, weight_to_shares
from sim.sched.version import in_force, numbers
from sim.toml.errors import unknown
from sim.toml.layers import Leaf, Table
from sim.toml.reading import Reading
from sim.units import NS_PER_MS, NS_PER_US, given_text

LEGACY: Final = 1  # the version of the interface before the unified hierarchy
NO_LIMIT: Final = (1 << 63) - PAGE_SIZE  # PAGE_COUNTER_MAX in bytes: memsw without a limit
PERIOD_DEFAULT_US: Final = 100_000
# Keys that one version has, and what the other version has for it.
OWN_VERSION: Final = {"cpu_shares": 1, "cpu_weight": 2, "blkio_weight": 1, "io_weight": 2}
COUNTERPART: Final = {
    "cpu_shares": "cpu_weight",
    "cpu_weight": "cpu_shares",
    "blkio_weight": "io_weight",
    "io_weight": "blkio_weight",
}
# The keys of the cpu controller, and the release that each came with.
SINCE: Final = {
    "cpu_weight": UNIFIED_SINCE,
    "cpu_shares": GROUPS_SINCE,
    "cpu_quota": BANDWIDTH_SINCE,
    "cpu_period": BANDWIDTH_SINCE,
    "cpu_burst": BURST_SINCE,
}
# The keys of the blkio controller that weigh.
WEIGHT_SINCE: Final = {"blkio_weight": BLKIO_SINCE, "io_weight": IO_WEIGHT_SINCE}


@dataclass(frozen=True, kw_only=True)
class CgroupParams:
    """A control group: limits for the programs in it, of memory and of CPU time."""

    memory_bytes: int | None = param(
        None,
        dim="bytes",
        source="memory.max: no limit",
        minimum=65536,
        doc="limit of programs' pages and of files' that they were the first to use"
        " (memory.limit_in_bytes, memory.max)",
    )
    swap_bytes: int | None = param(
        None,
        dim="bytes",
        source="memory.swap.max: no limit",
        minimum=0,
        doc="limit of its pages in swap; left away: none",
    )
    version: int = param(
        2,
        dim="count",
        source="systemd 243: the unified hierarchy",
        minimum=1,
        maximum=2,
        doc="version of the cgroup interface",
    )
    cpu_weight: int = param(
        100,
        dim="count",
        source="cpu.weight: CGROUP_WEIGHT_DFL",
        minimum=1,
        maximum=10000,
        doc="its weight among its siblings, in version 2 (cpu.weight)",
    )
    cpu_shares: int = param(
        1024,
        dim="count",
        source="cpu.shares: NICE_0_LOAD",
        minimum=2,
        maximum=262144,
        doc="its weight among its siblings, in version 1 (cpu.shares)",
    )
    cpu_quota_ns: int | None = param(
        None,
        dim="time_ns",
        source="cpu.max: max",
        minimum=1_000_000,
        doc="CPU time a period, of all CPUs together (cpu.cfs_quota_us, cpu.max)",
    )
    cpu_period_ns: int = param(
        "100 ms",
        dim="time_ns",
        source="kernel/sched/fair.c default_cfs_period",
        minimum=1_000_000,
        maximum=1_000_000_000,
        doc="the period (cpu.cfs_period_us, cpu.max)",
    )
    cpu_burst_ns: int = param(
        0,
        dim="time_ns",
        source="cpu.max.burst: 0",
        minimum=0,
        doc="what may be saved up of earlier quotas (cpu.max.burst, from 5.14 on)",
    )
    blkio_weight: int | None = param(
        None,
        dim="count",
        source="kernel: block/blk-cgroup.h 2.6.33: BLKIO_WEIGHT_DEFAULT 500",
        minimum=10,
        maximum=1000,
        doc="its weight on disks with cfq, in version 1 (blkio.weight); left away: 500",
    )
    io_weight: int | None = param(
        None,
        dim="count",
        source="kernel: include/linux/cgroup.h 4.3: CGROUP_WEIGHT_DFL 100",
        minimum=1,
        maximum=10000,
        doc="its weight on disks with cfq, in version 2 (io.weight); left away: 100",
    )
    cpus: str | None = param(
        None,
        dim="text",
        source="cpuset.cpus: all",
        doc='CPUs that its programs may run on, such as "0-1,3" (cpuset.cpus)',
    )

    @property
    def has_cpu_limits(self) -> bool:
        """Whether it says anything to the cpu controller."""
        return self.cpu_quota_ns is not None or (self.cpu_weight, self.cpu_shares) != (100, 1024)

    @property
    def disk_weight(self) -> int | None:
        """Its weight on disks in the scale of version 1, None if it says nothing."""
        return self.io_weight * UNIFIED_SCALE if self.io_weight else self.blkio_weight


def parent_of(name: str) -> str:
    """Return the name of the group that a group lies in, "" for one at the top."""
    return name.rpartition("/")[0]


class Machine(Protocol):
    """What control groups ask of a machine."""

    sched: Sched
    vm: Vm
    groups: dict[str, TaskGroup]
    blkcgs: dict[str, BlkioCgroup]


@register("component", "cgroup", params=CgroupParams, doc="a control group: limits for programs")
class Cgroups(Component[CgroupParams]):
    """[machine.cgroup.NAME]; a name like "pods/web" is a group in another one."""

    named = True

    def __init__(self, tables: Mapping[str, CgroupParams]) -> None:
        super().__init__(tables)
        self.task_groups: dict[str, TaskGroup] = {}
        self.memcgs: list[tuple[Vm, MemCgroup]] = []
        self.blkcgs: dict[str, BlkioCgroup] = {}
        self._sched: Sched | None = None

    # --- while a scenario is read

    @classmethod
    def read(
        cls, described: Described, entry: Entry, tables: Sequence[GivenTable]
    ) -> dict[str, CgroupParams | None]:
        """Return the groups, parents before children."""
        found = super().read(described, entry, tables)
        return {name: found[name] for name in sorted(found, key=_depth)}

    @classmethod
    def examine(cls, described: Described, name: str, params: CgroupParams) -> None:
        table = described.given("cgroup", name)
        cls._check_place(described, name, table, params)
        cls._check_cpu_keys(described.reading, name, table, params)
        cls._check_weights(described, name, table, params)
        cpus = CPUS_MAX if described.cpus is None else described.cpus
        check_cpus(described.reading, table, f"machine.cgroup.{name}.cpus", params.cpus, cpus)

    @classmethod
    def _check_place(
        cls, described: Described, name: str, table: Table, params: CgroupParams
    ) -> None:
        """Note a group in a group that is not there, or with a limit of memory below another."""
        reading = described.reading
        groups = described.tables["cgroup"]
        parent = parent_of(name)
        if not all(name.split("/")):
            reading.error(table.place, f"a cgroup is named as below /sys/fs/cgroup: '{name}'")
        elif parent and parent not in groups:
            where = f" (of '{name}')"
            reading.problems.append(unknown(table.place, "parent cgroup", parent, groups, where))
        elif parent and params.memory_bytes is not None:
            reading.error(table.place, f"cgroup '{name}': memory is limited at the top only")
        if params.swap_bytes is not None and params.memory_bytes is None:
            reading.error(table.place, f"cgroup '{name}' lacks 'memory' beside 'swap'")

    @classmethod
    def _check_cpu_keys(
        cls, reading: Reading, name: str, table: Table, params: CgroupParams
    ) -> None:
        """Note keys of the cpu controller that the release, or the interface's version, lacks."""
        release = reading.version
        for key, since in SINCE.items():
            leaf = table.leaf(key)
            if leaf is None or release is None:
                continue
            path = f"machine.cgroup.{name}"
            if _is_of_other_version(reading, leaf, key, name, params):
                continue
            if params.version > 1 and release < UNIFIED_SINCE:
                reading.error(
                    leaf.key,
                    f"{path}: version 2 has a cpu controller from {numbers(UNIFIED_SINCE)} on",
                    given=numbers(release),
                    allowed="version = 1",
                )
            elif release < since:
                message = f"{path}.{key}: came with {numbers(since)}"
                reading.error(leaf.key, message, given=numbers(release))
            elif key in ("cpu_period", "cpu_burst") and params.cpu_quota_ns is None:
                reading.error(leaf.key, f"{path}.{key}: there is no 'cpu_quota'")
        quota_ns = params.cpu_quota_ns
        if quota_ns is not None and params.cpu_burst_ns > quota_ns:
            message = f"machine.cgroup.{name}.cpu_burst: more than the quota"
            reading.error(table.place_of("cpu_burst"), message)

    @classmethod
    def _check_weights(
        cls, described: Described, name: str, table: Table, params: CgroupParams
    ) -> None:
        """Note weights that the release or the interface's version lacks; remark idle ones."""
        reading = described.reading
        release = reading.version
        for key, since in WEIGHT_SINCE.items():
            leaf = table.leaf(key)
            if leaf is None or release is None:
                continue
            path = f"machine.cgroup.{name}.{key}"
            if _is_of_other_version(reading, leaf, key, name, params):
                continue
            if not since <= release < BLKIO_ENDED:
                reading.error(
                    leaf.key,
                    f"{path}: only cfq weighs groups of processes",
                    given=f"Linux {numbers(release)}",
                    allowed=f"{numbers(since)} to {numbers(BLKIO_UNTIL)}",
                )
            elif parent_of(name):
                reading.error(leaf.key, f"{path}: disks are shared among the groups at the top")
            elif params.blkio_weight and params.blkio_weight < in_force(WEIGHT_MIN, release):
                reading.error(
                    leaf.at,
                    f"{path}: too little for this release",
                    given=f"{params.blkio_weight}",
                    allowed=f"{in_force(WEIGHT_MIN, release)} to 1000",
                )
            else:
                _remark_blind_disks(described, leaf, path)

    # --- in a machine

    def early_init(self, machine: Machine) -> None:
        """Make the groups of the cpu controller, none if it is off."""
        sched = self._sched = machine.sched
        if any(params.disk_weight for params in self.tables.values()):
            self.blkcgs = {
                name: BlkioCgroup(name, params.disk_weight or DEFAULT_WEIGHT)
                for name, params in self.tables.items()
                if not parent_of(name)
            }
            machine.blkcgs |= self.blkcgs
        if not any(params.has_cpu_limits for params in self.tables.values()):
            return
        for name, params in self.tables.items():
            weight = weight_to_shares(params.cpu_weight)
            shares = params.cpu_shares if params.version == LEGACY else weight
            parent = self.task_groups.get(parent_of(name))
            group = TaskGroup(name, shares, parent, _bandwidth(params, sched))
            self.task_groups[name] = group
        machine.groups |= self.task_groups

    def start(self, machine: Machine) -> None:
        """Make the memory cgroups; the programs find theirs when they start (sim.syscall)."""
        vm = machine.vm
        for name, params in self.tables.items():
            if params.memory_bytes is None:
                continue
            swap_pages = None if params.swap_bytes is None else params.swap_bytes // PAGE_SIZE
            limit = params.memory_bytes // PAGE_SIZE
            self.memcgs.append((vm, vm.add_memcg(name, limit, swap_pages, params.version)))

    def files(self) -> dict[str, str]:
        """Return the controllers' files below /sys/fs."""
        found: dict[str, str] = {}
        if self._sched is not None and self.task_groups:
            self._sched.update()
        for name, group in self.task_groups.items():
            if self.tables[name].version == LEGACY:
                own, below = _cpu_files_1(group), f"cgroup/cpu/{name}"
            else:
                own, below = _cpu_files_2(group), f"cgroup/{name}"
            found |= {f"{below}/{file}": text for file, text in own.items()}
        for vm, memcg in self.memcgs:
            if memcg.version == LEGACY:
                own, below = _memory_files_1(vm, memcg), f"cgroup/memory/{memcg.name}"
            else:
                own, below = _memory_files_2(vm, memcg), f"cgroup/{memcg.name}"
            found |= {f"{below}/{file}": text for file, text in own.items()}
        for name, blkcg in self.blkcgs.items():
            if self.tables[name].version == LEGACY:
                own, below = _blkio_files(blkcg), f"cgroup/blkio/{name}"
            else:
                own = {"io.weight": f"default {blkcg.weight // UNIFIED_SCALE}\n"}
                below = f"cgroup/{name}"
            found |= {f"{below}/{file}": text for file, text in own.items()}
        return found


def _is_of_other_version(
    reading: Reading, leaf: Leaf, key: str, name: str, params: CgroupParams
) -> bool:
    """Return whether only the other version of the interface has a file; note that."""
    if OWN_VERSION.get(key, params.version) == params.version:
        return False
    reading.error(
        leaf.key,
        f"machine.cgroup.{name}.{key}: no such file in version {params.version} of the interface",
        allowed=f"{COUNTERPART[key]}, or another 'version'",
    )
    return True


def _remark_blind_disks(described: Described, leaf: Leaf, path: str) -> None:
    """Remark disks whose elevators know no groups: the kernel takes the weight and says nothing."""
    blind = []
    for name, disk in described.tables.get("disk", {}).items():
        if disk is None:
            continue
        elevator = lookup("elevator", disk.scheduler).cls
        assert issubclass(elevator, Elevator)
        if not elevator.weighs_groups(disk.elevator_params):
            blind.append(f"{name} ({disk.scheduler})")
    if blind:
        told = f"{path}: without effect on disks whose elevator weighs no groups"
        described.reading.remark(leaf.at, f"{told}: {', '.join(blind)}")


def _depth(name: str) -> int:
    return name.count("/")


def _bandwidth(params: CgroupParams, sched: Sched) -> Bandwidth | None:
    if params.cpu_quota_ns is None:
        return None
    return Bandwidth(
        sched.calendar,
        sched.kernel,
        quota_ns=params.cpu_quota_ns,
        period_ns=params.cpu_period_ns,
        burst_ns=params.cpu_burst_ns,
    )


# --- CPUs that a program may run on


def check_cpus(
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
        message = f"{path}: there is no CPU {max(found)}"
        reading.error(leaf.at, message, given=given_text(text), allowed=allowed)
        return None
    return found


def allowed_cpus(
    own: str | None, group: str | None, groups: Mapping[str, CgroupParams]
) -> frozenset[int] | None:
    """Return the CPUs that a process may run on, None for all.

    `own` are those it is pinned to; those of its group and the group's parents count as well.
    """
    texts = [own]
    name = group or ""
    while name:
        texts.append(groups[name].cpus)
        name = parent_of(name)
    sets = [parse_cpus(text) for text in texts if text is not None]
    return frozenset.intersection(*sets) if sets else None


# --- the files of the cpu controller


def _cpu_files_1(group: TaskGroup) -> dict[str, str]:
    bandwidth = group.bandwidth
    quota_us = -1 if bandwidth is None else bandwidth.quota_ns // NS_PER_US
    periods, throttled, throttled_ns = _counts(bandwidth)
    lines = {"nr_periods": periods, "nr_throttled": throttled, "throttled_time": throttled_ns}
    return {
        "cpu.shares": f"{group.shares}\n",
        "cpu.cfs_period_us": f"{_period_us(bandwidth)}\n",
        "cpu.cfs_quota_us": f"{quota_us}\n",
        "cpu.stat": _lines(lines),
        "cpuacct.usage": f"{group.usage_ns}\n",
    }


def _cpu_files_2(group: TaskGroup) -> dict[str, str]:
    bandwidth = group.bandwidth
    quota = "max" if bandwidth is None else f"{bandwidth.quota_ns // NS_PER_US}"
    periods, throttled, throttled_ns = _counts(bandwidth)
    lines = {
        "usage_usec": group.usage_ns // NS_PER_US,
        "nr_periods": periods,
        "nr_throttled": throttled,
        "throttled_usec": throttled_ns // NS_PER_US,
    }
    return {
        "cpu.weight": f"{group.shares * WEIGHT_DEFAULT // SHARES_DEFAULT}\n",
        "cpu.max": f"{quota} {_period_us(bandwidth)}\n",
        "cpu.stat": _lines(lines),
    }


def _lines(lines: Mapping[str, int]) -> str:
    """Return a flat keyed file (Documentation/admin-guide/cgroup-v2.rst)."""
    return "".join(f"{name} {value}\n" for name, value in lines.items())


def _period_us(bandwidth: Bandwidth | None) -> int:
    return PERIOD_DEFAULT_US if bandwidth is None else bandwidth.period_ns // NS_PER_US


def _counts(bandwidth: Bandwidth | None) -> tuple[int, int, int]:
    """Return the periods, those in which somebody was throttled, and for how long, ns."""
    if bandwidth is None:
        return 0, 0, 0
    return bandwidth.nr_periods, bandwidth.nr_throttled, bandwidth.throttled_ns


# --- the files of the blkio controller


def _blkio_files(group: BlkioCgroup) -> dict[str, str]:
    stats = group.stats.items()
    return {
        "blkio.weight": f"{group.weight}\n",
        "blkio.time": "".join(f"{dev} {stat.time_ns // NS_PER_MS}\n" for dev, stat in stats),
        "blkio.sectors": "".join(f"{dev} {stat.sectors}\n" for dev, stat in stats),
    }


# --- the files of the memory controller


def _memory_files_1(vm: Vm, group: MemCgroup) -> dict[str, str]:
    stat = _stat(vm, group)
    lines = {
        "cache": stat["file"],
        "rss": stat["anon"],
        "shmem": stat["shmem"],
        "dirty": stat["file_dirty"],
        "writeback": stat["file_writeback"],
        "swap": group.swap_used,
    }
    lines |= {
        name: pages for name, pages in stat.items() if name.startswith(("active", "inactive"))
    }
    lines["hierarchical_memory_limit"] = group.limit
    swap_limit = NO_LIMIT // PAGE_SIZE if group.swap_limit is None else group.swap_limit
    return {
        "memory.limit_in_bytes": _bytes(group.limit),
        "memory.usage_in_bytes": _bytes(group.usage),
        "memory.failcnt": f"{group.failcnt}\n",
        "memory.memsw.limit_in_bytes": _bytes(min(group.limit + swap_limit, NO_LIMIT // PAGE_SIZE)),
        "memory.memsw.usage_in_bytes": _bytes(group.usage + group.swap_used),
        "memory.oom_control": f"oom_kill_disable 0\nunder_oom 0\noom_kill {group.oom_kills}\n",
        "memory.stat": _flat(lines),
    }


def _memory_files_2(vm: Vm, group: MemCgroup) -> dict[str, str]:
    swap_max = "max\n" if group.swap_limit is None else _bytes(group.swap_limit)
    events = {"low": 0, "high": 0, "max": group.failcnt}
    events |= {"oom": group.oom_kills, "oom_kill": group.oom_kills}
    return {
        "memory.current": _bytes(group.usage),
        "memory.max": _bytes(group.limit),
        "memory.swap.current": _bytes(group.swap_used),
        "memory.swap.max": swap_max,
        "memory.events": "".join(f"{name} {count}\n" for name, count in events.items()),
        "memory.stat": _flat(_stat(vm, group)),
    }


def _stat(vm: Vm, group: MemCgroup) -> dict[str, int]:
    """Return the group's pages by use and by list."""
    lruvecs = vm.memcg_lruvecs[group]
    nr = [sum(lruvec.nr[lru] for lruvec in lruvecs) for lru in range(4)]
    own = [sum(lruvec.anon.nr[lru] for lruvec in lruvecs) for lru in (INACTIVE, ACTIVE)]
    file, dirty = vm.memcg_file_pages(group), memcg_nr_dirty(vm, group)
    return {
        "anon": group.usage - file,
        "file": file,
        "shmem": nr[LRU_INACTIVE_ANON] + nr[LRU_ACTIVE_ANON],
        "file_dirty": dirty,
        "file_writeback": memcg_nr_unclean(vm, group) - dirty,
        "inactive_anon": own[INACTIVE] + nr[LRU_INACTIVE_ANON],
        "active_anon": own[ACTIVE] + nr[LRU_ACTIVE_ANON],
        "inactive_file": nr[LRU_INACTIVE_FILE],
        "active_file": nr[LRU_ACTIVE_FILE],
    }


def _flat(pages: Mapping[str, int]) -> str:
    """Return a flat keyed file, in bytes."""
    return "".join(f"{name} {count * PAGE_SIZE}\n" for name, count in pages.items())


def _bytes(pages: int) -> str:
    return f"{pages * PAGE_SIZE}\n"
