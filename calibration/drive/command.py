"""`python -m calibration drive`: replay a real drive's trace on the disk model."""

import sys
from importlib import import_module
from pathlib import Path

import click

from calibration.drive.bad_input import BadInput
from calibration.drive.outcome import Outcome, confront
from calibration.drive.report import params_table, score_table, to_json
from calibration.drive.sheet import read_sheet
from calibration.drive.trace import read_trace
from sim.cli.output import UnwritableError, check_json, check_picture, write_file, write_json
from sim.cli.progress import Progress
from sim.report.tables import print_table

FIT_MINIMUM = 100  # requests: less than that does not tell hits from misses


@click.command("drive", short_help="Replay a real drive's trace on the disk model.")
@click.argument("trace", metavar="TRACE.gz", type=click.Path(path_type=Path))
@click.option(
    "--drive",
    "reference",
    metavar="FILE.json:NAME",
    required=True,
    help="The drive's row in a file of data sheets.",
)
@click.option(
    "--fit",
    "fit_requests",
    metavar="N",
    type=click.IntRange(FIT_MINIMUM),
    help="Fit what a data sheet does not say to the first N requests; score the others.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option(
    "--json", "json_path", metavar="FILE|-", help="Write JSON to FILE; - is standard output."
)
@click.option("--plot", "plot_path", metavar="FILE.png", help="Draw the distributions.")
def command(
    trace: Path,
    reference: str,
    fit_requests: int | None,
    seed: int,
    json_path: str | None,
    plot_path: str | None,
) -> None:
    """Replay TRACE.gz, measured on a real drive, on the disk that its data sheet describes.

    A line of the trace is a request: R or W, a word, first block of 512 bytes, blocks, measured
    access time (us), time until the next request (us). The mean error is signed and in per cent of
    the measured mean; the demerit is the RMS distance of the two distributions of access times, in
    per cent of the same. With --fit, both are those of the requests after the first N.

    \b
    Examples:
      python -m calibration drive atlas10k.trace.gz --drive drives.json:atlas10k
      python -m calibration drive atlas10k.trace.gz --drive drives.json:atlas10k --fit 1000 --json -
      python -m calibration drive atlas10k.trace.gz --drive drives.json:atlas10k --plot cdf.png
    """
    try:
        check_json(json_path)
        check_picture(plot_path)
        sheet = read_sheet(reference)
        accesses = read_trace(trace, sheet.blocks_512)
        if fit_requests is not None and fit_requests >= len(accesses):
            raise BadInput(
                "--fit",
                "leaves no request to score",
                given=fit_requests,
                allowed=f"{FIT_MINIMUM} to {len(accesses) - 1}",
            )
    except (BadInput, UnwritableError) as problem:
        raise click.UsageError(str(problem)) from None
    with Progress("fitting") as progress:
        outcome = confront(
            sheet, accesses, fit_requests=fit_requests or 0, seed=seed, tell=progress
        )
    name = reference.rpartition(":")[2]
    if plot_path is not None:
        # By name: matplotlib costs more than a replay.
        plot = import_module("calibration.drive.picture").plot
        write_file(Path(plot_path), lambda place: plot(outcome, name, place))
    _show(outcome, name, seed, json_path)


def _show(outcome: Outcome, name: str, seed: int, json_path: str | None) -> None:
    if json_path is not None:
        write_json(to_json(outcome, name, seed), json_path)
    if json_path != "-":
        click.echo(f"drive {name}, seed {seed}, {len(outcome.accesses)} requests\n")
        print_table(score_table(outcome), sys.stdout)
        click.echo()
        print_table(params_table(outcome), sys.stdout)
