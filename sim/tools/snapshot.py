"""A set of /proc texts read at one moment: all that a tool is ever given.

Linux counterpart: what one pass of a tool's main loop reads (sysstat iostat.c, procps vmstat.c).
Invariants: immutable; `files` maps a name below /proc (`"stat"`, `"diskstats"`, ...) to its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class MissingFileError(KeyError):
    """A tool asked for a /proc file that the snapshot does not hold."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Texts of /proc files at `t_ns` (ns of the clock whose zero is `run_tool`'s wall clock)."""

    t_ns: int
    files: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return the text of /proc/`name`; raise MissingFileError naming what is there."""
        if name not in self.files:
            there = ", ".join(sorted(self.files)) or "nothing"
            raise MissingFileError(f"/proc/{name} is not in the snapshot; it holds {there}")
        return self.files[name]
