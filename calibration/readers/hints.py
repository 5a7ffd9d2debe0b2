"""Texts that are known and not read: what to type instead.

Models: the colleague who says "not that one, the other".
Linux counterpart: none.
Invariants: a hint is given only where nothing of a text was understood; it begins with what the
text is.
Left out: everything that nobody has brought yet.
"""

import re
from typing import Final

_LOOKED_AT: Final = 4096  # characters, from the beginning
_HINTS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.MULTILINE), hint)
    for pattern, hint in (
        (r"^<sysstat|<!DOCTYPE sysstat", "sadf -x, XML: type `sadf -j FILE -- -A` instead"),
        (r"^\S+\t\d+\t[\d-]+ [\d:]+.*\t", "sadf -p: type `sadf -j FILE -- -A` instead"),
        (r"^---*\s?total-(?:cpu-)?usage", "dstat: record `iostat -xz 5` or `iotwin record DIR`"),
        (r"^ATOP - |^(?:RESET|SEP)$", "atop: record `iostat -xz 5`, or `sar -A 5`"),
        (r"^AAA,progname,nmon", "nmon: record `iostat -xz 5`, or `sar -A 5`"),
        (r"^epoch,\w+", "collectd's CSV, which says neither disk nor unit: record `iostat -xz 5`"),
        (r"^(?:USER|UID)\s+PID\s", "ps: it has no figures of disks; record `iostat -xz 5`"),
        (
            r"^\d{10}(?:\.\d+)?,(?:diskio|cpu|system|kernel|mem|swap|processes),",
            "Telegraf's CSV without titles: set csv_header = true, or data_format = 'influx'",
        ),
    )
)


def hint_for(text: str) -> str:
    """Return what a text is and what to type instead; "" if it is not known."""
    head = text[:_LOOKED_AT]
    return next((hint for pattern, hint in _HINTS if pattern.search(head)), "")
