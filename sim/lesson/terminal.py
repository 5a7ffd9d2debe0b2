"""The terminal of a lesson: tools on the simulated server, and what was recorded of the real one.

Models: an administrator's terminal (sim/study/prompt.py).
Linux counterpart: sysstat, procps, dd.
Invariants: a tool sees the very run whose figures run() gives: same scenario, same seed.
Left out: pipes; tools that wait for keys.
"""

import shlex

from sim.lesson.runs import Asked, Run
from sim.machine import simulate
from sim.registry import did_you_mean
from sim.scenario.cases import data_sets
from sim.study.prompt import (
    generation_of,
    is_program,
    program_layer,
    program_text,
    typed,
)
from sim.units import NS_PER_S, parse_quantity


def tool(command: str, of: Run | str, *, at: str | None = None) -> None:
    """Print what a command shows that is typed on a simulated server, at a time such as "2 min".

    storm = run("sendmail")
    tool("iostat -x 5 3", storm, at="2 min")

    The server is a run, or a scenario by its name.
    """
    print(printed(command, of, at=at), end="")


def printed(command: str, of: Run | str, *, at: str | None = None) -> str:
    """Return what tool() prints: a text to keep, as a recording is."""
    argv = shlex.split(command)
    if not argv:
        raise ValueError("a command line is asked for, such as 'iostat -x 5 3', got an empty one")
    asked = of.asked if isinstance(of, Run) else Asked(of)
    server = asked.scenario()
    at_ns = None if at is None else parse_quantity(at, "time_ns")
    longest_ns = server.run.duration_ns
    if at_ns is not None and not 0 <= at_ns <= longest_ns:
        raise ValueError(f"at={at!r} is not within the run: 0 to {longest_ns / NS_PER_S:g} s")
    if is_program(argv):
        beside = asked.scenario(program_layer(argv, at_ns or 0))
        return program_text(argv, simulate(beside, beside.seed))
    layout = generation_of(server.server.kernel)
    done = of.result if isinstance(of, Run) else None
    _result, _samples, text = typed(server, argv, layout, at_ns, done=done)
    return text


def recording(case: str, file: str) -> str:
    """Return a text that was recorded of a real server, as it was recorded."""
    known = data_sets()
    if case not in known:
        hint = did_you_mean(case, known)
        raise LookupError(f"no recording '{case}'{hint} (known: {', '.join(known)})")
    files = sorted(path.name for path in known[case].iterdir())
    if file not in files:
        hint = did_you_mean(file, files)
        raise LookupError(f"no text '{file}' of {case}{hint} (known: {', '.join(files)})")
    return (known[case] / file).read_text(encoding="utf-8")
