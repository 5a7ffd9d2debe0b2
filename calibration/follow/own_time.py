"""What the follower itself takes of the CPUs, left out of the readings of the host it runs on.

Models: whoever steps off the scales before reading them.
Linux counterpart: fs/proc/stat.c (show_stat), fs/proc/array.c (utime and stime of do_task_stat).
Invariants: the ticks of all states together stay as the kernel counted them; no counter goes back
that did not in the kernel.
Left out: on which CPU it was, so the lines of single CPUs stay as they are; the load average, in
which the twin's process is one task while it works.

Without it the twin, which takes half of a core while it is fitted, would be told as a change of the
server's load: by hand, 50 % of one of two CPUs are 25 points of busy time.

/proc/stat is sampled at each tick, utime and stime are exact: of ten seconds they differ by a few
ticks. What was not there to be taken away is taken from the next reading.
"""

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sim.tools.parse import CPU_FIELDS

# Where the kernel books the time of a process: user time is `nice` if its nice value is above 0.
BOOKED: Final = ("user", "nice", "system")
Ticks = Mapping[str, int]  # of BOOKED


def taken_by_own() -> dict[int, Ticks]:
    """Return the ticks that this process and its children took since each began, by PID."""
    pids = [os.getpid(), *(one.pid for one in multiprocessing.active_children() if one.pid)]
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just ended
            found[pid] = _taken(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"))
    return found


def _taken(stat: str) -> Ticks:
    """Return what a process took, from its stat file: its name may hold anything, brackets too."""
    words = stat.rpartition(")")[2].split()
    user, system, nice = int(words[11]), int(words[12]), int(words[16])
    return dict(zip(BOOKED, (0, user, system) if nice > 0 else (user, 0, system), strict=True))


@dataclass
class OwnTime:
    """Takes the follower's own ticks out of one /proc/stat after the other."""

    taken: Callable[[], Mapping[int, Ticks]] = taken_by_own
    _last: dict[int, Ticks] = field(default_factory=dict)
    _seen: list[int] = field(default_factory=list)  # the counters of the "cpu" line, as they were
    _told: list[int] = field(default_factory=list)  # and as they were handed on
    _debt: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BOOKED, 0))

    def without(self, stat: str) -> str:
        """Return the text of /proc/stat with own ticks idle since the first call."""
        first, newline, rest = stat.partition("\n")
        name, *words = first.split()
        seen = [int(word) for word in words]
        taken = dict(self.taken())
        if sum(seen) < sum(self._seen) or not self._seen:
            self._told = list(seen)  # the first, or all began anew
        else:
            self._owe(taken)
            self._told = self._forward(seen)
        self._seen, self._last = seen, taken
        return f"{name}  {' '.join(str(one) for one in self._told)}{newline}{rest}"

    def _owe(self, taken: Mapping[int, Ticks]) -> None:
        for pid, ticks in taken.items():
            before = self._last.get(pid, {})
            for state in BOOKED:
                self._debt[state] += max(0, ticks[state] - before.get(state, 0))

    def _forward(self, seen: list[int]) -> list[int]:
        """Return the counters of now: those handed on before, and what others took since."""
        told = [old + now - was for old, now, was in zip(self._told, seen, self._seen, strict=True)]
        idle = CPU_FIELDS.index("idle")
        for state in BOOKED:
            place = CPU_FIELDS.index(state)
            moved = max(0, min(self._debt[state], seen[place] - self._seen[place]))
            self._debt[state] -= moved
            told[place] -= moved
            told[idle] += moved
        return told
