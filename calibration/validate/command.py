"""`python -m calibration validate`: predict recorded runs from their descriptions."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from calibration.stored_rows import BadData
from calibration.validate import stored
from calibration.validate.compare import Row, compared, validate
from calibration.validate.conditions import CONDITIONS, Condition
from calibration.validate.describe import BadRun, describe
from calibration.validate.limits import FIGURE_WITHIN
from calibration.validate.report import family_table, far_off_table, run_table
from sim.cli.laboratory import EXECUTOR, Where
from sim.cli.output import check_json, write_rows
from sim.report.tables import print_table
from sim.study.laboratory import UnfinishedError
from sim.study.outcome import Shortfall
from sim.study.store import NONE


@click.command("validate", short_help="Predict recorded runs from their descriptions.")
@click.argument(
    "directories", metavar="RUN_DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option("--jobs", type=click.IntRange(1), help="Processes; as many as CPUs if not given.")
@click.option("--family", "family_only", is_flag=True, help="Only the summary of families.")
@click.option(
    "--with-condition",
    "condition_name",
    type=click.Choice(sorted(CONDITIONS)),
    help="Simulate the runs with what their description does not tell (conditions.py).",
)
@click.option(
    "--json", "json_path", metavar="FILE|-", help="Write JSON to FILE; - is standard output."
)
@click.option(
    "--store",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Put the runs into FILE, in place of what it has of them.",
)
def command(
    directories: tuple[Path, ...],
    seed: int,
    jobs: int | None,
    family_only: bool,
    condition_name: str | None,
    json_path: str | None,
    store: Path | None,
) -> None:
    """Simulate each run from its description and set the prediction beside what was measured.

    A RUN_DIR holds a run.json with the keys workload, kernel and disk (or fs_plain); everything
    else in it is looked at after the prediction, if it is there. Errors are relative and signed.
    What is predicted is the middle one, by throughput, of three simulations. Figures that are off
    by more than any should be (limits.py) are listed, each with its run. A run whose worker
    died is named at the end, with exit code 1; the others are there.

    \b
    Examples:
      python -m calibration validate ../shared/groundtruth/c_mailq/ext3-p8-hdd7200.r1
      python -m calibration validate ../shared/groundtruth/a_randread/* --jobs 2 --json a.json
      python -m calibration validate RUN_DIR --json -
    """
    check_json(json_path)
    condition = CONDITIONS[condition_name] if condition_name else None
    try:
        for directory in directories:
            _check_concerns(directory, condition)
        if store is not None and store.exists():
            stored.read(store)
        rows, shortfall = _run(directories, seed, jobs, condition)
    except (BadRun, BadData) as problem:
        raise click.UsageError(str(problem)) from None
    if store is not None:
        stored.put(store, stored.stored(rows, seed))
    if json_path is not None:
        write_rows((row.to_json() for row in rows), json_path)
    if json_path != "-":
        if not family_only:
            print_table(run_table(rows), sys.stdout)
            click.echo()
        print_table(family_table(rows), sys.stdout)
        click.echo("errors: median of the absolute relative errors, in per cent")
        _tell_far_off(rows)
    if shortfall is not None:
        click.echo(f"iotwin: {shortfall.message}", err=True)
        sys.exit(shortfall.exit_code)


def _tell_far_off(rows: Sequence[Row]) -> None:
    """List every recorded figure that is further off than any should be, or say that none is."""
    if not any(compared(row) for row in rows):
        return
    far_off = far_off_table(rows)
    bar = f"{100 * FIGURE_WITHIN:.0f} %"
    if not far_off.rows:
        click.echo(f"no figure of a program and no await is off by more than {bar}")
        return
    click.echo(f"\noff by more than {bar}, of what a program reports and of await:")
    print_table(far_off, sys.stdout)


def _check_concerns(directory: Path, condition: Condition | None) -> None:
    """Raise BadRun if the directory is none, or its workload does not have what is claimed."""
    description = describe(directory)
    if condition is not None and not condition.concerns(description):
        raise BadRun(
            f"{directory}: '{condition.name}' is about workload {condition.kind},"
            f" and the run's is {description.kind}"
        )


def _run(
    directories: tuple[Path, ...], seed: int, jobs: int | None, condition: Condition | None
) -> tuple[list[Row], Shortfall | None]:
    """Return the rows of what could be done, and why that is not all."""
    label = f"simulating {len(directories)} runs"
    with Where(EXECUTOR, jobs, NONE).laboratory(label) as laboratory:
        try:
            return validate(directories, seed, laboratory, condition), None
        except UnfinishedError as error:
            return [row for row in error.done if row is not None], error.shortfall
