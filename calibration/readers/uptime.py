"""uptime's line, alone, in `w`, or as the first line of top.

Models: `while true; do uptime; sleep 5; done`.
Linux counterpart: procps proc/whattime.c:sprint_uptime; busybox procps/uptime.c.
Invariants: the three load averages are there or the line is not taken; a decimal comma is told from
the comma between numbers by the blank after the latter.
Left out: the number of users.
"""

import re
from dataclasses import dataclass, field
from datetime import time
from typing import ClassVar, Final

from calibration.readers.clock import Moment, parse_time
from calibration.readers.line import Line, Sink, number
from calibration.readers.stamp import Pace, learn_stamp

_LOAD: Final = r"\d+[.,]\d\d"
_UPTIME: Final = re.compile(
    r"(?:top - ?)?(?P<clock>\d{1,2}:\d\d(?::\d\d)? ?(?:[AaPp]\.?[Mm]\.?)?)"
    r" up (?P<up>.*?),?(?: \d+ users?)?, load averages?: "
    rf"(?P<load1>{_LOAD}),? (?P<load5>{_LOAD}),? (?P<load15>{_LOAD})"
)
_UP: Final = re.compile(
    r"(?:(?P<days>\d+)\s+days?(?:,|\s|$)\s*)?"
    r"(?:(?P<hours>\d+):(?P<minutes>\d\d)|(?P<min>\d+)\s+min)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UptimeRow:
    """What the line says; `up_s` is None where the time since boot is in unknown words."""

    clock: time
    up_s: float | None
    loads: dict[str, float]


def parse_uptime_row(text: str) -> UptimeRow | None:
    """Return what the line says; None if it is not uptime's."""
    # With single blanks: no two parts of the pattern compete for the same ones.
    found = _UPTIME.fullmatch(" ".join(text.split())) if "load average" in text else None
    clock = _clock(found["clock"]) if found else None
    if found is None or clock is None:
        return None
    loads = {name: number(found[name]) for name in ("load1", "load5", "load15")}
    return UptimeRow(clock=clock, up_s=_up_s(found["up"].strip()), loads=loads)


def _clock(text: str) -> time | None:
    """Return the time of day; procps 2 and busybox may print no seconds."""
    digits = re.match(r"\d{1,2}:\d\d(?!:)(?!\d)", text)
    if digits is not None:
        text = f"{digits.group()}:00{text[digits.end() :]}"
    return parse_time(text)


def _up_s(text: str) -> float | None:
    """Return seconds since boot, to the minute: "3 days, 4:05", "10 min"."""
    found = _UP.fullmatch(text)
    if found is None or not text:
        return None
    minutes = int(found["days"] or 0) * 1440 + int(found["hours"] or 0) * 60
    return (minutes + int(found["minutes"] or found["min"] or 0)) * 60.0


@dataclass
class UptimeReader:
    """Takes lines of uptime."""

    sink: Sink
    format: ClassVar[str] = "uptime"
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        """Begin at report 0."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take a line of uptime."""
        row = None if line.text.startswith("top") else parse_uptime_row(line.text)
        if row is None:
            return False
        time_s = add_uptime(self.sink, line, row, self.pace)
        self.sink.uptime = line, self.pace.report, time_s
        self.sink.learn("tool", "uptime")
        return True

    def close(self) -> None:
        """Keep the interval as a fact."""
        self.pace.close()


def add_uptime(sink: Sink, line: Line, row: UptimeRow, pace: Pace) -> float:
    """Begin the report that the line stands for, add its figures, return its time in seconds."""
    pace.report += 1
    time_s = pace.at(learn_stamp(sink, Moment(clock=row.clock)))
    values = dict(row.loads)
    if row.up_s is not None:
        values["uptime_s"] = row.up_s
    sink.add(line, "system", "", values, time_s=time_s, since_boot=False, report=pace.report)
    return time_s
