"""cat: what a file of /proc or /sys says.

Models: `cat FILE...`: the texts, one after the other.
Linux counterpart: coreutils src/cat.c.
Invariants: a file that is not there is an error that names the nearest.
Left out: all options; files on disks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from sim.tools.snapshot import Snapshot
from sim.tools.usage import ToolUsageError

# How a name below each directory is called in a snapshot.
DIRECTORIES = {
    "/proc/": "",
    "/sys/devices/system/cpu/": "",
    "/sys/fs/": "",
    "/sys/block/": "",
    "/sys/module/": "",
    "/sys/kernel/debug/": "",
    "/sys/class/": "",
}
PROC_FILES = (
    "cpuinfo",
    "diskstats",
    "loadavg",
    "mdstat",
    "meminfo",
    "slabinfo",
    "stat",
    "swaps",
    "sys/fs/dentry-state",
    "sys/fs/inode-nr",
    "sys/fs/inode-state",
    "uptime",
    "vmstat",
)


def parse_options(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the files in a snapshot; raise ToolUsageError."""
    allowed = "FILE... below " + ", ".join(DIRECTORIES)
    if not arguments:
        raise ToolUsageError("cat", "which file?", allowed)
    return tuple(_name(path, allowed) for path in arguments)


def _name(path: str, allowed: str) -> str:
    for directory in DIRECTORIES:
        if path.startswith(directory) and path != directory:
            return path.removeprefix(directory)
    raise ToolUsageError("cat", f"no such file: {path!r}", allowed)


def run_cat(names: Sequence[str], snapshots: Iterable[Snapshot]) -> Iterator[str]:
    """Yield the texts of the first snapshot and take no other."""
    for snapshot in snapshots:
        yield "".join(_text(snapshot, name) for name in names)
        return


def _text(snapshot: Snapshot, name: str) -> str:
    if name in snapshot.files:
        return snapshot.files[name]
    there = sorted(path for path in snapshot.files if not path[0].isdecimal())  # no processes
    near = get_close_matches(name, there, 3) or sorted({_folder(path) for path in there})
    raise ToolUsageError("cat", f"no such file: {name!r}", ", ".join(near))


def _folder(path: str) -> str:
    """Return the first folder of a name, for all that is in it."""
    first, slash, _ = path.partition("/")
    return f"{first}/..." if slash else first
