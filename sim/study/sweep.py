"""A sweep: a scenario and its what-ifs over values of some parameters, with knees and bounds.

Models: the scaling test of a performance engineer: one parameter after the other is turned, and
 each figure drawn over it.
Linux counterpart: none.
Invariants: the points of a grid are all combinations, the first parameter varying slowest, what-if
 by what-if. A *series* is what one line of a plot shows: the points of a what-if along the first
 parameter that is a number, under the same values of the others.
Left out: fitting a curve to the points.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from math import prod

from sim.scenario.spec import Scenario
from sim.study.bounds import Bounds, bounds_of, load_of, throughput_of
from sim.study.knee import knee
from sim.study.outcome import Shortfall
from sim.study.over import Listed, Path, Range
from sim.study.points import Measured
from sim.units import Value

GRID = "grid"
SOBOL = "sobol"
LHS = "lhs"


@dataclass(frozen=True)
class Design:
    """Which points are taken: all of a grid, or so many of a space."""

    kind: str
    points: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.points}" if self.points else self.kind


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line: its points in the order of the load, its knee, its bounds.

    `others` are the values of the other parameters as PATH=VALUE; `knee` is None if there is none,
    or if nothing that could have one is measured (then `of` is "").
    """

    what_if: str | None
    others: tuple[str, ...]
    points: tuple[Measured, ...]
    of: str
    knee: Value | None
    bounds: Bounds | None

    @property
    def name(self) -> str:
        """What-if and other values."""
        return ", ".join([self.what_if or "base", *self.others])


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What a sweep found; `along` is the parameter that a plot has as its axis."""

    base: Scenario
    paths: tuple[Path, ...]
    design: Design
    points: tuple[Measured, ...]
    along: Path | None
    series: tuple[Series, ...]
    unfinished: Shortfall | None


def number_of(overs: Sequence[Listed], design: Design) -> int:
    """Return how many points a design has for one what-if."""
    return design.points or prod(len(one.values) for one in overs)


def grid(overs: Sequence[Listed]) -> Iterator[tuple[Value, ...]]:
    """Yield all combinations of the values."""
    return product(*(one.values for one in overs))


def sampled(
    overs: Sequence[Listed | Range], design: Design, seed: int
) -> Iterator[tuple[Value, ...]]:
    """Yield the points of a Sobol sequence or of a Latin hypercube; these need SciPy."""
    qmc = import_module("scipy.stats").qmc  # by name: it takes half a second, and a grid needs none
    sampler = (qmc.Sobol if design.kind == SOBOL else qmc.LatinHypercube)(len(overs), seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it is no power of two: the docs say so
        rows = sampler.random(design.points)
    for shares in rows:
        yield tuple(one.at(float(share)) for one, share in zip(overs, shares, strict=True))


def assemble_sweep(
    base: Scenario,
    paths: Sequence[Path],
    design: Design,
    points: Sequence[Measured],
    unfinished: Shortfall | None = None,
) -> Sweep:
    """Return what the points of a sweep say; `base` is the scenario as it is, or a what-if."""
    along = next((one for one in paths if one.dim not in ("text", "bool")), None)
    series: tuple[Series, ...] = ()
    if along is not None and design.kind == GRID:
        series = tuple(_series(list(paths).index(along), along, points))
    return Sweep(
        base=base,
        paths=tuple(paths),
        design=design,
        points=tuple(points),
        along=along,
        series=series,
        unfinished=unfinished,
    )


def _series(number: int, along: Path, points: Sequence[Measured]) -> Iterator[Series]:
    lines: dict[tuple[str | None, tuple[str, ...]], list[Measured]] = {}
    for one in points:
        settings = one.point.settings
        others = (*settings[:number], *settings[number + 1 :])
        lines.setdefault((one.point.what_if, others), []).append(one)
    for (what_if, others), line in lines.items():
        line.sort(key=lambda one: one.point.values[number])
        yield _one_series(what_if, others, line, number, along)


def _one_series(
    what_if: str | None,
    others: tuple[str, ...],
    line: Sequence[Measured],
    number: int,
    along: Path,
) -> Series:
    scenario = line[0].point.scenario
    load = load_of(scenario, along.path)
    found = throughput_of(scenario)
    of = found[0] if found is not None else ""
    known = [one for one in line if of in one.metrics]
    values = [one.point.values[number] for one in known]
    noise = max((_half_width(one, of) for one in known), default=0.0)
    at = knee([float(value) for value in values], [one.metrics[of].mean for one in known], noise)
    lightest = float(line[0].point.values[number])
    bounds = None
    if load is not None:
        bounds = bounds_of(load, lightest, line[0].metrics, scenario.server.cpus)
    return Series(
        what_if=what_if,
        others=others,
        points=tuple(line),
        of=of if known else "",
        knee=None if at is None else values[at],
        bounds=bounds,
    )


def _half_width(one: Measured, figure: str) -> float:
    interval = one.metrics[figure].mean_interval
    return (interval[1] - interval[0]) / 2 if interval is not None else 0.0
