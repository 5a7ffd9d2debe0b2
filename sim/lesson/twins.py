"""Twins for lessons: what a recording says of itself, and a server made from it alone.

Models: a student who has the text that iostat printed, and nothing else.
Linux counterpart: none.
Invariants: the same text gives the same twin; in one session it is fitted once; a twin's file lives
 as long as the session.
Left out: recordings of several files, keeping the twin: `iotwin twin` has both.
"""

from atexit import register
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from calibration.dataset import open_source
from calibration.fit.budget import SIMULATIONS_MIN
from calibration.look import Look
from calibration.look import look as look_at
from calibration.look.report import to_text
from sim.lesson.fits import Member
from sim.scenario.fitted import read_fit
from sim.study.laboratory import Laboratory

RECORDED: Final = "server.txt"  # what the reports call the recording
SEED: Final = 1


@dataclass(frozen=True, kw_only=True)
class Twin:
    """A server made from a recording; run(twin.scenario) simulates it, print(twin) tells of it."""

    scenario: str
    report: str
    verdict: str
    members: tuple[Member, ...]

    def __repr__(self) -> str:
        return self.report


def look(text: str) -> str:
    """Return what a recording says, before any simulation: that of a text such as iostat's."""
    with TemporaryDirectory(prefix="iotwin.") as folder:
        return to_text(_seen(_written(text, folder)))


@cache
def twin(text: str) -> Twin:
    """Return a twin of the server of which a text such as iostat's was recorded.

    mine = twin(printed("iostat -x 5 9", server))
    run(mine.scenario, "double_load")
    """
    # By name: numpy and scipy take a second, and are an extra.
    columns = import_module("calibration.twin.columns")
    fitting = import_module("calibration.twin.fitting")
    reporting = import_module("calibration.twin.report")
    folder = _session_folder()
    recorded = _written(text, folder)
    seen = _seen(recorded)
    place = Path(folder, "twin.toml")
    made = fitting.fit_draft(
        fitting.draw_draft(seen, SEED),
        seen,
        place,
        comment=f"Twin of {seen.source.name}, made for a lesson.\n",
        seed=SEED,
        simulations=SIMULATIONS_MIN,
        laboratory=Laboratory(measure=columns.columns_of_run),
    )
    place.write_text(made.text, encoding="utf-8")
    ensemble = Path(folder, "twin.fit.toml")
    command = f"iotwin twin --simulations {SIMULATIONS_MIN} --seed {SEED} {RECORDED}"
    ensemble.write_text(fitting.ensemble_text(made, place, command, [recorded]), encoding="utf-8")
    fit = read_fit(ensemble)
    return Twin(
        scenario=str(place),
        report=reporting.twin_text(made, seen),
        verdict=made.verdict.text,
        members=tuple(Member(fit.member(number)) for number in range(len(fit.members))),
    )


def _written(text: str, folder: str) -> Path:
    """Return the file that holds a text: readers take files."""
    place = Path(folder, RECORDED)
    place.write_text(text, encoding="utf-8")
    return place


def _seen(recorded: Path) -> Look:
    """Return the look at a file; it goes by its name alone, as its folder is no student's."""
    return look_at(replace(open_source([str(recorded)]), name=RECORDED))


def _session_folder() -> str:
    """Return a folder that goes when the session ends: runs read a twin's file again."""
    folder = TemporaryDirectory(prefix="iotwin.")
    register(folder.cleanup)
    return folder.name
