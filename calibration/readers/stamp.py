"""Lines with nothing but the date, and the pace of tools that print no time.

Models: `while true; do date; vmstat; sleep 5; done`: the reader knows when each report was made.
Linux counterpart: coreutils date.c (formats of LC_TIME), `date +%s`.
Invariants: a line is a stamp only if every word of it belongs to a date; without an English month,
a year and a day the date is not known, and only the time of day is used. Seconds since 1970 are
read as UTC; named zones are not converted, since only differences are used.
Left out: names of months in other languages. Times in digits are clock.py's and title.py's.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from statistics import median
from typing import ClassVar, Final

from calibration.readers.clock import Moment, parse_moment, parse_time
from calibration.readers.line import Line, Sink

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FRAME: Final = "=#-*[]<>:; \t"
_EPOCH: Final = re.compile(r"[12]\d{9}(?:\.\d+)?")
_ZONE: Final = re.compile(r" [A-Z][A-Za-z]{1,5}$")
_CLOCK: Final = re.compile(r"(?<![\d:])\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?:\s*[AaPp]\.?[Mm]\b\.?)?")
_WORD: Final = re.compile(r"[^\W\d_]{2,10}[.,]?|[+-]\d\d(?:\d\d)?")
_DAY: Final = re.compile(r"\d{1,2}[.,]?")
_YEAR: Final = re.compile(r"(?:19|20)\d\d[.,]?")
_WORDS_MAX: Final = 4  # weekday, month, zone, and one such as "um" or "de"


def parse_stamp(text: str) -> Moment | None:
    """Return the time that a text is, in a frame of "=", "#" or the like; None if it is none."""
    bare = text.removeprefix("zzz").strip(_FRAME)
    if _EPOCH.fullmatch(bare):
        moment = datetime.fromtimestamp(float(bare), UTC)
        return Moment(clock=moment.time(), dates={"ymd": moment.date()})
    digits = parse_moment(bare) or parse_moment(_ZONE.sub("", bare))
    return digits if digits is not None else _words(bare)


def _words(text: str) -> Moment | None:
    """Return the time of `date` in a language: "Thu Jul 16 12:34:56 CEST 2009"."""
    found = _CLOCK.search(text)
    clock = parse_time(found.group()) if found else None
    if found is None or clock is None:
        return None
    rest = (text[: found.start()] + " " + text[found.end() :]).split()
    years = [word for word in rest if _YEAR.fullmatch(word)]
    days = [word for word in rest if _DAY.fullmatch(word)]
    names = [word for word in rest if _WORD.fullmatch(word)]
    if not (years and days and names) or len(names) > _WORDS_MAX:
        return None
    if len(years) + len(days) + len(names) != len(rest):
        return None
    day = _named_date(years, days, names)
    return Moment(clock=clock, dates={} if day is None else {"ymd": day})


def _named_date(years: list[str], days: list[str], names: list[str]) -> date | None:
    months = [name[:3].lower() for name in names if name[:3].lower() in MONTHS]
    if len(years) != 1 or len(days) != 1 or len(months) != 1:
        return None
    year, day = (int(words[0].rstrip(".,")) for words in (years, days))
    try:
        return date(year, MONTHS.index(months[0]) + 1, day)
    except ValueError:
        return None


def learn_stamp(sink: Sink, stamp: Moment) -> float:
    """Return the seconds of a time by the sink's clock, and keep the first one as a fact."""
    time_s = sink.clock.at_moment(stamp)
    sink.learn("start", stamp.isoformat())
    if len(set(stamp.dates.values())) == 1:
        sink.learn("date", next(iter(stamp.dates.values())).isoformat())
    return time_s


@dataclass
class StampReader:
    """Takes lines that are a date and nothing else."""

    sink: Sink
    format: ClassVar[str] = ""

    def feed(self, line: Line) -> bool:
        """Take a date."""
        stamp = parse_stamp(line.text.strip())
        if stamp is None:
            return False
        self.sink.stamp_s = learn_stamp(self.sink, stamp)
        self.sink.stamps += 1
        self.sink.stamp_line = line
        return True

    def close(self) -> None:
        """Do nothing: a date is complete."""


@dataclass
class Pace:
    """Numbers the reports of a tool and says when each was made.

    A report after a date has its time; the next ones follow by the interval where that is known.
    `at(time_s)` is for a report that has a clock of its own.
    """

    sink: Sink
    report: int = -1
    times: list[float] = field(default_factory=list)
    _stamps: int = 0
    _after: int = 0

    def step(self) -> float | None:
        """Begin the next report; return its time in seconds, None where it is not known."""
        self.report += 1
        self._after = self._after + 1 if self._stamps == self.sink.stamps and self.report else 0
        self._stamps = self.sink.stamps
        interval_s = self.sink.interval_s
        if self.sink.stamp_s is not None and self._after == 0:
            return self.at(self.sink.stamp_s)
        if interval_s is None:
            return None
        return (self.sink.stamp_s or 0.0) + self._after * interval_s

    def at(self, time_s: float) -> float:
        """Note the time of the report, read from a clock."""
        self.times.append(time_s)
        return time_s

    def close(self) -> None:
        """Keep the interval, if the clocks told one, as a fact."""
        steps = [b - a for a, b in zip(self.times, self.times[1:], strict=False) if b > a]
        if steps:
            self.sink.learn("interval_s", f"{median(steps):g}")
