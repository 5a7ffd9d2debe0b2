"""`iotwin calibrate`: fit a scenario's parameters to its recording; an ensemble in a file."""

from importlib import import_module
from pathlib import Path

import click

import sim
from calibration.fit.chain import MEMBERS, SIMULATIONS, SIMULATIONS_MIN, FitResult, Plan, calibrate
from calibration.fit.fitfile import command_of, fit_text
from calibration.fit.recorded import columns_of
from calibration.fit.report import report
from calibration.fit.runs import Journal, Laboratory
from sim.cli import options
from sim.cli.output import check_writable, write_file
from sim.cli.progress import Progress
from sim.scenario import Scenario, find, load
from sim.scenario.calibrate_spec import CalibrateSpec
from sim.scenario.fitted import FitError
from sim.study.replicate import processes


@click.command("calibrate", short_help="Fit a scenario's parameters to its recording.")
@options.scenario_argument
@click.option("-o", "--output", "output", metavar="FILE",
              help="Where the fit goes (default: SCENARIO.AGAINST.toml).")  # fmt: skip
@click.option("--against", metavar="STATE", default=None,
              help="Recorded state to fit to, or both (default: before the change).")  # fmt: skip
@options.seed_option
@options.set_option
@click.option("--simulations", type=click.IntRange(SIMULATIONS_MIN, 100_000), default=SIMULATIONS,
              show_default=True, help="Points at which the twin is simulated.")  # fmt: skip
@click.option("--members", type=click.IntRange(8, 1024), default=MEMBERS, show_default=True,
              help="Parameter sets in the ensemble.")  # fmt: skip
@options.jobs_option
@click.option("--resume", is_flag=True, help="Go on where an interrupted fit stopped.")
@click.option("--plot", "plot_path", metavar="FILE.png",
              help="Draw recorded against simulated columns, prior and posterior.")  # fmt: skip
def command(
    scenario_name: str,
    output: str | None,
    against: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    simulations: int,
    members: int,
    jobs: int | None,
    resume: bool,
    plot_path: str | None,
) -> None:
    """Fit the parameters of [calibrate] to what was recorded, and say how sure they are.

    The twin is simulated at a design over the priors and again where the first wave fits; an
    emulator of the recorded columns is held against the recording (Bayes), and the result is an
    ensemble of parameter sets for `iotwin predict` and `iotwin run --fit`. Each finished
    simulation is kept in FILE.journal until the fit is done.

    \b
    Examples:
      iotwin calibrate sendmail -o sendmail.before.toml
      iotwin calibrate sendmail --against both --plot fit.png
      iotwin calibrate sendmail --resume
    """
    scenario = load(scenario_name, sets=sets, seed=seed)
    spec = _spec(scenario)
    states = _states(spec, against)
    label = "both" if len(states) > 1 else states[0]
    place = Path(output or f"{scenario.name}.{label}.toml")
    check_writable(str(place), plot_path)
    plan = Plan(
        scenario=scenario_name, spec=spec, states=states, seed=scenario.seed,
        simulations=simulations, members=members, sets=sets,
    )  # fmt: skip
    journal = Journal(place.with_name(place.name + ".journal"))
    _prepare(journal, resume=resume)
    result = _calibrate(scenario, plan, journal, jobs)
    write_file(place, lambda path: path.write_text(fit_text(result), encoding="utf-8"))
    if plot_path is not None:
        # By name: matplotlib takes a second, and most fits draw nothing.
        plot_fit = import_module("calibration.fit.picture").plot_fit
        write_file(Path(plot_path), lambda path: plot_fit(result, path))
    journal.remove()
    click.echo(f"{scenario.name}: {scenario.title}")
    click.echo(f"seed {plan.seed}, {simulations} points, iotwin {sim.__version__}")
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
        raise click.BadParameter(f"no recorded state '{against}' (known: {known})",
                                 param_hint="--against")  # fmt: skip
    return (against,)


def _prepare(journal: Journal, *, resume: bool) -> None:
    """Take up what an interrupted fit left, or begin anew."""
    if not resume:
        journal.clear()
        return
    number = journal.resume()
    click.echo(f"{number} simulations found in {journal.path}", err=True)


def _calibrate(scenario: Scenario, plan: Plan, journal: Journal, jobs: int | None) -> FitResult:
    columns = columns_of(scenario, plan.spec, plan.states)
    text = find(plan.scenario).read_text(encoding="utf-8")
    number = options.jobs_of(jobs, plan.simulations)
    with Progress(f"calibrating {scenario.name}") as progress, processes(number) as executor:
        try:
            return calibrate(plan, columns, Laboratory(text, journal, executor, progress))
        except KeyboardInterrupt:
            click.echo(f"interrupted: {journal.path} has what is done, --resume goes on", err=True)
            raise
