"""`iotwin trace`: a part of a run as files that Perfetto, blkparse and btt read.

A folder gets its files when the run is over. What blktrace(8) has recorded is never replaced. What
an earlier trace of the twin left there is, all of it: a file too many would be events of another
disk or another CPU.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import click

from sim.cli import options
from sim.cli.exec_tool import TimeType
from sim.cli.output import (
    UnwritableError,
    check_apart,
    check_json,
    check_writable,
    write_file,
    write_json,
)
from sim.cli.progress import Progress
from sim.machine import Machine
from sim.report import trace_text
from sim.scenario import Scenario, load
from sim.study.blktrace import BlkTrace, is_ours
from sim.study.perfetto import Perfetto
from sim.study.trace import NothingTracedError, Taker, Traced, record_trace

_TRACES: Final = "*.blktrace.*"
_NO_DISK: Final = "the server has no disk with a request queue"
_NOWHERE: Final = "nothing to write: give --perfetto FILE, --blktrace DIR, or both"


@click.command("trace", short_help="Record a part of a run, for Perfetto, blkparse and btt.")
@options.scenario_argument
@click.argument("what_if", metavar="[WHAT_IF]", required=False)
@click.option(
    "--from",
    "from_ns",
    type=TimeType(),
    metavar="TIME",
    default=0,
    help="Simulated time at which the recording begins (default: when the server boots).",
)
@click.option(
    "--to",
    "to_ns",
    type=TimeType(),
    metavar="TIME",
    help="Simulated time at which it ends (default: at the end of the run).",
)
@click.option("--perfetto", "perfetto_path", metavar="FILE", help="For ui.perfetto.dev.")
@click.option("--blktrace", "blktrace_path", metavar="DIR", help="For blkparse and btt.")
@options.seed_option
@options.set_option
@options.fit_option
@options.json_option
def command(
    scenario_name: str,
    what_if: str | None,
    from_ns: int,
    to_ns: int | None,
    perfetto_path: str | None,
    blktrace_path: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    fit_path: str | None,
    json_path: str | None,
) -> None:
    """Run a scenario until --to, and write down what happens from --from on.

    Perfetto's file shows who runs on each CPU, what every task does or waits for, its transactions
    and system calls, the requests of each disk in queue and drive, commits of journals, and the
    load average and dirty pages. The folder has a file for each disk and CPU, as blktrace writes
    them.

    \b
    Examples:
      iotwin trace sendmail --from 60s --to 70s --perfetto storm.pftrace
      iotwin trace sendmail tmpfs --to 5s --perfetto tmpfs.pftrace --json -
      iotwin trace exim-io --from 60s --to 70s --blktrace blk
    """
    fit = options.fit_layer_of(fit_path, scenario_name)
    scenario = load(scenario_name, what_if=what_if, sets=sets, seed=seed, fit=fit)
    options.tell_omissions(scenario)
    if perfetto_path is None and blktrace_path is None:
        raise click.UsageError(_NOWHERE)
    to_ns = check_times(scenario, from_ns, to_ns)
    check_json(json_path)
    check_writable(perfetto_path)
    check_folder(blktrace_path)
    check_apart(json_path, perfetto_path, read=(scenario.path, fit_path))
    traced, sizes = write_traces(scenario, from_ns, to_ns, perfetto_path, blktrace_path)
    if traced.to_ns < to_ns:
        click.echo(f"iotwin: the run ended at {traced.to_ns / 1e9:g} s, before --to", err=True)
    if json_path is not None:
        write_json(trace_text.trace_json(scenario, traced, sizes), json_path)
    if json_path != "-":
        click.echo(trace_text.heading(scenario, traced, options.command_line()))
        click.echo(trace_text.contents(traced))
        click.echo(trace_text.places(sizes, perfetto_path, blktrace_path), nl=False)


def check_times(scenario: Scenario, from_ns: int, to_ns: int | None) -> int:
    """Refuse a time that no run of the scenario has; return when it ends."""
    longest_ns = scenario.run.duration_ns
    if to_ns is None:
        to_ns = longest_ns
    if not 0 < to_ns <= longest_ns:
        raise click.BadParameter(
            f"{to_ns / 1e9:g} s is not within the run: more than 0, at most {longest_ns / 1e9:g} s",
            param_hint="--to",
        )
    if not 0 <= from_ns < to_ns:
        raise click.BadParameter(
            f"{from_ns / 1e9:g} s is not before the end: 0 or more, less than {to_ns / 1e9:g} s",
            param_hint="--from",
        )
    return to_ns


def write_traces(
    scenario: Scenario,
    from_ns: int,
    to_ns: int,
    perfetto_path: str | None,
    blktrace_path: str | None,
) -> tuple[Traced, dict[str, int]]:
    """Simulate once; return what was recorded, and how large each file is."""
    results: list[Traced] = []

    def simulate(perfetto: BinaryIO | None, folder: Path | None) -> None:
        def make_takers(machine: Machine) -> list[Taker]:
            takers: list[Taker] = []
            if perfetto is not None:
                takers.append(Perfetto(machine, perfetto))
            if folder is not None:
                if not machine.disks:
                    raise click.BadParameter(_NO_DISK, param_hint="--blktrace")
                takers.append(BlkTrace(machine, folder))
            return takers

        with Progress(f"simulating {scenario.label}") as progress:
            results.append(record_trace(scenario, from_ns, to_ns, make_takers, progress))

    def write_perfetto(folder: Path | None) -> None:
        if perfetto_path is None:
            simulate(None, folder)
            return

        def fill(place: Path) -> None:
            with place.open("wb") as file:
                simulate(file, folder)

        write_file(Path(perfetto_path), fill)

    try:
        if blktrace_path is None:
            write_perfetto(None)
        else:
            with filled_folder(Path(blktrace_path)) as folder:
                write_perfetto(folder)
    except NothingTracedError as error:
        raise click.BadParameter(str(error), param_hint="--from") from None
    paths = [] if perfetto_path is None else [Path(perfetto_path)]
    if blktrace_path is not None:
        paths += sorted(Path(blktrace_path).glob(_TRACES))
    return results[0], {str(path): path.stat().st_size for path in paths}


def check_folder(path: str | None) -> None:
    """Raise UnwritableError now for a folder that could not be filled after a long run."""
    if path is None:
        return
    folder = Path(path)
    if path in ("", "-"):
        raise UnwritableError(repr(path), "a folder has a name")
    if not folder.exists():
        check_writable(path)
        return
    if not folder.is_dir():
        raise UnwritableError(path, "it is no folder")
    check_writable(str(folder / "sda.blktrace.0"))
    for found in folder.glob(_TRACES):
        if not found.is_file() or not is_ours(found):
            raise UnwritableError(str(found), "it is there, and no trace of iotwin's")


@contextlib.contextmanager
def filled_folder(folder: Path) -> Iterator[Path]:
    """Give another folder to fill; then put its files into this one, in the place of older ones."""
    beside = folder if folder.is_dir() else folder.resolve().parent
    with tempfile.TemporaryDirectory(prefix=".iotwin.", dir=beside) as name:
        yield Path(name)
        folder.mkdir(exist_ok=True)
        for old in folder.glob(_TRACES):
            old.unlink()
        for made in Path(name).iterdir():
            os.replace(made, folder / made.name)
