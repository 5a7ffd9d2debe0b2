"""pidstat: what each process did, in tables with a time before each row.

Models: `pidstat [-u] [-d] [-r] [-w] [-p PIDS] [-l] [INTERVAL [COUNT]]`, of sysstat 8 to 12.
Linux counterpart: sysstat pidstat.c (write_pid_task_cpu_stats and its like).
Invariants: rows, times and averages are read as sar's are; a process is called by its command and
its pid, so that two of one name are two; no figure of a process is taken for the server's, though
titles (majflt/s, cswch/s) are the same as sar's. kB are KiB.
Left out: -h, whose header has no time, and -t (threads): told once each, with what to type instead;
the columns of -T CHILD, -s, -v, -R, told by their headers. Older releases lack iodelay and %wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from calibration.readers.line import Line
from calibration.readers.sar import SarReader, split_stamp
from calibration.readers.sar_columns import KIB, Cell, Cells, Family, Layout

COMMAND: Final = "Command"
PID: Final = "PID"
_CELLS: Final[Cells] = {
    "UID": None,
    "USER": None,
    PID: None,
    COMMAND: None,
    "%usr": Cell("process_user_pct"),
    "%user": Cell("process_user_pct"),
    "%system": Cell("process_system_pct"),
    "%guest": Cell("process_guest_pct"),
    "%wait": Cell("process_wait_pct"),
    "%CPU": Cell("process_cpu_pct"),
    "CPU": None,
    "minflt/s": Cell("process_minflt_per_s"),
    "majflt/s": Cell("process_majflt_per_s"),
    "VSZ": Cell("process_vsz_bytes", KIB),
    "RSS": Cell("process_rss_bytes", KIB),
    "%MEM": Cell("process_mem_pct"),
    "kB_rd/s": Cell("process_read_bytes_per_s", KIB),
    "kB_wr/s": Cell("process_write_bytes_per_s", KIB),
    "kB_ccwr/s": Cell("process_cancelled_bytes_per_s", KIB),
    "iodelay": Cell("process_iodelay_ticks"),
    "cswch/s": Cell("process_switches_per_s"),
    "nvcswch/s": Cell("process_preempted_per_s"),
}
PROCESSES: Final = Family("process", named=True, cells=_CELLS)
_THREADS: Final = frozenset({"TGID", "TID"})
_INSTEAD: Final = "type `pidstat -u -d -r -w 5` instead"
ONE_LINE: Final = f"pidstat -h: its header has no time; {_INSTEAD}"
THREADS: Final = f"pidstat -t: threads are not taken; {_INSTEAD}"


@dataclass
class PidstatReader(SarReader):
    """Takes pidstat's headers, and the rows below them."""

    format: ClassVar[str] = "pidstat"
    _passed_over: int = 0  # words of the titles of a table that is not taken

    def feed(self, line: Line) -> bool:
        """Take a line of pidstat's; tell a table that is not taken once."""
        words = line.fields
        why = _why_not(words)
        if why:
            if (why,) not in self._told:
                self._told.add((why,))
                self.sink.skip(line, why)
            self._table, self._passed_over = None, len(words)
            return True
        if super().feed(line):
            self._passed_over = 0
            return True
        if line.blanks:
            self._passed_over = 0
        is_row = bool(words) and (split_stamp(line.text) is not None or words[0].isdecimal())
        return is_row and len(words) >= self._passed_over - 1 > 0

    def is_own(self, titles: Sequence[str]) -> bool:
        """Tell pidstat's headers."""
        return PID in titles and titles[-1] == COMMAND

    def knows(self, titles: Sequence[str]) -> bool:
        """Tell whether titles are of this tool."""
        return self.is_own(titles)

    def layout(self, titles: Sequence[str]) -> Layout:
        """Return what the titles mean; the command names a process."""
        return Layout(tuple(titles), PROCESSES, len(titles) - 1)

    def words_of(self, words: Sequence[str], layout: Layout) -> Sequence[str]:
        """Return the words of a row: all of a command is one, with its pid."""
        last = len(layout.titles) - 1
        if len(words) <= last or words[last] == COMMAND:
            return words
        pid = words[layout.titles.index(PID)]
        return (*words[:last], f"{' '.join(words[last:])}[{pid}]")


def _why_not(words: Sequence[str]) -> str:
    """Return why a table of pidstat with these titles is not taken; "" for any other line."""
    if COMMAND not in words[-1:] or not {PID, *_THREADS} & set(words):
        return ""
    if words[:2] == ["#", "Time"]:
        return ONE_LINE
    return THREADS if _THREADS & set(words) else ""
