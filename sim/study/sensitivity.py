"""Which parameter decides a figure: parameters spread over their ranges, and chance beside them.

Models: global sensitivity analysis of a simulation that is random. A run is f(x, s): of a point x,
 whose parameters lie anywhere in their ranges independently of each other, and of a seed s, which
 is one more input. What is looked at is how f varies over both.

 *Sobol*. The total index ST of an input is the share of the variance of f that stays if all other
 inputs are held: what it does alone and together with others. The first-order index S1 is what it
 does alone. The share of chance is the total index of the seed, the mean variance between seeds at
 one point over the variance of all runs.
 *Morris*. An elementary effect is the change of f when one parameter is moved, the seed held, for a
 whole range. mu* is the mean of its size, and sigma its standard deviation: near zero if the effect
 is the same everywhere, large if it bends or depends on others. The seed is moved once in every
 trajectory: half the mean square of these changes is the mean variance between two seeds at one
 point. Chance has that as its share of the variance of all runs of the design.
By hand: f = 3 a + b + e, all three evenly between 0 and 1: the variances are 9/12, 1/12 and 1/12,
 so that ST is 9/11 and 1/11, and that of chance 1/11. mu* is 3 and 1, sigma 0. A Morris design
 takes the values 0, 1/3, 2/3 and 1 of a, whose variance is 5/36 instead of 1/12: chance has
 (1/12) / (50/36 + 1/12) = 6 % of the variance there.
Linux counterpart: none. Designs, indices and their bootstrap: SALib. Morris, Technometrics 33
 (1991), 161; Campolongo and others, Environmental Modelling & Software 22 (2007), 1509; Saltelli
 and others, Computer Physics Communications 181 (2010), 259. The seed as an input: Zhu and Sudret,
 Reliability Engineering & System Safety 214 (2021), 107815.
Invariants: a design has as many blocks as it has points (trajectories, or rows of the base sample);
 block n has the seeds 2 n and 2 n + 1 above the study's own and no others, so that parameters are
 compared under the same arrivals and blocks are independent. Intervals are of 90 %, over blocks:
 they hold what chance and the choice of points leave open. Nothing here is nan.
Left out: parameters that depend on each other; effects of pairs (S2); an interval of sigma.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from statistics import NormalDist
from typing import Any, Final

from sim.observation import percentile
from sim.scenario.calibrate import PriorSpec
from sim.scenario.fitted import Fit
from sim.scenario.spec import Scenario
from sim.study.intervals import CONFIDENCE, ONE_SIDED, Interval, t_quantile
from sim.study.outcome import Shortfall
from sim.study.over import Range
from sim.study.points import Measured, Point, Variants, point_of
from sim.toml.errors import Place
from sim.units import INTEGER, parse_quantity

MORRIS: Final = "morris"
SOBOL: Final = "sobol"
METHODS: Final = (MORRIS, SOBOL)
POINTS: Final = {MORRIS: 10, SOBOL: 128}  # blocks, if the user says nothing
POINTS_MIN: Final = 4  # of fewer blocks no bootstrap says anything
LEVELS: Final = 4  # values of each parameter in a Morris design
RESAMPLES: Final = (100, 1000)  # of a bootstrap: at least, and at most
_DRAWN_MAX: Final = 2_000_000  # numbers that all resamples may have together: 16 MB
TAIL: Final = (1 - CONFIDENCE) / 2  # of the members of a fit, to either side of a range
_NOISE: Final = 1e-12  # of its size: a figure that varies by less has only slips of rounding
_SCALE = {False: "linear", True: "logarithmic"}


# -- What is varied


@dataclass(frozen=True, kw_only=True)
class Factor:
    """A parameter and its range: evenly, or evenly in its logarithm; `source` is of the range."""

    range: Range
    is_log: bool = False
    source: str = ""

    @property
    def path(self) -> str:
        """The parameter."""
        return self.range.path

    @property
    def scale(self) -> str:
        """How it is spread over the range."""
        return _SCALE[self.is_log]

    def at(self, share: float) -> int | float:
        """Return the value at a share of the range, 0 to 1."""
        if not self.is_log:
            return self.range.at(share)
        low, high = self.range.low, self.range.high
        return self.range.near(low * (high / low) ** share)


def factor_of(prior: PriorSpec) -> Factor:
    """Return the range of a prior: its bounds, or the 90 % interval that it states."""
    found = _factor(prior.path, prior.dim, (prior.low, prior.high), prior.source)
    return replace(found, is_log=prior.distribution.startswith("log-"))


def _factor(path: str, dim: str, ends: tuple[float, float], source: str) -> Factor:
    low, high = (round(end) if dim in INTEGER else end for end in ends)
    place = Place(f"range of {path}, {source}", 0, 1, 1, "")
    whole = Range(path=path, dim=dim, place=place, spec="", low=low, high=high)
    return Factor(range=whole, source=source)


def factors_of(fit: Fit, scenario: Scenario) -> Iterator[Factor]:
    """Yield what a fit leaves open: its parameters from 5th to 95th percentile of the members."""
    dims = {one.path: one.dim for one in scenario.parameters}
    for number, path in enumerate(fit.parameters):
        if path not in dims:
            continue
        dim = dims[path]
        values = sorted(float(parse_quantity(one[number], dim)) for one in fit.members)
        low, high = percentile(values, TAIL), percentile(values, 1 - TAIL)
        if low < high:
            yield _factor(path, dim, (low, high), f"fit: {fit.file}")


# -- Designs


@dataclass(frozen=True)
class Sample:
    """One run of a design: where each parameter lies in its range, and which seed it has."""

    shares: tuple[float, ...]
    seed: int  # from 0 on, to be added to the study's own


@dataclass(frozen=True)
class Plan:
    """A method, how many blocks, how many parameters."""

    method: str
    blocks: int
    parameters: int

    @property
    def block(self) -> int:
        """Runs of a block: a first one, one for each input that is moved, for Sobol a last one."""
        return self.parameters + (2 if self.method == MORRIS else 3)

    @property
    def runs(self) -> int:
        """Runs of the design."""
        return self.blocks * self.block

    @property
    def problem(self) -> dict[str, Any]:
        """The inputs as SALib names them: the parameters' shares, and the seed as the last."""
        number = self.parameters + 1
        names = [f"x{i}" for i in range(number)]
        return {"num_vars": number, "names": names, "bounds": [[0.0, 1.0]] * number}


class Design:
    """The runs of a plan, and what a figure of all of them says."""

    def __init__(self, plan: Plan, seed: int) -> None:
        """Take the points; the same seed takes the same ones."""
        self.plan = plan
        self._seed = 1 + seed  # SALib understands 0 as none
        # By name: SALib takes two seconds, and nothing else needs it.
        sample = import_module(f"SALib.sample.{plan.method}").sample
        options = {"num_levels": LEVELS} if plan.method == MORRIS else {"calc_second_order": False}
        with _quiet():
            self._rows = sample(plan.problem, plan.blocks, seed=self._seed, **options)
        self.samples = tuple(self._sample(number) for number in range(plan.runs))

    def _sample(self, number: int) -> Sample:
        """Return a run; of the input that is the seed it only counts whether it has moved."""
        block = number // self.plan.block
        row, first = self._rows[number], self._rows[block * self.plan.block]
        return Sample(tuple(map(float, row[:-1])), 2 * block + int(row[-1] != first[-1]))

    def analyse(self, values: Sequence[float | None]) -> "Analysis":
        """Return what the values of a figure say, one for each run; None: it has no such figure.

        A block is left out if one of its runs lacks the figure. Without effects are a figure that
        does not vary, and one that half of the blocks or more lack.
        """
        size = self.plan.block
        blocks = [range(size * n, size * (n + 1)) for n in range(self.plan.blocks)]
        whole = [one for one in blocks if all(values[i] is not None for i in one)]
        kept = [i for one in whole for i in one]
        found = [value for i in kept if (value := values[i]) is not None]
        known = [value for value in values if value is not None]
        seen = Analysis(
            lacking=len(values) - len(known),
            blocks=len(whole),
            least=min(known, default=None),
            greatest=max(known, default=None),
        )
        enough = len(whole) >= POINTS_MIN and 2 * len(whole) > self.plan.blocks
        if not enough or _is_constant(found):
            return seen
        figures = import_module("numpy").array(found, dtype=float)
        with _quiet():
            if self.plan.method == MORRIS:
                return self._morris(seen, self._rows[kept], figures)
            return self._sobol(seen, figures)

    def _morris(self, seen: "Analysis", rows: Any, figures: Any) -> "Analysis":
        """Return mu* and sigma of each parameter, and the share of chance."""
        found = import_module("SALib.analyze.morris").analyze(
            self.plan.problem,
            rows,
            figures,
            num_resamples=_resamples(len(figures)),
            conf_level=CONFIDENCE,
            num_levels=LEVELS,
            seed=self._seed,
        )
        effects = tuple(
            Effect(
                number,
                _not_below_zero(
                    _estimate(found["mu_star"][number], found["mu_star_conf"][number], seen.blocks)
                ),
                Estimate(float(found["sigma"][number]), None),
            )
            for number in range(self.plan.parameters)
        )
        return replace(seen, effects=effects, chance=self._chance(rows, figures))

    def _chance(self, rows: Any, figures: Any) -> "Estimate":
        """Return the mean variance between two seeds at a point over that of all runs."""
        numpy = import_module("numpy")
        by_block = figures.reshape(-1, self.plan.block)
        seeds = rows[:, -1].reshape(by_block.shape)
        changes = numpy.diff(by_block, axis=1)[numpy.diff(seeds, axis=1) != 0]

        if not changes.any():
            return Estimate(0.0, (0.0, 0.0))

        def log_share(which: Any, axis: int) -> Any:
            """Return the logarithm of the share, whose distribution is less skewed."""
            between = numpy.mean(changes[which] ** 2, axis=axis) / 2
            return numpy.log(between / by_block[which].var(axis=(axis - 1, axis)))

        numbers = numpy.arange(len(by_block))
        error = (
            import_module("scipy.stats")
            .bootstrap(
                (numbers,),
                log_share,
                n_resamples=_resamples(len(figures)),
                method="basic",
                rng=self._seed,
            )
            .standard_error
        )
        log, half = float(log_share(numbers, -1)), _half_width(float(error), len(numbers))
        ends = (math.exp(log - half), min(math.exp(log + half), 1.0))
        return Estimate(min(math.exp(log), 1.0), ends if math.isfinite(half) else None)

    def _sobol(self, seen: "Analysis", figures: Any) -> "Analysis":
        """Return ST and S1 of each parameter; the share of chance is the ST of the seed."""
        found = import_module("SALib.analyze.sobol").analyze(
            self.plan.problem,
            figures,
            calc_second_order=False,
            num_resamples=_resamples(len(figures)),
            conf_level=CONFIDENCE,
            seed=self._seed,
        )
        *effects, chance = (
            Effect(
                number,
                _estimate(found["ST"][number], found["ST_conf"][number], seen.blocks),
                _estimate(found["S1"][number], found["S1_conf"][number], seen.blocks),
            )
            for number in range(self.plan.parameters + 1)
        )
        return replace(seen, effects=tuple(effects), chance=chance.main)


def _resamples(runs: int) -> int:
    return max(RESAMPLES[0], min(RESAMPLES[1], _DRAWN_MAX // runs))


def _half_width(error: float, blocks: int) -> float:
    """Return how far an interval reaches to either side, from a standard error of a bootstrap.

    That of few blocks is too small, by sqrt((n - 1) / n), and is itself not well known.
    """
    return t_quantile(ONE_SIDED, blocks - 1) * error * math.sqrt(blocks / (blocks - 1))


def _estimate(value: Any, reach: Any, blocks: int) -> "Estimate":
    """Return an index and its interval, from what SALib makes of a normal distribution."""
    centre = float(value)
    half = _half_width(float(reach) / NormalDist().inv_cdf(ONE_SIDED), blocks)
    return Estimate(centre, (centre - half, centre + half) if math.isfinite(half) else None)


def _not_below_zero(found: "Estimate") -> "Estimate":
    """Return an index that is a size with the part of its interval that can be."""
    if found.interval is None:
        return found
    return Estimate(found.value, (max(found.interval[0], 0.0), found.interval[1]))


def _is_constant(values: Sequence[float]) -> bool:
    low, high = min(values), max(values)
    return high - low <= _NOISE * max(abs(low), abs(high))


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what the documents say: no power of two, a resample without variance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


# -- What a figure says


@dataclass(frozen=True)
class Estimate:
    """An index and its 90 % interval, None if there is none."""

    value: float
    interval: Interval | None


@dataclass(frozen=True)
class Effect:
    """What one parameter does, by its number: mu* and sigma, or ST and S1."""

    number: int
    main: Estimate  # by which parameters are ordered
    beside: Estimate


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What one figure says: nothing if it does not vary, or if too many runs lack it."""

    lacking: int  # runs without the figure
    blocks: int  # all of whose runs have it
    least: float | None
    greatest: float | None
    effects: tuple[Effect, ...] = ()
    chance: Estimate | None = None

    @property
    def ordered(self) -> list[Effect]:
        """The effects, the greatest first."""
        return sorted(self.effects, key=lambda one: -one.main.value)


# -- On the twin


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """A study: what was varied, what was run, what each figure says.

    `unfinished`: of a part of a design no figure says anything, and `analyses` is empty.
    """

    base: Scenario
    plan: Plan
    factors: tuple[Factor, ...]
    points: tuple[Measured, ...]
    analyses: Mapping[str, Analysis]
    unfinished: Shortfall | None = None


def points_of(
    variants: Variants, what_if: str | None, factors: Sequence[Factor], design: Design
) -> list[Point]:
    """Return the points of a design; raise ScenarioError where a value cannot be."""
    first = variants.read(what_if).seed
    paths = [one.range for one in factors]
    found = []
    for sample in design.samples:
        values = [one.at(share) for one, share in zip(factors, sample.shares, strict=True)]
        seeded = replace(variants, seed=first + sample.seed)
        found.append(point_of(seeded, what_if, paths, values))
    return found


def assemble_sensitivity(
    base: Scenario,
    factors: Sequence[Factor],
    design: Design,
    points: Sequence[Measured],
    figures: Sequence[str],
    unfinished: Shortfall | None = None,
) -> Sensitivity:
    """Return what the points of a design say of figures."""
    runs = [one.replications[0].metrics for one in points]
    analyses = (
        {}
        if unfinished is not None
        else {name: design.analyse([run.get(name) for run in runs]) for name in figures}
    )
    return Sensitivity(
        base=base,
        plan=design.plan,
        factors=tuple(factors),
        points=tuple(points),
        analyses=analyses,
        unfinished=unfinished,
    )
