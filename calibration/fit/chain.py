"""The whole chain: design, simulate, emulate, sample; again where it matters; the ensemble.

Models: five waves. The first covers the prior and does not depend on the recording; each other is
drawn from the posterior so far, so that the emulator is best where the answer is.
Linux counterpart: none.
Invariants: point i of the design has seed `seed + i` in every recorded state: states meet the same
 chance, points do not, so that the emulator sees how much a run's chance is. (The same chance at
 every point would make a smoother surface, and hide that the server's own is not known.)
 One thread of linear algebra: the order of its sums would change the last digits.
Left out: waves until nothing changes; five are affordable. Of a slow scenario the first ones alone
may be simulated (`waves_done`): the same points, a rougher fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from calibration.fit.budget import MEMBERS, SIMULATIONS, WAVES
from calibration.fit.columns import RecordedColumn, matrix
from calibration.fit.emulator import Emulator
from calibration.fit.posterior import STEPS, Posterior, Target, sample
from calibration.fit.space import Array, Space
from sim.scenario.calibrate import CalibrateSpec
from sim.study.trial import Figures, Trial

_FIRST_SHARE = 0.4  # of the simulations: the design over the prior
_LATER = WAVES - 1
_MARGIN = 0.25  # of the posterior's box, on each side
_NEAR_MIN = 3  # points kept for each coefficient of a plane


class Simulator(Protocol):
    """What gives the figures of trials: a laboratory (sim.study), or what knows them without."""

    planned: int  # how many are going to be asked for in all: for progress

    def figures(self, trials: Sequence[Trial]) -> Sequence[Figures]:
        """Return the figures of trials, in their order."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to fit: which scenario, to which states, with what budget."""

    scenario: str
    spec: CalibrateSpec
    states: tuple[str, ...]
    seed: int
    simulations: int = SIMULATIONS
    waves_done: int = WAVES  # of the five, the first ones
    members: int = MEMBERS
    sets: tuple[str, ...] = ()

    @property
    def waves(self) -> tuple[int, ...]:
        """Points of each wave that is simulated."""
        first = round(self.simulations * _FIRST_SHARE)
        edges = [first + (self.simulations - first) * i // _LATER for i in range(_LATER + 1)]
        return (first, *(high - low for low, high in pairwise(edges)))[: self.waves_done]

    @property
    def name(self) -> str:
        """The scenario's name, where it was given by path too."""
        return Path(self.scenario).stem

    @property
    def kind(self) -> str:
        """Whether what-ifs are predicted by the fit, or were used in it."""
        used = [self.spec.against[name].what_if for name in self.states]
        return "reproduction" if any(used) else "prediction"


@dataclass(frozen=True, kw_only=True)
class Wave:
    """Points that were simulated, and their figures by state."""

    points: Array
    runs: list[dict[str, Figures]]

    def __add__(self, other: "Wave") -> "Wave":
        return Wave(points=np.vstack([self.points, other.points]), runs=self.runs + other.runs)


@dataclass(frozen=True, kw_only=True)
class FitResult:
    """What the chain found."""

    plan: Plan
    space: Space
    columns: tuple[RecordedColumn, ...]
    wave: Wave
    emulator: Emulator
    posterior: Posterior
    ensemble: Array

    @property
    def loss(self) -> float:
        """Mean squared error of the columns at the best point, in standard deviations."""
        return float(np.mean(self.errors(self.posterior.best[None])[0] ** 2))

    def errors(self, points: Array) -> Array:
        """Return recorded - emulated at points, in standard deviations, shape (points, columns)."""
        means, deviations = self.emulator.predict(points)
        target = target_of(self.columns)
        errors: Array = (target.values - means) / np.hypot(deviations, target.spreads)
        return errors


def target_of(columns: Sequence[RecordedColumn]) -> Target:
    """Return recorded columns as what the posterior compares with."""
    return Target(
        np.array([one.target for one in columns]), np.array([one.spread for one in columns])
    )


def calibrate(plan: Plan, columns: tuple[RecordedColumn, ...], laboratory: Simulator) -> FitResult:
    """Carry the plan out."""
    space = Space(plan.spec.priors)
    laboratory.planned = sum(plan.waves) * len(plan.states)
    wave = first_wave(plan, space, laboratory)
    wave, posterior, emulator = refine(plan, space, columns, wave, laboratory)
    return FitResult(
        plan=plan,
        space=space,
        columns=columns,
        wave=wave,
        emulator=emulator,
        posterior=posterior,
        ensemble=posterior.ensemble(plan.members, plan.seed),
    )


def first_wave(plan: Plan, space: Space, laboratory: Simulator) -> Wave:
    """Simulate a design over the prior."""
    points = space.sobol(plan.waves[0], plan.seed, "fit.design")
    return simulate_points(plan, space, points, plan.seed, laboratory)


def refine(
    plan: Plan,
    space: Space,
    columns: tuple[RecordedColumn, ...],
    wave: Wave,
    laboratory: Simulator,
) -> tuple[Wave, Posterior, Emulator]:
    """Simulate the later waves where the recording is; return all points near, and the result."""
    seed = plan.seed + plan.waves[0]
    box = space.everywhere()
    for number in plan.waves[1:]:
        posterior, _emulator = infer(space, columns, wave, plan.seed, box=box, steps=STEPS // 2)
        box = box_around(space, posterior)
        points = posterior.ensemble(number, seed)
        wave = near(wave, box) + simulate_points(plan, space, points, seed, laboratory)
        seed += number
    return wave, *infer(space, columns, wave, plan.seed, box=box)


def near(wave: Wave, box: Array) -> Wave:
    """Return the points of a wave inside a box, and the next ones if there are few.

    Far from the posterior the twin does other things (a storm that its senders limit), and an
    emulator that had to follow these as well would be worse where the answer is. Chosen by
    parameters, never by results.
    """
    low, high = box
    outside = np.maximum(np.maximum(low - wave.points, wave.points - high), 0) / (high - low)
    distance = outside.max(axis=1)
    few = _NEAR_MIN * (wave.points.shape[1] + 1)
    order = np.argsort(distance, kind="stable")
    kept = np.sort(order[: max(few, int((distance == 0).sum()))])
    return Wave(points=wave.points[kept], runs=[wave.runs[i] for i in kept])


def box_around(space: Space, posterior: Posterior) -> Array:
    """Return the box that a posterior lies in, with a margin: lower and upper coordinates.

    What is outside has been found implausible, and stays so when its points are dropped. A count
    keeps what is rounded to it: the sample's points are whole, a box between them has no inside.
    """
    ends = np.quantile(posterior.points, (0.01, 0.99), axis=0)
    margin = _MARGIN * (ends[1] - ends[0])
    low = np.minimum(ends[0] - margin, space.beside(ends[:1], -0.5)[0])
    high = np.maximum(ends[1] + margin, space.beside(ends[1:], 0.5)[0])
    return np.stack([low, high])


def simulate_points(
    plan: Plan, space: Space, points: Array, seed: int, laboratory: Simulator
) -> Wave:
    """Simulate points in every state of the plan, point i with seed + i."""
    trials = [
        Trial(
            plan.scenario,
            plan.spec.against[state].what_if,
            tuple(space.texts(point).items()),
            seed + i,
            plan.sets,
            plan.spec.duration_ns,
        )
        for i, point in enumerate(points)
        for state in plan.states
    ]
    figures = iter(laboratory.figures(trials))
    runs = [{state: next(figures) for state in plan.states} for _point in points]
    return Wave(points=points, runs=runs)


def infer(
    space: Space,
    columns: tuple[RecordedColumn, ...],
    wave: Wave,
    seed: int,
    *,
    box: Array,
    steps: int = STEPS,
) -> tuple[Posterior, Emulator]:
    """Return the posterior inside a box given simulations, and the emulator that it rests on."""
    emulator = emulate(columns, wave)
    with threadpool_limits(1):
        return sample(space, emulator, target_of(columns), seed, box=box, steps=steps), emulator


def emulate(columns: Sequence[RecordedColumn], wave: Wave) -> Emulator:
    """Return the emulator of columns that simulations teach."""
    with threadpool_limits(1):
        return Emulator(wave.points, matrix(columns, wave.runs), [one.name for one in columns])
