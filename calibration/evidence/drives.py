"""The disk model beside real drives' traces: by the data sheet alone, and fitted.

Models: the table of a paper on disk models: how far the mean time is off, drive by drive, and the
 demerit, which is how far the distribution of times is off.
Linux counterpart: none.
Invariants: all drives of the file of data sheets are compared; a fit is scored on requests that it
 was not made from.
Left out: drives without a trace.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from calibration.drive.bad_input import BadInput
from calibration.drive.outcome import Outcome, confront
from calibration.drive.sheet import read_sheet
from calibration.drive.trace import read_trace

FOLDER: Final = "disktraces"
SHEETS: Final = "drives.json"
FITTED_REQUESTS: Final = 1000
# How the page calls each comparison; the fit comes last.
WAYS: Final = {0: "drives, by their data sheets", FITTED_REQUESTS: "drives, fitted"}

Found = tuple[str, str, float, str]  # area, name, error, command


def outcome_of(folder: Path, name: str, fit_requests: int, seed: int = 1) -> Outcome:
    """Return what a drive's trace comes to; raise BadInput."""
    sheet = read_sheet(f"{folder / SHEETS}:{name}")
    accesses = read_trace(folder / f"{name}.trace.gz", sheet.blocks_512)
    return confront(
        sheet, accesses, fit_requests=fit_requests, seed=seed, tell=lambda _done, _total: None
    )


def drives(folder: Path) -> list[str]:
    """Return the drives that have a data sheet; raise BadInput."""
    try:
        return list(json.loads((folder / SHEETS).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise BadInput(str(folder / SHEETS), f"cannot be read: {error}") from None


def compared(shared: Path, tell: Callable[[str], None]) -> Iterator[Found]:
    """Yield the errors of every drive; raise BadInput."""
    folder = shared / FOLDER
    for requests, area in WAYS.items():
        for name in drives(folder):
            score = outcome_of(folder, name, requests).main()
            tell(f"{area}: {name}")
            words = f"python -m calibration drive {name}.trace.gz --drive {SHEETS}:{name}"
            command = f"{words} --fit {requests}" if requests else words
            yield f"{area}: mean time", name, score.mean_error_pct / 100, command
            yield f"{area}: demerit", name, score.demerit_pct / 100, command
