"""Options that several commands share.

An option means the same in every command that has it.
"""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from sim.scenario import Scenario
from sim.scenario.fitted import Fit, read_fit, recording_of_twin
from sim.scenario.levels import read_option
from sim.scenario.load import SEED_MAX
from sim.study.levels import Level
from sim.toml.layers import Table
from sim.units import UnitError, parse_quantity

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
BASE: Final = "base"  # as a what-if's name: the scenario as it is

scenario_argument: Decorator = click.argument("scenario_name", metavar="SCENARIO")
what_if_option: Decorator = click.option(
    "--what-if", metavar="NAME", help="Lay one what-if of the scenario over it."
)
seed_option: Decorator = click.option(
    "--seed", type=click.IntRange(0, SEED_MAX), help="Seed instead of the scenario's."
)
set_option: Decorator = click.option(
    "--set",
    "sets",
    metavar="PATH=VALUE",
    multiple=True,
    help="Set one value, such as machine.cpus=8; may be given several times.",
)
json_option: Decorator = click.option(
    "--json", "json_path", metavar="FILE|-", help="Write JSON to FILE; - is standard output."
)
plot_option: Decorator = click.option(
    "--plot", "plot_path", metavar="FILE.png", help="Draw load, CPU, disks, mail over time."
)
slo_option: Decorator = click.option(
    "--slo",
    "slos",
    metavar="'FIGURE < VALUE'",
    multiple=True,
    help="Judge a service level, such as 'load1_peak < 12'; may be given several times.",
)
fit_option: Decorator = click.option(
    "--fit", "fit_path", metavar="FILE", help="Fitted parameters, from `iotwin calibrate`."
)


def replications_option(default: int) -> Decorator:
    """Return --replications with the command's default."""
    return click.option(
        "--replications",
        type=click.IntRange(1, 10_000),
        default=default,
        show_default=True,
        help="Runs of each variant, with seeds SEED, SEED+1, ...",
    )


precise_option: Decorator = click.option(
    "--of", "figures", metavar="FIGURE", multiple=True, help="The figure of --precision."
)


def precision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --precision and --replications-max."""
    of = click.option(
        "--precision",
        metavar="PERCENT",
        help="Instead of --replications: run until the figure's mean is known so well.",
    )
    most = click.option(
        "--replications-max",
        type=click.IntRange(3, 10_000),
        metavar="N",
        help="Most runs of each point with --precision (default: 160).",
    )
    return of(most(command))


def fit_of(path: str | None, scenario: str) -> Fit | None:
    """Return the fit of the scenario in a file, None without one; raise FitError."""
    return None if path is None else read_fit(Path(path), Path(scenario).stem)


def layer_of(fit: Fit | None) -> Table | None:
    """Return the best member of a fit as a layer over its scenario."""
    return None if fit is None else fit.layer(fit.best)


def fit_layer_of(path: str | None, scenario: str) -> Table | None:
    """Return the best member of a fit of the scenario as a layer over it; raise FitError."""
    return layer_of(fit_of(path, scenario))


def check_once(what_ifs: Sequence[str]) -> None:
    """Raise click.UsageError for what-ifs that are named twice."""
    twice = sorted({name for name in what_ifs if what_ifs.count(name) > 1})
    if twice:
        raise click.UsageError(f"named twice: {', '.join(twice)}")


def check_questions(asked: Sequence[str]) -> None:
    """Raise click.UsageError for what is no question to a twin, whatever is recorded of it."""
    if not asked:
        return
    questions = import_module("calibration.twin.questions")  # by name: most commands ask nothing
    try:
        for one in asked:
            questions.check_question(one)
    except questions.QuestionError as error:
        raise click.UsageError(str(error)) from None


def variants_of(what_ifs: Sequence[str]) -> list[str | None]:
    """Return the what-ifs that are named, None for the scenario as it is, which is the default."""
    check_once(what_ifs)
    return [None if name == BASE else name for name in what_ifs or (BASE,)]


def share_of(text: str, option: str, percent_max: int) -> float:
    """Return a percentage as a share; refuse one that is not between nothing and `percent_max`."""
    try:
        percent = parse_quantity(text, "percent")
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
    if not 0 < percent < percent_max:
        allowed = f"more than 0 % and less than {percent_max} %"
        raise click.BadParameter(f"'{text}' (allowed: {allowed})", param_hint=option)
    return percent / 100


def check_levels(levels: Sequence[Level]) -> None:
    """Raise click.UsageError where no service level is asked for."""
    if not levels:
        raise click.UsageError(
            "no service level to hold: give --slo, such as --slo 'load1_peak < 12',"
            " or [slo] in the scenario"
        )


def with_levels(scenario: Scenario, slos: Sequence[str]) -> Scenario:
    """Return the scenario with the levels of --slo beside its own; raise ScenarioError."""
    return replace(scenario, slo=(*scenario.slo, *map(read_option, slos)))


def tell_omissions(*scenarios: Scenario) -> None:
    """Say once what these scenarios leave out and a figure would show."""
    lines = (line for scenario in scenarios for line in scenario.omissions)
    for line in dict.fromkeys(lines):
        click.echo(f"iotwin: {line}", err=True)


def tell_left_aside(files: Sequence[str]) -> None:
    """Say which files of a recording are not used, each with its reason."""
    for told in files:
        click.echo(f"iotwin: left aside: {told}", err=True)


def tell_twin(scenario: Scenario, what_ifs: Sequence[str]) -> None:
    """Say of a twin that its figures are its own, and which answer is tied to the recording."""
    recorded = recording_of_twin(scenario.path)
    if not recorded:
        return
    asked = " ".join(f"--what-if {name}" for name in what_ifs if name != BASE)
    click.echo(
        f"iotwin: {scenario.path.name} is a twin: figures here are its own, also where it is off"
        f" today. What was recorded, changed as the twin changes:\n"
        f"  iotwin mine {shlex.join(recorded)} {asked}".rstrip(),
        err=True,
    )


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["iotwin", *sys.argv[1:]])
