"""Tables: one description, printed plain for pipes and files, or nicely on a terminal.

Models: a table of texts with a title.
Linux counterpart: none.
Invariants: plain text has no trailing blanks and does not depend on the terminal.
Left out: wrapping of long cells in plain text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TextIO

GAP = "  "


@dataclass(frozen=True)
class Column:
    """A heading, and whether its cells are numbers (then they are set right)."""

    heading: str
    is_number: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; an empty row is a blank line."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


def plain(table: Table) -> str:
    """Return the table as fixed-width text that ends with a newline."""
    lines = [tuple(column.heading for column in table.columns), *table.rows]
    widths = [
        max((len(line[i]) for line in lines if line), default=0) for i in range(len(table.columns))
    ]
    return "".join(_plain_line(line, table.columns, widths) + "\n" for line in lines)


def _plain_line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    padded = [
        cell.rjust(width) if column.is_number else cell.ljust(width)
        for cell, column, width in zip(cells, columns, widths, strict=False)
    ]
    return GAP.join(padded).rstrip()


def print_table(table: Table, stream: TextIO) -> None:
    """Print to a terminal nicely, to anything else plainly."""
    if stream.isatty():
        # By name: rich costs more than a short run, and a pipe does not need it.
        import_module("sim.report.terminal").print_rich(table, stream)
    else:
        print(plain(table), end="", file=stream)


def figure(value: float, unit: str = "") -> str:
    """Return a figure with about four digits, never in exponential form; messages are whole.

    What is shown as zero has no sign.
    """
    size = abs(value)
    digits = 1 if size >= 100 else 2
    if unit == "messages" or size >= 1000 or (size >= 100 and float(value).is_integer()):
        digits = 0
    text = f"{value:.{digits}f}"
    return text if text.strip("-0.") else text.removeprefix("-")


def signed(value: float, unit: str = "") -> str:
    """Return a change with its sign; no sign for what is shown as zero."""
    text = figure(value, unit)
    return text if value < 0 or not text.strip("0.") else f"+{text}"


def interval(low: float, high: float, unit: str = "") -> str:
    """Return an interval."""
    return f"{figure(low, unit)} .. {figure(high, unit)}"
