"""Progress on standard error, for runs of more than two seconds, on a terminal only.

Models: patience.
Linux counterpart: none.
Invariants: a pipe sees nothing; what is shown is removed before results are printed.
Left out: estimates better than the ratio of time and work.
"""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

QUIET_S = 2.0


class Progress:
    """Called with work done and work in all; a context manager."""

    def __init__(self, label: str, quiet_s: float = QUIET_S) -> None:
        self._label = label
        self._quiet_s = quiet_s
        self._begin_s = time.monotonic()
        self._is_shown = sys.stderr.isatty()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "Progress":
        return self

    def __call__(self, done: int, total: int) -> None:
        if not self._is_shown or time.monotonic() - self._begin_s < self._quiet_s:
            return
        if self._bar is None:
            self._show()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _show(self) -> None:
        # Imported here: rich costs more than many a run takes.
        from rich.console import Console
        from rich.progress import Progress as Bar

        self._bar = Bar(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._label, total=None)
        self._bar.start()
