"""The work of `iotwin predict`; what it imports takes a second, which `--help` is spared."""

import sys
from pathlib import Path

import click

import sim
from calibration.fit.envelope import envelope_beside, envelope_json, envelope_text
from calibration.fit.predict import MEMBERS_MIN, Prediction, predict
from calibration.fit.prediction_report import held, prediction_json, prediction_table
from sim.cli import options
from sim.cli.laboratory import Where
from sim.cli.output import check_apart, check_json, write_json
from sim.report.study_tables import scenario_heading
from sim.report.tables import print_table
from sim.scenario import Scenario, load
from sim.scenario.cases import fit_beside
from sim.scenario.fitted import Fit, FitError, read_fit, twin_fit
from sim.study.recorded import Figure, load_figures

_LABELS = {
    "prediction": "prediction: no parameter was fitted to figures of this variant",
    "reproduction": "reproduction: parameters were fitted to figures of this variant",
}
_SHARES = """
width mostly from: share of a figure's variance over the ensemble that the parameter alone explains
(a parabola in its ranks; correlated parameters share)."""
_NO_SHARES = f"""
width mostly from: told of {MEMBERS_MIN} members or more; of fewer it would be chance."""


def predict_variant(
    *,
    scenario_name: str,
    what_if: str | None,
    fit_path: str | None,
    members: int | None,
    replications: int,
    seed: int | None,
    sets: tuple[str, ...],
    json_path: str | None,
    where: Where,
) -> None:
    """Simulate the members, and report."""
    base = load(scenario_name, sets=sets, seed=seed)
    fit = _fit(base, fit_path)
    scenario = load(scenario_name, what_if=what_if, sets=sets, seed=seed, fit=fit.layer(fit.best))
    options.tell_omissions(scenario)
    options.tell_twin(base, [what_if] if what_if else [])
    check_json(json_path)
    check_apart(json_path, read=(scenario.path, fit_path))
    recorded: dict[str, Figure] = {}
    for one in scenario.recorded:
        recorded |= load_figures(one).figures
    number = min(members or len(fit.members), len(fit.members))
    with where.laboratory(f"predicting {scenario.label}") as laboratory:
        prediction = predict(
            fit,
            scenario,
            scenario_name,
            laboratory,
            members=number,
            replications=replications,
            seed=scenario.seed,
            sets=sets,
        )
    spec = base.calibrate
    envelope = (
        envelope_beside(prediction, spec.folder) if spec is not None and spec.folder else None
    )
    if json_path is not None:
        content = prediction_json(prediction, recorded, sim.__version__)
        if envelope is not None:
            content["mean_value_analysis"] = envelope_json(prediction, envelope)
        write_json(content, json_path)
    if json_path != "-":
        click.echo(_heading(prediction))
        print_table(prediction_table(prediction, recorded), sys.stdout)
        shares = _SHARES if prediction.members >= MEMBERS_MIN else _NO_SHARES
        click.echo(f"\n{_LABELS[prediction.kind]}{shares}")
        if told := held(prediction, recorded):
            click.echo(told)
        if envelope is not None:
            click.echo("\n" + envelope_text(prediction, envelope))


def _fit(base: Scenario, path: str | None) -> Fit:
    """Return the fit named, or the one that comes with the scenario."""
    if path is not None:
        return read_fit(Path(path), base.name)
    beside = twin_fit(base.path)
    if base.calibrate is None and beside.is_file():
        return read_fit(beside, base.name)
    if base.calibrate is None:
        raise FitError(
            f"{base.path}: no [calibrate], no {beside.name} beside it, and no --fit: nothing to"
            " predict from"
        )
    shipped = fit_beside(base.path, base.calibrate.base.figures)
    if not shipped.is_file():
        raise FitError(
            f"no fit of '{base.name}' comes along (looked for {shipped.name}):"
            f" `iotwin calibrate {base.name} -o FILE` makes one, --fit FILE takes it"
        )
    return read_fit(shipped, base.name)


def _heading(prediction: Prediction) -> str:
    scenario, fit = prediction.scenario, prediction.fit
    conditions = (
        f"{prediction.kind}: fit {fit.file} (to {fit.against}), {prediction.members} members,"
        f" {prediction.replications} replication(s) each, seed {prediction.seed},"
        f" iotwin {sim.__version__}"
    )
    return scenario_heading(scenario, conditions, options.command_line())
