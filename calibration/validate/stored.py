"""What runs came to, kept as data: the figures that the validation report is made of.

Models: a JSON list, a run a line: the rows of `validate --json`, and beside each its family, the
 seed, the date and the sources by which it was simulated.
Linux counterpart: none.
Invariants: a run is there once without a condition and at most once with each; a run that is put in
 takes the place of the same run, and of no other; the order is that of the families and ids.
Left out: the recordings themselves, which are not part of the project.
"""

import datetime
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calibration.stored_rows import read_rows
from calibration.validate.compare import Row
from sim.cli.output import write_rows

TOP: Final = Path(__file__).resolve().parents[2]
SIMULATING: Final = ("sim/**/*.py", "calibration/validate/*.py")
DIGITS: Final = 12  # of the digest, as git shows them
_KEYS: Final = ("id", "family", "predicted", "measured", "why_not", "seed", "date", "sources")


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One run, and by what it was simulated."""

    row: Row
    seed: int
    date: str  # of the simulation
    sources: str  # digest of the sources that simulated it

    @property
    def name(self) -> str:
        """The run without the number of its repeat."""
        return self.row.id.rsplit(".r", 1)[0]

    @property
    def place(self) -> tuple[str, str, str]:
        """What it is sorted by, and found by."""
        return self.row.family, self.row.id, self.row.condition

    def to_json(self) -> dict[str, Any]:
        """Return it as what json can write."""
        told = {"family": self.row.family, "why_not": self.row.why_not, "measured": None}
        made = {"seed": self.seed, "date": self.date, "sources": self.sources}
        return told | self.row.to_json() | made


def sources_digest(top: Path = TOP) -> str:
    """Return the digest of all sources that take part in a simulation of a recorded run."""
    paths = sorted({path for pattern in SIMULATING for path in top.glob(pattern)})
    found = hashlib.sha256()
    for path in paths:
        found.update(f"{path.relative_to(top).as_posix()}\n".encode() + path.read_bytes())
    return found.hexdigest()[:DIGITS]


def stored(rows: Iterable[Row], seed: int) -> list[Stored]:
    """Return rows that have just been simulated, with today's date and the sources of this tree."""
    date, sources = datetime.date.today().isoformat(), sources_digest()
    return [Stored(row=row, seed=seed, date=date, sources=sources) for row in rows]


def read(path: Path) -> list[Stored]:
    """Return what a file has; raise BadData if it is no such file."""
    return [_from_json(row) for row in read_rows(path, "run", _KEYS)]


def _from_json(row: Mapping[str, Any]) -> Stored:
    return Stored(
        row=Row(
            id=row["id"],
            family=row["family"],
            predicted=row["predicted"],
            measured=row["measured"],
            why_not=row["why_not"],
            condition=row.get("condition", ""),
        ),
        seed=row["seed"],
        date=row["date"],
        sources=row["sources"],
    )


def put(path: Path, new: Sequence[Stored]) -> None:
    """Write the runs into a file, each in the place of what the file has of it."""
    known = {one.place: one for one in read(path)} if path.exists() else {}
    known |= {one.place: one for one in new}
    write_rows((known[place].to_json() for place in sorted(known)), str(path))


def predicted_again(one: Stored, figures: Mapping[str, Any]) -> list[str]:
    """Return what a new simulation says otherwise than the stored one, figure by figure."""
    was = one.row.predicted or {}
    return [
        f"{one.row.id}: {name} is {figures.get(name)} now and {was.get(name)} in the data"
        for name in sorted({*was, *figures})
        if was.get(name) != figures.get(name)
    ]
