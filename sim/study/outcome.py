"""What a study found: each variant's replications summarised, against the base and the recording.

Models: the outcome of an experiment; what tables, plots and JSON show.
Linux counterpart: none.
Invariants: the first variant is the base of every change; all variants have the same seeds.
Left out: running (sim.study.replicate) and rendering (sim.report).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sim
from sim.histogram import Histogram
from sim.observation import Observation
from sim.results import RunResult
from sim.scenario.fitted import Fit
from sim.scenario.spec import Scenario
from sim.study.label import kind_of
from sim.study.levels import Judged, Level, judge
from sim.study.metrics import units_of
from sim.study.recorded import FigureSet
from sim.study.summary import Summary, differences, named_changes, summarise, summarise_all


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a run's measured part was.

    `missing` are the marks that it ended without, `until` says so, `part` is what was measured,
    `unsteady` why there is no steady state where one was asked for.
    """

    missing: tuple[str, ...] = ()
    until: str = ""
    part: str = ""
    unsteady: str = ""

    @classmethod
    def of(cls, seen: Observation) -> "Seen":
        """Return what an observation says of itself."""
        return cls(
            missing=seen.missing,
            until=seen.unfinished(),
            part=seen.describe(),
            unsteady=seen.unsteady,
        )


@dataclass(frozen=True, kw_only=True)
class Replication:
    """One run of one variant: its figures; its readings, if they were to be kept.

    `histograms` are the times, by mark, of which it has quantiles; `cuts` the figures of each power
    cut that was asked for.
    """

    seed: int
    metrics: dict[str, float]
    histograms: Mapping[str, Histogram]
    digest: str
    seen: Seen
    cpu_s: float = 0.0
    result: RunResult | None = None
    cuts: tuple[Mapping[str, float], ...] = ()


@dataclass(frozen=True)
class Shortfall:
    """Why a study did not end, and the exit code that says so."""

    message: str
    exit_code: int


@dataclass(frozen=True, kw_only=True)
class VariantOutcome:
    """One variant: its replications, their summary, the change against the base, the recording.

    `named` are the figures whose change is more than chance, `levels` the service levels, judged.
    """

    scenario: Scenario
    replications: tuple[Replication, ...]
    metrics: dict[str, Summary]
    change: dict[str, Summary] | None
    named: tuple[str, ...]
    levels: tuple[Judged, ...]
    recorded: tuple[FigureSet, ...]
    stopped: str = ""  # whether the wanted precision was reached; "": none was asked for
    kind: str | None = None  # "reproduction", "prediction"; None: nothing fitted, nothing recorded

    @property
    def name(self) -> str:
        """The what-if's name, "base" for none."""
        return self.scenario.what_if.name if self.scenario.what_if else "base"

    @property
    def title(self) -> str:
        """The what-if's title, or the scenario's."""
        what_if = self.scenario.what_if
        return what_if.title if what_if else self.scenario.title

    @property
    def seen(self) -> Seen:
        """What the measured part of the first replication was."""
        return self.replications[0].seen

    def observation(self) -> Observation:
        """Return the first replication, whose readings were kept."""
        result = self.replications[0].result
        assert result is not None
        return Observation(result, self.scenario.measure)


@dataclass(frozen=True, kw_only=True)
class Study:
    """All variants of one scenario that were run together."""

    variants: tuple[VariantOutcome, ...]
    version: str
    unfinished: Shortfall | None = None


def assemble(
    scenarios: Sequence[Scenario],
    runs: Sequence[Sequence[Replication]],
    recorded: Sequence[tuple[FigureSet, ...]],
    levels: Sequence[tuple[Level, ...]],
    fit: Fit | None = None,
    unfinished: Shortfall | None = None,
) -> Study:
    """Summarise the replications of each variant; the first variant is the base, and has some.

    Of a study that is `unfinished` a variant may have fewer runs than the base, or none: then it is
    left out.
    """
    of_base = {run.seed: run.metrics for run in runs[0]}
    variants = []
    for number, (scenario, done) in enumerate(zip(scenarios, runs, strict=True)):
        if not done:
            continue
        units = units_of(scenario.measure)
        figures = [run.metrics for run in done]
        times = [run.histograms for run in done]
        pairs = [run for run in done if run.seed in of_base]
        base = [of_base[run.seed] for run in pairs]
        kind = kind_of(scenario, recorded[number], fit)
        beside = recorded[number]
        changes = differences(base, [run.metrics for run in pairs], units) if number else {}
        if fit is not None:
            beside = tuple(replace(one, kind=kind or one.kind) for one in beside)
        variants.append(
            VariantOutcome(
                scenario=scenario,
                replications=tuple(done),
                metrics=summarise_all(figures, units),
                change=_summaries(changes, units) if number else None,
                named=tuple(named_changes(changes)),
                levels=tuple(judge(one, figures, times) for one in levels[number]),
                recorded=beside,
                kind=kind,
            )
        )
    return Study(variants=tuple(variants), version=sim.__version__, unfinished=unfinished)


def _summaries(
    changes: Mapping[str, Sequence[float]], units: Mapping[str, str]
) -> dict[str, Summary]:
    return {name: summarise(values, units[name]) for name, values in changes.items()}
