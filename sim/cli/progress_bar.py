"""The bar that progress is shown with, drawn by rich; loaded by name when there is one to show.

It is on standard error, and gone when it is stopped.
"""

from rich.console import Console
from rich.progress import Progress


class ProgressBar:
    """A bar with a label, an estimate of the time left, and no trace afterwards."""

    def __init__(self, label: str) -> None:
        self._progress = Progress(console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(label, total=None)
        self._progress.start()

    def show(self, done: int, total: int) -> None:
        """Show how much is done."""
        self._progress.update(self._task, completed=done, total=total)

    def stop(self) -> None:
        """Remove the bar."""
        self._progress.stop()
