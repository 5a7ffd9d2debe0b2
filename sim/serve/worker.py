"""A process that simulates one scenario, seed after seed, and tells what it reads meanwhile.

Models: the administrator who watches `iostat 5` and `uptime` while the load is on.
Linux counterpart: iostat, uptime.
Invariants: looking changes nothing: /proc is read again at the very moment at which the run has
 read it anyway, so that every counter was brought up to that moment already. The process goes on
 until its parent kills it, and does not outlive it.
Left out: readings of the later seeds: of these only the figures are wanted.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection

from sim.machine import Machine
from sim.results import ProcSample
from sim.scenario.spec import Scenario
from sim.study.laboratory import run_once
from sim.study.workers import begin
from sim.tools.iostat import IostatReport, compute_iostat
from sim.tools.parse import parse_loadavg


@dataclass(frozen=True)
class Reading:
    """What was read after one interval of the first run; `share` of that run is done."""

    report: IostatReport
    load1: float
    share: float


@dataclass(frozen=True)
class Failure:
    """A run that ended with an error, and which."""

    seed: int
    message: str


class Reader:
    """Reads /proc of a machine that runs; to be given to run_once() as watch and progress."""

    def __init__(self, tell: Callable[[Reading], None]) -> None:
        self._tell = tell
        self._machine: Machine | None = None
        self._last: ProcSample | None = None

    def watch(self, machine: Machine) -> None:
        """Take the machine that has just been booted."""
        self._machine = machine
        self._last = machine.read_proc()

    def progress(self, done_ns: int, total_ns: int) -> None:
        """Read /proc, an interval after the last time."""
        assert self._machine is not None and self._last is not None
        last, self._last = self._last, self._machine.read_proc()
        load1 = parse_loadavg(self._last.text("loadavg")).load1
        share = min(done_ns / max(total_ns, 1), 1.0)  # a reading may lie behind the run's end
        self._tell(Reading(compute_iostat(last, self._last), load1, share))


def work(connection: Connection) -> None:
    """Wait for a scenario; simulate it with its seed, the next one, and so on.

    When the parent has ended, nobody listens, and the work ends without a word.
    """
    begin()
    with suppress(EOFError, BrokenPipeError):
        scenario: Scenario = connection.recv()
        _simulate(scenario, connection)


def _simulate(scenario: Scenario, connection: Connection) -> None:
    """Simulate a scenario with one seed after the other; BrokenPipeError: nobody listens."""
    reader = Reader(connection.send)
    for seed in count(scenario.seed):
        try:
            if seed == scenario.seed:
                run = run_once(scenario, seed, progress=reader.progress, watch=reader.watch)
            else:
                run = run_once(scenario, seed)
        except Exception as error:
            # The parent tells its user: a worker's traceback would be lost in a log.
            connection.send(Failure(seed, f"{type(error).__name__}: {error}"))
            return
        connection.send(run)
