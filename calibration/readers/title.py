"""Read what concerns several tools: the title line of sysstat, and lines that only hold a time.

Models: whoever looks at the top of the page first.
Linux counterpart: sysstat common.c:print_gal_header, the same from 4 to 12 but for the architecture
(8.1.2 on) and the number of CPUs (9.0.0 on); iostat.c:write_sample_timestamp.
Invariants: these lines make no samples; they tell the readers that follow, through the sink, that a
tool was started, and when the next report was made.
Left out: which tool it was that printed a title: all that follow take it as theirs, so that at
worst one report too many is set aside as since boot.
"""

import re
from typing import ClassVar, Final

from calibration.readers.clock import Moment, parse_moment
from calibration.readers.line import Line, Sink

_TITLE: Final = re.compile(
    r"Linux\s+(?P<kernel>\S+)\s+\((?P<hostname>\S+)\)\s+(?P<date>\S.*?)"
    r"(?:\s+_(?P<arch>\S+)_)?(?:\s+\((?P<cpus>\d+) CPU\))?"
)
# "Time: 05:11:56 AM" (sysstat 4 to 8) in any language; from 8.1 on the date and the time alone.
_WORD: Final = re.compile(r"\w+\s?:\s+(?=\d)")


class Title:
    """The line that iostat, sar, mpstat and their kin print first."""

    format: ClassVar[str] = ""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def feed(self, line: Line) -> bool:
        """Take a title: a tool was started."""
        found = _TITLE.fullmatch(line.text.strip())
        if found is None:
            return False
        self._sink.title = line
        for name, value in found.groupdict().items():
            if value is not None:
                self._sink.learn(name, value)
        return True

    def close(self) -> None:
        """Nothing is open."""


class LoneTime:
    """A line with a time and nothing else, as -t of iostat puts before a report."""

    format: ClassVar[str] = ""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def feed(self, line: Line) -> bool:
        """Take a time."""
        moment = lone_moment(line.text)
        if moment is None:
            return False
        self._sink.learn("start", moment.isoformat())
        self._sink.stamp_s = self._sink.clock.at_moment(moment)
        self._sink.stamps += 1
        self._sink.stamp_line = line
        return True

    def close(self) -> None:
        """Nothing is open."""


def lone_moment(text: str) -> Moment | None:
    """Return the time that a line consists of; None if there is more, or none."""
    bare = text.strip()
    word = _WORD.match(bare)
    return parse_moment(bare[word.end() :] if word is not None else bare)
