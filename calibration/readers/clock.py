"""From times of day to seconds since the first one.

Models: the clock on the wall beside the recording.
Linux counterpart: none; the tools print localtime by strftime ("%X", "%x %X" or ISO 8601).
Invariants: without dates time never goes back: a time of day much earlier than the one before is
the next day's; with dates it is what they say; a change of the zone's offset changes nothing.
Left out: changes of summer time without an offset (an hour that is missing stays missing).

Only differences are used, so that "05/04/17" need not be understood: of its two readings the one
counts that lies nearer to the same reading of the stamp before.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Final

_CLOCK: Final = re.compile(
    r"(?P<h>\d{1,2}):(?P<m>\d{2}):(?P<s>\d{2})(?:[.,](?P<f>\d+))?(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?"
)
# A step back by less than this is a clock that was set, or lines out of order, not midnight.
MIDNIGHT_BACK: Final = timedelta(hours=12)

YEARS: Final = range(1970, 2200)  # of recordings; beyond them there is no room for the next day
# How a date may be written (with its order of year, month, day), and what may be meant.
_DATES: Final[Sequence[tuple[re.Pattern[str], tuple[str, ...]]]] = (
    (re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})"), ("ymd",)),
    (re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})"), ("ymd",)),
    (re.compile(r"(\d{4})\D(\d{1,2})\D(\d{1,2})\D"), ("ymd",)),  # East Asian locales
    (re.compile(r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4}|\d{2})\.?"), ("dmy",)),
    (re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4}|\d{2})"), ("mdy", "dmy")),
)
_MOMENT: Final = re.compile(
    r"(?:(?P<date>\S+|\d+\. ?\d+\. ?\d+)[T ]\s*)?"
    r"(?P<clock>\d{1,2}:\d{2}:\d{2}\S*(?:\s+[AaPp]\.?[Mm]\.?)?)"
)
_ZONE: Final = re.compile(r"(?:Z|(?P<sign>[+-])(?P<h>\d{2}):?(?P<m>\d{2}))$")


def parse_time(text: str) -> time | None:
    """Return a time of day of 12 or 24 hours ("05:11:56 AM", "17:11:56"); None if it is none."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    hour, minute, second = int(found["h"]), int(found["m"]), int(found["s"])
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"] in "pP" else 0)
    if hour > 23 or minute > 59 or second > 60:
        return None
    return time(hour, minute, min(second, 59), int(f"{found['f'] or '0':0<6.6}"))


def parse_dates(text: str) -> dict[str, date]:
    """Return what a date may mean, by the order of year, month and day; nothing if it is none."""
    for pattern, orders in _DATES:
        found = pattern.fullmatch(text)
        if found is not None:
            read = {order: _date(found.groups(), order) for order in orders}
            return {order: day for order, day in read.items() if day is not None}
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A time as a tool printed it: time of day, what its date may mean, offset from UTC."""

    clock: time
    dates: Mapping[str, date] = field(default_factory=dict)
    offset: timedelta | None = None

    def isoformat(self) -> str:
        """Return ISO 8601, with the date where it has one meaning."""
        if len(set(self.dates.values())) != 1:
            return self.clock.isoformat()
        return datetime.combine(next(iter(self.dates.values())), self.clock).isoformat()


def parse_moment(text: str) -> Moment | None:
    """Return a time with or without a date and a zone; None if the text is not just that."""
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        return None
    written, clock_text, offset = found["date"], found["clock"], None
    zone = _ZONE.search(clock_text)
    if zone is not None:
        clock_text = clock_text[: zone.start()]
        offset = timedelta(hours=int(zone["h"] or 0), minutes=int(zone["m"] or 0))
        offset = -offset if zone["sign"] == "-" else offset
    clock = parse_time(clock_text)
    dates = parse_dates(written) if written else {}
    if clock is None or (written and not dates):
        return None
    return Moment(clock=clock, dates=dates, offset=offset)


@dataclass
class Clock:
    """Turns the stamps of one recording into seconds."""

    start: datetime | None = None
    last: datetime | None = None
    _dates: Mapping[str, date] = field(default_factory=dict)
    _offset: timedelta | None = None

    def at(self, clock: time, day: date | None = None) -> float:
        """Return seconds since the first stamp; the day is found out where it is not given."""
        now = datetime.combine(day or self._day(), clock)
        if day is None and self.last is not None and self.last - now > MIDNIGHT_BACK:
            now += timedelta(days=1)
        if self.start is None:
            self.start = now
        self.last = now
        return (now - self.start).total_seconds()

    def at_moment(self, moment: Moment) -> float:
        """Return seconds since the first stamp, by date and zone where it has them."""
        if self._offset is None:
            self._offset = moment.offset
        if self._offset is not None and moment.offset is not None and moment.dates:
            return self._at_offset(moment, self._offset - moment.offset)
        return self.at(moment.clock, self._meant(moment.dates))

    def _at_offset(self, moment: Moment, later: timedelta) -> float:
        """Return the time as the zone of the first stamp would have had it."""
        day = self._meant(moment.dates)
        assert day is not None
        moved = datetime.combine(day, moment.clock) + later
        return self.at(moved.time(), moved.date())

    def _meant(self, dates: Mapping[str, date]) -> date | None:
        """Return the day that is meant: as far from the last one as the nearer reading says."""
        if not dates:
            return None
        before, self._dates = self._dates, dates
        steps = [day - before[order] for order, day in dates.items() if order in before]
        if self.last is None or not steps:
            return next(iter(dates.values()))
        return self.last.date() + min(steps, key=abs)

    def _day(self) -> date:
        # Any day will do where none is known: only differences are used.
        return self.last.date() if self.last is not None else date(1970, 1, 1)


def _date(parts: Sequence[str], order: str) -> date | None:
    written = dict(zip(order, map(int, parts), strict=True))
    year = written["y"] + (2000 if written["y"] < 100 else 0)
    try:
        return date(year, written["m"], written["d"]) if year in YEARS else None
    except ValueError:
        return None  # no such day in this order
