"""`iotwin exec`: a tool or a program as if typed on the simulated server.

The scenario's own programs run beside a program that is typed; the run ends when it does
(sim/study/prompt.py).
"""

import shlex
import sys
from collections.abc import Sequence

import click

from sim.cli import options
from sim.cli.output import check_apart, check_json, write_json
from sim.cli.progress import Progress
from sim.machine import simulate
from sim.results import RunResult
from sim.scenario import Scenario, load
from sim.study.prompt import (
    generation_of,
    has_failed,
    is_program,
    program_layer,
    program_text,
    typed,
)
from sim.tools.run import FILES, GENERATIONS
from sim.tools.usage import ToolUsageError
from sim.units import NS_PER_S, UnitError, parse_quantity


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

    The tools are iostat, mpstat, pidstat, sar, vmstat, uptime, free, top, swapon, cpupower and cat;
    they read nothing but the twin's /proc and /sys. dd, with or without time before it, runs beside
    the programs of the scenario, until it ends.

    \b
    Examples:
      iotwin exec sendmail -- iostat -t -c -m -x 5
      iotwin exec sendmail --what-if tmpfs -- iostat -t -c -m -x 5 10
      iotwin exec sendmail --at "2 min" -- uptime
      iotwin exec sendmail --tools sysstat-12 -- iostat -xz 10
      iotwin exec sendmail -- sar -u -q -d 5 12
      iotwin exec sendmail -- vmstat 5
      iotwin exec page-cache --at "20 s" -- pidstat -d 5 2
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
        check_at(scenario, at_ns)
        with Progress(f"simulating {scenario.label}") as progress:
            result = simulate(scenario, scenario.seed, progress)
        _tell(scenario, what_if, result, argv, program_text(argv, result), json_path)
        sys.exit(1 if has_failed(result) else 0)
    scenario = load(scenario_name, what_if=what_if, sets=sets, seed=seed)
    options.tell_omissions(scenario)
    check_at(scenario, at_ns)
    layout = generation or generation_of(scenario.server.kernel)
    check_json(json_path)
    check_apart(json_path, read=(scenario.path,))
    try:
        with Progress(f"simulating {scenario.label}") as progress:
            result, samples, text = typed(scenario, argv, layout, at_ns, progress)
    except ToolUsageError as error:
        real = _real_tool(argv, scenario_name, what_if=what_if, seed=seed, sets=sets, at_ns=at_ns)
        raise ToolUsageError(error.tool, error.problem, f"{error.allowed}{real}") from None
    if at_ns is not None and samples[0].t_ns < at_ns:
        last_s = samples[0].t_ns / NS_PER_S
        click.echo(f"iotwin: the run ended before --at: this is as of {last_s:g} s", err=True)
    _tell(scenario, what_if, result, argv, text, json_path)


def _real_tool(
    argv: Sequence[str],
    scenario_name: str,
    *,
    what_if: str | None,
    seed: int | None,
    sets: Sequence[str],
    at_ns: int | None,
) -> str:
    """Say how the real tool reads the same /proc, if it would find more there than ours."""
    tool = argv[0]
    if tool == "cat":
        return ""
    if tool == "sar" and any(word.startswith("-n") for word in argv[1:]):
        return "; no sar would find counters of network interfaces in the twin's /proc"
    words = ["iotwin", "shell", scenario_name]
    words += ["--what-if", what_if] if what_if is not None else []
    words += ["--seed", str(seed)] if seed is not None else []
    words += [word for one in sets for word in ("--set", one)]
    words += ["--at", f"{at_ns / NS_PER_S:g} s"] if at_ns is not None else []
    if tool not in FILES:
        return f"; other programs of this computer: {shlex.join(words)} -- COMMAND"
    return f"; the real {tool} of this computer: {shlex.join([*words, '--', *argv])}"


def check_at(scenario: Scenario, at_ns: int | None) -> None:
    """Refuse a moment that no run of the scenario has."""
    longest_ns = scenario.run.duration_ns
    if at_ns is not None and not 0 <= at_ns <= longest_ns:
        longest_s = longest_ns / NS_PER_S
        message = f"{at_ns / NS_PER_S:g} s is not within the run: 0 to {longest_s:g} s"
        raise click.BadParameter(message, param_hint="--at")


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
