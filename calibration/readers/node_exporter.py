"""Prometheus' text of node_exporter: one scrape after another.

Models: `while true; do curl -s localhost:9100/metrics; sleep 15; done > metrics.txt`.
Linux counterpart: Prometheus exposition_formats.md, text format 0.0.4 and OpenMetrics 1.0.
Invariants: a scrape ends where one of its series comes again; its time is its own
(node_time_seconds), else that behind a value, else that of a line of `date` above it; one scrape
alone gives what was since boot, and says so.
Left out: exporters of other programs: their series are lines of the format without figures.
"""

import re
from dataclasses import dataclass, field
from typing import ClassVar, Final

from calibration.readers.line import Line, Sink, lines_of
from calibration.readers.scrape import Scrape, ScrapeReader, is_counted, is_taken, is_time

_COMMENT: Final = re.compile(r"# (?:HELP|TYPE|UNIT) (?P<name>[A-Za-z_:][\w:]*)(?: .*)?|# EOF")
_SERIES: Final = re.compile(
    r"(?P<name>[A-Za-z_:][A-Za-z0-9_:]*+)"
    r'(?:\{(?P<labels>(?:[^"}]*+"[^"\\]*+(?:\\.[^"\\]*+)*+")*+[^"}]*+)\})?'
    r"\s+(?P<value>[-+0-9.eE]+|[-+]?Inf|NaN)(?:\s+(?P<at>\d+(?:\.\d+)?))?\s*"
)
_LABEL: Final = re.compile(r'([A-Za-z_]\w*)="([^"\\]*+(?:\\.[^"\\]*+)*+)"')
ONE: Final = "one scrape: only totals since boot; take two or more, some seconds apart, in one file"


@dataclass
class NodeExporterReader:
    """Takes the comments and the series of scrapes."""

    sink: Sink
    format: ClassVar[str] = "node_exporter"
    _scrapes: ScrapeReader = field(init=False)
    _family: str = ""
    scrape: Scrape = field(default_factory=dict)
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _begin: Line | None = None
    _at_s: float | None = None
    _stamps: int = 0

    def __post_init__(self) -> None:
        """Begin before the first scrape."""
        self._scrapes = ScrapeReader(self.sink)

    def feed(self, line: Line) -> bool:
        """Take a comment, or a series of a family that was announced or is node_exporter's."""
        if line.text.startswith("# "):
            comment = _COMMENT.fullmatch(line.text)
            if comment is not None:
                self._family = comment["name"] or ""
            return comment is not None
        found = _SERIES.fullmatch(line.text)
        if found is None:
            return False
        name = found["name"]
        if not name.startswith("node_") and not (self._family and name.startswith(self._family)):
            return False
        if is_taken(name):
            self._take(line, found)
        return True

    def close(self) -> None:
        """Take the last scrape; say so if it was the only one."""
        self._finish()
        self._scrapes.close()
        if self._scrapes.taken == 1 and self._begin is not None:
            self.sink.skip(self._begin, ONE)

    def _take(self, line: Line, found: re.Match[str]) -> None:
        if line.may_be_cut:
            self.sink.skip(line, "the end of the last line may be cut")
            return
        try:
            value = float(found["value"])
        except ValueError:
            self.sink.skip(line, f"{found['value']} is not a number")
            return
        if not is_counted(value):
            self.sink.skip(line, f"{found['value']} is no value of a counter")
            return
        series = (found["name"], found["labels"] or "")
        if series in self._seen or (self.scrape and self._stamps != self.sink.stamps):
            self._finish()
        if not self.scrape:
            self._begin, self._stamps = line, self.sink.stamps
        self._seen.add(series)
        if found["at"]:
            at_s = float(found["at"])
            at_s = at_s / 1000 if "." not in found["at"] and at_s > 1e11 else at_s
            self._at_s = at_s if is_time(at_s) else None
        labels = dict(_LABEL.findall(found["labels"] or ""))
        self.scrape.setdefault(found["name"], []).append((labels, value))

    def _finish(self) -> None:
        if self.scrape and self._begin is not None:
            self._scrapes.take(self._begin, self.scrape, self._at_s)
            # The clock of the scrape has been read: a date above the next one is another's.
            self._stamps = self.sink.stamps
        self.scrape, self._at_s = {}, None
        self._seen.clear()


def scrape_of(text: str) -> Scrape:
    """Return the series of one scrape: what GET /metrics answers; nothing of what is none."""
    reader = NodeExporterReader(Sink())
    for line in lines_of(text):
        reader.feed(line)
    return reader.scrape
