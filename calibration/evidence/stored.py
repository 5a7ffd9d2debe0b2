"""Comparisons with recordings that are not part of the project, kept as data.

Models: a JSON list, a figure a line: how far the twin was off, when, by which sources and command.
Linux counterpart: none.
Invariants: a figure is there once; the figures of an area are replaced together; the order is that
 in which areas and figures were first put in.
Left out: the recordings, and what the figures come from.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from calibration.stored_rows import read_rows
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
    rows = read_rows(path, "figure", _KEYS)
    return [Compared(**{key: row[key] for key in _KEYS}) for row in rows]


def put(path: Path, new: Sequence[Compared]) -> None:
    """Write figures into a file, in place of what it has of their areas."""
    known = read(path) if path.exists() else []
    areas = dict.fromkeys(one.area for one in (*known, *new))
    made = {one.area for one in new}
    kept = [*new, *(one for one in known if one.area not in made)]
    ordered = [one for area in areas for one in kept if one.area == area]
    write_rows((asdict(one) for one in ordered), str(path))
