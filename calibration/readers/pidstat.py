"""pidstat: known, and not taken: it says what processes do, not what a server's devices do.

Models: `pidstat [-u] [-d] [-r] [-w] [-h] [INTERVAL [COUNT]]`.
Linux counterpart: sysstat pidstat.c.
Invariants: its tables are told once, with what to run beside it; no figure of a process is taken
for the server's, though titles (majflt/s, cswch/s) are the same as sar's.
Left out: all its figures.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from calibration.readers.line import Line, Sink
from calibration.readers.sar import split_stamp

_TITLES: Final = frozenset({"PID", "TGID", "TID"})
_FIGURES: Final = frozenset(
    {"%usr", "%user", "%CPU", "usr-ms", "minflt/s", "minflt-nr", "kB_rd/s", "cswch/s", "StkSize"}
    | {"threads", "prio", "%wait"}
)
TOLD: Final = (
    "pidstat says what processes do, not what the devices do: record `iostat -xz 5` or `sar -A 5`"
    " beside it"
)


@dataclass
class PidstatReader:
    """Takes titles and rows, and tells them once."""

    sink: Sink
    format: ClassVar[str] = "pidstat"
    _words: int = 0  # of the titles that were seen last

    def feed(self, line: Line) -> bool:
        """Take titles, and below them rows of at least as many words, with or without a time."""
        words = line.fields
        if not _TITLES.isdisjoint(words) and not _FIGURES.isdisjoint(words):
            if not self._words:
                self.sink.skip(line, TOLD)
            self._words = len(words)
            return True
        if not self._words or not words:
            return False
        is_row = words[0] == "Average:" or split_stamp(line.text) is not None
        return (is_row or words[0].isdecimal()) and len(words) >= self._words - 1

    def close(self) -> None:
        """Do nothing: all has been told."""
