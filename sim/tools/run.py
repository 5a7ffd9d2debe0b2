"""Run a tool by its command line over snapshots of /proc, as if typed on that server.

Models: a shell that knows the administrator's tools, in the generation that the server had.
Linux counterpart: none; the tools themselves are sysstat, procps, util-linux and cpupower.
Invariants: reads only the snapshots given; what is unknown raises ToolUsageError.
Left out: pipes, redirections, other commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sim.tools import cat, cpupower, free, iostat, sar, swapon, top, uptime, vmstat
from sim.tools.clock import Wall
from sim.tools.iostat import (
    SYSSTAT_7,
    SYSSTAT_9,
    SYSSTAT_12,
    TIME_FORMATS,
    IostatLayout,
    TimeFormat,
)
from sim.tools.sar import SAR_7, SAR_9, SAR_12, SarLayout
from sim.tools.snapshot import Snapshot
from sim.tools.usage import ONCE, Sampling, ToolUsageError
from sim.tools.vmstat import VmstatLayout

PROCESSES = "processes"
"""In FILES: stat, statm and status of every process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The tools that were installed together."""

    iostat: IostatLayout
    sar: SarLayout
    vmstat: VmstatLayout
    uptime: uptime.UptimeLayout
    free: free.FreeLayout
    top: top.TopLayout
    swapon: swapon.SwaponLayout


GENERATIONS = {
    "sysstat-7": Generation(
        iostat=SYSSTAT_7,
        sar=SAR_7,
        vmstat=vmstat.PROCPS_3_2,
        uptime=uptime.PROCPS_3_2,
        free=free.PROCPS_3_2,
        top=top.PROCPS_3_2,
        swapon=swapon.UTIL_LINUX_2_17,
    ),
    "sysstat-9": Generation(
        iostat=SYSSTAT_9,
        sar=SAR_9,
        vmstat=vmstat.PROCPS_3_2,
        uptime=uptime.PROCPS_3_2,
        free=free.PROCPS_3_2,
        top=top.PROCPS_3_2,
        swapon=swapon.UTIL_LINUX_2_17,
    ),
    "sysstat-12": Generation(
        iostat=SYSSTAT_12,
        sar=SAR_12,
        vmstat=vmstat.PROCPS_4_0,
        uptime=uptime.PROCPS_4_0,
        free=free.PROCPS_4_0,
        top=top.PROCPS_4_0,
        swapon=swapon.UTIL_LINUX_2_38,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Where a tool was typed: what it is told besides /proc."""

    generation: Generation
    hostname: str
    release: str
    machine: str
    wall: Wall
    times: TimeFormat
    users: int


Words = Sequence[str]
Readings = Iterable[Snapshot]


@dataclass(frozen=True, slots=True)
class Tool:
    """One command: the files below /proc that it reads, when, and what it makes of them."""

    files: tuple[str, ...]
    sampling: Callable[[Words, Generation], Sampling]
    run: Callable[[Words, Readings, Terminal], Iterator[str]]


def _cat_sampling(words: Words, _: Generation) -> Sampling:
    cat.parse_options(words)
    return ONCE


def _cat(words: Words, readings: Readings, _: Terminal) -> Iterator[str]:
    return cat.run_cat(cat.parse_options(words), readings)


def _cpupower_sampling(words: Words, _: Generation) -> Sampling:
    cpupower.parse_options(words)
    return ONCE


def _cpupower(words: Words, readings: Readings, _: Terminal) -> Iterator[str]:
    return cpupower.run_cpupower(cpupower.parse_options(words), readings)


def _free_sampling(words: Words, generation: Generation) -> Sampling:
    return free.parse_options(words, generation.free).sampling


def _free(words: Words, readings: Readings, at: Terminal) -> Iterator[str]:
    layout = at.generation.free
    return free.run_free(free.parse_options(words, layout), readings, layout=layout)


def _iostat_sampling(words: Words, generation: Generation) -> Sampling:
    return iostat.parse_options(words, generation.iostat).sampling


def _iostat(words: Words, readings: Readings, at: Terminal) -> Iterator[str]:
    layout = at.generation.iostat
    return iostat.run_iostat(
        iostat.parse_options(words, layout),
        readings,
        layout=layout,
        hostname=at.hostname,
        release=at.release,
        machine=at.machine,
        wall=at.wall,
        times=at.times,
    )


def _sar_sampling(words: Words, generation: Generation) -> Sampling:
    return sar.parse_options(words, generation.sar).sampling


def _sar(words: Words, readings: Readings, at: Terminal) -> Iterator[str]:
    return sar.run_sar(
        sar.parse_options(words, at.generation.sar),
        readings,
        title=at.generation.iostat,
        hostname=at.hostname,
        release=at.release,
        machine=at.machine,
        wall=at.wall,
        times=at.times,
    )


def _swapon_sampling(words: Words, generation: Generation) -> Sampling:
    swapon.parse_options(words, generation.swapon)
    return ONCE


def _swapon(words: Words, readings: Readings, at: Terminal) -> Iterator[str]:
    layout = at.generation.swapon
    return swapon.run_swapon(swapon.parse_options(words, layout), readings, layout=layout)


def _top_sampling(words: Words, _: Generation) -> Sampling:
    return top.parse_options(words).sampling


def _top(words: Words, readings: Readings, at: Terminal) -> Iterator[str]:
    return top.run_top(
        top.parse_options(words), readings, layout=at.generation.top, wall=at.wall, users=at.users
    )


def _uptime_sampling(words: Words, _: Generation) -> Sampling:
    uptime.parse_options(words)
    return ONCE


def _uptime(words: Words, readings: Readings, at: Terminal) -> Iterator[str]:
    uptime.parse_options(words)
    return uptime.run_uptime(readings, wall=at.wall, users=at.users, layout=at.generation.uptime)


def _vmstat_sampling(words: Words, _: Generation) -> Sampling:
    return vmstat.parse_options(words).sampling


def _vmstat(words: Words, readings: Readings, at: Terminal) -> Iterator[str]:
    return vmstat.run_vmstat(vmstat.parse_options(words), readings, layout=at.generation.vmstat)


TOOLS = {
    "cat": Tool((*cat.PROC_FILES, PROCESSES), _cat_sampling, _cat),
    "cpupower": Tool((), _cpupower_sampling, _cpupower),
    "free": Tool(("meminfo",), _free_sampling, _free),
    "iostat": Tool(("stat", "uptime", "diskstats"), _iostat_sampling, _iostat),
    "sar": Tool(
        ("stat", "uptime", "diskstats", "loadavg", "meminfo", "vmstat"), _sar_sampling, _sar
    ),
    "swapon": Tool(("swaps",), _swapon_sampling, _swapon),
    "top": Tool(("stat", "uptime", "loadavg", "meminfo", PROCESSES), _top_sampling, _top),
    "uptime": Tool(("uptime", "loadavg"), _uptime_sampling, _uptime),
    "vmstat": Tool(("stat", "meminfo", "vmstat", "diskstats"), _vmstat_sampling, _vmstat),
}
FILES = {name: tool.files for name, tool in TOOLS.items()}
"""The files below /proc that each tool reads."""


def tool_sampling(argv: Sequence[str], *, layout: str = "sysstat-12") -> Sampling:
    """Return when the tool reads /proc; raise ToolUsageError for a command line it refuses."""
    tool, arguments = _split(argv)
    return tool.sampling(arguments, _generation(layout))


def run_tool(
    argv: Sequence[str],
    snapshots: Iterable[Snapshot],
    *,
    hostname: str,
    release: str,
    boot_wallclock: datetime,
    layout: str = "sysstat-12",
    machine: str = "x86_64",
    locale: str = "en_US",
    users: int = 1,
) -> Iterator[str]:
    """Yield what the tool prints, a text per report, each as soon as its snapshot is there.

    `boot_wallclock` is what the server's clock shows at t_ns = 0 of the snapshots (UTC if naive);
    `layout` names a generation of GENERATIONS, `locale` a row of TIME_FORMATS. Snapshots are taken
    one at a time, no more than the command line asks for: they may be made while the server runs.
    """
    tool, arguments = _split(argv)
    generation = _generation(layout)
    if locale not in TIME_FORMATS:
        raise ToolUsageError(argv[0], f"unknown locale {locale!r}", ", ".join(TIME_FORMATS))
    at_zero = boot_wallclock if boot_wallclock.tzinfo else boot_wallclock.replace(tzinfo=UTC)
    terminal = Terminal(
        generation=generation,
        hostname=hostname,
        release=release,
        machine=machine,
        wall=Wall(at_zero),
        times=TIME_FORMATS[locale],
        users=users,
    )
    return tool.run(arguments, snapshots, terminal)


def _split(argv: Sequence[str]) -> tuple[Tool, Sequence[str]]:
    name = argv[0] if argv else ""
    if name not in TOOLS:
        raise ToolUsageError(name or "(nothing)", "no such tool on this server", ", ".join(TOOLS))
    return TOOLS[name], argv[1:]


def _generation(layout: str) -> Generation:
    if layout not in GENERATIONS:
        raise ToolUsageError("layout", f"unknown {layout!r}", ", ".join(GENERATIONS))
    return GENERATIONS[layout]
