"""swapon -s, /proc/swaps and swapon --show: swap spaces and how full they are.

Models: `swapon -s`, `cat /proc/swaps`, `swapon [--show] [--bytes]`.
Linux counterpart: mm/swapfile.c:swap_show (KiB); util-linux sys-utils/swapon.c.
Invariants: columns are found by the titles; a device goes without "/dev/".
Left out: the type of the space (partition, file).
"""

import re
from dataclasses import dataclass, field
from typing import ClassVar, Final

from calibration.readers.free import size_bytes
from calibration.readers.line import CUT, Line, Sink
from calibration.readers.stamp import Pace

TITLES: Final = {
    "filename": "name",
    "name": "name",
    "type": "type",
    "size": "swapspace_bytes",
    "used": "swapspace_used_bytes",
    "priority": "swapspace_priority",
    "prio": "swapspace_priority",
}
PROC_UNIT: Final = 1024  # /proc/swaps: KiB
_SIZE: Final = re.compile(r"\d+(?:[.,]\d+)?[BKMGTPE]?")
_PRIORITY: Final = re.compile(r"-?\d+")


@dataclass
class SwapsReader:
    """Takes tables of swap spaces."""

    sink: Sink
    format: ClassVar[str] = "swapon"
    pace: Pace = field(init=False)
    titles: tuple[str, ...] = ()
    unit: int = PROC_UNIT
    time_s: float | None = None

    def __post_init__(self) -> None:
        """Begin at report 0."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take the header and the rows below it."""
        words = tuple(line.fields)
        if words[:2] in {("Filename", "Type"), ("NAME", "TYPE")}:
            return self._header(words)
        if len(words) != len(self.titles) or not words:
            return False
        row = dict(zip(self.titles, words, strict=True))
        if row["type"] not in {"partition", "file"}:
            return False
        self._row(line, row)
        return True

    def close(self) -> None:
        """Keep the interval as a fact."""
        self.pace.close()

    def _header(self, words: tuple[str, ...]) -> bool:
        if not all(word.lower() in TITLES for word in words):
            return False
        self.titles = tuple(TITLES[word.lower()] for word in words)
        # --show prints letters, or bytes with --bytes; /proc/swaps plain KiB.
        self.unit = PROC_UNIT if words[0] == "Filename" else 1
        self.time_s = self.pace.step()
        return True

    def _row(self, line: Line, row: dict[str, str]) -> None:
        name = row.pop("name").removeprefix("/dev/")
        del row["type"]
        priority = row.pop("swapspace_priority", "0")
        if not _PRIORITY.fullmatch(priority) or not all(map(_SIZE.fullmatch, row.values())):
            self.sink.skip(line, "not sizes and a priority")
            return
        if line.may_be_cut:
            self.sink.skip(line, CUT)
            return
        values = {column: size_bytes(text, self.unit) for column, text in row.items()}
        values["swapspace_priority"] = float(priority)
        self.sink.learn("tool", "swapon")
        self.sink.add(
            line,
            "device",
            name,
            values,
            time_s=self.time_s,
            since_boot=False,
            report=self.pace.report,
        )
