"""The work of `iotwin calibrate`; what it imports takes a second, which `--help` is spared."""

import tomllib
from importlib import import_module
from pathlib import Path

import click

import sim
from calibration.fit.chain import Plan, calibrate
from calibration.fit.fitfile import command_of, fit_text
from calibration.fit.recorded import columns_of
from calibration.fit.report import report
from sim.cli import options
from sim.cli.laboratory import Where
from sim.cli.output import (
    check_apart,
    check_json,
    check_picture,
    check_replaceable,
    write_file,
    write_json,
    write_text,
)
from sim.scenario import Scenario, load
from sim.scenario.calibrate import CalibrateSpec
from sim.scenario.fitted import FitError


def calibrate_scenario(
    *,
    scenario_name: str,
    output: str | None,
    against: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    simulations: int,
    waves_done: int,
    members: int,
    json_path: str | None,
    plot_path: str | None,
    where: Where,
) -> None:
    """Fit, write the file, report."""
    scenario = load(scenario_name, sets=sets, seed=seed)
    options.tell_omissions(scenario)
    spec = _spec(scenario)
    states = _states(spec, against)
    label = "both" if len(states) > 1 else states[0]
    name = output or f"{scenario.name}.{label}.toml"
    check_replaceable(name)
    check_json(json_path)
    check_picture(plot_path)
    check_apart(name, json_path, plot_path, read=(scenario.path,))
    place = Path(name)
    plan = Plan(
        scenario=scenario_name,
        spec=spec,
        states=states,
        seed=scenario.seed,
        simulations=simulations,
        waves_done=waves_done,
        members=members,
        sets=sets,
    )
    columns = columns_of(scenario, plan.spec, plan.states)
    with where.laboratory(f"calibrating {scenario.name}") as laboratory:
        result = calibrate(plan, columns, laboratory)
    text = fit_text(result)
    write_text(text, place)
    if plot_path is not None:
        # By name: matplotlib takes a second, and most fits draw nothing.
        plot_fit = import_module("calibration.fit.picture").plot_fit
        write_file(Path(plot_path), lambda path: plot_fit(result, path))
    if json_path is not None:
        write_json(tomllib.loads(text), json_path)
    if json_path != "-":
        click.echo(f"{scenario.name}: {scenario.title}")
        click.echo(f"seed {plan.seed}, {sum(plan.waves)} points, iotwin {sim.__version__}")
        click.echo(f"fitted to {spec.recording}: {', '.join(states)}; for what-ifs: {plan.kind}")
        click.echo(f"$ {command_of(plan)}\n")
        click.echo(report(result), nl=False)
    click.echo(f"\nfit written to {place}", err=True)


def _spec(scenario: Scenario) -> CalibrateSpec:
    if scenario.calibrate is None:
        raise FitError(f"{scenario.path}: no [calibrate]: nothing says what to fit, and to what")
    return scenario.calibrate


def _states(spec: CalibrateSpec, against: str | None) -> tuple[str, ...]:
    """Return the recorded states to fit to."""
    if against is None:
        return (spec.base.figures,)
    if against == "both":
        return tuple(spec.against)
    if against not in spec.against:
        known = ", ".join((*spec.against, "both"))
        raise click.BadParameter(
            f"no recorded state '{against}' (known: {known})", param_hint="--against"
        )
    return (against,)
