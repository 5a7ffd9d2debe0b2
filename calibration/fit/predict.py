"""Carry an ensemble into a what-if: an interval for every figure, and what its width is made of.

Models: uncertainty propagation by Monte Carlo: each member of the ensemble is simulated with seeds
of its own, so that the interval holds both what is not known of the server and the chance of a run.
Linux counterpart: none.
Invariants: member m, replication r has seed `seed + m * replications + r`: predictions of several
 what-ifs meet the same chance. A share is what one parameter alone explains of a figure's
 variance (a parabola in its ranks, adjusted for what a parabola explains of noise); correlated
 parameters share, so that shares are not added up. `chance` is the variance inside a member, where
 there are replications; what is left is interactions.
Left out: Sobol indices, which need independent parameters; a posterior has none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import rankdata

from calibration.fit.chain import Simulator
from calibration.fit.space import Array
from sim.scenario import Scenario
from sim.scenario.fitted import Fit
from sim.study.metrics import units_of
from sim.study.summary import Summary, summarise_all
from sim.study.trial import Figures, Trial
from sim.units import Value, parse_quantity

BASE: Final = "base"
MEMBERS_MIN: Final = 20  # of an ensemble whose variance is shared out: a parabola takes three


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The ensemble's figures in one variant."""

    scenario: Scenario
    fit: Fit
    seed: int
    members: int
    replications: int
    metrics: dict[str, Summary]
    shares: dict[str, dict[str, float]]  # figure -> parameter, or "chance" -> share of variance
    joint: dict[str, float]  # figure -> share that all parameters explain together, additively

    @property
    def variant(self) -> str:
        """The what-if's name, "base" for none."""
        return self.scenario.what_if.name if self.scenario.what_if else BASE

    @property
    def kind(self) -> str:
        """Whether this variant's figures were fitted to ("reproduction") or not."""
        return "reproduction" if self.variant in self.fit.variants else "prediction"


def predict(
    fit: Fit,
    scenario: Scenario,
    name: str,
    laboratory: Simulator,
    *,
    members: int,
    replications: int,
    seed: int,
    sets: tuple[str, ...] = (),
) -> Prediction:
    """Simulate the first `members` of the ensemble in the scenario's variant and summarise."""
    what_if = scenario.what_if.name if scenario.what_if else None
    trials = [
        Trial(name, what_if, tuple(fit.member(m).items()), seed + m * replications + r, sets)
        for m in range(members)
        for r in range(replications)
    ]
    laboratory.planned = len(trials)
    runs = laboratory.figures(trials)
    units = units_of(scenario.measure)
    dims = {one.path: one.dim for one in scenario.parameters}
    parameters = _parameters(fit, members, dims)
    explained = {
        metric: _explain(parameters, table)
        for metric in units
        if members >= MEMBERS_MIN and (table := _table(runs, metric, replications)) is not None
    }
    return Prediction(
        scenario=scenario,
        fit=fit,
        seed=seed,
        members=members,
        replications=replications,
        metrics=summarise_all(runs, units),
        shares={metric: shares for metric, (shares, _joint) in explained.items()},
        joint={metric: joint for metric, (_shares, joint) in explained.items()},
    )


def _parameters(fit: Fit, members: int, dims: Mapping[str, str]) -> dict[str, Array]:
    """Return each fitted parameter's values over the members, as ranks from -1 to 1.

    A parameter that the what-if has replaced is not the ensemble's any more.
    """
    found = {}
    for i, name in enumerate(fit.parameters):
        values: list[Value] = [
            parse_quantity(_typed(row[i], dims[name]), dims[name])
            for row in fit.members[:members]
            if name in dims
        ]
        if len(set(values)) > 1:
            ranks = rankdata(np.array(values, dtype=float))
            found[name] = 2 * (ranks - 0.5) / members - 1
    return found


def _typed(text: str, dim: str) -> str:
    return text if dim != "bool" else text.lower()


def _table(runs: Sequence[Figures], metric: str, replications: int) -> Array | None:
    """Return a figure by member and replication, None if a run lacks it or all are alike."""
    values = [run.get(metric, np.nan) for run in runs]
    table = np.array(values, dtype=float).reshape(-1, replications)
    if np.isnan(table).any() or np.ptp(table) == 0:
        return None
    return table


def _explain(parameters: Mapping[str, Array], table: Array) -> tuple[dict[str, float], float]:
    """Return the share of variance by parameter and chance, and that of all parameters together."""
    means = table.mean(axis=1)
    within = float(table.var(axis=1, ddof=1).mean()) if table.shape[1] > 1 else 0.0
    total = float(means.var()) + within
    # Means still carry 1 / replications of the chance.
    scale = float(means.var()) / total
    shares = {
        name: scale * _explained([ranks, ranks**2], means) for name, ranks in parameters.items()
    }
    columns = [column for ranks in parameters.values() for column in (ranks, ranks**2)]
    if table.shape[1] > 1:
        shares["chance"] = within / total
    return shares, scale * _explained(columns, means)


def _explained(columns: Sequence[Array], values: Array) -> float:
    """Return the adjusted share of the variance of values that a linear fit explains, 0 to 1."""
    design = np.column_stack([np.ones(len(values)), *columns])
    free = len(values) - design.shape[1]
    if free < 1:
        return 0.0
    solution = np.linalg.lstsq(design, values, rcond=None)[0]
    left = float(((values - design @ solution) ** 2).sum()) / free
    return min(1.0, max(0.0, 1 - left / float(values.var(ddof=1)))) if values.std() else 0.0
