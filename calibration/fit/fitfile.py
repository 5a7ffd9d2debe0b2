"""Write a fit as a file that `iotwin run --fit` and `iotwin predict` read.

Models: a result with its pedigree.
Linux counterpart: none.
Invariants: depends on scenario, recording, seed and budget only, not on where or how fast it was
 made; sim.scenario.fitted reads it back.
Left out: the simulations themselves.
"""

import json
import math
import shlex
from collections.abc import Mapping

import sim
from calibration.fit.budget import MEMBERS, SIMULATIONS, WAVES
from calibration.fit.chain import FitResult, Plan
from calibration.fit.recorded import fingerprints
from calibration.fit.report import ParameterRow, parameter_rows

_HEAD = """\
# Fitted parameters of scenario {scenario}: generated, do not edit. Made again by
#   {command}
# `best` is the member of highest posterior density; `members` are draws from the posterior.
"""


def command_of(plan: Plan) -> str:
    """Return the command that makes the same fit."""
    against = "both" if len(plan.states) > 1 else plan.states[0]
    words = ["iotwin", "calibrate", plan.scenario, "--against", against, "--seed", str(plan.seed)]
    for value, default, option in (
        (plan.simulations, SIMULATIONS, "--simulations"),
        (plan.waves_done, WAVES, "--waves"),
        (plan.members, MEMBERS, "--members"),
    ):
        words += [option, str(value)] if value != default else []
    for one in plan.sets:
        words += ["--set", one]
    return shlex.join(words)


def fit_text(result: FitResult) -> str:
    """Return the TOML text of a fit of a scenario to its data set."""
    plan = result.plan
    assert plan.spec.folder is not None
    return sealed_text(result, command_of(plan), fingerprints(plan.spec.folder))


def sealed_text(result: FitResult, command: str, sha256: Mapping[str, str]) -> str:
    """Return the TOML text of a fit, with what made it and the hashes of what it was fitted to."""
    plan = result.plan
    rows = parameter_rows(result)
    header = {
        "kind": plan.kind,
        "scenario": plan.name,
        "against": ", ".join(plan.states),
        "variants": [plan.spec.against[state].what_if or "base" for state in plan.states],
        "recording": plan.spec.recording,
        "command": command,
        "seed": plan.seed,
        "version": sim.__version__,
        "simulations": sum(plan.waves) * len(plan.states),
        "loss": float(f"{result.loss:.4g}"),
        "r_hat": float(f"{result.posterior.r_hat.max():.4g}"),
        "converged": result.posterior.has_converged,
    }
    parts = [
        _HEAD.format(scenario=plan.name, command=command),
        _table("fit", header),
        _table("fit.sha256", sha256),
        _table("best", result.space.texts(result.posterior.best)),
        "[parameter]\n" + "".join(_row(row) for row in rows),
        _ensemble(result),
    ]
    return "\n".join(parts)


def _table(name: str, values: Mapping[str, object]) -> str:
    lines = [f"{_key(key)} = {_value(value)}" for key, value in values.items()]
    return "\n".join([f"[{name}]", *lines]) + "\n"


def _row(row: ParameterRow) -> str:
    texts = {
        "median": row.median,
        "low": row.low,
        "high": row.high,
        "prior_low": row.prior_low,
        "prior_high": row.prior_high,
        "narrowed": round(row.narrowed, 3),
        "identified": row.is_identified,
    }
    inside = ", ".join(f"{key} = {_value(value)}" for key, value in texts.items())
    return f"{_key(row.path)} = {{ {inside} }}\n"


def _ensemble(result: FitResult) -> str:
    space = result.space
    rows = [json.dumps(list(space.texts(point).values())) for point in result.ensemble]
    body = ",\n".join(f"    {row}" for row in rows)
    names = json.dumps(list(space.names))
    return f"[ensemble]\nparameters = {names}\nmembers = [\n{body},\n]\n"


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else json.dumps(name)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # nan and inf, as TOML has them and JSON has not
    return json.dumps(value)
