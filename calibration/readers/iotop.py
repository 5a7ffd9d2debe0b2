"""iotop's head: what all disks read and wrote; of the tasks below only that they are tasks.

Models: `iotop -b [-o] [-t] [-k] [-d 5]`.
Linux counterpart: iotop 0.4.4 to 0.6 iotop/ui.py, iotop-c 1.x src/view_batch.c. Total is what tasks
asked for, Current (0.5 on) what the devices did.
Invariants: only Current is taken, as it is of the devices; the first screen is of no interval.
Left out: the tasks; iotop up to 0.4, which has no Current: told.
"""

import re
from dataclasses import dataclass, field
from typing import ClassVar, Final

from calibration.readers.clock import parse_time
from calibration.readers.line import Line, Sink, number
from calibration.readers.stamp import Pace

_UNITS: Final = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = r"([\d.,]+) ([BKMGT])/s"
_HEAD: Final = re.compile(
    r"(?:(?P<clock>\d\d:\d\d:\d\d) )?(?P<what>Total|Current|Actual) DISK READ ?: +"
    rf"{_SIZE} +\| +(?:Total|Current|Actual) DISK WRITE ?: +{_SIZE} *"
)
_TITLES: Final = re.compile(r"\s*(?:TIME\s+)?[PT]ID\s+PRIO\s+USER\s+DISK READ\s.*")
_TASK: Final = re.compile(r"\s*(?:\d\d:\d\d:\d\d\s+)?(?:b')?\s*\d+\s+(?:be|rt|id)/\d\s.*")
OLD: Final = "iotop: without a line Current it has no figures of disks; run `iostat -xz 5`"


@dataclass
class IotopReader:
    """Takes screens of iotop."""

    sink: Sink
    format: ClassVar[str] = "iotop"
    pace: Pace = field(init=False)
    _total: Line | None = None
    _is_in: bool = False

    def __post_init__(self) -> None:
        """Begin before the first screen."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take a line of the head, the titles, or a task below them."""
        found = _HEAD.fullmatch(line.text)
        if found is None:
            if _TITLES.fullmatch(line.text):
                self._is_in = True
                return True
            return self._is_in and _TASK.fullmatch(line.text) is not None
        if found["what"] == "Total":
            self._tell_old()
            self._total = line
        else:
            self._total = None
            self._take(line, found)
        return True

    def close(self) -> None:
        """Keep the interval as a fact."""
        self._tell_old()
        self.pace.close()

    def _tell_old(self) -> None:
        if self._total is not None:
            self.sink.skip(self._total, OLD)

    def _take(self, line: Line, found: re.Match[str]) -> None:
        read, read_unit, written, write_unit = found.groups()[2:]
        time_s = self.pace.step()
        clock = parse_time(found["clock"]) if found["clock"] else None
        if clock is not None:
            time_s = self.pace.at(self.sink.clock.at(clock))
        if not self.pace.report:
            return
        self.sink.learn("tool", "iotop")
        self.sink.add(
            line,
            "system",
            "",
            {
                "all_read_bytes_per_s": number(read) * _UNITS[read_unit],
                "all_write_bytes_per_s": number(written) * _UNITS[write_unit],
            },
            time_s=time_s,
            since_boot=False,
            report=self.pace.report,
        )
