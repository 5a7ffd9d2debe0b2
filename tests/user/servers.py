"""Small servers for tests: a scenario's text, booted, with programs of the test's own on it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from sim.machine import Machine
from sim.scenario import Scenario
from sim.scenario.load import load_text
from sim.sched.task import Blocking
from sim.syscall import Sys

MS = 1_000_000
S = 1_000_000_000

RAM_DISK = """\
[machine.disk.sda]
device = "ram"
capacity = "4 GiB"
latency = "2 ms"
queue_depth = 1
scheduler = "noop"
"""
EXT3 = RAM_DISK + '[machine.mount."/"]\ntype = "ext3"\ndevice = "sda"'
TMPFS = ('machine.mount."/".type="tmpfs"', 'machine.mount."/".size="512 MiB"')  # as `sets`
NOBODY = '[process.nobody]\nprogram = "syslogd"\ncount = 0'


def scenario(
    processes: str = NOBODY,
    *,
    machine: str = EXT3,
    cpus: int = 2,
    duration: str = "1 min",
    sets: Sequence[str] = (),
    uses: Sequence[str] = (),
) -> Scenario:
    """Return a scenario of one server with a link `lan` beside it; `uses`: files of programs."""
    text = f"""\
title = "A small server"
uses = {list(uses)}
[machine]
kernel = "2.6.16"
cpus = {cpus}
memory = "1 GiB"
{machine}
[link.lan]
latency = "0.1 ms"
{processes}
[run]
duration = "{duration}"
[measure]
interval = "1 s"
"""
    return load_text(text, Path("small.toml"), sets=sets)


def boot(processes: str = NOBODY, *, seed: int = 1, trace: bool = False, **more: object) -> Machine:
    """Boot such a server; more: as for scenario()."""
    return Machine(scenario(processes, **more), seed, trace=trace)  # type: ignore[arg-type]


def run_for(machine: Machine, seconds: float) -> Machine:
    """Let time pass, and find the machine consistent afterwards."""
    machine.run_until(machine.calendar.now + round(seconds * S))
    machine.check()
    return machine


def run_program(
    machine: Machine, body: Callable[[Sys], Blocking[None]], seconds: float = 10
) -> None:
    """Run a program of the test's own; it must end in time, and its failure is the test's."""
    ended: list[BaseException | None] = []

    def guarded(sys: Sys) -> Blocking[None]:
        try:
            yield from body(sys)
        except BaseException as error:
            ended.append(error)
        else:
            ended.append(None)

    machine.kernel.start("test", "test", guarded)
    run_for(machine, seconds)
    assert ended, "the program did not end"
    if ended[0] is not None:
        raise ended[0]


def times_of(machine: Machine, mark: str) -> list[float]:
    """Return when (s) programs left that mark."""
    return [record.t_ns / S for record in machine.records if record.name == mark]


def values_of(machine: Machine, mark: str) -> list[int | float | str]:
    """Return what programs said with that mark."""
    return [record.value for record in machine.records if record.name == mark]
