"""Power cuts for lessons: what a server had promised, and what is left of it.

Models: a student who pulls the plug and boots again.
Linux counterpart: none.
Invariants: the figures are those of `iotwin run --crash-at`; a cut is simulated once in a session.
Left out: several cuts of one run.
"""

from functools import cache

from sim.lesson.runs import NOTHING, Asked, Changes, Figures, changes_of
from sim.report.power_cut_text import mounts, table
from sim.report.tables import plain
from sim.study.power_cut import PowerCut, cut_power
from sim.units import parse_quantity


class Left(Figures):
    """What is left after a power cut: figures by name."""

    def __init__(self, found: PowerCut) -> None:
        super().__init__("a power cut", found.figures)
        self.found = found

    def __repr__(self) -> str:
        at_s = self.found.at_ns / 1e9
        head = f"{self.found.scenario.label}: the power goes after {at_s:g} s\n\n"
        return f"{head}{plain(table(self.found))}\n{mounts(self.found)}"


def cut(
    scenario: str,
    what_if: str | None = None,
    *,
    at: str,
    set: Changes = NOTHING,
    seed: int | None = None,
) -> Left:
    """Simulate a scenario until the power goes, such as at="8 s"; return what is left.

    Raises UnitError for a time that is none, MomentError for one outside the run, and
    NothingPromisedError where no program has promised anything by then.
    """
    at_ns = int(parse_quantity(at, "time_ns"))
    asked = Asked(scenario, what_if, changes_of(set), seed)
    return Left(_cut(asked, at_ns, asked.digest()))


@cache
def _cut(asked: Asked, at_ns: int, _digest: str) -> PowerCut:
    """Simulate once; `_digest` is that of the scenario's file."""
    return cut_power(asked.scenario(), at_ns, 1)
