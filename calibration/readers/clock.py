"""From times of day to seconds since the first one.

Models: the clock on the wall beside the recording.
Linux counterpart: none; the tools print localtime by strftime.
Invariants: without dates time never goes back: a time of day much earlier than the one before is
the next day's; with dates it is what they say.
Left out: changes of summer time (an hour that is missing stays missing), time zones.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

_CLOCK: Final = re.compile(
    r"(?P<h>\d{1,2}):(?P<m>\d{2}):(?P<s>\d{2})(?:[.,](?P<f>\d+))?(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?"
)
# A step back by less than this is a clock that was set, or lines out of order, not midnight.
MIDNIGHT_BACK: Final = timedelta(hours=12)


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


@dataclass
class Clock:
    """Turns the stamps of one recording into seconds."""

    start: datetime | None = None
    last: datetime | None = None

    def at(self, clock: time, day: date | None = None) -> float:
        """Return seconds since the first stamp; the day is found out where it is not given."""
        now = datetime.combine(day or self._day(), clock)
        if day is None and self.last is not None and self.last - now > MIDNIGHT_BACK:
            now += timedelta(days=1)
        if self.start is None:
            self.start = now
        self.last = now
        return (now - self.start).total_seconds()

    def _day(self) -> date:
        # Any day will do where none is known: only differences are used.
        return self.last.date() if self.last is not None else date(1970, 1, 1)
