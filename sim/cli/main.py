"""The entry point: find the subcommand, turn errors into a message and an exit code.

A mistake of the user ends with exit code 2 and no traceback. A reader that goes away (`| head`) is
no error: the code is 0, and files are written before anything is printed. Ctrl-C gives 130.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import click

EXIT_INTERRUPTED: Final = 130  # as a shell tells the end by SIGINT: 128 + 2
# name -> (module with `command`, one line for the overview)
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "list": ("sim.cli.list_scenarios", "List the scenarios and their what-ifs."),
    "mine": ("sim.cli.mine", "My own server: record it, make its twin, ask it."),
    "follow": ("sim.cli.follow", "Follow a server live, beside its twin; tell when they part."),
    "run": ("sim.cli.run", "Run a scenario, beside what was recorded."),
    "compare": ("sim.cli.compare", "Compare what-ifs with the base, seed by seed."),
    "sweep": ("sim.cli.sweep", "Run a scenario over values of a parameter."),
    "capacity": ("sim.cli.capacity", "Find the load at which service levels just hold."),
    "optimise": ("sim.cli.optimise", "Find the cheapest options that keep service levels."),
    "forecast": ("sim.cli.forecast", "Find the month in which growth breaks each level."),
    "sensitivity": ("sim.cli.sensitivity", "Say which parameter decides a figure."),
    "lab": ("sim.cli.lab", "Answer questions about a server of your own, and be marked."),
    "serve": ("sim.cli.serve", "Open a page with sliders, drawn while it runs."),
    "explain": ("sim.cli.explain", "Say where a transaction's time goes, and what is busy."),
    "trace": ("sim.cli.trace", "Record a part of a run, for Perfetto, blkparse and btt."),
    "report": ("sim.cli.report", "Write a page of HTML: question, answer, reasons."),
    "new": ("sim.cli.new", "Write a commented scenario to begin with."),
    "words": ("sim.cli.words", "Say what a scenario may name, with keys and examples."),
    "params": ("sim.cli.params", "Show every parameter with unit, source and layer."),
    "calibrate": ("sim.cli.calibrate", "Fit a scenario's parameters to its recording."),
    "predict": ("sim.cli.predict", "Carry a fit into a what-if: median and 90 % interval."),
    "exec": ("sim.cli.exec_tool", "Type iostat, sar, free, top, dd ... on the simulated server."),
    "shell": ("sim.cli.shell", "Run real programs on the simulated server's /proc."),
    "proc": ("sim.cli.proc", "Write /proc and /sys of a moment, for real programs."),
    "export": ("sim.cli.export", "Write a run for Prometheus, sadf, pandas and others."),
    "fio": ("sim.cli.fio", "Run a job file of fio on a machine."),
    "table": ("sim.cli.table", "Fill a table: RAID levels, access, what-ifs."),
    "import": ("sim.cli.import_", "Make a data set of recorded text."),
    "look": ("sim.cli.look", "Say what a recording says, before any simulation."),
    "record": ("sim.cli.record", "Record this host's /proc into a folder."),
    "twin": ("sim.cli.twin", "Make a twin of a server from its recording alone."),
    "store": ("sim.cli.store", "List, export or clean the finished runs that are kept."),
    "cluster": ("sim.cli.cluster", "Say how to run studies on several machines."),
    "samples": ("sim.cli.samples", "Read recordings of any tool into one table."),
    "doctor": ("sim.cli.doctor", "Show versions, what is compiled, what is there."),
}


@contextmanager
def _told() -> Iterator[None]:
    """Turn an error within, an interrupt, a reader that went away into what they mean to a user."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except (click.exceptions.Exit, click.ClickException, click.Abort):
        raise
    except BrokenPipeError:
        # `iotwin ... | head`: what is left in the buffer must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        click.echo("iotwin: interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        diagnose = importlib.import_module("sim.cli.diagnose").diagnose
        sys.exit(diagnose(error))


class ToldGroup(click.Group):
    """A group whose commands' ends are told by message and exit code."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. Not around main(): click makes exit code 1 of Ctrl-C and of `| head`."""
        with _told():
            return super().invoke(ctx)


class LazyGroup(ToldGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; name the nearest to one that does not exist."""
        if args[0] not in COMMANDS:
            # By name: what it imports takes a quarter of the time of `--help`.
            hint = importlib.import_module("sim.registry").did_you_mean(args[0], COMMANDS)
            ctx.fail(f"no command '{args[0]}'{hint} (known: {', '.join(COMMANDS)})")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_module, line) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="iotwin", prog_name="iotwin")
def cli() -> None:
    """A discrete-event twin of I/O-bound Linux servers.

    \b
    Examples:
      iotwin list
      iotwin mine --here --for 2m
      iotwin run sendmail
      iotwin compare sendmail tmpfs ssd
      iotwin exec sendmail --what-if tmpfs -- iostat -t -c -m -x 5
    """


def main() -> None:
    """Run the command line."""
    _open_what_is_closed()
    cli(prog_name="iotwin")


def _open_what_is_closed() -> None:
    """Let what the shell closed (`>&-`) lead to nowhere.

    Python has None for such a stream, and the next file to be opened would get its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - until the end
            setattr(sys, name, nowhere)
