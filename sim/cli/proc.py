"""`iotwin proc`: /proc and /sys of the simulated server as files, for programs that are not ours.

One moment, a series of moments, or a folder that follows the run beside the clock on the wall.
A folder appears when it is whole, and Ctrl-C leaves it so; what iotwin did not write is never
replaced.
"""

import contextlib
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

import click

import sim
from sim.cli import options
from sim.cli.exec_tool import TimeType, check_at
from sim.cli.pace import Pace
from sim.cli.progress import Progress
from sim.scenario import Scenario, load
from sim.study.tree.folder import NOTE, Folder, check_new, new_folder, replace
from sim.study.tree.whole import Server
from sim.units import NS_PER_S

SPEED_MAX: Final = 3600.0  # an hour a second: more than any twin keeps up with
TREES_MAX: Final = 100_000


@click.command("proc", short_help="Write /proc and /sys of a moment, for real programs.")
@options.scenario_argument
@options.what_if_option
@options.seed_option
@options.set_option
@click.option(
    "--at",
    "at_ns",
    type=TimeType(),
    metavar="TIME",
    help="The moment, in simulated time; with --every or --live the first one (default: the start"
    " with these, else the end of the run).",
)
@click.option("--out", "out", type=click.Path(path_type=Path), required=True, metavar="DIR")
@click.option(
    "--every",
    "every_ns",
    type=TimeType(),
    metavar="TIME",
    help="A tree of each moment in a folder of its own, DIR/SECONDS, until the run ends.",
)
@click.option("--live", "is_live", is_flag=True, help="Keep DIR up to date while the run goes on.")
@click.option(
    "--speed",
    type=click.FloatRange(0, SPEED_MAX, min_open=True),
    metavar="N",
    help="With --live: simulated seconds a second (default: 1).",
)
@click.option("--replace", "replaces", is_flag=True, help="Replace what an earlier command wrote.")
def command(
    scenario_name: str,
    what_if: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    at_ns: int | None,
    out: Path,
    every_ns: int | None,
    is_live: bool,
    speed: float | None,
    replaces: bool,
) -> None:
    """Write what /proc and /sys of the simulated server say, each file as its kernel writes it.

    DIR/proc and DIR/sys are for programs that can be told where these are (node_exporter, psutil);
    `iotwin shell` is for all others. DIR must be new or empty. With --live a file is replaced by a
    new one when its text changes; Ctrl-C ends it, and DIR stays as it is then.

    \b
    Examples:
      iotwin proc sendmail --at "2 min" --out storm
      iotwin proc sendmail --what-if tmpfs --at "20 s" --out calm
      iotwin proc sendmail --every "10 s" --out series
      iotwin proc sendmail --live --speed 10 --out now
    """
    scenario = load(scenario_name, what_if=what_if, sets=sets, seed=seed)
    if every_ns is not None and is_live:
        raise click.UsageError("--every is a series, --live one folder: one of them")
    if speed is not None and not is_live:
        raise click.UsageError("--speed is of --live")
    options.tell_omissions(scenario)
    check_at(scenario, at_ns)
    _check_every(scenario, at_ns or 0, every_ns)
    check_new(out, replace=replaces)
    work = _Work(scenario, out)
    if every_ns is not None:
        work.series(at_ns or 0, every_ns)
    elif is_live:
        work.live(at_ns or 0, speed or 1.0)
    else:
        work.moment(at_ns)


def _check_every(scenario: Scenario, at_ns: int, every_ns: int | None) -> None:
    """Refuse intervals that give no series, or one that nobody means."""
    if every_ns is None:
        return
    most = (scenario.run.duration_ns - at_ns) // max(every_ns, 1) + 1
    if every_ns <= 0 or most > TREES_MAX:
        given = f"{every_ns / NS_PER_S:g} s"
        message = f"{given} gives {most} trees" if every_ns > 0 else f"{given} is no interval"
        raise click.BadParameter(f"{message} (allowed: up to {TREES_MAX})", param_hint="--every")


@dataclass
class _Work:
    """A scenario, and where its trees go."""

    scenario: Scenario
    out: Path

    def moment(self, at_ns: int | None) -> None:
        """Write one tree, and tell what programs may do with it."""
        server = self._server(self.scenario.run.duration_ns if at_ns is None else at_ns)
        if at_ns is not None and server.now_ns() < at_ns:
            click.echo(f"iotwin: the run ended before --at: this is as of {_s(server)}", err=True)
        with new_folder(self.out) as made:
            count = self._fill(made, server)
        click.echo(f"{self.out}: {self._title()} at {_s(server)}, {count} files")
        _tell_how(self.out)

    def series(self, at_ns: int, every_ns: int) -> None:
        """Write a tree of each moment; those that are there when it is interrupted are whole."""
        server = self._server(at_ns)
        with new_folder(self.out) as made:
            self._note(made, "a series")
        written = 0
        try:
            with Progress(f"simulating {self.scenario.label}") as progress:
                while server.now_ns() == at_ns + written * every_ns:
                    with interrupts_wait():  # or the last tree might be whole and not counted
                        with new_folder(self.out / _moment_name(server)) as made:
                            count = self._fill(made, server)
                        written += 1
                    if server.has_ended():
                        break
                    server.run_to(server.now_ns() + every_ns)
                    progress(server.now_ns(), server.machine.end_ns)
        except KeyboardInterrupt:
            click.echo(f"iotwin: {written} trees in {self.out} are whole", err=True)
            raise
        last_s = (written - 1) * every_ns / NS_PER_S + at_ns / NS_PER_S
        span = f"{at_ns / NS_PER_S:g} s to {last_s:g} s"
        click.echo(f"{self.out}: {self._title()}, {written} trees from {span}")
        click.echo(f"  {self.out}/{_name_of(last_s)} is the last, of {count} files")

    def live(self, at_ns: int, speed: float) -> None:
        """Keep a tree up to date until the run ends, or the user ends it."""
        server = self._server(at_ns)
        with new_folder(self.out) as made:
            self._note(made, "live")
            folder = Folder(made, replace)
            folder.update(server.tree())
        click.echo(f"{self.out}: {self._title()} from {_s(server)} on, {speed:g} s a second")
        _tell_how(self.out)
        click.echo("Ctrl-C ends it.")
        folder.top = self.out
        shown_s = _s(server)

        def show(shown: Server) -> None:
            nonlocal shown_s
            with interrupts_wait():  # or the files would be of two moments
                folder.update(shown.tree())
                shown_s = _s(shown)

        pace = Pace(server, speed, show)
        try:
            while not server.has_ended():
                time.sleep(pace.wait_s())
                pace.step(beyond=False)
        except KeyboardInterrupt:
            click.echo(f"\niotwin: {self.out} stays as of {shown_s}", err=True)
            raise
        click.echo(f"The run ended: {self.out} is as of {shown_s}.")
        tell_if_late(pace, speed)

    def _server(self, at_ns: int) -> Server:
        """Return the server at a moment."""
        server = Server(self.scenario)
        with Progress(f"simulating {self.scenario.label}") as progress:
            server.run_to(at_ns, progress)
        return server

    def _fill(self, made: Path, server: Server) -> int:
        self._note(made, _s(server))
        return Folder(made, replace).update(server.tree())

    def _note(self, made: Path, moment: str) -> None:
        """Say in a file where the tree comes from."""
        lines = [
            f"{self._title()}: {moment}",
            f"seed {self.scenario.seed}, iotwin {sim.__version__}",
            options.command_line(),
        ]
        (made / NOTE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _title(self) -> str:
        return f"{self.scenario.label}, Linux {self.scenario.server.kernel}"


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let Ctrl-C come when the block is done; of the main thread.

    A mask would not do: it is of one thread, and the signal is given to another that has none.
    """
    came = False

    def remember(_signal: int, _frame: FrameType | None) -> None:
        nonlocal came
        came = True

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def tell_if_late(pace: Pace, speed: float) -> None:
    """Say that the twin was slower than it should have been, if it was."""
    if pace.is_late():
        kept = f"this computer kept {pace.kept():.2g} simulated seconds a second, not {speed:g}"
        click.echo(f"iotwin: {kept}: rates by the wall's clock are too low", err=True)


def _tell_how(out: Path) -> None:
    click.echo(
        f"  prometheus-node-exporter --path.procfs={out}/proc --path.sysfs={out}/sys\n"
        f'  python3 -c \'import psutil; psutil.PROCFS_PATH = "{out}/proc";'
        " print(psutil.virtual_memory())'"
    )


def _s(server: Server) -> str:
    return f"{server.now_ns() / NS_PER_S:g} s"


def _moment_name(server: Server) -> str:
    return _name_of(server.now_ns() / NS_PER_S)


def _name_of(seconds: float) -> str:
    """Return a folder's name that sorts by time: 000120, 000120.5."""
    whole, dot, rest = f"{seconds:.9f}".rstrip("0").partition(".")
    return f"{int(whole):06d}{dot}{rest}".rstrip(".")
