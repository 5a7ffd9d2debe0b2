"""sar's text: tables with a time before each row.

Models: what `sar [-ubBdqrSwW ...] [INTERVAL [COUNT]]` or `sar -f FILE` printed, of sysstat 4 to 12
in any locale. mpstat's table, which is read in the same way, is mpstat.py's.
Linux counterpart: sysstat sar.c:read_stats, read_stats_from_file; pr_stats.c:print_hdr_line.
Invariants: columns are found by the header's titles; a row has as many words as its header, or it
is reported; a row whose last number may have been cut is reported.
Left out: the columns that `sar_columns` leaves out; their tables are reported once each.

Rules for what the text does not say:

- The time of the first header is when the first interval began: second 0. The times are those of
  the rows, which end their intervals.
- `sar -f` prints one table for the whole day, then the next: a header with new titles and the time
  of the table before it goes back to where that began.
- sar prints no report since boot, but for `sar 0` and mpstat without an interval: there the header
  right after sysstat's title has the same time as its first row.
- Rows at the same time are of one report, unless a table has a name twice (an interval that was
  shorter than a second).
- "Average:", in any language, is a line with a word and a colon before the titles or the numbers of
  a table (but a line of `free`); it is no sample.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from itertools import pairwise
from statistics import median
from typing import ClassVar, Final

from calibration.readers.clock import Moment, parse_dates, parse_time
from calibration.readers.iostat_columns import SUFFIX_BYTES
from calibration.readers.line import Line, NotANumber, Sink, number
from calibration.readers.sar_columns import FAMILIES, SYSTEM, Cell, Layout, generation, layout_of

# Hour, minute, second of zh_CN and ja_JP, which print 11:40:02 with these words between.
_EAST_ASIAN: Final = str.maketrans({"\u65f6": ":", "\u6642": ":", "\u5206": ":", "\u79d2": None})
_NUMERIC: Final = re.compile(r"[-+]?[\d.,]|-?nan|-?inf|\*+$|N/A$", re.IGNORECASE)
_UNIT: Final = re.compile(r"(?P<number>[\d.,]+)(?P<unit>[sBkMGTP])")  # --human
_OF_FREE: Final = frozenset({"Mem:", "Swap:", "Low:", "High:", "Total:", "Comm:"})
_RATE: Final = re.compile(r"%|.*/s$|.*-\w+$")  # a title no log has
_ZONE: Final = re.compile(r"[A-Z]{3,5}")
_PROCESS: Final = frozenset({"PID", "TGID", "TID"})
_TITLES: Final = frozenset(
    {*SYSTEM.cells, *FAMILIES, *(t for f in FAMILIES.values() for t in f.cells)}
)


@dataclass(frozen=True, slots=True)
class Stamped:
    """A line that begins with a time of day."""

    clock: time
    words: tuple[str, ...]

    @property
    def has_titles(self) -> bool:
        """Tell whether no word is a number."""
        return bool(self.words) and not any(_NUMERIC.match(word) for word in self.words)


def split_stamp(text: str) -> Stamped | None:
    """Return the time before a row and the words after it; None if there is no time."""
    words = text.translate(_EAST_ASIAN).split()
    for size in (2, 1):
        clock = parse_time(" ".join(words[:size])) if len(words) >= size else None
        if clock is not None:
            return Stamped(clock, tuple(words[size:]))
    return None


def is_mpstat(titles: Sequence[str]) -> bool:
    """Tell a header of mpstat from one of sar's: it has interrupts before what was stolen."""
    if "CPU" not in titles[:1]:
        return False
    at = {title: index for index, title in enumerate(titles)}
    return at.get("%irq", len(at)) < at.get("%steal", len(at)) or "intr/s" in at


@dataclass
class Table:
    """The table that is being read."""

    layout: Layout
    began: datetime  # by the clock: its first header
    header: time
    after_title: bool


@dataclass
class SarReader:
    """Takes headers, rows, averages and restarts."""

    sink: Sink
    format: ClassVar[str] = "sar"
    _table: Table | None = None
    _title: Line | None = None
    _first: tuple[Mapping[str, date], date] | None = None  # what the first title's date may mean
    _zone: str = ""
    _average_titles: tuple[str, ...] = ()
    _titles_seen: set[str] = field(default_factory=set)
    _told: set[tuple[str, ...]] = field(default_factory=set)
    _seen: Counter[tuple[object, ...]] = field(default_factory=Counter)
    _reports: dict[tuple[object, ...], int] = field(default_factory=dict)
    _times_s: dict[float, None] = field(default_factory=dict)

    def feed(self, line: Line) -> bool:
        """Take a line of sar's."""
        stamped = split_stamp(line.text)
        if stamped is None:
            return self._table is not None and self._average(line, line.fields)
        words = stamped.words
        if words[:2] == ("LINUX", "RESTART"):
            self._table = None
            return True
        if words[:1] == ("COM",):  # a comment of sadc's, with -C
            return self._table is not None or self.sink.title is not None
        if stamped.has_titles:
            return self._header(line, self._without_zone(stamped))
        return self._table is not None and self._row(line, self._without_zone(stamped), self._table)

    def layout(self, titles: Sequence[str]) -> Layout | None:
        """Return what the titles of a header mean; None if they are of no table."""
        is_table = self.knows(titles) or (self._table is not None and len(titles) > 1)
        return layout_of(titles) if is_table else None

    def knows(self, titles: Sequence[str]) -> bool:
        """Tell whether some title is of this tool."""
        return bool(_TITLES & set(titles))

    def words_of(self, words: Sequence[str], _layout: Layout) -> Sequence[str]:
        """Return the words of a row, one for each title."""
        return words

    def is_own(self, titles: Sequence[str]) -> bool:
        """Tell whether a header may be this tool's; the figures of processes are pidstat's."""
        return not is_mpstat(titles) and _PROCESS.isdisjoint(titles)

    def close(self) -> None:
        """Keep the generation and the interval as facts."""
        if self._titles_seen:
            version = generation(self._titles_seen)
            self.sink.learn("tool", f"{self.format} of {version}" if version else self.format)
        times = sorted(self._times_s)
        steps = [after - before for before, after in pairwise(times)]
        if steps:
            self.sink.learn("interval_s", f"{median(steps):g}")

    def _header(self, line: Line, stamped: Stamped) -> bool:
        """Begin a table, or go on with it where its header comes again."""
        titles, table = stamped.words, self._table
        if not self.is_own(titles):
            return False
        layout = self.layout(titles)
        if layout is None:
            return False
        self._average_titles = ()
        self._tell_unknown(line, layout)
        self._titles_seen.update(titles)
        is_new = self.sink.title is not self._title
        if is_new or table is None:
            self._start(stamped.clock, is_new=is_new)
        elif table.layout.titles == titles:
            table.header, table.after_title = stamped.clock, False
            return True
        else:
            self._wind_back(stamped.clock, table)
        began = self.sink.clock.last
        assert began is not None
        after_title = is_new or (
            table is not None and table.after_title and table.header == stamped.clock
        )
        self._table = Table(layout, began, stamped.clock, after_title)
        self._title = self.sink.title
        return True

    def _start(self, clock: time, *, is_new: bool) -> None:
        """Set the clock to the first header, on the day that the title names."""
        # Behind "Linux 2.6.16 (host)": a release may look like a date.
        words = self.sink.title.fields[3:] if self.sink.title is not None and is_new else []
        dates = next((dates for word in words if (dates := parse_dates(word))), {})
        self.sink.learn("start", Moment(clock=clock, dates=dates).isoformat())
        self.sink.clock.at(clock, self._day(dates))

    def _day(self, dates: Mapping[str, date]) -> date | None:
        """Return the day of a title: as long after the first title as the shorter reading says."""
        if not dates:
            return None
        if self._first is None:
            self._first = (dates, next(iter(dates.values())))
        first, day = self._first
        steps = [then - first[order] for order, then in dates.items() if order in first]
        return day + min(steps, key=abs) if steps else None

    def _wind_back(self, clock: time, table: Table) -> None:
        """Set the clock to the header of the next table."""
        if clock == table.began.time():
            self.sink.clock.last = table.began
        else:
            self.sink.clock.at(clock)

    def _tell_unknown(self, line: Line, layout: Layout) -> None:
        """Report what is not taken of a table, the first time; each time where it may be none."""
        is_table = any(_RATE.match(title) for title in layout.titles)
        if layout.unknown and not (is_table and layout.titles in self._told):
            self._told.add(layout.titles)
            what = f"columns {', '.join(layout.unknown)} are" if layout.is_taken else "table is"
            self.sink.skip(line, f"{self.format}: {what} not taken")

    def _row(self, line: Line, stamped: Stamped, table: Table) -> bool:
        """Take a row; report it where it is not as its header says."""
        layout = table.layout
        words = self.words_of(stamped.words, layout)
        expected = len(layout.titles)
        numbers = sum(1 for word in words if _NUMERIC.match(word))
        if not words or numbers < max(len(words) - 1, 1):
            return False
        since_boot = table.after_title and stamped.clock == table.header
        table.after_title = since_boot
        time_s = self.sink.clock.at(stamped.clock)
        if not layout.is_taken and len(words) == expected:
            return True  # Reported with its header.
        if len(words) != expected:
            self.sink.skip(line, f"{self.format}: {len(words)} words under {expected} titles")
        elif not line.ended and _may_be_cut(words, layout):
            self.sink.skip(line, f"{self.format}: the end of the last line may be cut")
        else:
            self._take(line, words, layout, time_s, since_boot=since_boot)
        return True

    def _take(
        self, line: Line, words: Sequence[str], layout: Layout, time_s: float, *, since_boot: bool
    ) -> None:
        """Add the samples of a row."""
        family = layout.family
        name = words[layout.name_at] if layout.name_at is not None else ""
        try:
            values = read_row(words, layout)
        except NotANumber as error:
            self.sink.skip(line, f"{self.format}: {error}")
            return
        report = self._report(layout, name, time_s)
        self._times_s[time_s] = None
        if family.rows in (None, name):
            self.sink.add(
                line,
                family.kind,
                "" if family.kind == "system" else name,
                values,
                time_s=time_s,
                since_boot=since_boot,
                report=report,
            )

    def _report(self, layout: Layout, name: str, time_s: float) -> int:
        """Return the number of the report: a time, and how often the row came at that time."""
        row = (self._title, layout.titles, name, time_s)
        key = (self._title, time_s, self._seen[row])
        self._seen[row] += 1
        return self._reports.setdefault(key, len(self._reports))

    def _average(self, line: Line, words: Sequence[str]) -> bool:
        """Take titles or numbers after a word with a colon."""
        after = next((at for at, word in enumerate(words[:3], 1) if word.endswith(":")), None)
        if after is None or self._table is None or words[0] in _OF_FREE:
            return False
        rest = tuple(self.words_of(words[after:], self._table.layout))
        if rest and not any(_NUMERIC.match(word) for word in rest):
            self._average_titles = rest
            return self.knows(rest)
        return len(rest) == len(self._average_titles or self._table.layout.titles)

    def _without_zone(self, stamped: Stamped) -> Stamped:
        """Drop the zone that some locales print after the time."""
        first, second = (*stamped.words, "", "")[:2]
        if stamped.has_titles and first not in _TITLES and second in _TITLES:
            self._zone = first if _ZONE.fullmatch(first) else ""
        is_zone = bool(self._zone) and first == self._zone
        return Stamped(stamped.clock, stamped.words[1:]) if is_zone else stamped


def read_row(words: Sequence[str], layout: Layout) -> dict[str, float]:
    """Return the values of a row by canonical column; NotANumber."""
    cells = [layout.family.cells.get(title) for title in layout.titles]
    return {
        cell.column: _value(word, cell)
        for word, cell in zip(words, cells, strict=True)
        if cell is not None
    }


def _value(word: str, cell: Cell) -> float:
    """Return a number in the unit of its column; --human prints bytes with B, k, M and a % sign."""
    found = _UNIT.fullmatch(word)
    if found is not None and "bytes" in cell.column:
        return number(found["number"]) * SUFFIX_BYTES[found["unit"]]
    return number(word.removesuffix("%") if cell.column.endswith("_pct") else word) * cell.factor


def _may_be_cut(words: Sequence[str], layout: Layout) -> bool:
    """Tell whether the last number may lack digits: it has no decimals, or fewer than others."""
    printed = [re.search(r"\d[.,](\d*)%?$", word) for word in words]
    decimals = [len(found[1]) for found in printed if found is not None]
    last = printed[-1]
    is_short = last is None or len(last[1]) < max(decimals)
    return is_short or layout.name_at == len(words) - 1
