"""top in batch mode: load, tasks, CPU states, memory, and the processes by CPU time.

Models: `top -b [-n COUNT] [-d DELAY] [-p PID]...` of two generations.
Linux counterpart: procps 3.2.8 top.c (frame_make, procs_refresh, summary_show, show_a_task,
scale_num, scale_tics), tested against a recording; procps-ng 4.0.2 src/top/top.c, tested against
the tool itself. With D(x) the increase of a counter between two readings, t the time between:

    %CPU = 100 D(utime + stime) / t     %MEM = 100 resident / MemTotal
    states = 100 D(state) / D(all states); those of 3.2's first frame are since boot

in single precision, as the tool computes: where the exact figure lies between two decimals it may
round to the other side. Where no time passed, 4.0 says 100 % idle, and 3.2 zeros.
Invariants: a process is shown whose stat was read; of equal %CPU the lower pid comes first. The
first reading makes no frame. (The real tool takes it itself, half a second earlier: here it lies a
whole DELAY before.) Memory and times are shown in the first form that fits their column.
Left out: the screen, its keys and windows, threads, users by name, other columns and sort orders;
what a terminal wider than 80 columns would show of a command's name in 4.0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sim.tools.clock import Wall
from sim.tools.free import memory_cached, memory_used
from sim.tools.parse import CpuTicks, parse_meminfo, parse_stat, parse_uptime
from sim.tools.processes import ProcessRow, parse_processes
from sim.tools.snapshot import Snapshot
from sim.tools.uptime import PROCPS_3_2 as UPTIME_3_2
from sim.tools.uptime import PROCPS_4_0 as UPTIME_4_0
from sim.tools.uptime import UptimeLayout, render_uptime
from sim.tools.usage import Sampling, ToolUsageError, parse_letters, positive

COMMAND_WIDTH = 10  # what 80 columns leave of a line (4.0)
KIB_PER_MIB = 1024
STATES = {
    "user": "us",
    "system": "sy",
    "nice": "ni",
    "idle": "id",
    "iowait": "wa",
    "irq": "hi",
    "softirq": "si",
    "steal": "st",
}
# Up to which age top 4.0 counts in minutes, hours and minutes, days and hours; weeks beyond.
MINUTES_MAX, HOURS_MAX, DAYS_MAX = 360, 96, 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What one frame shows; percentages by name, memory in KiB."""

    states_pct: Mapping[str, float]
    memory_kib: Mapping[str, int]
    tasks: Mapping[str, int]
    rows: Sequence[tuple[ProcessRow, float]]  # with %CPU


@dataclass(frozen=True, slots=True, kw_only=True)
class TopLayout:
    """All in which one generation of top differs from another."""

    name: str
    uptime: UptimeLayout
    first_since_boot: bool  # the CPU states of the first frame
    summary: Callable[[Frame], str]
    header: str
    row: Callable[[ProcessRow, float, float], str]  # with %CPU and %MEM
    percent_max_per_cpu: bool
    no_time_is_idle: bool


def render(frame: Frame, layout: TopLayout) -> str:
    """Return the text of a frame after its first line."""
    tasks = ",".join(f"{number:4d} {name}" for name, number in frame.tasks.items())
    total = max(frame.memory_kib["MemTotal"], 1)
    rows = [
        layout.row(row, cpu, single(single(row.resident_kib) * 100 / total))
        for row, cpu in frame.rows
    ]
    return f"Tasks:{tasks}\n{layout.summary(frame)}\n{layout.header}\n" + "".join(
        f"{row}\n" for row in rows
    )


def _summary_3_2(frame: Frame) -> str:
    cpu = ",".join(f"{frame.states_pct[state]:5.1f}%{name}" for state, name in STATES.items())
    memory = frame.memory_kib
    swap_total, swap_free = memory.get("SwapTotal", 0), memory.get("SwapFree", 0)
    lines = {
        "Mem: ": {
            "total": memory["MemTotal"],
            "used": memory["MemTotal"] - memory["MemFree"],
            "free": memory["MemFree"],
            "buffers": memory.get("Buffers", 0),
        },
        "Swap:": {
            "total": swap_total,
            "used": swap_total - swap_free,
            "free": swap_free,
            "cached": memory.get("Cached", 0),
        },
    }
    return f"Cpu(s):{cpu}\n" + "".join(
        label + ",".join(f" {kib:8d}k {name}" for name, kib in parts.items()) + "\n"
        for label, parts in lines.items()
    )


def _summary_4_0(frame: Frame) -> str:
    cpu = ",".join(f"{frame.states_pct[state]:5.1f} {name}" for state, name in STATES.items())
    memory = frame.memory_kib
    swap_total, swap_free = memory.get("SwapTotal", 0), memory.get("SwapFree", 0)
    available = memory["MemTotal"] - memory_used(memory)
    total, free, used, cached = (
        _mib(kib)
        for kib in (
            memory["MemTotal"],
            memory["MemFree"],
            memory_used(memory),
            memory.get("Buffers", 0) + memory_cached(memory),
        )
    )
    return (
        f"%Cpu(s):{cpu} \n"
        f"MiB Mem : {total} total, {free} free, {used} used, {cached} buff/cache     \n"
        f"MiB Swap: {_mib(swap_total)} total, {_mib(swap_free)} free,"
        f" {_mib(swap_total - swap_free)} used. {_mib(available)} avail Mem \n"
    )


def _mib(kib: int) -> str:
    return f"{kib / KIB_PER_MIB:8.1f}"


def _row_3_2(row: ProcessRow, cpu: float, memory: float) -> str:
    virtual, resident, shared = (
        f"{scale_3_2(kib, width):>{width}}"
        for kib, width in ((row.virtual_kib, 5), (row.resident_kib, 4), (row.shared_kib, 4))
    )
    return (
        f"{row.pid:5d} {row.user:<8.8} {row.priority:3d} {row.nice:3d} {virtual} {resident}"
        f" {shared} {row.state} {cpu:4.1f} {memory:4.1f} {time_3_2(row.ticks):>9} {row.comm}"
    )


def _row_4_0(row: ProcessRow, cpu: float, memory: float) -> str:
    virtual, resident, shared = (
        f"{scale_4_0(kib, width):>{width}}"
        for kib, width in ((row.virtual_kib, 7), (row.resident_kib, 6), (row.shared_kib, 6))
    )
    comm = row.comm
    if len(comm) > COMMAND_WIDTH:
        comm = comm[: COMMAND_WIDTH - 1] + "+"
    return (
        f"{row.pid:5d} {row.user:<8.8} {row.priority:3d} {row.nice:3d} {virtual} {resident}"
        f" {shared} {row.state} {_percent(cpu)} {_percent(memory)} {time_4_0(row.ticks):>9} {comm}"
    )


def _percent(value: float) -> str:
    """Return a percentage in five characters (scale_pcnt)."""
    forms = (f"{value:5.1f}", f"{value:5.0f}")
    return next((text for text in forms if len(text) <= 5), "    ?")


def single(value: float) -> float:
    """Return the nearest number of single precision, C's float."""
    [rounded] = struct.unpack("f", struct.pack("f", value))
    return float(rounded)


def scale_3_2(kib: int, width: int) -> str:
    """Return KiB in the first form that fits: plain, with one decimal, whole, by unit."""
    scaled = float(kib)
    text = str(kib)
    for unit in "mgtp":
        if len(text) <= width:
            break
        scaled /= 1024
        text = f"{scaled:.1f}{unit}"
        if len(text) > width:
            text = f"{int(scaled)}{unit}"
    return text


def scale_4_0(kib: int, width: int) -> str:
    """Return KiB plain, or with one decimal in the first unit that fits."""
    scaled = single(kib)
    text = str(kib)
    for unit in "mgtpe":
        if len(text) <= width:
            break
        scaled = single(scaled / 1024)
        text = f"{scaled:.1f}{unit}"
    return text


def time_3_2(ticks: int) -> str:
    """Return CPU time as minutes:seconds.hundredths, or shorter where that is wider than 9."""
    seconds, hundredths = divmod(ticks, 100)
    minutes, seconds = divmod(seconds, 60)
    forms = (
        f"{minutes}:{seconds:02d}.{hundredths:02d}",
        f"{minutes}:{seconds:02d}",
        f"{minutes // 60},{minutes % 60:02d}",
        f"{minutes // 60}h",
        f"{minutes // 1440}d",
    )
    return next((text for text in forms if len(text) <= 9), forms[-1])


def time_4_0(ticks: int) -> str:
    """Return CPU time in units that grow with it (scale_tics)."""
    seconds, hundredths = divmod(ticks, 100)
    minutes, seconds = divmod(seconds, 60)
    if minutes <= MINUTES_MAX:
        return f"{minutes}:{seconds:02d}.{hundredths:02d}"
    hours, minutes = divmod(minutes, 60)
    if hours <= HOURS_MAX:
        return f"{hours},{minutes:02d}"
    days, hours = divmod(hours, 24)
    if days <= DAYS_MAX:
        return f"{days}d+{hours}h"
    return f"{days // 7}w+{days % 7}d"


PROCPS_3_2 = TopLayout(
    name="procps-3.2",
    uptime=UPTIME_3_2,
    first_since_boot=True,
    summary=_summary_3_2,
    header="  PID USER      PR  NI  VIRT  RES  SHR S %CPU %MEM    TIME+  COMMAND",
    row=_row_3_2,
    percent_max_per_cpu=False,
    no_time_is_idle=False,
)
PROCPS_4_0 = TopLayout(
    name="procps-4.0",
    uptime=UPTIME_4_0,
    first_since_boot=False,
    summary=_summary_4_0,
    header="  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND",
    row=_row_4_0,
    percent_max_per_cpu=True,
    no_time_is_idle=True,
)


DEFAULT_DELAY_S = 3
PERCENT_MAX = 99.9
SHORTEST_S = 0.005  # what counts as elapsed where nothing did
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
    per_tick = _percent_per_tick(uptimes[1] - uptimes[0])
    ticks = {row.pid: max(row.ticks - before.get(row.pid, 0), 0) for row in shown}
    rows = [(row, min(single(ticks[row.pid] * per_tick), most)) for row in shown]
    rows.sort(key=_busiest_first)
    return Frame(
        states_pct=_states(spent, no_time_is_idle=layout.no_time_is_idle),
        memory_kib=parse_meminfo(cur.text("meminfo")),
        tasks=_tasks(shown),
        rows=rows,
    )


def _percent_per_tick(elapsed_cs: int) -> float:
    """Return the percent of one CPU that a tick of 1/100 s is (Frame_etscale)."""
    elapsed_s = single(elapsed_cs / 100) if elapsed_cs > 0 else SHORTEST_S
    return single(100 / single(100 * elapsed_s))


def _busiest_first(entry: tuple[ProcessRow, float]) -> tuple[float, int]:
    return -entry[1], entry[0].pid


def _states(spent: CpuTicks, *, no_time_is_idle: bool) -> dict[str, float]:
    ticks = {state: getattr(spent, state) for state in STATES}
    total = sum(ticks.values())
    if not total:
        total, ticks["idle"] = 1, int(no_time_is_idle)
    percent_per_tick = single(100 / total)
    return {state: single(number * percent_per_tick) for state, number in ticks.items()}


def _tasks(rows: Sequence[ProcessRow]) -> dict[str, int]:
    count = {letter: sum(row.state == letter for row in rows) for letter in "RTZ"}
    return {
        "total": len(rows),
        "running": count["R"],
        "sleeping": len(rows) - sum(count.values()),
        "stopped": count["T"],
        "zombie": count["Z"],
    }
