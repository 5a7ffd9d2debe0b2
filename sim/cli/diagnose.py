"""Tell errors of the user from failures of the twin, and print each.

Messages go to standard error. A failure of the twin itself keeps its traceback, because a developer
needs it.
"""

import traceback

import click

from calibration.readers import UnreadableRecording
from sim.cli.extras import missing_extra
from sim.cli.output import UnwritableError
from sim.mm.page_alloc import OutOfMemory
from sim.scenario import ScenarioError, UnknownScenario
from sim.scenario.cases import own_files
from sim.scenario.fitted import FitError
from sim.study.executors import BadExecutorError, OtherSourcesError
from sim.study.laboratory import UnfinishedError
from sim.study.recorded import DatasetError
from sim.study.store import StoreError, StoreFullError
from sim.study.tree.folder import NotOurFolderError
from sim.study.tree.namespace import NamespaceError
from sim.tools.usage import ToolUsageError

EXIT_FAILED = 1
EXIT_USAGE = 2
_USAGE = (
    BadExecutorError,
    UnknownScenario,
    UnwritableError,
    DatasetError,
    FitError,
    NamespaceError,
    NotOurFolderError,
    StoreError,
    ToolUsageError,
    UnreadableRecording,
)


def diagnose(error: Exception) -> int:
    """Print what went wrong; return the exit code."""
    if isinstance(error, ScenarioError):
        number = len(error.problems)
        click.echo(f"{error}\n{number} {'error' if number == 1 else 'errors'}", err=True)
        return EXIT_USAGE
    if isinstance(error, _USAGE):
        click.echo(f"iotwin: error: {error}", err=True)
        return EXIT_USAGE
    if isinstance(error, ModuleNotFoundError) and (told := missing_extra(error)) is not None:
        click.echo(f"iotwin: error: {told}", err=True)
        return EXIT_USAGE
    notes = getattr(error, "__notes__", ())
    if isinstance(error, OSError) and notes:
        # Of a call of a simulated program (sim.sched.runqueue), not of this process.
        told = f"{error.strerror}: {error.filename}"
        click.echo(f"iotwin: error: on the simulated server: {told}, {notes[0]}", err=True)
        return EXIT_FAILED
    if isinstance(error, OutOfMemory):
        click.echo(f"iotwin: error: the simulated server ran out of memory: {error}", err=True)
        return EXIT_FAILED
    if isinstance(error, OSError):
        where = error.filename or "the output"
        click.echo(f"iotwin: error: {where}: {error.strerror or error}", err=True)
        return EXIT_FAILED
    if isinstance(error, UnfinishedError):
        click.echo(f"iotwin: {error.shortfall.message}", err=True)
        return error.shortfall.exit_code
    if isinstance(error, StoreFullError):
        click.echo(f"iotwin: error: {error}; what is stored is kept", err=True)
        return EXIT_FAILED
    if isinstance(error, OtherSourcesError):
        click.echo(f"iotwin: error: {error}", err=True)
        return EXIT_USAGE
    click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    click.echo(f"iotwin: the simulation failed; {_whose(error)}", err=True)
    return EXIT_FAILED


def _whose(error: Exception) -> str:
    """Say where to look for the mistake: in a part of the user's own, or in the twin."""
    own = {str(path): path.name for path in own_files()}
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename in own]
    if frames:
        return f"see {own[frames[-1].filename]}:{frames[-1].lineno}, a part of your own"
    if own:
        names = ", ".join(own.values())
        return f"look at your own {names} first; else this is a mistake of the twin"
    return "this is a mistake of the twin"
