"""Progress on standard error: a bar on a terminal, a line now and then anywhere else.

The bar is for what takes more than two seconds, and is removed before results are printed. Off a
terminal a line comes every half a minute: a log shows that the work goes on, and short work shows
nothing. The estimate is the ratio of time and work.
"""

import sys
import time
from importlib import import_module
from types import TracebackType
from typing import Any

QUIET_S = 2.0
LINE_S = 30.0


class Progress:
    """Called with work done and work in all; a context manager."""

    def __init__(self, label: str, quiet_s: float = QUIET_S, line_s: float = LINE_S) -> None:
        self._label = label
        self._quiet_s = quiet_s
        self._line_s = line_s
        self._begin_s = self._told_s = time.monotonic()
        self._has_bar = sys.stderr.isatty()
        self._bar: Any = None  # rich's, and its one task
        self._task: Any = None

    def __enter__(self) -> "Progress":
        return self

    def __call__(self, done: int, total: int) -> None:
        if self._has_bar:
            self._draw(done, total)
        elif time.monotonic() - self._told_s >= self._line_s:
            self._told_s = time.monotonic()
            print(self._line(done, total), file=sys.stderr, flush=True)

    def _draw(self, done: int, total: int) -> None:
        if time.monotonic() - self._begin_s < self._quiet_s:
            return
        if self._bar is None:
            # By name: rich costs more than many a run takes.
            console = import_module("rich.console").Console(stderr=True)
            self._bar = import_module("rich.progress").Progress(console=console, transient=True)
            self._task = self._bar.add_task(self._label, total=None)
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)

    def _line(self, done: int, total: int) -> str:
        text = f"iotwin: {self._label}: {100 * done / max(total, 1):.0f} % done"
        if done:
            left_s = (time.monotonic() - self._begin_s) * (total - done) / done
            text += f", about {left_s:.0f} s left"
        return text

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
