"""Tables on a terminal, drawn by rich; loaded by name when there is a terminal.

A table wider than the screen is printed in pieces, one below the other. Each piece has the first
column and as many others as fit. (Squeezed into 80 columns, names and intervals of a comparison
would be cut to a letter or two.) Only prose wraps.

Invariants: every cell of the plain table is there, uninterpreted (no markup in cells); a cell that
 is no prose stands on one line wherever it and the first column fit beside each other.
Left out: colours.
"""

from collections.abc import Callable, Sequence
from typing import Final, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from sim.report.tables import Table

SCREEN_MAX: Final = 10_000  # columns: wider than any
LABEL_WIDTH_MAX: Final = 28  # characters: what is wider, and no number, is prose and may wrap
PROSE_WIDTH_MIN: Final = 16  # down to this


def print_rich(table: Table, stream: TextIO) -> None:
    """Print a table to a terminal of any width."""
    console = Console(file=stream)
    unbound = console.options.update(max_width=SCREEN_MAX)  # a measure ends at the screen's edge

    def fits(piece: Sequence[int]) -> bool:
        return console.measure(_drawn(table, piece), options=unbound).minimum <= console.width

    for piece in pieces(len(table.columns), fits):
        console.print(_drawn(table, piece))


def pieces(columns: int, fits: Callable[[Sequence[int]], bool]) -> list[list[int]]:
    """Return which columns stand beside each other: the first, and what fits of the others."""
    found = [[0]]
    for column in range(1, columns):
        if len(found[-1]) == 1 or fits([*found[-1], column]):
            found[-1].append(column)
        else:
            found.append([0, column])
    return found


def _drawn(table: Table, piece: Sequence[int]) -> RichTable:
    """Return some of the columns as rich draws them."""
    drawn = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for number in piece:
        column = table.columns[number]
        cells = [row[number] for row in table.rows if len(row) > number]
        width = max(map(len, [column.heading, *cells]))
        is_prose = width > LABEL_WIDTH_MAX and not column.is_number
        drawn.add_column(
            Text(column.heading),
            justify="right" if column.is_number else "left",
            min_width=PROSE_WIDTH_MIN if is_prose else width,
            no_wrap=not is_prose,
        )
    for row in table.rows:
        drawn.add_row(*[Text(row[number]) for number in piece if number < len(row)])
    return drawn
