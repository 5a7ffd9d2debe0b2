"""One reading of /proc, parsed as far as a report asks for it.

Models: what sysstat's programs keep of one pass over /proc until the next.
Invariants: a file is parsed when it is first asked for, and once.
Left out: the files that one tool alone reads, which that tool adds.
"""

from functools import cached_property

from sim.tools.parse import Stat, parse_stat, parse_uptime
from sim.tools.snapshot import Snapshot


class Reading:
    """A moment, its time since boot, and /proc/stat."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.t_ns = snapshot.t_ns
        self._snapshot = snapshot

    @cached_property
    def uptime_cs(self) -> int:
        """Return the time since boot, 1/100 s."""
        return parse_uptime(self._snapshot.text("uptime")).uptime_cs

    @cached_property
    def stat(self) -> Stat:
        """Return /proc/stat."""
        return parse_stat(self._snapshot.text("stat"))
