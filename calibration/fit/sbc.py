"""Simulation-based calibration: does a 90 % interval hold the truth nine times in ten?

Models: recordings synthesised from known parameters, drawn from the priors, by the twin itself and
the declared spread of each column; each is fitted by the same chain, and the truth's rank in the
posterior is counted (Talts and others 2018). And: fitted to the first half of a storm, is the
second half inside its predicted interval?
Linux counterpart: none.
Invariants: the first wave is simulated once, since it does not depend on a recording; synthetic
 recordings have seeds of their own. A synthetic recording that lacks a column (a storm that did not
 end) is fitted without it.
Left out: the discrepancy between twin and server, which no simulation can show: here the twin is
 right by construction up to the declared spread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from calibration.fit.chain import (
    Plan,
    Simulator,
    Wave,
    emulate,
    infer,
    refine,
    simulate_points,
)
from calibration.fit.columns import RecordedColumn, matrix
from calibration.fit.posterior import STEPS
from calibration.fit.space import Array, Space, generator
from sim.observation import Observation
from sim.study.laboratory import Laboratory
from sim.study.metrics import metrics_of, metrics_seen
from sim.study.trial import Figures

FIRST, SECOND = "first half: ", "second half: "
_SEED_APART: Final = 10**6  # of synthetic recordings, from those of the design
_INSIDE: Final = (0.05, 0.95)


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """A recording made from known parameters."""

    number: int
    truth: Array  # coordinates
    figures: dict[str, Figures]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One fitted recording: the truth's rank by parameter, and that of each second-half column."""

    ranks: tuple[float, ...]
    second: Mapping[str, float]
    narrowed: tuple[float, ...]


def halves_of(whole: Observation) -> Figures:
    """Return the figures of a run, and those of the first and second half of its measured part."""
    figures = metrics_seen(whole)
    middle_ns = (whole.begin_ns + whole.end_ns) // 2
    if whole.is_marked:
        figures |= _part(FIRST, whole, whole.begin_ns, middle_ns)
        figures |= _part(SECOND, whole, middle_ns, whole.end_ns)
    return figures


def _part(name: str, whole: Observation, begin_ns: int, end_ns: int) -> dict[str, float]:
    seen = Observation(whole.result, whole.measure)
    seen.begin_ns, seen.end_ns = begin_ns, end_ns
    values = {metric.name: metric.compute(seen) for metric in metrics_of(whole.measure)}
    return {name + key: value for key, value in values.items() if value is not None}


def synthesise(plan: Plan, number: int, laboratory: Simulator) -> list[Synthetic]:
    """Return recordings from parameters drawn from the priors; halves_of() is what is measured."""
    space = Space(plan.spec.priors)
    truths = space.sobol(number, plan.seed, "sbc.truth")
    wave = simulate_points(plan, space, truths, plan.seed + _SEED_APART, laboratory)
    return [
        Synthetic(number=i, truth=truth, figures=run)
        for i, (truth, run) in enumerate(zip(truths, wave.runs, strict=True))
    ]


def fit_one(
    plan: Plan, first: Wave, columns: tuple[RecordedColumn, ...], synthetic: Synthetic
) -> Outcome:
    """Fit one synthetic recording with the whole chain, and its first half with one wave."""
    space = Space(plan.spec.priors)
    own = replace(plan, seed=plan.seed + 1000 * (synthetic.number + 1))
    recorded = record(columns, synthetic, own.seed)
    here = Laboratory(measure=halves_of)
    _wave, posterior, _emulator = refine(own, space, recorded, first, here)
    return Outcome(
        ranks=_ranks(posterior.points, synthetic.truth, own.seed),
        second=_second_half(own, space, columns, synthetic, first),
        narrowed=tuple(float(one) for one in space.narrowed(posterior.points)),
    )


def shared_wave(plan: Plan, laboratory: Simulator) -> Wave:
    """Simulate all points of a plan over the priors: one wave for all recordings."""
    space = Space(plan.spec.priors)
    points = space.sobol(plan.simulations, plan.seed, "fit.design")
    return simulate_points(plan, space, points, plan.seed, laboratory)


def fit_shared(
    plan: Plan, first: Wave, columns: tuple[RecordedColumn, ...], synthetic: Synthetic
) -> Outcome:
    """Fit one synthetic recording to the first wave alone, which all share: no simulation more.

    What covers here and not in fit_one() goes wrong in the later waves; what does not cover here,
    in the noise of the columns, the emulator or the sampler.
    """
    space = Space(plan.spec.priors)
    seed = plan.seed + 1000 * (synthetic.number + 1)
    recorded = record(columns, synthetic, seed)
    posterior, _emulator = infer(
        space, recorded, first, seed, box=space.everywhere(), steps=STEPS // 2
    )
    return Outcome(
        ranks=_ranks(posterior.points, synthetic.truth, seed),
        second={},
        narrowed=tuple(float(one) for one in space.narrowed(posterior.points)),
    )


def record(
    columns: Sequence[RecordedColumn], synthetic: Synthetic, seed: int
) -> tuple[RecordedColumn, ...]:
    """Return the columns as an administrator would have recorded them, with their spread."""
    values = matrix(columns, [synthetic.figures])[0]
    errors = generator(seed, "sbc.spread").standard_normal(len(columns))
    return tuple(
        one.recorded_as(value + error * one.spread)
        for one, value, error in zip(columns, values, errors, strict=True)
        if np.isfinite(value)
    )


def _ranks(points: Array, truth: Array, seed: int) -> tuple[float, ...]:
    """Return the share of the sample below the truth; a tie is broken by chance."""
    below = (points < truth - 1e-9).mean(axis=0)
    equal = (np.abs(points - truth) <= 1e-9).mean(axis=0)
    chance = generator(seed, "sbc.ties").random(len(truth))
    return tuple(float(one) for one in below + chance * equal)


def _second_half(
    plan: Plan,
    space: Space,
    columns: Sequence[RecordedColumn],
    synthetic: Synthetic,
    wave: Wave,
) -> dict[str, float]:
    """Fit the first half; return the rank of each second-half column in its prediction."""
    halves = [one for one in columns if one.metric != "duration_s" and one.bounds is None]
    first = record([_half(one, FIRST) for one in halves], synthetic, plan.seed)
    second = tuple(_half(one, SECOND) for one in halves)
    truth = matrix(second, [synthetic.figures])[0]
    known = tuple(one for one, value in zip(second, truth, strict=True) if np.isfinite(value))
    if len(first) < len(halves) or len(known) < len(halves):
        return {}
    posterior, _emulator = infer(
        space, first, wave, plan.seed, box=space.everywhere(), steps=STEPS // 2
    )
    points = posterior.ensemble(256, plan.seed)
    emulator = emulate(second, wave)
    means, deviations = emulator.predict(points)
    chance = generator(plan.seed, "sbc.second").standard_normal(means.shape)
    drawn = means + deviations * (chance @ np.linalg.cholesky(emulator.covariance).T)
    ranks = (drawn < truth).mean(axis=0)
    return {one.metric.removeprefix(SECOND): float(r) for one, r in zip(known, ranks, strict=True)}


def _half(column: RecordedColumn, half: str) -> RecordedColumn:
    return replace(column, metric=half + column.metric, name=half + column.name)


def coverage(ranks: Sequence[float]) -> float:
    """Return the share of ranks inside the 90 % interval."""
    low, high = _INSIDE
    return float(np.mean([low <= rank <= high for rank in ranks]))
