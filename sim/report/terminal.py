"""Tables on a terminal, drawn by rich; loaded by name when there is a terminal.

Models: a screen.
Linux counterpart: none.
Invariants: every cell of the plain table is there, uninterpreted (no markup in cells).
Left out: colours.
"""

from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from sim.report.tables import Table


def print_rich(table: Table, stream: TextIO) -> None:
    """Print a table to a terminal of any width."""
    rich_table = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        rich_table.add_column(column.heading, justify="right" if column.is_number else "left")
    for row in table.rows:
        rich_table.add_row(*[Text(cell) for cell in row])
    Console(file=stream).print(rich_table)
