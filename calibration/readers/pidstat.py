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
    _words: int = 0  # of the titles of the table that is being passed over
    _is_told: bool = False

    def feed(self, line: Line) -> bool:
        """Take titles, and below them rows of at least as many words, with or without a time."""
        words = line.fields
        if not _TITLES.isdisjoint(words) and not _FIGURES.isdisjoint(words):
            if not self._is_told:
                self.sink.skip(line, TOLD)
            self._is_told, self._words = True, len(words)
            return True
        stamped = split_stamp(line.text)
        if line.blanks or (stamped is not None and stamped.has_titles):
            self._words = 0  # a table is over
        if not self._words or not words:
            return False
        is_row = stamped is not None or words[0] == "Average:" or words[0].isdecimal()
        return is_row and len(words) >= self._words - 1

    def close(self) -> None:
        """Do nothing: all has been told."""
