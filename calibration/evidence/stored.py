"""Comparisons with recordings that are not part of the project, kept as data.

Models: a JSON list, a figure a line: how far the twin was off, when, by which sources and command.
Linux counterpart: none.
Invariants: a figure is there once; the figures of an area are replaced together; the order is that
 in which areas and figures were first put in.
Left out: the recordings, and what the figures come from.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from calibration.validate.stored import BadData
from sim.cli.output import write_rows

_KEYS: Final = ("area", "name", "error", "date", "sources", "command")


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One figure of the twin beside a recorded one."""

    area: str  # what is compared, as the page says it
    name: str  # of the figure
    error: float  # (simulated - recorded) / recorded
    date: str
    sources: str
    command: str


def read(path: Path) -> list[Compared]:
    """Return what a file has; raise BadData if it is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadData(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise BadData(f"{path}: not JSON: {error}") from None
    if not isinstance(content, list):
        raise BadData(f"{path}: expected a list of figures, got {type(content).__name__}")
    return [_read_one(row, f"{path}: figure {number}") for number, row in enumerate(content, 1)]


def _read_one(row: Any, where: str) -> Compared:
    lacking = [key for key in _KEYS if key not in row] if isinstance(row, dict) else _KEYS
    if lacking:
        raise BadData(f"{where}: lacks '{lacking[0]}' (a figure has {', '.join(_KEYS)})")
    return Compared(**{key: row[key] for key in _KEYS})


def put(path: Path, new: Sequence[Compared]) -> None:
    """Write figures into a file, in place of what it has of their areas."""
    known = read(path) if path.exists() else []
    areas = dict.fromkeys(one.area for one in (*known, *new))
    made = {one.area for one in new}
    kept = [*new, *(one for one in known if one.area not in made)]
    ordered = [one for area in areas for one in kept if one.area == area]
    write_rows((asdict(one) for one in ordered), str(path))
