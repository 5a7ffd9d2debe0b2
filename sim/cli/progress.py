"""Progress on standard error, for runs of more than two seconds, on a terminal only.

A pipe sees nothing. The bar is removed before results are printed. The estimate is the ratio of
time and work.
"""

import sys
import time
from importlib import import_module
from types import TracebackType
from typing import Any

QUIET_S = 2.0


class Progress:
    """Called with work done and work in all; a context manager."""

    def __init__(self, label: str, quiet_s: float = QUIET_S) -> None:
        self._label = label
        self._quiet_s = quiet_s
        self._begin_s = time.monotonic()
        self._is_shown = sys.stderr.isatty()
        self._bar: Any = None  # rich's, and its one task
        self._task: Any = None

    def __enter__(self) -> "Progress":
        return self

    def __call__(self, done: int, total: int) -> None:
        if not self._is_shown or time.monotonic() - self._begin_s < self._quiet_s:
            return
        if self._bar is None:
            # By name: rich costs more than many a run takes.
            console = import_module("rich.console").Console(stderr=True)
            self._bar = import_module("rich.progress").Progress(console=console, transient=True)
            self._task = self._bar.add_task(self._label, total=None)
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
