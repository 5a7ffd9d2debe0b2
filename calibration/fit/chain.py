"""The whole chain: design, simulate, emulate, sample; again where it matters; the ensemble.

Models: two waves. The first covers the prior and does not depend on the recording; the second is
drawn from the first's posterior, so that the emulator is best where the answer is.
Linux counterpart: none.
Invariants: point i of the design has seed `seed + i` in every recorded state: states meet the same
 chance, points do not, so that the emulator sees how much a run's chance is. (The same chance at
 every point would make a smoother surface, and hide that the server's own is not known.)
 One thread of linear algebra: the order of its sums would change the last digits.
Left out: waves until nothing changes; two are affordable.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from calibration.fit.columns import RecordedColumn, matrix
from calibration.fit.emulator import Emulator
from calibration.fit.posterior import STEPS, Posterior, Target, sample
from calibration.fit.runs import Figures, Laboratory, Trial
from calibration.fit.space import Array, Space
from sim.scenario.calibrate_spec import CalibrateSpec

MEMBERS = 128
SIMULATIONS = 96
_FIRST_SHARE = 2 / 3  # of the simulations: the design over the prior
SIMULATIONS_MIN = 24
_MARGIN = 0.25  # of the posterior's box, on each side


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to fit: which scenario, to which states, with what budget."""

    scenario: str
    spec: CalibrateSpec
    states: tuple[str, ...]
    seed: int
    simulations: int = SIMULATIONS
    members: int = MEMBERS
    sets: tuple[str, ...] = ()

    @property
    def first(self) -> int:
        """Points of the first wave."""
        return round(self.simulations * _FIRST_SHARE)

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


def calibrate(plan: Plan, columns: tuple[RecordedColumn, ...], laboratory: Laboratory) -> FitResult:
    """Carry the plan out."""
    space = Space(plan.spec.priors)
    laboratory.planned = plan.simulations * len(plan.states)
    wave = first_wave(plan, space, laboratory)
    posterior, _emulator = infer(space, columns, wave, plan.seed, steps=STEPS // 2)
    wave = near(wave, posterior) + second_wave(plan, space, posterior, laboratory)
    posterior, emulator = infer(space, columns, wave, plan.seed)
    return FitResult(
        plan=plan, space=space, columns=columns, wave=wave, emulator=emulator,
        posterior=posterior, ensemble=posterior.ensemble(plan.members, plan.seed),
    )  # fmt: skip


def first_wave(plan: Plan, space: Space, laboratory: Laboratory) -> Wave:
    """Simulate a design over the prior."""
    return simulate_points(plan, space, space.sobol(plan.first, plan.seed, "fit.design"),
                           plan.seed, laboratory)  # fmt: skip


def second_wave(plan: Plan, space: Space, posterior: Posterior, laboratory: Laboratory) -> Wave:
    """Simulate draws from the posterior so far."""
    points = posterior.ensemble(plan.simulations - plan.first, plan.seed)
    return simulate_points(plan, space, points, plan.seed + plan.first, laboratory)


def near(wave: Wave, posterior: Posterior) -> Wave:
    """Return the points of a wave in and around the box that the posterior lies in.

    Far from it the twin does other things (a storm that its senders limit), and an emulator that
    had to follow these as well would be worse where the answer is. Chosen by parameters, never by
    results.
    """
    low, high = np.quantile(posterior.points, (0.01, 0.99), axis=0)
    margin = _MARGIN * (high - low)
    inside = ((wave.points >= low - margin) & (wave.points <= high + margin)).all(axis=1)
    runs = [run for run, kept in zip(wave.runs, inside, strict=True) if kept]
    return Wave(points=wave.points[inside], runs=runs)


def simulate_points(
    plan: Plan, space: Space, points: Array, seed: int, laboratory: Laboratory
) -> Wave:
    """Simulate points in every state of the plan, point i with seed + i."""
    trials = [
        Trial(plan.scenario, plan.spec.against[state].what_if, tuple(space.texts(point).items()),
              seed + i, plan.sets, plan.spec.duration_ns)
        for i, point in enumerate(points)
        for state in plan.states
    ]  # fmt: skip
    figures = iter(laboratory.figures(trials))
    runs = [{state: next(figures) for state in plan.states} for _point in points]
    return Wave(points=points, runs=runs)


def infer(
    space: Space,
    columns: tuple[RecordedColumn, ...],
    wave: Wave,
    seed: int,
    *,
    steps: int = STEPS,
) -> tuple[Posterior, Emulator]:
    """Return the posterior given simulations, and the emulator that it rests on."""
    with threadpool_limits(1):
        emulator = Emulator(wave.points, matrix(columns, wave.runs), [one.name for one in columns])
        return sample(space, emulator, target_of(columns), seed, steps=steps), emulator
