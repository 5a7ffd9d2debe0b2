"""`iotwin exec`: a tool or a program as if typed on the simulated server.

A program is dd at a prompt, `time` before it (bash execute_cmd.c, print_formatted_time). The
scenario's own programs run beside it; the run ends when it does. Other programs, pipes and
redirections are left out.
"""

import functools
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import click

from sim.cli import options
from sim.cli.output import check_apart, check_json, write_json
from sim.cli.progress import Progress
from sim.machine import Machine, simulate
from sim.observation import Observation
from sim.results import ProcSample, Record, RunResult
from sim.scenario import Scenario, load
from sim.scenario.dd_command import PROCESS, dd_layer
from sim.toml.layers import Table
from sim.tools.parse import parse_stat
from sim.tools.run import FILES, GENERATIONS, run_tool, tool_sampling
from sim.units import NS_PER_MS, NS_PER_S, UnitError, parse_quantity

# The first kernel of the distributions that came with a generation of the tools.
_GENERATION_SINCE = (((3, 10), "sysstat-12"), ((2, 6, 32), "sysstat-9"), ((0,), "sysstat-7"))


class TimeType(click.ParamType[int]):
    """A time with a unit, as in scenarios."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return nanoseconds."""
        if isinstance(value, int):
            return value
        try:
            return parse_quantity(value, "time_ns")
        except UnitError as error:
            self.fail(str(error), param, ctx)


@click.command("exec", short_help="Type iostat, sar, free, top, dd ... on the simulated server.")
@options.scenario_argument
@click.argument("argv", metavar="-- TOOL [ARGUMENT]...", nargs=-1, required=True)
@options.what_if_option
@options.seed_option
@options.set_option
@click.option(
    "--at",
    "at_ns",
    type=TimeType(),
    metavar="TIME",
    help="Simulated time at which the tool is typed (default: at the start if it has an"
    " interval, else at the end of the measured part).",
)
@click.option(
    "--tools",
    "generation",
    type=click.Choice(list(GENERATIONS)),
    help="Generation of the tools instead of that of the kernel's days.",
)
@options.json_option
def command(
    scenario_name: str,
    argv: tuple[str, ...],
    what_if: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    at_ns: int | None,
    generation: str | None,
    json_path: str | None,
) -> None:
    """Run a scenario and print what a tool on that server would have shown.

    The tools are iostat, sar, vmstat, uptime, free, top, swapon, cpupower and cat; they read
    nothing but the twin's /proc and /sys. dd, with or without time before it, runs beside the
    programs of the scenario, until it ends.

    \b
    Examples:
      iotwin exec sendmail -- iostat -t -c -m -x 5
      iotwin exec sendmail --what-if tmpfs -- iostat -t -c -m -x 5 10
      iotwin exec sendmail --at "2 min" -- uptime
      iotwin exec sendmail --tools sysstat-12 -- iostat -xz 10
      iotwin exec sendmail -- sar -u -q -d 5 12
      iotwin exec sendmail -- vmstat 5
      iotwin exec sendmail --at "1 min" -- top -b -n 1 -d 10
      iotwin exec generic -- free -m -s 10
      iotwin exec web-governor -- cpupower frequency-info
      iotwin exec web-limits -- cat /sys/fs/cgroup/pods/web/cpu.stat
      iotwin exec generic -- time dd if=/dev/zero of=/test.2GB bs=1M count=2048
    """
    if is_program(argv):
        layer = program_layer(argv, at_ns or 0)
        check_json(json_path)
        scenario = load(scenario_name, what_if=what_if, sets=sets, seed=seed, fit=layer)
        options.tell_omissions(scenario)
        check_apart(json_path, read=(scenario.path,))
        _check_at(scenario, at_ns)
        with Progress(f"simulating {scenario.label}") as progress:
            result = simulate(scenario, scenario.seed, progress)
        _tell(scenario, what_if, result, argv, printed(argv, result), json_path)
        sys.exit(1 if any(marks_of(result, "dd_failed")) else 0)
    scenario = load(scenario_name, what_if=what_if, sets=sets, seed=seed)
    options.tell_omissions(scenario)
    _check_at(scenario, at_ns)
    layout = generation or generation_of(scenario.server.kernel)
    sampling = tool_sampling(argv, layout=layout)
    check_json(json_path)
    check_apart(json_path, read=(scenario.path,))
    interval_s = sampling.interval_s
    if interval_s is not None:
        measure = replace(scenario.measure, interval_ns=interval_s * NS_PER_S)
        scenario = replace(scenario, measure=measure)
    with Progress(f"simulating {scenario.label}") as progress:
        result = simulate(scenario, scenario.seed, progress, functools.partial(_show, argv[0]))
    samples = _samples(result, scenario, at_ns, repeats=interval_s is not None)
    if at_ns is not None and samples[0].t_ns < at_ns:
        last_s = samples[0].t_ns / NS_PER_S
        click.echo(f"iotwin: the run ended before --at: this is as of {last_s:g} s", err=True)
    text = "".join(_typed(argv, samples, scenario, layout))
    _tell(scenario, what_if, result, argv, text, json_path)


def _check_at(scenario: Scenario, at_ns: int | None) -> None:
    """Refuse a moment that no run of the scenario has."""
    longest_ns = scenario.run.duration_ns
    if at_ns is not None and not 0 <= at_ns <= longest_ns:
        longest_s = longest_ns / NS_PER_S
        message = f"{at_ns / NS_PER_S:g} s is not within the run: 0 to {longest_s:g} s"
        raise click.BadParameter(message, param_hint="--at")


def _show(tool: str, machine: Machine) -> None:
    """Have the readings of /proc hold what the tool wants."""
    machine.proc.snapshot_also(FILES[tool])


def _tell(
    scenario: Scenario,
    what_if: str | None,
    result: RunResult,
    argv: Sequence[str],
    text: str,
    json_path: str | None,
) -> None:
    """Print what was on the terminal, and write the JSON that was asked for."""
    if json_path is not None:
        content = {
            "scenario": scenario.name,
            "what_if": what_if,
            "seed": scenario.seed,
            "version": result.version,
            "command": list(argv),
            "output": text,
        }
        write_json(content, json_path)
    if json_path != "-":
        click.echo(text, nl=False)


def generation_of(kernel: str) -> str:
    """Return the generation of tools that distributions of that kernel had."""
    version = tuple(int(number) for number in re.findall(r"\d+", kernel)[:3])
    return next(name for since, name in _GENERATION_SINCE if version >= since)


def _samples(
    result: RunResult, scenario: Scenario, at_ns: int | None, *, repeats: bool
) -> Sequence[ProcSample]:
    """Return the readings from the moment on at which the tool is typed."""
    if at_ns is None:
        at_ns = 0 if repeats else Observation(result, scenario.measure).end_ns
    later = [sample for sample in result.samples if sample.t_ns >= at_ns]
    return later or result.samples[-1:]


def _typed(
    argv: Sequence[str], samples: Sequence[ProcSample], scenario: Scenario, layout: str
) -> Sequence[str]:
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
    return list(texts)


def is_program(argv: Sequence[str]) -> bool:
    """Return whether the command line is a program's, not that of a tool that reads /proc."""
    return argv[0] == "dd" or tuple(argv[:2]) == ("time", "dd")


def program_layer(argv: Sequence[str], start_ns: int) -> Table:
    """Return the table to lay over the scenario; raise ToolUsageError for a wrong command line."""
    return dd_layer(argv[1 + argv.index("dd") :], start_ns)


def printed(argv: Sequence[str], result: RunResult) -> str:
    """Return what stands on the terminal when the program has ended."""
    lines = "".join(str(record.value) for record in marks_of(result, "stdout"))
    return lines + (_times(result) if argv[0] == "time" else "")


def marks_of(result: RunResult, name: str) -> Iterator[Record]:
    """Yield the typed program's records of one name, not those of the scenario's programs."""
    return (record for record in result.marks(name) if record.comm == PROCESS)


def _times(result: RunResult) -> str:
    """Return real, user and system time as bash prints them."""
    rows = []
    for word, mark in (("real", "dd_ns"), ("user", "dd_user_ns"), ("sys", "dd_system_ns")):
        [record] = marks_of(result, mark)
        minutes, ms = divmod(int(record.value) // NS_PER_MS, 60_000)
        rows.append(f"{word}\t{minutes}m{ms // 1000}.{ms % 1000:03}s\n")
    return "\n" + "".join(rows)
