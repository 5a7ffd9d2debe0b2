"""A table on a terminal that is drawn again, with a line to type into below it.

The terminal is set to give each key at once and to show none (termios): what is typed is drawn with
the table, so that neither disturbs the other. It is set back at the end, whatever ended it.
"""

import os
import select
import sys
import termios
import tty
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from calibration.follow.follower import FIGURES, Loads, short

ENTER: Final = ("\r", "\n")
ERASE: Final = ("\x7f", "\b")
ERASE_ALL: Final = "\x15"  # Ctrl-U
KEYS_MAX: Final = 1024
Rows = Sequence[tuple[str, str, float, float | None]]


class Screen:
    """The table, what is typed, and lines above that stay; a context manager."""

    def __init__(self, name: str) -> None:
        """Draw nothing yet."""
        self._name = name
        self._console = Console()
        self._live = Live(console=self._console, auto_refresh=False)
        self._table: Table | Text = Text(f"{name}: reading ...")
        self.typed = ""
        self._before: list[Any] = []

    def __enter__(self) -> "Screen":
        self._before = termios.tcgetattr(sys.stdin)
        tty.setcbreak(sys.stdin)
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def say(self, text: str, *, is_alarm: bool = False) -> None:
        """Print a line above the table."""
        self._console.print(Text(text, style="bold red" if is_alarm else ""))

    def show(self, at: datetime, rows: Rows, loads: Loads) -> None:
        """Draw server and twin."""
        self._table = table_of(f"{self._name}, {at:%H:%M:%S}", rows, loads)
        self._draw()

    def wait(self, left_s: float) -> str:
        """Wait for a key so long; return a line that was typed whole, else nothing."""
        if not select.select([sys.stdin], [], [], left_s)[0]:
            return ""
        keys = os.read(sys.stdin.fileno(), KEYS_MAX).decode("utf-8", errors="ignore")
        line = self.take(keys)
        self._draw()
        return line

    def take(self, keys: str) -> str:
        """Add keys to what is typed; return the line if Enter is among them."""
        for number, key in enumerate(keys):
            if key in ENTER:
                line, self.typed = self.typed.strip(), ""
                self.take(keys[number + 1 :])
                return line
            if key in ERASE:
                self.typed = self.typed[:-1]
            elif key == ERASE_ALL:
                self.typed = ""
            elif key.isprintable():
                self.typed += key
        return ""

    def _draw(self) -> None:
        prompt = Text.assemble(("what if? ", "bold"), self.typed, ("_", "blink"))
        self._live.update(Group(self._table, prompt), refresh=True)


def table_of(title: str, rows: Rows, loads: Loads) -> Table:
    """Return server and twin, a row for each figure, with how far they are apart.

    A load that was counted is known to its standard error, which is beside it.
    """
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("")
    for heading in ("server", "twin", "apart"):
        table.add_column(heading, justify="right")
    if loads.average is not None:
        table.add_row("load", "average", short(loads.average), "", "")
    if loads.settles is not None:
        settles, of_twin, apart = _cells(loads.settles, loads.twin)
        if loads.known_to:
            settles = f"{settles} +- {short(loads.known_to)}"
        table.add_row("", "settles at", settles, of_twin, apart)
    last = ""
    for resource, column, server, twin in rows:
        if server or twin:
            name = resource if resource != last else ""
            table.add_row(name, FIGURES[column].words, *_cells(server, twin))
            last = resource
    return table


def _cells(server: float, twin: float | None) -> tuple[str, str, str]:
    if twin is None:
        return short(server), "-", ""
    apart = f"{100 * (twin / server - 1):+.0f} %" if server else ""
    return short(server), short(twin), apart
