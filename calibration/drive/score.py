"""How far simulated access times are from measured ones.

Models: two figures of disk modelling. The mean error is 100 (mean simulated - mean measured) / mean
 measured. The demerit (Ruemmler and Wilkes 1994) is the root mean square of the horizontal distance
 of the two cumulative distributions, in per cent of the measured mean; with as many simulated as
 measured times that is the distance of their sorted values.
Linux counterpart: none.
Invariants: both are 0 for equal samples; |mean error| <= demerit.
Left out: errors request by request: where the platter stands is not recorded.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from statistics import fmean
from typing import Any

from calibration.drive.trace import KINDS
from sim.units import NS_PER_MS


@dataclass(frozen=True, kw_only=True)
class Score:
    """Two samples of as many times, compared; means in ms, errors in per cent."""

    requests: int
    measured_mean_ms: float
    simulated_mean_ms: float
    mean_error_pct: float
    demerit_pct: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields, rounded to what they mean."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def score(measured_ns: Sequence[int], simulated_ns: Sequence[int]) -> Score:
    """Compare access times (ns) of the same requests."""
    measured, simulated = fmean(measured_ns), fmean(simulated_ns)
    pairs = zip(sorted(measured_ns), sorted(simulated_ns), strict=True)
    distance = sqrt(fmean((a - b) ** 2 for a, b in pairs))
    return Score(
        requests=len(measured_ns),
        measured_mean_ms=measured / NS_PER_MS,
        simulated_mean_ms=simulated / NS_PER_MS,
        mean_error_pct=100 * (simulated - measured) / measured,
        demerit_pct=100 * distance / measured,
    )


def score_kinds(
    kinds: Sequence[str], measured_ns: Sequence[int], simulated_ns: Sequence[int]
) -> dict[str, Score]:
    """Compare each kind of request by itself; kinds that do not occur are left out."""
    return {
        kinds[chosen[0]]: score([measured_ns[i] for i in chosen], [simulated_ns[i] for i in chosen])
        for chosen in _places(kinds)
    }


def distance_of_kinds(
    kinds: Sequence[str], measured_ns: Sequence[int], simulated_ns: Sequence[int]
) -> float:
    """Return the mean over the requests of |distance of sorted times| / mean, kind by kind."""
    total = 0.0
    for chosen in _places(kinds):
        measured = sorted(measured_ns[i] for i in chosen)
        simulated = sorted(simulated_ns[i] for i in chosen)
        apart = sum(abs(a - b) for a, b in zip(measured, simulated, strict=True))
        total += apart / fmean(measured)
    return total / len(kinds)


def _places(kinds: Sequence[str]) -> list[list[int]]:
    """Return where each kind is, without the kinds that do not occur."""
    every = ([at for at, one in enumerate(kinds) if one == kind] for kind in KINDS)
    return [chosen for chosen in every if chosen]
