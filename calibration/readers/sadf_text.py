"""sadf -d: what sar collected, as lines with semicolons for a database.

Models: `sadf -d [FILE] [-- -A]` of sysstat 6 to 12.
Linux counterpart: sysstat sadf.c, rndr_stats.c; the line of titles begins with "# hostname".
Invariants: the same columns as sar's text (`sar_columns`); a row has as many fields as the titles
above it, or it is reported; rows of one time are of one report.
Left out: -h, which puts the rows of all tables into one line: told.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Final

from calibration.readers.clock import Moment, parse_moment
from calibration.readers.line import CUT, Line, NotANumber, Sink, number
from calibration.readers.sar import read_row
from calibration.readers.sar_columns import Layout, layout_of
from calibration.readers.scrape import is_time
from calibration.readers.stamp import learn_stamp

_HEAD: Final = "# hostname;interval;timestamp"
_BEFORE: Final = 3  # fields before those that the titles name
_SIDE_BY_SIDE: Final = "[...]"
_ALL_CPUS: Final = "-1"


@dataclass
class SadfTextReader:
    """Takes titles and rows."""

    sink: Sink
    format: ClassVar[str] = "sadf -d"
    _layout: Layout | None = None
    _told: set[tuple[str, ...]] = field(default_factory=set)
    _reports: dict[float, int] = field(default_factory=dict)
    _is_refused: bool = False

    def feed(self, line: Line) -> bool:
        """Take a line of titles, or one of values below it."""
        if line.text.startswith(_HEAD):
            self._header(line)
            return True
        words = line.text.split(";")
        if len(words) < _BEFORE + 1 or (self._layout is None and not self._is_refused):
            return False
        stamp = _stamp(words[2])
        if stamp is None:
            return False
        if self._layout is not None and words[3] != "LINUX-RESTART":
            self._row(line, words, stamp, self._layout)
        return True

    def close(self) -> None:
        """Do nothing: a row is complete."""

    def _header(self, line: Line) -> None:
        self._is_refused = _SIDE_BY_SIDE in line.text
        if self._is_refused:
            self._layout = None
            self.sink.skip(line, "sadf -h has all tables in one line: leave -h out")
            return
        layout = layout_of(tuple(line.text[len(_HEAD) :].strip(";").split(";")))
        self._layout = layout
        if layout.unknown and layout.titles not in self._told:
            self._told.add(layout.titles)
            what = f"columns {', '.join(layout.unknown)} are" if layout.is_taken else "table is"
            self.sink.skip(line, f"sadf: {what} not taken")

    def _row(self, line: Line, words: list[str], stamp: Moment, layout: Layout) -> None:
        values = words[_BEFORE:]
        if not layout.is_taken:
            return  # Reported with its titles.
        if len(values) != len(layout.titles):
            self.sink.skip(line, f"sadf: {len(values)} values under {len(layout.titles)} titles")
            return
        if line.may_be_cut:
            self.sink.skip(line, CUT)
            return
        try:
            row = read_row(values, layout)
            interval_s = number(words[1])
        except NotANumber as error:
            self.sink.skip(line, f"sadf: {error}")
            return
        self.sink.learn("tool", "sadf")
        self.sink.learn("hostname", words[0])
        if interval_s > 0:
            self.sink.learn("interval_s", f"{interval_s:g}")
        time_s = learn_stamp(self.sink, stamp)
        name = "" if layout.name_at is None else values[layout.name_at]
        if layout.family.rows in (None, name):
            self.sink.add(
                line,
                layout.family.kind,
                _name(name, layout),
                row,
                time_s=time_s,
                since_boot=False,
                report=self._reports.setdefault(time_s, len(self._reports)),
            )


def _name(name: str, layout: Layout) -> str:
    if layout.family.kind == "system":
        return ""
    return "all" if layout.family.kind == "cpu" and name == _ALL_CPUS else name


def _stamp(text: str) -> Moment | None:
    """Return a time: "2026-11-26 20:39:17 UTC", without a zone (-t, -T), or in seconds (-U)."""
    if text.isdecimal() and len(text) < 12 and is_time(float(text)):
        moment = datetime.fromtimestamp(int(text), UTC)
        return Moment(clock=moment.time(), dates={"ymd": moment.date()})
    return parse_moment(text.removesuffix(" UTC"))
