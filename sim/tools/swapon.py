"""swapon: which swap areas are in use, and how full they are.

Models: `swapon -s`, which was the text of /proc/swaps and is written anew from 2.24 on; the table
of `swapon --show [--bytes] [--noheadings]` since then.
Linux counterpart: util-linux sys-utils/swapon.c (display_summary, show_table, add_scols_line),
lib/strutils.c (size_to_human_string), 2.17 and 2.38.
Invariants: sizes of the table are those of the file, times 1024; where no area is in use, 2.38
prints nothing.
Left out: switching an area on, --show=COLUMN, --raw, labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sim.tools.parse import ProcFormatError
from sim.tools.snapshot import Snapshot
from sim.tools.usage import ToolUsageError

SUMMARY = "-s"
SHOW = "--show"
BYTES = "--bytes"
NO_HEADINGS = "--noheadings"
NAME_WIDTH = 40
WIDE_KIB = 10_000_000  # where a number reaches the next tab stop by itself
_COLUMNS = ("NAME", "TYPE", "SIZE", "USED", "PRIO")
_TO_THE_RIGHT = ("SIZE", "USED", "PRIO")
_UNITS = "BKMGTPE"
_KINDS = {"file": "file\t"}  # up to the next tab stop


@dataclass(frozen=True, slots=True, kw_only=True)
class SwaponLayout:
    """All in which one generation of swapon differs from another."""

    name: str
    options: tuple[str, ...]
    summary: Callable[[str], str]  # from the text of /proc/swaps


@dataclass(frozen=True, slots=True)
class SwapRow:
    """One row of /proc/swaps, sizes in KiB."""

    name: str
    kind: str
    size_kib: int
    used_kib: int
    priority: int


def parse_options(arguments: Sequence[str], layout: SwaponLayout) -> frozenset[str]:
    """Return the options asked for; raise ToolUsageError."""
    allowed = ", ".join(layout.options)
    for word in arguments:
        if word not in layout.options:
            raise ToolUsageError("swapon", f"unknown argument {word!r}", allowed)
    asked = frozenset(arguments)
    if not asked & {SUMMARY, SHOW}:
        raise ToolUsageError("swapon", "nothing to show", allowed)
    return asked


def run_swapon(
    options: frozenset[str], snapshots: Iterable[Snapshot], *, layout: SwaponLayout
) -> Iterator[str]:
    """Yield the text for the first snapshot and take no other."""
    for snapshot in snapshots:
        text = snapshot.text("swaps")
        yield layout.summary(text) if SUMMARY in options else render_table(text, options)
        return


def _as_it_is(text: str) -> str:
    return text


def _summary(text: str) -> str:
    rows = [
        f"{row.name:<{NAME_WIDTH}}{_KINDS.get(row.kind, row.kind)}\t{_tabbed(row.size_kib)}"
        f"\t{_tabbed(row.used_kib)}\t{row.priority}\n"
        for row in parse_swaps(text)
    ]
    header = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    return header + "".join(rows) if rows else ""


def _tabbed(kib: int) -> str:
    return str(kib) if kib >= WIDE_KIB else f"{kib}\t"


def parse_swaps(text: str) -> tuple[SwapRow, ...]:
    """Return the rows of /proc/swaps."""
    rows = []
    for number, line in enumerate(text.splitlines()[1:], start=2):
        words = line.split()
        try:
            name, kind, size, used, priority = words
            rows.append(SwapRow(name, kind, int(size), int(used), int(priority)))
        except ValueError:
            raise ProcFormatError("swaps", number, line, "name, type, three numbers") from None
    return tuple(rows)


def render_table(text: str, options: frozenset[str]) -> str:
    """Return the table, its columns as wide as their widest cell."""
    rows = parse_swaps(text)
    if not rows:
        return ""
    size = str if BYTES in options else human_size
    lines = [_COLUMNS] + [
        (row.name, row.kind, size(row.size_kib << 10), size(row.used_kib << 10), str(row.priority))
        for row in rows
    ]
    widths = [max(len(line[index]) for line in lines) for index in range(len(_COLUMNS))]
    shown = lines[1:] if NO_HEADINGS in options else lines
    return "".join(_line(line, widths) for line in shown)


def human_size(size: int) -> str:
    """Return bytes with one decimal, dropped where it is 0, and the letter of the unit."""
    power = 0
    while power + 1 < len(_UNITS) and size >= 1 << 10 * (power + 1):
        power += 1
    whole, rest = divmod(size, 1 << 10 * power)
    tenths = (rest * 10 + (1 << 10 * power) // 2) >> 10 * power if power else 0
    whole, tenths = (whole + 1, 0) if tenths == 10 else (whole, tenths)
    return f"{whole}.{tenths}{_UNITS[power]}" if tenths else f"{whole}{_UNITS[power]}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        f"{cell:>{width}}" if title in _TO_THE_RIGHT else f"{cell:<{width}}"
        for title, cell, width in zip(_COLUMNS, cells, widths, strict=True)
    )
    return " ".join(padded) + "\n"


UTIL_LINUX_2_17 = SwaponLayout(name="util-linux-2.17", options=(SUMMARY,), summary=_as_it_is)
UTIL_LINUX_2_38 = SwaponLayout(
    name="util-linux-2.38", options=(SUMMARY, SHOW, BYTES, NO_HEADINGS), summary=_summary
)
