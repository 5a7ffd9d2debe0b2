"""Predict: what a change will do, typed before it is run.

Models: an estimate on paper, in an envelope until the answer is known.
Linux counterpart: none.
Invariants: what was typed when the answers were first shown counts from then on. Right is the mean
 of five seeds: full marks within the 90 % interval of that mean, or within 20 % of it where that
 is wider; half of them within twice that.
Left out: an interval of the student's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from sim.lab.number import Figures, Number, with_unit
from sim.lab.task import FAIL, OK, Mark
from sim.report.tables import figure
from sim.study.intervals import mean_interval

RUNS: Final = 5
SHARE: Final = 0.2  # by which it may be off, for full marks
MISTAKE_SHARE: Final = 0.05  # within which it is that of a known wrong way


@dataclass(frozen=True, kw_only=True)
class Predict(Number):
    """A figure that is predicted."""

    kind = "predict"
    runs = RUNS
    is_kept = True

    def judged(
        self, given: float | None, values: Sequence[float], unit: str, before: Figures
    ) -> Mark:
        """Return full marks near the mean of the runs, half of them within twice that."""
        right = fmean(values)
        interval = mean_interval(values)
        assert interval is not None  # of five runs there is one
        room = max(right - interval[0], SHARE * abs(right))
        low, high = figure(right - room, unit), with_unit(right + room, unit)
        answer = f"{with_unit(right, unit)}, accepted {low} .. {high}"
        if given is None:
            return self.mark(FAIL, 0, self.blank, answer)
        off = abs(given - right)
        if off <= room:
            return self.mark(OK, self.points, "", answer)
        points = self.points / 2 if off <= 2 * room else 0
        return self.mark(FAIL, points, self.why(given, right, before, MISTAKE_SHARE), answer)
