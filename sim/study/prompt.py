"""The prompt of the simulated server: what a tool, or a program, that is typed there prints.

Models: an administrator at a terminal. A tool reads /proc and /sys while the scenario runs; dd is a
 process beside the scenario's own, and the run ends when it does.
Linux counterpart: sysstat and procps (sim.tools); dd; bash's time (execute_cmd.c,
 print_formatted_time).
Invariants: reading changes nothing that is simulated; a tool sees text only.
Left out: other programs, pipes and redirections.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from sim.machine import Machine, simulate
from sim.observation import Observation
from sim.results import ProcSample, Record, RunResult
from sim.scenario import Scenario
from sim.scenario.dd_command import PROCESS, dd_layer
from sim.study.tree.whole import show_whole
from sim.toml.layers import Table
from sim.tools.parse import parse_stat
from sim.tools.run import FILES, WHOLE, run_tool, tool_sampling
from sim.units import NS_PER_MS, NS_PER_S

# The first kernel of the distributions that came with a generation of the tools.
_GENERATION_SINCE: Final = (
    ((3, 10), "sysstat-12"),
    ((2, 6, 32), "sysstat-9"),
    ((0,), "sysstat-7"),
)


# -- Tools


def generation_of(kernel: str) -> str:
    """Return the generation of tools that distributions of that kernel had."""
    version = tuple(int(number) for number in re.findall(r"\d+", kernel)[:3])
    return next(name for since, name in _GENERATION_SINCE if version >= since)


def read_for(scenario: Scenario, argv: Sequence[str], layout: str) -> Scenario:
    """Return the scenario with /proc read as often as the tool does; raise ToolUsageError."""
    interval_s = tool_sampling(argv, layout=layout).interval_s
    if interval_s is None:
        return scenario
    return replace(scenario, measure=replace(scenario.measure, interval_ns=interval_s * NS_PER_S))


def shown_to(argv: Sequence[str]) -> Callable[[Machine], None]:
    """Return what has the readings of /proc hold what the tool wants, for simulate()."""
    return functools.partial(_show, argv[0])


def _show(tool: str, machine: Machine) -> None:
    if WHOLE in FILES[tool]:
        show_whole(machine)
    machine.proc.snapshot_also(FILES[tool])


def readings(
    result: RunResult, scenario: Scenario, argv: Sequence[str], layout: str, at_ns: int | None
) -> Sequence[ProcSample]:
    """Return the readings from the moment on at which the tool is typed.

    None: at the start if it has an interval, else at the end of the measured part.
    """
    if at_ns is None:
        repeats = tool_sampling(argv, layout=layout).interval_s is not None
        at_ns = 0 if repeats else Observation(result, scenario.measure).end_ns
    later = [sample for sample in result.samples if sample.t_ns >= at_ns]
    return later or result.samples[-1:]


def typed(
    scenario: Scenario,
    argv: Sequence[str],
    layout: str,
    at_ns: int | None,
    progress: Callable[[int, int], None] | None = None,
    done: RunResult | None = None,
) -> tuple[RunResult, Sequence[ProcSample], str]:
    """Run the server, type a tool there; return the run, what was read, what is printed.

    `done` is a run of that very server: it is not run again if it was read as the tool reads it.
    """
    as_read = read_for(scenario, argv, layout)
    is_enough = (
        done is not None
        and as_read == scenario
        and set(FILES[argv[0]]) <= set(done.samples[0].files)
    )
    result = done if is_enough else simulate(as_read, as_read.seed, progress, shown_to(argv))
    assert result is not None
    samples = readings(result, as_read, argv, layout, at_ns)
    return result, samples, tool_text(argv, samples, as_read, layout)


def tool_text(
    argv: Sequence[str], samples: Sequence[ProcSample], scenario: Scenario, layout: str
) -> str:
    """Return what the tool prints, on the clock that /proc/stat tells (btime)."""
    btime_s = parse_stat(samples[0].text("stat")).btime_s
    texts = run_tool(
        argv,
        samples,
        hostname=scenario.server.hostname,
        release=scenario.server.kernel,
        boot_wallclock=datetime.fromtimestamp(btime_s, UTC),
        layout=layout,
    )
    return "".join(texts)


# -- Programs


def is_program(argv: Sequence[str]) -> bool:
    """Return whether the command line is a program's, not that of a tool that reads /proc."""
    return argv[0] == "dd" or tuple(argv[:2]) == ("time", "dd")


def program_layer(argv: Sequence[str], start_ns: int) -> Table:
    """Return the table to lay over the scenario; raise ToolUsageError for a wrong command line."""
    return dd_layer(argv[1 + argv.index("dd") :], start_ns)


def program_text(argv: Sequence[str], result: RunResult) -> str:
    """Return what stands on the terminal when the program has ended."""
    lines = "".join(str(record.value) for record in _marks_of(result, "stdout"))
    return lines + (_times(result) if argv[0] == "time" else "")


def has_failed(result: RunResult) -> bool:
    """Return whether the program ended with an error."""
    return any(_marks_of(result, "dd_failed"))


def _marks_of(result: RunResult, name: str) -> Iterator[Record]:
    """Yield the typed program's records of one name, not those of the scenario's programs."""
    return (record for record in result.marks(name) if record.comm == PROCESS)


def _times(result: RunResult) -> str:
    """Return real, user and system time as bash prints them."""
    rows = []
    for word, mark in (("real", "dd_ns"), ("user", "dd_user_ns"), ("sys", "dd_system_ns")):
        [record] = _marks_of(result, mark)
        minutes, ms = divmod(int(record.value) // NS_PER_MS, 60_000)
        rows.append(f"{word}\t{minutes}m{ms // 1000}.{ms % 1000:03}s\n")
    return "\n" + "".join(rows)
