"""The outcome of a study as JSON.

Models: the machine-readable form of the tables.
Linux counterpart: none.
Invariants: the keys of one variant are scenario, what_if, seed, replications, version, kind,
 metrics, digests (of the runs, in the order of their seeds), levels if it has service levels, and
 unfinished, if there are marks of the measured part that did not come; each metric has median,
 lo, hi, unit, the number of runs n, mean, mean_lo, mean_hi, median_lo, median_hi (null where the
 runs are too few), min, max, and `recorded` where a value was recorded. A change has `named`:
 whether it is more than chance.
Left out: bounds and verdicts, which are judgements of the recording's own file.
"""

from typing import Any

from sim.report.levels_table import levels_json
from sim.report.study_tables import recorded_figures
from sim.scenario import Scenario
from sim.study.intervals import Interval
from sim.study.outcome import Study, VariantOutcome
from sim.study.summary import Summary


def variant_json(outcome: VariantOutcome, version: str) -> dict[str, Any]:
    """Return one variant."""
    recorded = recorded_figures(outcome)
    missing = list(outcome.seen.missing)
    metrics: dict[str, dict[str, Any]] = {}
    for name, summary in outcome.metrics.items():
        metrics[name] = summary_json(summary)
        figure = recorded.get(name)
        if figure is not None and figure.value is not None:
            metrics[name]["recorded"] = figure.value
    return {
        **variant_head(outcome.scenario, len(outcome.replications), version),
        "kind": outcome.kind,
        **({"unfinished": missing} if missing else {}),
        "metrics": metrics,
        **({"levels": levels_json(outcome.levels)} if outcome.levels else {}),
        "digests": [run.digest for run in outcome.replications],
    }


def variant_head(scenario: Scenario, replications: int, version: str) -> dict[str, Any]:
    """Return what was run, and how to run it again."""
    return {
        "scenario": scenario.name,
        "what_if": scenario.what_if.name if scenario.what_if else None,
        "seed": scenario.seed,
        "replications": replications,
        "version": version,
    }


def study_json(study: Study) -> dict[str, Any]:
    """Return all variants; `change` is the paired change against the first."""
    variants = []
    for outcome in study.variants:
        variants.append(variant_json(outcome, study.version))
        if outcome.change is not None:
            variants[-1]["change"] = changes_json(outcome)
    base = study.variants[0]
    return {
        "scenario": base.scenario.name,
        "seed": base.scenario.seed,
        "replications": len(base.replications),
        "version": study.version,
        "variants": variants,
    }


def changes_json(outcome: VariantOutcome) -> dict[str, Any]:
    """Return by figure the paired change of a variant; nothing of the base."""
    return {
        name: {**summary_json(one), "named": name in outcome.named}
        for name, one in (outcome.change or {}).items()
    }


def summary_json(summary: Summary) -> dict[str, Any]:
    """Return one metric: where one more run would lie, then what is known of all runs."""
    return {
        "median": summary.median,
        "lo": summary.lo,
        "hi": summary.hi,
        "unit": summary.unit,
        "n": summary.runs,
        "mean": summary.mean,
        **_bounds("mean", summary.mean_interval),
        **_bounds("median", summary.median_interval),
        "min": summary.least,
        "max": summary.greatest,
    }


def _bounds(name: str, interval: Interval | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{name}_lo": low, f"{name}_hi": high}
