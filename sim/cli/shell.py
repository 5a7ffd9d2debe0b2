"""`iotwin shell`: a real program that sees the simulated server's /proc and /sys as its own.

The run goes on beside the clock on the wall while the program looks, so that `iostat 1` reports
simulated seconds. When the program ends, all ends; its exit code is the command's.
"""

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from sim.cli import options
from sim.cli.exec_tool import TimeType, check_at
from sim.cli.pace import Pace
from sim.cli.proc import SPEED_MAX, tell_if_late
from sim.cli.progress import Progress
from sim.scenario import load
from sim.study.tree.folder import Folder, rewrite
from sim.study.tree.namespace import (
    NamespaceError,
    check_namespace,
    prepare,
    start,
    was_refused,
)
from sim.study.tree.whole import Server

# Programs that ask the kernel by netlink and read no file of /proc for it (taskstats).
NETLINK: Final = {"iotop": "pidstat -d 1", "iotop-c": "pidstat -d 1"}
PATIENCE_S: Final = 2.0  # that a program has to end when it is told to
SIGNALLED: Final = 128  # plus the signal: how a shell tells that a program was killed


@click.command("shell", short_help="Run real programs on the simulated server's /proc.")
@options.scenario_argument
@click.argument("argv", metavar="-- COMMAND [ARGUMENT]...", nargs=-1, required=True)
@options.what_if_option
@options.seed_option
@options.set_option
@click.option(
    "--at",
    "at_ns",
    type=TimeType(),
    default="0 s",
    metavar="TIME",
    help="Simulated time at which the program starts (default: the start).",
)
@click.option(
    "--speed",
    type=click.FloatRange(0, SPEED_MAX, min_open=True),
    default=1.0,
    metavar="N",
    help="Simulated seconds a second (default: 1).",
)
def command(
    scenario_name: str,
    argv: tuple[str, ...],
    what_if: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    at_ns: int,
    speed: float,
) -> None:
    """Run an unmodified program of this computer as if on the simulated server.

    The program sees the twin's /proc and /sys in a namespace of its own; nothing else of this
    computer changes, and no root is needed. The run goes on in real time, also after the end that
    the scenario sets. Clocks on the wall, logins, network and disk space stay this computer's.

    \b
    Examples:
      iotwin shell sendmail --at "1 min" -- iostat -x 5
      iotwin shell sendmail --at "2 min" -- top
      iotwin shell sendmail --at "2 min" -- uptime
      iotwin shell sendmail --at "30 s" --speed 5 -- vmstat 1 10
      iotwin shell web-limits -- bash
    """
    scenario = load(scenario_name, what_if=what_if, sets=sets, seed=seed)
    options.tell_omissions(scenario)
    check_at(scenario, at_ns)
    _check_program(argv[0])
    check_namespace()
    server = Server(scenario)
    with Progress(f"simulating {scenario.label}") as progress:
        server.run_to(at_ns, progress, beyond=True)
    sys.exit(_run(server, argv, speed))


def _check_program(name: str) -> None:
    """Refuse a program that is not there, or that would show the host."""
    if Path(name).name in NETLINK:
        instead = NETLINK[Path(name).name]
        raise click.UsageError(
            f"{name} asks the kernel by netlink, not /proc: it would show this computer"
            f" (instead: {instead})"
        )
    if shutil.which(name) is None:
        raise click.UsageError(
            f"no program '{name}' on this computer (iotwin exec has iostat, sar, pidstat, vmstat"
            " and top of its own)"
        )


def _run(server: Server, argv: tuple[str, ...], speed: float) -> int:
    """Run the program while the server goes on; return its exit code."""
    with tempfile.TemporaryDirectory(prefix="iotwin.") as name:
        top = Path(name)
        folder = Folder(top, rewrite)
        folder.update(server.tree())
        prepare(top)
        pace = Pace(server, speed, lambda shown: folder.update(shown.tree()))
        with _started(top, argv) as program:
            while (code := _ended(program, pace.wait_s())) is None:
                pace.step(beyond=True)
        if was_refused(top):
            raise NamespaceError("this computer does not let /proc be covered in a namespace")
    tell_if_late(pace, speed)
    return code if code >= 0 else SIGNALLED - code


@contextlib.contextmanager
def _started(top: Path, argv: tuple[str, ...]) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the program; Ctrl-C is its own affair, and it ends when we do."""
    answers: dict[signal.Signals, Any] = {
        signal.SIGINT: signal.SIG_IGN,
        signal.SIGTERM: _leave,
        signal.SIGHUP: _leave,
    }
    program = start(top, argv)
    before = {number: signal.signal(number, answer) for number, answer in answers.items()}
    try:
        yield program
    finally:
        if program.poll() is None:
            program.terminate()
            if _ended(program, PATIENCE_S) is None:
                program.kill()
                program.wait()
        for number, answer in before.items():
            signal.signal(number, answer)


def _leave(number: int, _frame: object) -> NoReturn:
    """End as the signal would have ended us, but tidily."""
    sys.exit(SIGNALLED + number)


def _ended(program: "subprocess.Popen[bytes]", wait_s: float) -> int | None:
    """Wait so long for the program's end; return its exit code, None if it goes on."""
    try:
        return program.wait(wait_s)
    except subprocess.TimeoutExpired:
        return None
