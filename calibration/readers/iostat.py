"""iostat's text: CPU and device tables of every version since 4.0.

Models: `iostat [-cdkmxtNyzphsgH] [--human] [--pretty] [--dec]`, sysstat 4.0 to 12.7.
Linux counterpart: sysstat iostat.c:write_stats.
Invariants: columns are found by the titles of the header; a row has exactly as many numbers, of the
same decimals where the tool prints them so, none negative, or it is reported and none of it taken;
the name of a group (-g) begins with "group ", since it is a sum of other rows.
Left out: the NFS table of 7.1 to 9.1.2 (-n); names with blanks (-j LABEL).

Rules for what the text does not say:

- A report begins at a CPU header, and at a device header whose titles the report has already (-h
  and --pretty of 12 print several device tables a report), that stands below a new title line, or
  directly below a time.
- The first table of a kind after a title line is since boot. Not so with -y: 12.1.5 and later
  leave an empty line more after the title. With -y of 10.1.3 to 12.1.4, which leaves no trace, or
  where blank lines were squeezed, the first report is set aside though it need not be.
- A blank line ends a table; below it only rows of devices seen above are taken.
- A last line without line feed is taken only if nothing of it can be missing.
- Where 5 and 6 print sectors and kB, the finer (the first) counts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from calibration.readers.iostat_columns import (
    BYTES,
    CPU,
    DEVICE,
    SUFFIX_BYTES,
    TOTALS,
    Meaning,
    generation,
)
from calibration.readers.line import Line, NotANumber, Sink, number
from calibration.readers.prompt import options_of
from calibration.readers.stamp import Pace
from calibration.samples import Kind
from sim.registry import nearest

_DEVICE_TITLES: Final = frozenset({"Device", "Device:"})
_CPU_TITLE: Final = "avg-cpu:"
# No device's name: a number, a clock (sar, mpstat), a word with a colon ("Average:", "Mem:").
_NO_NAME: Final = re.compile(r"[-+]?[\d.,]+|\d+:\d\d.*|.*:")
_NUMBERLIKE: Final = re.compile(r"[-+]?(\d.*|nan|inf)|\*+")
_EMPTY_AFTER_Y: Final = 2


class _BrokenRow(ValueError):
    """A row that was cut, or has numbers glued together, or is another tool's."""


@dataclass
class _Table:
    """A header, and what it says of the rows below it."""

    kind: Kind
    line: Line
    titles: Sequence[str]
    meanings: Mapping[str, Meaning]
    since_boot: bool
    name_last: bool = False
    is_open: bool = True  # no blank line yet


@dataclass
class IostatReader:
    """Takes what iostat prints but for title and time, which others leave in the sink."""

    sink: Sink
    format: ClassVar[str] = "iostat"
    pace: Pace = field(init=False)
    time_s: float | None = None
    table: _Table | None = None
    in_report: set[str] = field(default_factory=set)  # titles of the report so far
    since_title: set[str] = field(default_factory=set)
    title: Line | None = None
    stamp: Line | None = None
    omits_boot: bool = False
    names: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    long_name: Line | None = None
    decimals: int | None = None

    def __post_init__(self) -> None:
        """Begin before report 0."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take headers, and rows below them."""
        words = line.fields
        if not words:
            self._blank()
            return False
        if words[0] == _CPU_TITLE:
            return self._header(line, "cpu", words[1:], CPU)
        if words[0] in _DEVICE_TITLES:
            return self._header(line, "device", words[1:], DEVICE)
        if words[-1] in _DEVICE_TITLES:
            return self._header(line, "device", words[:-1], DEVICE)
        if self.table is None:
            return False
        if self.table.kind == "cpu":
            return self.table.is_open and self._cpu_row(self.table, line, words)
        return self._device_row(self.table, line, words)

    def close(self) -> None:
        """Report a name without numbers; keep the interval as a fact."""
        self._drop_long_name()
        self.pace.close()
        if self.pace.report >= 0:
            self.sink.learn("tool", "iostat")
            if self.table is not None and self.table.is_open and self.table.kind == "device":
                self.sink.learn("ends_in_table", "yes")

    # -- Headers begin tables and reports.

    def _header(
        self, line: Line, kind: Kind, titles: Sequence[str], known: Mapping[str, Meaning]
    ) -> bool:
        if not any(title in known for title in titles):
            return False
        self._drop_long_name()
        if self.sink.title is not self.title:
            self._restart(line)
        if kind == "cpu" or self._begins_report(line, titles):
            self._begin_report()
        since_boot = self._is_since_boot(kind, titles)
        self.in_report.update(titles)
        self._tell_unknown(line, titles, known)
        self.table = _Table(
            kind, line, titles, known, since_boot, name_last=line.fields[-1] in _DEVICE_TITLES
        )
        version = generation(frozenset(titles))
        if version:
            self.sink.learn("tool", f"iostat of {version}")
        return True

    def _restart(self, line: Line) -> None:
        """Note a title line: what follows first is since boot, unless -y left its empty line."""
        self.title = self.sink.title
        assert self.title is not None
        stamp = self.sink.stamp_line
        first = stamp if stamp is not None and stamp.number > self.title.number else line
        empty = first.number - self.title.number - 1
        self.omits_boot = empty == first.blanks == _EMPTY_AFTER_Y or self._command_has_y()
        self.since_title = set()
        self.in_report = set()
        self.decimals = None

    def _command_has_y(self) -> bool:
        options = options_of(self.sink.commands, "iostat") or ()
        return any(re.fullmatch(r"-[a-zA-Z]*y[a-zA-Z]*", option) for option in options)

    def _begins_report(self, line: Line, titles: Sequence[str]) -> bool:
        stamp = self.sink.stamp_line
        below_time = stamp is not None and stamp.number == line.number - 1
        return not self.in_report or below_time or not self.in_report.isdisjoint(titles)

    def _begin_report(self) -> None:
        self.time_s = self.pace.step()
        self.in_report = set()

    def _is_since_boot(self, kind: Kind, titles: Sequence[str]) -> bool:
        first = titles[0] not in self.since_title
        self.since_title.update(titles)
        return self.title is not None and first and not self.omits_boot

    def _tell_unknown(
        self, line: Line, titles: Sequence[str], known: Mapping[str, Meaning]
    ) -> None:
        for title in titles:
            if title not in known and title not in self.unknown:
                self.unknown.add(title)
                near = nearest(title, tuple(known))
                hint = f"; the nearest known is {near}" if near else ""
                self.sink.skip(line, f"no known column of iostat: {title}{hint}; it is left out")

    # -- Rows.

    def _blank(self) -> None:
        if self.table is not None:
            self.table.is_open = False

    def _cpu_row(self, table: _Table, line: Line, words: Sequence[str]) -> bool:
        # More numbers than titles are no cut row, but another tool's (vmstat, into the same file).
        if len(words) > len(table.titles) or not all(map(_NUMBERLIKE.fullmatch, words)):
            return False
        self._take(table, line, "all", words)
        return True

    def _device_row(self, table: _Table, line: Line, words: Sequence[str]) -> bool:
        """Take a row; a name that is too long stands alone, its numbers on the next line."""
        cells = [word for word in words if _NUMBERLIKE.fullmatch(word)]
        if self.long_name is not None and len(cells) == len(words) == len(table.titles):
            name = self._name(table, self.long_name)
            self.long_name = None
            self._take(table, line, name, words)
            return True
        word = words[-1] if table.name_last else words[0]
        if _NO_NAME.fullmatch(word) or not (table.is_open or self._name(table, line) in self.names):
            return False
        if len(words) == 1 and not table.name_last:
            return self._long_name(table, line)
        values = words[:-1] if table.name_last else words[1:]
        if not self._is_row(table, line, values):
            return False
        self._drop_long_name()
        self._take(table, line, self._name(table, line), values)
        return True

    def _long_name(self, table: _Table, line: Line) -> bool:
        """Take a word that stands alone; of two in a row one is no name, unless both are known."""
        before = self.long_name
        if before is None:
            self.long_name = line
            return True
        is_known = self._name(table, line) in self.names
        if not is_known and self._name(table, before) in self.names:
            return False
        self._drop_long_name()
        self.long_name = line if is_known else None
        return is_known

    def _is_row(self, table: _Table, line: Line, values: Sequence[str]) -> bool:
        """Tell whether a line is a row, though perhaps a broken one, or something else."""
        numbers = sum(1 for value in values if _NUMBERLIKE.fullmatch(value))
        if self._name(table, line) in self.names:
            return 2 * numbers >= len(values)
        return len(values) == len(table.titles) and 2 * numbers >= len(values)

    def _name(self, table: _Table, line: Line) -> str:
        """Return a device's name; a group's (-g) begins with a blank that others' have not."""
        words = line.fields
        if table.name_last:
            name = words[-1]
            is_group = re.search(r"\s\s\S+\s*$", line.text) is not None
        else:
            name = words[0]
            is_group = _indent(line.text) - _indent(table.line.text) == 1
        return f"group {name}" if is_group else name.removeprefix("/dev/")

    def _take(self, table: _Table, line: Line, name: str, cells: Sequence[str]) -> None:
        """Add a row to the samples, or report it."""
        try:
            values = _values(table, cells)
            self._check_whole(table, line, cells)
        except (_BrokenRow, NotANumber) as error:
            self.sink.skip(line, str(error))
            return
        self.decimals = next(iter(_decimals(table.titles, cells)), self.decimals)
        if table.kind == "device":
            self.names.add(name)
        self.sink.add(
            line,
            table.kind,
            name,
            values,
            time_s=self.time_s,
            since_boot=table.since_boot,
            report=self.pace.report,
        )

    def _check_whole(self, table: _Table, line: Line, cells: Sequence[str]) -> None:
        """Raise _BrokenRow for a row that may have been cut, or is not iostat's."""
        if not line.ended and _may_be_cut(table, line, cells):
            raise _BrokenRow("the file ends here, perhaps within this line")
        decimals = _decimals(table.titles, cells)
        if len(decimals | ({self.decimals} - {None})) > 1:
            raise _BrokenRow("a number has other decimals than the rest: cut, or not iostat's")

    def _drop_long_name(self) -> None:
        if self.long_name is not None:
            self.sink.skip(self.long_name, "a name without numbers")
            self.long_name = None


def _values(table: _Table, cells: Sequence[str]) -> dict[str, float]:
    """Return the columns of a row; _BrokenRow, NotANumber."""
    if len(cells) != len(table.titles):
        raise _BrokenRow(f"{len(cells)} numbers under {len(table.titles)} titles")
    values: dict[str, float] = {}
    for title, cell in zip(table.titles, cells, strict=True):
        if title in table.meanings:
            meaning = table.meanings[title]
            values.setdefault(meaning.column, _value(cell, title, meaning))
    return values


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _value(cell: str, title: str, meaning: Meaning) -> float:
    """Return a cell in the unit of its column; NotANumber."""
    if title in BYTES and cell[-1:] in SUFFIX_BYTES:
        value = number(cell[:-1]) * SUFFIX_BYTES[cell[-1]]
    elif title.startswith("%"):
        value = number(cell.removesuffix("%"))
    else:
        value = number(cell) * meaning.factor
    if value < 0:
        raise NotANumber(f"{cell!r} of {title} is negative")
    return value


def _decimals(titles: Sequence[str], cells: Sequence[str]) -> set[int]:
    """Return the decimals of the numbers that --dec governs: no totals, none with a unit."""
    return {
        len(cell) - len(whole) - 1 if whole != cell else 0
        for title, cell in zip(titles, cells, strict=False)
        if title not in TOTALS and cell[-1:].isdigit()
        for whole in [re.split("[.,]", cell, maxsplit=1)[0]]
    }


def _may_be_cut(table: _Table, line: Line, cells: Sequence[str]) -> bool:
    """Tell whether the end of a last row might be missing: decimals do not show it."""
    if table.name_last or any(not cell[-1:].isdigit() for cell in cells):
        return True
    is_whole = table.titles[-1] in TOTALS or not re.search("[.,]", cells[-1])
    return is_whole and len(line.text.rstrip()) != len(table.line.text.rstrip())
