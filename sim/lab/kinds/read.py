"""Read: a figure of the seed's own run, right within 2 %, since runs are deterministic.

Models: reading an instrument.
Linux counterpart: none.
Invariants: one run says what is right.
Left out: half the points for half an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sim.lab.number import Figures, Number, is_near, with_unit
from sim.lab.task import FAIL, OK, Mark

SHARE: Final = 0.02  # by which it may be off


@dataclass(frozen=True, kw_only=True)
class Read(Number):
    """A figure that is read."""

    kind = "read"
    runs = 1

    def judged(
        self, given: float | None, values: Sequence[float], unit: str, before: Figures
    ) -> Mark:
        """Return full marks within the share, else none."""
        [right] = values
        answer = with_unit(right, unit)
        if given is None:
            return self.mark(FAIL, 0, self.blank, answer)
        if is_near(given, right, SHARE):
            return self.mark(OK, self.points, "", answer)
        return self.mark(FAIL, 0, self.why(given, right, before, SHARE), answer)
