"""/proc/loadavg: "37.02 12.41 4.90 2/131 9021".

Models: the file's text: three averages, runnable tasks / all tasks, the newest PID.
Linux counterpart: fs/proc/proc_misc.c:loadavg_read_proc (2.6.16), fs/proc/loadavg.c (2.6.27 on).
Invariants: hundredths are truncated after adding 1/200, that is, rounded to the nearest.
Left out: nothing; the format never changed.
"""

from __future__ import annotations

from collections.abc import Sequence

FSHIFT = 11
FIXED_1 = 1 << FSHIFT


def render_averages(avenrun: Sequence[int]) -> str:
    """Return the three load averages as /proc/loadavg begins with them; procfs.py adds counts."""
    return " ".join([_hundredths(value) for value in avenrun])


def _hundredths(value: int) -> str:
    value += FIXED_1 // 200
    return f"{value >> FSHIFT}.{(value & (FIXED_1 - 1)) * 100 >> FSHIFT:02d}"
