"""`iotwin fio`: a job file of fio on a simulated machine."""

import json
import os
import sys
from pathlib import Path

import click

from sim.cli import options
from sim.cli.output import check_apart, check_json, check_writable, write_text
from sim.cli.progress import Progress
from sim.report.fio_report import disk_table, fio_json, fio_table
from sim.report.tables import plain
from sim.scenario.fio_file import FioFile, read_fio_file
from sim.study.fio_run import FioResult, load_machine, run_fio


@click.command("fio", short_help="Run a job file of fio on a machine.")
@click.argument("job_file", metavar="JOB.fio")
@click.option(
    "--machine",
    "machine_name",
    metavar="MACHINE.toml|SCENARIO",
    required=True,
    help="The machine: of this file or scenario, [machine] alone counts.",
)
@click.option(
    "--output-format",
    type=click.Choice(["normal", "json"]),
    default="normal",
    show_default=True,
    help="A table of the main figures, or fio's JSON.",
)
@click.option("--output", "output_path", metavar="FILE", help="Write to FILE, not to the terminal.")
@options.seed_option
@options.set_option
@options.json_option
def command(
    job_file: str,
    machine_name: str,
    output_format: str,
    output_path: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    json_path: str | None,
) -> None:
    """Run a job file of fio on a simulated machine and print what its jobs did.

    The machine needs a [machine] table with kernel, memory and a disk; a job on a file needs a
    mount there, one on /dev/NAME does not. An option of the job file that is not modelled is
    refused with its line. --json FILE writes fio's JSON beside what is printed.

    \b
    Examples:
      iotwin fio reads.fio --machine server.toml
      iotwin fio reads.fio --machine generic --output-format=json --output reads.json
      iotwin fio reads.fio --machine generic --set machine.disk.sda.profile=ssd-sata
    """
    check_json(json_path)
    check_writable(output_path)
    check_apart(output_path, json_path, read=(job_file, machine_name))
    file = read_fio_file(Path(job_file))
    scenario = load_machine(machine_name, seed=seed, sets=sets)
    options.tell_omissions(scenario)
    _tell_capped(file)
    with Progress(f"fio {job_file}") as progress:
        result = run_fio(scenario, file, progress)
    document = fio_json(result, options.command_line())
    as_json = json.dumps(document, indent=2) + "\n"
    tables = f"{plain(fio_table(document))}\n{plain(disk_table(document))}"
    text = as_json if output_format == "json" else tables
    if output_path is not None:
        write_text(text, Path(output_path))
    if json_path == "-":
        click.echo(as_json, nl=False)
    elif json_path is not None:
        write_text(as_json, Path(json_path))
    if output_path is None and json_path != "-":
        click.echo(text, nl=False)
    sys.exit(_told_errors(result))


def _tell_capped(file: FioFile) -> None:
    """Say which depths an engine that waits for each operation cannot keep, as fio does."""
    for name in dict.fromkeys(job.name for job in file.jobs if job.iodepth > job.params.iodepth):
        click.echo(f"fio: {name}: ioengine is synchronous, iodepth is capped at 1", err=True)


def _told_errors(result: FioResult) -> int:
    """Say which jobs ended with an error, as fio does; return the exit code."""
    failed = [done for done in result.jobs if done.stat.error]
    for done in failed:
        click.echo(
            f"fio: {done.job.name}: err={done.stat.error}: {done.stat.error_where}: "
            f"{os.strerror(done.stat.error)}",
            err=True,
        )
    return 1 if failed else 0
