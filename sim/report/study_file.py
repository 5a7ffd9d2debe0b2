"""The file that every study writes with --json: schema iotwin.study/1.

Models: the machine-readable form of a study's tables.
Linux counterpart: none; JSON Schema, draft 2020-12.
Invariants: the file is what study.schema.json beside this module says. A point says what was run
 (`what_if`, `set`) in the words of `iotwin run`; figures without enough runs have null intervals.
Left out: readings and times of transactions; the store has the latter.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from sim.report.levels_table import levels_json
from sim.report.study_json import study_json, summary_json
from sim.scenario.spec import Scenario
from sim.study.outcome import Shortfall, Study, VariantOutcome
from sim.study.points import Measured, Point
from sim.study.trial import model
from sim.toml.layers import set_value, split_assignment

SCHEMA: Final = "iotwin.study/1"
SCHEMA_FILE: Final = "study.schema.json"


def schema() -> dict[str, Any]:
    """Return the published schema."""
    text = files("sim.report").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def study_file(
    kind: str,
    *,
    command: str,
    version: str,
    base: Scenario,
    points: Sequence[Measured],
    result: Mapping[str, Any],
    unfinished: Shortfall | None = None,
) -> dict[str, Any]:
    """Return a study as JSON; `result` is what its kind alone has."""
    return {
        "schema": SCHEMA,
        "kind": kind,
        "command": command,
        "version": version,
        "model": model(),
        "scenario": base.name,
        "seed": base.seed,
        "unfinished": unfinished.message if unfinished is not None else None,
        "points": [point_json(one) for one in points],
        "result": dict(result),
    }


def variants_file(kind: str, study: Study, command: str) -> dict[str, Any]:
    """Return variants as JSON: a point each, and in `variants` what changed and was recorded."""
    points = [point_of_variant(outcome) for outcome in study.variants]
    base = study.variants[0].scenario
    found = study_file(
        kind,
        command=command,
        version=study.version,
        base=base,
        points=points,
        result={},
        unfinished=study.unfinished,
    )
    return found | study_json(study)


def point_of_variant(outcome: VariantOutcome) -> Measured:
    """Return a variant as a point: nothing of it is varied but by its what-if."""
    scenario = outcome.scenario
    what_if = scenario.what_if.name if scenario.what_if else None
    return Measured(
        point=Point(scenario=scenario, what_if=what_if, values=(), settings=()),
        replications=outcome.replications,
        metrics=outcome.metrics,
        levels=outcome.levels,
        stopped=outcome.stopped,
    )


def point_json(one: Measured) -> dict[str, Any]:
    """Return a point and what was measured there."""
    return {
        "what_if": one.point.what_if,
        "set": dict(_assignment(text) for text in one.point.settings),
        "seed": one.point.scenario.seed,
        "runs": len(one.replications),
        "stopped": one.stopped or None,
        "unfinished": list(one.missing),
        "figures": {name: summary_json(summary) for name, summary in one.metrics.items()},
        "levels": levels_json(one.levels),
    }


def _assignment(text: str) -> tuple[str, object]:
    """Return path and value of PATH=VALUE, the value as a scenario's file would have it."""
    path, value = split_setting(text)
    return path, set_value(value)


def split_setting(text: str) -> tuple[str, str]:
    """Return both sides of PATH=VALUE."""
    path, equals = split_assignment(text)
    return path, text[equals + 1 :]
