"""What [calibrate] says, as frozen records: priors, and the recorded columns to fit them to.

Models: the plan of a calibration: what is not known, what was seen, how far the twin is trusted.
Linux counterpart: none.
Invariants: frozen, picklable; bounds are canonical numbers of the parameter's dimension and
 low < high.
Left out: correlated priors; what is known together is one parameter of a model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# What `low` and `high` of a prior mean: its bounds, or its 5th and 95th percentile.
DISTRIBUTIONS: Final[Mapping[str, str]] = {
    "uniform": "bounds",
    "log-uniform": "bounds",
    "normal": "90 % interval",
    "log-normal": "90 % interval",
}


# How the reason begins for which a recorded figure is left out, where its agreement says nothing.
FOLLOWS: Final = "follows from fitted"
SAYS_NOTHING: Final = ("input", "by construction", FOLLOWS)


@dataclass(frozen=True, kw_only=True)
class PriorSpec:
    """What is believed of one parameter before the recording is looked at."""

    path: str
    dim: str
    distribution: str
    low: float
    high: float
    source: str


@dataclass(frozen=True, kw_only=True)
class ColumnSpec:
    """A recorded figure that the fit uses, and how far the twin itself may be off there."""

    metric: str
    discrepancy_percent: float
    source: str


@dataclass(frozen=True, kw_only=True)
class AgainstSpec:
    """One state of the server that was recorded: which variant it is, and its columns."""

    figures: str
    what_if: str | None
    columns: tuple[ColumnSpec, ...]
    left_out: Mapping[str, str]  # metric -> why

    def says_nothing(self, metric: str) -> str:
        """Return which of SAYS_NOTHING a left-out figure is, "" for others."""
        reason = self.left_out.get(metric, "")
        return next((kind for kind in SAYS_NOTHING if reason.startswith(f"{kind}:")), "")

    def is_fitted(self, metric: str) -> bool:
        """Whether the calibration holds the twin against a figure."""
        return any(column.metric == metric for column in self.columns)


@dataclass(frozen=True, kw_only=True)
class CalibrateSpec:
    """Parameters with priors, and the recorded states to hold the twin against."""

    recording: str  # its name
    folder: Path | None  # where it lies; None of one that is in memory alone
    duration_ns: int | None  # simulated time at most of a run of the fit
    priors: tuple[PriorSpec, ...]
    against: Mapping[str, AgainstSpec]

    @property
    def base(self) -> AgainstSpec:
        """The recorded state of the server as it was, before any what-if."""
        return next(one for one in self.against.values() if one.what_if is None)
