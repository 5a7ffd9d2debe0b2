"""top in batch mode: load, tasks, CPU states, memory, and the processes by CPU time.

Models: `top -b [-n COUNT] [-d DELAY] [-p PID]...` of two generations.
Linux counterpart: procps 3.2.8 top.c (frame_make, procs_refresh), procps-ng 4.0.2 src/top/top.c.
With D(x) the increase of a counter between two readings, t the time between:

    %CPU = 100 D(utime + stime) / t     %MEM = 100 resident / MemTotal
    states = 100 D(state) / D(all states); those of 3.2's first frame are since boot

Invariants: a process is shown whose stat was read; of equal %CPU the lower pid comes first. The
first reading makes no frame. (The real tool takes it itself, half a second earlier: here it lies a
whole DELAY before.)
Left out: the screen, its keys and windows, threads, users by name, other columns and sort orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sim.tools.clock import Wall
from sim.tools.parse import CpuTicks, parse_meminfo, parse_stat, parse_uptime
from sim.tools.processes import ProcessRow, parse_processes
from sim.tools.snapshot import Snapshot
from sim.tools.top_layout import STATES, Frame, TopLayout, render
from sim.tools.uptime import render_uptime
from sim.tools.usage import Sampling, ToolUsageError, parse_letters, positive

DEFAULT_DELAY_S = 3
PERCENT_MAX = 99.9
_ALLOWED = "-b batch mode (needed), -n COUNT, -d DELAY, -p PID"


@dataclass(frozen=True, slots=True)
class TopOptions:
    """A command line of top, understood."""

    delay_s: int
    count: int | None
    pids: frozenset[int]

    @property
    def sampling(self) -> Sampling:
        """Return when top reads: once before the first frame, then for each."""
        return Sampling(self.delay_s, None if self.count is None else self.count + 1)


def parse_options(arguments: Sequence[str]) -> TopOptions:
    """Return what the arguments (without the tool's name) ask; raise ToolUsageError."""
    words = list(arguments)
    pids = []
    while "-p" in words:
        place = words.index("-p")
        pids += ",".join(words[place + 1 : place + 2]).split(",")
        del words[place : place + 2]
    found = parse_letters("top", words, flags="b", valued="nd", allowed=_ALLOWED)
    if "b" not in found:
        raise ToolUsageError("top", "without -b it wants a terminal", _ALLOWED)
    count = positive("top", "n", found["n"], _ALLOWED) if "n" in found else None
    delay = positive("top", "d", found["d"], _ALLOWED) if "d" in found else DEFAULT_DELAY_S
    chosen = frozenset(positive("top", "p", pid, _ALLOWED) for pid in pids)
    return TopOptions(delay_s=delay, count=count, pids=chosen)


def run_top(
    options: TopOptions, snapshots: Iterable[Snapshot], *, layout: TopLayout, wall: Wall, users: int
) -> Iterator[str]:
    """Yield one text per frame, with an empty line between them."""
    prev: Snapshot | None = None
    frames = 0
    for cur in snapshots:
        if prev is not None:
            since_boot = layout.first_since_boot and not frames
            frame = compute(prev, cur, options.pids, layout, since_boot=since_boot)
            now = wall.at(cur.t_ns)
            first = render_uptime(cur, wall=now, users=users, layout=layout.uptime)
            yield ("\n" if frames else "") + f"top -{first}" + render(frame, layout)
            frames += 1
        if frames == options.count:
            return
        prev = cur


def compute(
    prev: Snapshot, cur: Snapshot, pids: frozenset[int], layout: TopLayout, *, since_boot: bool
) -> Frame:
    """Return what a frame says of the time between two readings."""
    stat = parse_stat(cur.text("stat"))
    spent = stat.cpu if since_boot else stat.cpu - parse_stat(prev.text("stat")).cpu
    shown = [row for row in parse_processes(cur) if not pids or row.pid in pids]
    before = {row.pid: row.ticks for row in parse_processes(prev)}
    uptimes = [parse_uptime(snapshot.text("uptime")).uptime_cs for snapshot in (prev, cur)]
    most = PERCENT_MAX
    if layout.percent_max_per_cpu and len(stat.cpus) > 1:
        most = 100.0 * len(stat.cpus)
    rows = [(row, _cpu_pct(row, before, max(uptimes[1] - uptimes[0], 1), most)) for row in shown]
    rows.sort(key=_busiest_first)
    return Frame(
        states_pct=_states(spent),
        memory_kib=parse_meminfo(cur.text("meminfo")),
        tasks=_tasks(shown),
        rows=rows,
    )


def _cpu_pct(row: ProcessRow, before: Mapping[int, int], elapsed_cs: int, most: float) -> float:
    return min(max(row.ticks - before.get(row.pid, 0), 0) / elapsed_cs * 100, most)


def _busiest_first(entry: tuple[ProcessRow, float]) -> tuple[float, int]:
    return -entry[1], entry[0].pid


def _states(spent: CpuTicks) -> dict[str, float]:
    total = max(sum(getattr(spent, state) for state in STATES), 1)
    return {state: 100 * getattr(spent, state) / total for state in STATES}


def _tasks(rows: Sequence[ProcessRow]) -> dict[str, int]:
    count = {letter: sum(row.state == letter for row in rows) for letter in "RTZ"}
    return {
        "total": len(rows),
        "running": count["R"],
        "sleeping": len(rows) - sum(count.values()),
        "stopped": count["T"],
        "zombie": count["Z"],
    }
