"""/sys/fs/cgroup: the memory controller's files of each group, as text.

Linux counterpart: mm/memcontrol.c: memory_files, swap_files, memory_stat_format (version 2),
 mem_cgroup_legacy_files, memcg_stat_show (1), 4.5 to 6.5.
Invariants: names are paths below /sys/fs; sizes in bytes, multiples of a page; in version 2 "max"
 is no limit.
Left out: events of children (memory.events.local), pressure, peak, kernel memory; writing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sim.mm.anon_lru import ACTIVE, INACTIVE
from sim.mm.lruvec import (
    LRU_ACTIVE_ANON,
    LRU_ACTIVE_FILE,
    LRU_INACTIVE_ANON,
    LRU_INACTIVE_FILE,
)
from sim.mm.memcontrol import MemCgroup
from sim.mm.params import PAGE_SIZE

LEGACY: Final = 1
NO_LIMIT: Final = (1 << 63) - PAGE_SIZE  # PAGE_COUNTER_MAX in bytes: memsw without a limit


def render_memcgs(groups: Mapping[str, MemCgroup]) -> dict[str, str]:
    """Return the texts by path, each group in the version of the interface that it has."""
    files: dict[str, str] = {}
    for name, group in groups.items():
        below, render = _INTERFACES[group.version == LEGACY]
        files |= {f"{below}/{name}/{file}": text for file, text in render(group).items()}
    return files


def _legacy_files(group: MemCgroup) -> dict[str, str]:
    stat = _stat(group)
    lines = {
        "cache": stat["file"], "rss": stat["anon"], "shmem": stat["shmem"],
        "dirty": stat["file_dirty"], "writeback": stat["file_writeback"],
        "swap": group.swap_used,
    }  # fmt: skip
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


def _unified_files(group: MemCgroup) -> dict[str, str]:
    swap_max = "max\n" if group.swap_limit is None else _bytes(group.swap_limit)
    events = {"low": 0, "high": 0, "max": group.failcnt}
    events |= {"oom": group.oom_kills, "oom_kill": group.oom_kills}
    return {
        "memory.current": _bytes(group.usage),
        "memory.max": _bytes(group.limit),
        "memory.swap.current": _bytes(group.swap_used),
        "memory.swap.max": swap_max,
        "memory.events": "".join(f"{name} {count}\n" for name, count in events.items()),
        "memory.stat": _flat(_stat(group)),
    }


_INTERFACES: Mapping[bool, tuple[str, Callable[[MemCgroup], dict[str, str]]]] = {
    True: ("cgroup/memory", _legacy_files),
    False: ("cgroup", _unified_files),
}


def _stat(group: MemCgroup) -> dict[str, int]:
    """Return the group's pages by use and by list."""
    nr = [sum(lruvec.nr[lru] for lruvec in group.lruvecs) for lru in range(4)]
    own = [sum(lruvec.anon.nr[lru] for lruvec in group.lruvecs) for lru in (INACTIVE, ACTIVE)]
    dirty = group.nr_dirty()
    return {
        "anon": group.nr_anon, "file": group.nr_file,
        "shmem": nr[LRU_INACTIVE_ANON] + nr[LRU_ACTIVE_ANON],
        "file_dirty": dirty, "file_writeback": group.nr_unclean() - dirty,
        "inactive_anon": own[INACTIVE] + nr[LRU_INACTIVE_ANON],
        "active_anon": own[ACTIVE] + nr[LRU_ACTIVE_ANON],
        "inactive_file": nr[LRU_INACTIVE_FILE], "active_file": nr[LRU_ACTIVE_FILE],
    }  # fmt: skip


def _flat(pages: Mapping[str, int]) -> str:
    """Return a flat keyed file, in bytes."""
    return "".join(f"{name} {count * PAGE_SIZE}\n" for name, count in pages.items())


def _bytes(pages: int) -> str:
    return f"{pages * PAGE_SIZE}\n"
