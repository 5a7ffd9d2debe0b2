"""free: memory and swap in use.

Models: `free [-bkmgh] [-w] [-l] [-t] [-s DELAY]`.
Linux counterpart: procps 3.2 free.c, procps-ng 3.3 to 4.0 src/free.c; busybox procps/free.c.
Invariants: columns are found by the titles of the header, which begins each report.
Left out: the rows "-/+ buffers/cache" (busybox: "-/+ buffers"), Low, High, Total, Comm, which only
add and subtract; titles in other languages.

Rules for what the text does not say: sizes with a letter have that unit ("23Gi", and "15G", which
is 2^30 B before 3.3.13, and 10^9 B after it if --si was given: taken as 2^30 unless a command
says --si). Plain numbers have the unit of the command, if it is known (`$ free -m` above them),
else of a total of memory that is known, else that in which each is a whole number of pages, as all
that /proc/meminfo says is: KiB (a multiple of 4), or bytes (of 4096; of KiB one row in 10^12 is
that by chance). Where none of that tells, or makes less than MEMORY_MIN, they are reported instead.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from calibration.readers.line import CUT, Line, Sink, number
from calibration.readers.prompt import options_of
from calibration.readers.stamp import Pace

MEMORY_MIN: Final = 64 * 2**20  # assumed: no server that runs free has less
PAGE: Final = 4096  # the smallest that Linux has
KNOWN_WITHIN: Final = 0.02  # a total in whole GiB is not used; in whole MiB it is this close
MEM_TITLES: Final[Mapping[str, str]] = {
    "total": "mem_total_bytes",
    "used": "mem_used_bytes",
    "free": "mem_free_bytes",
    "shared": "mem_shared_bytes",
    "buffers": "mem_buffers_bytes",
    "cached": "mem_cached_bytes",
    "cache": "mem_cached_bytes",  # up to 3.2; -w of 3.3
    "buff/cache": "mem_buffcache_bytes",
    "available": "mem_available_bytes",
}
SWAP_TITLES: Final[Mapping[str, str]] = {
    "total": "swap_total_bytes",
    "used": "swap_used_bytes",
    "free": "swap_free_bytes",
}
ROWS: Final[Mapping[str, Mapping[str, str]]] = {"Mem": MEM_TITLES, "Swap": SWAP_TITLES}
DERIVED: Final = frozenset({"-/+ buffers/cache", "-/+ buffers", "Low", "High", "Total", "Comm"})
OPTION_UNITS: Final[Mapping[str, int]] = {
    "b": 1,
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
    "bytes": 1,
    "kilo": 10**3,
    "mega": 10**6,
    "giga": 10**9,
    "tera": 10**12,
    "kibi": 2**10,
    "mebi": 2**20,
    "gibi": 2**30,
    "tebi": 2**40,
}
SI_UNITS: Final[Mapping[str, int]] = {"k": 10**3, "m": 10**6, "g": 10**9}  # with --si
LETTERS: Final = "BKMGTPE"
_ROW: Final = re.compile(r"\s*(?P<label>-/\+ buffers(?:/cache)?|[A-Z][a-z]+):(?P<rest>.*)")
_SIZE: Final = re.compile(r"(?P<value>\d+(?:[.,]\d+)?)(?P<letter>[BKMGTPE]?)(?P<binary>i?)")
_OPTION: Final = re.compile(r"-([a-z]+)|--([a-z]+)")


def size_bytes(text: str, unit: int, base: int = 1024) -> float:
    """Return a size in bytes: by its letter, in powers of base, or in the unit of the table."""
    found = _SIZE.fullmatch(text)
    if found is None:
        return number(text)  # raises NotANumber
    if not found["letter"]:
        return number(found["value"]) * unit
    power = LETTERS.index(found["letter"])
    return number(found["value"]) * float((1024 if found["binary"] else base) ** power)


@dataclass
class FreeReader:
    """Takes reports of free."""

    sink: Sink
    format: ClassVar[str] = "free"
    pace: Pace = field(init=False)
    titles: tuple[str, ...] = ()
    rows: list[str] = field(default_factory=list)
    unit: int | None = None
    time_s: float | None = None

    def __post_init__(self) -> None:
        """Begin at report 0."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take the header and the rows below it."""
        titles = tuple(line.fields)
        if titles[:3] == ("total", "used", "free") and set(titles) <= set(MEM_TITLES):
            self.titles, self.unit, self.rows = titles, None, []
            self.time_s = self.pace.step()
            return True
        found = _ROW.fullmatch(line.text)
        if not self.titles or found is None:
            return False
        if found["label"] in DERIVED:
            return True
        if found["label"] not in ROWS:
            return False
        self._row(line, found["label"], found["rest"].split())
        return True

    def close(self) -> None:
        """Keep the interval as a fact."""
        self.pace.close()

    def _row(self, line: Line, label: str, words: list[str]) -> None:
        titles = self.titles if label == "Mem" else self.titles[:3]
        if len(words) != len(titles) or not all(_SIZE.fullmatch(word) for word in words):
            self.sink.skip(line, f"not {len(titles)} sizes")
            return
        if label in self.rows:
            self.sink.skip(line, f"a second row {label} below one header")
            return
        self.rows.append(label)
        if line.may_be_cut:
            self.sink.skip(line, CUT)
            return
        if label == "Mem":
            self.unit = self._unit_of(words)
        if self.unit is None:
            self.sink.skip(line, "unit not known: put the command line above it, as in '$ free -m'")
            return
        values = {
            ROWS[label][title]: size_bytes(word, self.unit, self._base())
            for title, word in zip(titles, words, strict=True)
        }
        self.sink.learn("tool", "free")
        if label == "Mem" and words[0].isdecimal():
            self.sink.learn("memory_bytes", f"{values['mem_total_bytes']:.0f}")
        self.sink.add(
            line,
            "system",
            "",
            values,
            time_s=self.time_s,
            since_boot=False,
            report=self.pace.report,
        )

    def _options(self) -> tuple[str, ...] | None:
        return options_of(self.sink.commands, "free")

    def _base(self) -> int:
        """Return what a letter's unit is a power of."""
        return 1000 if "--si" in (self._options() or ()) else 1024

    def _unit_of(self, words: Sequence[str]) -> int | None:
        """Return the unit of plain numbers, given the row of memory as printed."""
        if not all(word.isdecimal() for word in words):
            return 1
        options = self._options()
        if options is None:
            return self._unit_by_size([int(word) for word in words])
        units = OPTION_UNITS if self._base() == 1024 else {**OPTION_UNITS, **SI_UNITS}
        for short, long in _OPTION.findall(" ".join(options)):
            for option in (long,) if long else tuple(short):
                if option in units:
                    return units[option]
        return units["k"]

    def _unit_by_size(self, sizes: Sequence[int]) -> int | None:
        known = float(self.sink.facts.get("memory_bytes", "0"))
        if known:
            near = (u for u in (1, 2**10, 2**20) if abs(sizes[0] * u / known - 1) < KNOWN_WITHIN)
            return next(near, None)
        for unit in (1, 2**10):
            if sizes[0] * unit >= MEMORY_MIN and not any(one * unit % PAGE for one in sizes):
                return unit
        return None
