"""What a CPU's caches still hold of the kernel: a call long after the last one takes longer.

Theory. The code and data of a call are some hundreds of lines. Whoever shares the caches of a CPU
(its tasks, the other thread of its core, other guests of the host) replaces lines that nobody asks
for, at a steady rate. So of a path of the kernel that last ran here `t` ago, e^(-t / life) of it
is left. The call fetches the others from memory, and takes refill x (1 - e^(-t / life)) longer. It
does not matter who ran the path, nor whether the CPU halted or computed in between: a program of
small loops replaces nothing, and keeps nothing. Tasks that call again and again call warm.

Estimate: a buffered write of ext4 runs through some 60 functions of 250 bytes, four lines each, and
touches some 60 lines of data: 300 lines of 64 bytes, 90 ns each from memory, 27 us. With a life of
5.5 ms it takes 4.5 us longer after 1 ms, 26 us after 20 ms, and 15 ns after 3 us.

Linux counterpart: none. mm/filemap.c and fs/ext4/file.c are the paths; of the hardware Intel SDM,
volume 3, chapter 12 (memory cache control).
Invariants: a refill lies between 0 and its parameter, and grows with the time since the path ran on
 this CPU; without a refill (the default) nothing is looked at.
Left out: other paths than buffered reads and writes (fsync, direct transfers, wake-ups, interrupts,
 kernel threads); what two paths share; the first use of programs' own lines; that a path which ran
 on another core lies in a cache that both share; that each file system has a path of its own.
"""

from math import expm1

from sim.sched.task import Task


class CachedPath:
    """One path of the kernel, and when each CPU ran it last."""

    __slots__ = ("_life_ns", "_ran_ns", "_refill_ns")

    def __init__(self, refill_ns: int, life_ns: int) -> None:
        self._refill_ns = refill_ns
        self._life_ns = life_ns
        self._ran_ns: dict[int, int] = {}

    def refill_ns(self, task: Task) -> int:
        """Return how much longer the path takes now, on the task's CPU; it is warm there then."""
        now_ns = task.sched.calendar.now
        cpu = task.cpu
        ran_ns = self._ran_ns.get(cpu, -1)
        self._ran_ns[cpu] = now_ns
        if ran_ns < 0:
            return self._refill_ns
        return lost(self._refill_ns, now_ns - ran_ns, self._life_ns)


def lost(refill_ns: int, idle_ns: int, life_ns: int) -> int:
    """Return the part of a refill that is due after an idle time, ns."""
    return int(-refill_ns * expm1(-idle_ns / life_ns))


def cached_path(refill_ns: int, life_ns: int) -> CachedPath | None:
    """Return a path that loses its lines, None if that costs nothing."""
    return CachedPath(refill_ns, life_ns) if refill_ns else None
