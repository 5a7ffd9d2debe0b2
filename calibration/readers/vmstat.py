"""vmstat's table: processes, memory, swap, I/O, interrupts and CPU, one line per report.

Models: what `vmstat [-a] [-n] [-t] [-w] [-y] [-S UNIT] [DELAY [COUNT]]` printed.
Linux counterpart: procps 2.0 to 3.2 vmstat.c:new_format, procps-ng 3.3 to 4.0 src/vmstat.c.
Invariants: columns are found by the titles of the header; a row has exactly as many numbers, and
its percentages add up to 100, or it is reported. bi and bo are KiB/s (blocks of 1024 B since Linux
2.6, whatever -S says), us includes nice, sy includes interrupts.
Left out: the queue w of Linux 2.4, which is always 0.

Rules for what the text does not say:

- The first row after a header is since boot, unless a prompt above shows -y. A header that comes
  again after HEADER_EVERY rows or more goes on (the terminal's height), a prompt or an earlier
  header begins anew.
- Memory is in KiB unless a prompt above shows another unit (-S). Without one, memory that is no
  whole number of pages in KiB (all of /proc/meminfo is one) is in another unit: that is told once,
  and no memory is taken until the next header. With -S m or M the tool multiplies swapped pages by
  a page size rounded down to 0 (unitConvert), so si and so are not taken.
- As since-boot rates are divided by the ticks of all CPUs, they are too low by that factor; they
  are kept as printed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

from calibration.readers.line import CUT, Line, Sink
from calibration.readers.prompt import options_of
from calibration.readers.stamp import Pace, learn_stamp, parse_stamp
from calibration.samples import Kind

HEADER_EVERY: Final = 21  # rows of a terminal of 24, the smallest in use, less 3
KIB: Final = 1024.0
PAGE: Final = 4096  # the smallest that Linux has


class Cell(NamedTuple):
    """Where a column of the tool goes: `factor` times the number printed."""

    kind: Kind
    column: str
    factor: float = 1.0


# Columns in the unit of -S; those of swapping in KiB unless it is bytes.
MEMORY: Final[Mapping[str, str]] = {
    "swpd": "swap_used_bytes",
    "free": "mem_free_bytes",
    "buff": "mem_buffers_bytes",
    "cache": "mem_cached_bytes",
    "inact": "mem_inactive_bytes",
    "active": "mem_active_bytes",
}
SWAPPING: Final[Mapping[str, str]] = {"si": "swapin_bytes_per_s", "so": "swapout_bytes_per_s"}
OTHERS: Final[Mapping[str, Cell | None]] = {
    "r": Cell("system", "procs_running"),
    "b": Cell("system", "procs_blocked"),
    "w": None,
    "bi": Cell("system", "pgin_bytes_per_s", KIB),
    "bo": Cell("system", "pgout_bytes_per_s", KIB),
    "in": Cell("system", "intr_per_s"),
    "cs": Cell("system", "ctxt_per_s"),
    "us": Cell("cpu", "user_pct"),
    "sy": Cell("cpu", "system_pct"),
    "id": Cell("cpu", "idle_pct"),
    "wa": Cell("cpu", "iowait_pct"),
    "st": Cell("cpu", "steal_pct"),  # 3.3, and 3.2 of some distributions
    "gu": Cell("cpu", "guest_pct"),  # 4.0.4
}
TITLES: Final = frozenset({*MEMORY, *SWAPPING, *OTHERS})
CPU_TITLES: Final = ("us", "sy", "id", "wa", "st", "gu")
ROUNDING_PCT: Final = 3  # six columns, each rounded to the nearest whole number


class Unit(NamedTuple):
    """A unit of -S: bytes of memory, and bytes per second of si and so (0: always printed 0)."""

    memory: float
    swapping: float


# Up to 3.2 as after 3.3: k 1000, K 1024, m 10^6, M 2^20; b and B are undocumented.
UNITS: Final[Mapping[str, Unit]] = {
    "b": Unit(1, 1),
    "B": Unit(1, 1),
    "k": Unit(1000, KIB),
    "K": Unit(KIB, KIB),
    "m": Unit(10**6, 0),
    "M": Unit(2**20, 0),
}
_BANNER: Final = re.compile(r"\s*-*procs[-\s].*(memory|swap).*")
_ZONE: Final = re.compile(r"[A-Z][A-Za-z]{1,5}|[+-]\d\d(\d\d)?")
_UNIT: Final = re.compile(r"(?:-\w*S|--unit[= ])\s*([bBkKmM])\b")


def cells_of(titles: Sequence[str], unit: Unit) -> dict[str, Cell | None]:
    """Return where each column goes; None for those that are not taken."""
    swapping = Cell("system", "", unit.swapping) if unit.swapping else None
    return {
        title: Cell("system", MEMORY[title], unit.memory)
        if title in MEMORY
        else swapping and swapping._replace(column=SWAPPING[title])
        if title in SWAPPING
        else OTHERS[title]
        for title in titles
    }


@dataclass
class VmstatReader:
    """Takes the table of vmstat."""

    sink: Sink
    format: ClassVar[str] = "vmstat"
    pace: Pace = field(init=False)
    cells: dict[str, Cell | None] = field(default_factory=dict)
    prompts: int = 0
    stamped: bool = False
    rows_since_header: int | None = None
    next_is_since_boot: bool = False
    is_in_kib: bool | None = None  # None: the unit is known; False: it is not KiB

    def __post_init__(self) -> None:
        """Begin at report 0."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take the two lines of the header and the rows below it."""
        if _BANNER.fullmatch(line.text):
            self.stamped = "timestamp" in line.text
            return True
        words = line.fields
        if words[:2] == ["r", "b"]:
            return self._header(words)
        count = sum(1 for _ in _leading_integers(words))
        if not self.cells or count < 3 or (words[count:] and parse_stamp(_rest(words)) is None):
            return False
        self._row(line, words)
        return True

    def close(self) -> None:
        """Keep the interval as a fact."""
        self.pace.close()

    def _header(self, words: list[str]) -> bool:
        titles = [word for word in words if word in TITLES]
        zone = words[len(titles) :]
        if words[: len(titles)] != titles or "id" not in titles or len(zone) > 1:
            return False
        if zone and not _ZONE.fullmatch(zone[0]):
            return False
        self.sink.learn("tool", "vmstat")
        options = options_of(self.sink.commands, "vmstat") or ()
        if self._begins_anew():
            self.next_is_since_boot = not _has_y(options)
        found = _UNIT.search(" ".join(options))
        self.is_in_kib = True if found is None else None
        self.cells = cells_of(titles, UNITS[found[1] if found else "K"])
        self.prompts = self.sink.prompts
        self.rows_since_header = 0
        return True

    def _begins_anew(self) -> bool:
        rows = self.rows_since_header
        return rows is None or rows < HEADER_EVERY or self.prompts != self.sink.prompts

    def _row(self, line: Line, words: list[str]) -> None:
        """Add the samples of a row, or report it."""
        self.rows_since_header = (self.rows_since_header or 0) + 1
        since_boot, self.next_is_since_boot = self.next_is_since_boot, False
        time_s = self.pace.step()
        values = [int(word) for word in _leading_integers(words)]
        stamp = parse_stamp(_rest(words))
        why = "no time stamp" if self.stamped and stamp is None else self._fault(line, values)
        if why:
            self.sink.skip(line, why)
            return
        if stamp is not None:
            time_s = self.pace.at(learn_stamp(self.sink, stamp))
        by_kind = self._by_kind(values)
        self._check_unit(line, by_kind["system"])
        for kind, taken in by_kind.items():
            self.sink.add(
                line,
                kind,
                "all" if kind == "cpu" else "",
                taken,
                time_s=time_s,
                since_boot=since_boot,
                report=self.pace.report,
            )

    def _check_unit(self, line: Line, taken: dict[str, float]) -> None:
        """Take no memory that is said to be in KiB and is not."""
        if self.is_in_kib and any(taken.get(name, 0.0) % PAGE for name in MEMORY.values()):
            self.is_in_kib = False
            self.sink.skip(line, "memory is no whole number of pages in KiB (-S?): not taken")
        if self.is_in_kib is False:
            for name in (*MEMORY.values(), *SWAPPING.values()):
                taken.pop(name, None)

    def _fault(self, line: Line, values: list[int]) -> str:
        """Return what is wrong with a row; "" if nothing."""
        if len(values) != len(self.cells):
            return f"{len(values)} numbers under {len(self.cells)} titles"
        named = dict(zip(self.cells, values, strict=True))
        total = sum(named.get(title, 0) for title in CPU_TITLES)
        if line.may_be_cut and "st" not in named:
            return CUT  # 3.2 does not show stolen time, so that the sum does not tell
        least = 100 - ROUNDING_PCT if "st" in named else 0
        if total and not least <= total <= 100 + ROUNDING_PCT:
            return f"the CPU's percentages add up to {total}"
        return ""

    def _by_kind(self, values: list[int]) -> dict[Kind, dict[str, float]]:
        taken: dict[Kind, dict[str, float]] = {"system": {}, "cpu": {}}
        for cell, value in zip(self.cells.values(), values, strict=True):
            if cell is not None:
                taken[cell.kind][cell.column] = value * cell.factor
        return taken


def _leading_integers(words: list[str]) -> list[str]:
    """Return the whole numbers that a line begins with."""
    for index, word in enumerate(words):
        if not (word.isascii() and word.isdigit()):
            return words[:index]
    return words


def _rest(words: list[str]) -> str:
    return " ".join(words[len(_leading_integers(words)) :])


def _has_y(options: Sequence[str]) -> bool:
    return any(re.fullmatch(r"-[a-zA-Z]*y[a-zA-Z]*|--no-first", word) for word in options)
