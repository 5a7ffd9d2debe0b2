"""Points of a study: variants of a scenario under settings, run and measured together.

Models: the cells of an experiment's plan, each with its replications.
Linux counterpart: none.
Invariants: points of the same Variants have the same seeds, so that they meet the same arrivals and
 differ only by what was changed. A point is its settings: `iotwin run` with them as --set does one
 of its runs.
Left out: which points there are (sim.study.over, and what asks for them).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sim.scenario.fitted import Fit
from sim.scenario.load import ScenarioFile
from sim.scenario.spec import Scenario
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.levels import Judged, Level, judge, resolve
from sim.study.metrics import units_of
from sim.study.outcome import Replication, Shortfall
from sim.study.over import Path, blaming
from sim.study.precision import Precise, look, looks
from sim.study.replicate import add_runs
from sim.study.summary import Summary, summarise_all
from sim.units import Value

PRECISE = "precise"
NOT_REACHED = "not reached"


@dataclass(frozen=True, kw_only=True)
class Variants:
    """What lies under all points: a file, and what was laid over it."""

    file: ScenarioFile
    sets: tuple[str, ...] = ()
    seed: int | None = None
    fit: Fit | None = None

    def read(
        self, what_if: str | None, settings: Sequence[str] = (), member: int | None = None
    ) -> Scenario:
        """Return a variant under settings; raise UnknownScenario or ScenarioError.

        `member` is the number of one of the fit's ensemble, counted round; None: the best one.
        """
        layer = None
        if self.fit is not None:
            number = None if member is None else member % len(self.fit.members)
            layer = self.fit.layer(self.fit.best if number is None else self.fit.member(number))
        sets = (*self.sets, *settings)
        return self.file.read(what_if, sets=sets, seed=self.seed, fit=layer)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One variant with one value of each parameter that is varied."""

    scenario: Scenario
    what_if: str | None
    values: tuple[Value, ...]
    settings: tuple[str, ...]  # the same as PATH=VALUE
    levels: tuple[Level, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A point and its runs; `stopped` says why there are as many, "" if so many were asked for.

    Where that is since a figure's mean was precise, its interval is as wide as was asked for.
    """

    point: Point
    replications: tuple[Replication, ...]
    metrics: dict[str, Summary]
    levels: tuple[Judged, ...] = ()
    stopped: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """The marks of the measured part that some run ended without."""
        return tuple(dict.fromkeys(name for run in self.replications for name in run.seen.missing))


@dataclass(frozen=True, kw_only=True)
class Precision:
    """How well the mean of a figure must be known: to a share of it, with so many runs at most."""

    figure: str
    share: float
    runs_max: int


def point_of(
    variants: Variants, what_if: str | None, paths: Sequence[Path], values: Sequence[Value]
) -> Point:
    """Return a point; raise ScenarioError where a value cannot be, at the option that gave it."""
    settings = tuple(path.setting(value) for path, value in zip(paths, values, strict=True))
    with blaming(paths):
        scenario = variants.read(what_if, settings)
    levels = resolve(scenario.slo, scenario.measure)
    # Without what only readers of a single variant ask for: there may be very many points.
    load = tuple(one for one in scenario.parameters if one.path.startswith("process."))
    scenario = replace(scenario, parameters=load, what_ifs=(), recorded=(), omissions=())
    return Point(
        scenario=scenario,
        what_if=what_if,
        values=tuple(values),
        settings=settings,
        levels=levels,
    )


def measure(
    points: Sequence[Point],
    runs: int | Precision,
    laboratory: Laboratory,
    sets: tuple[str, ...] = (),
) -> tuple[list[Measured], Shortfall | None]:
    """Run all points together, so many times or until a figure is known well enough.

    A study that did not end comes with its shortfall and what is done of it.
    """
    done: list[list[Replication]] = [[] for _point in points]
    seen: list[Precise | None] = [None] * len(points)
    numbers = (runs,) if isinstance(runs, int) else tuple(looks(runs.runs_max))
    for number in numbers:
        still = [i for i, found in enumerate(seen) if found is None or not found.reached]
        try:
            add_runs(
                [points[i].scenario for i in still],
                [done[i] for i in still],
                number,
                laboratory,
                sets=[(*sets, *points[i].settings) for i in still],
            )
        except UnfinishedError as error:
            return _measured(points, done, seen, runs), error.shortfall
        if isinstance(runs, Precision):
            for i in still:
                seen[i] = look_at(done[i], runs)
    return _measured(points, done, seen, runs), None


def look_at(done: Sequence[Replication], wanted: Precision) -> Precise | None:
    """Return what the runs say of the mean that is to be known; None if they are too few."""
    values = [run.metrics[wanted.figure] for run in done if wanted.figure in run.metrics]
    return look(values, wanted.share)


def _measured(
    points: Sequence[Point],
    done: Sequence[Sequence[Replication]],
    seen: Sequence[Precise | None],
    wanted: int | Precision,
) -> list[Measured]:
    """Return the points that have a run at least."""
    found = []
    for point, runs, precise in zip(points, done, seen, strict=True):
        if runs:
            one = measured_point(point, runs)
            if isinstance(wanted, Precision):
                stopped, metrics = stated(one.metrics, precise, wanted.figure)
                one = replace(one, stopped=stopped, metrics=metrics)
            found.append(one)
    return found


def measured_point(point: Point, runs: Sequence[Replication]) -> Measured:
    """Return what the runs of a point say: its figures, and its levels judged."""
    figures = [run.metrics for run in runs]
    times = [run.histograms for run in runs]
    return Measured(
        point=point,
        replications=tuple(runs),
        metrics=summarise_all(figures, units_of(point.scenario.measure)),
        levels=tuple(judge(one, figures, times) for one in point.levels),
    )


def stated(
    metrics: dict[str, Summary], seen: Precise | None, figure: str
) -> tuple[str, dict[str, Summary]]:
    """Return why runs ended, and their figures with the interval that may be stated then."""
    if seen is None or not seen.reached:
        return NOT_REACHED, metrics
    return PRECISE, metrics | {figure: replace(metrics[figure], mean_interval=seen.interval)}
