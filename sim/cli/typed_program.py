"""A program as if typed on the simulated server, and what a shell says about its time.

Models: dd at a prompt, `time` before it.
Linux counterpart: bash execute_cmd.c print_formatted_time.
Invariants: the scenario's own programs run beside it; the run ends when it does.
Left out: other programs; pipes, redirections.
"""

from collections.abc import Iterator, Sequence

from sim.results import Record, RunResult
from sim.scenario.dd_command import PROCESS, dd_layer
from sim.toml.layers import Table
from sim.units import NS_PER_MS


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
