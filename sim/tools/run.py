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

from sim.tools import (
    cat,
    cpupower,
    free,
    iostat,
    mpstat,
    pidstat,
    sar,
    swapon,
    top,
    uptime,
    vmstat,
)
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
WHOLE = "whole"
"""In FILES: all of /proc, with interrupts, and the io, schedstat and cmdline of every process."""


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

    hostname: str
    release: str
    machine: str
    wall: Wall
    times: TimeFormat
    users: int


Words = Sequence[str]
Readings = Iterable[Snapshot]


@dataclass(frozen=True, slots=True)
class Typed:
    """A command line, understood: when it reads, and what it makes of the readings."""

    sampling: Sampling
    run: Callable[[Readings, Terminal], Iterator[str]]


def _cat(words: Words, _: Generation) -> Typed:
    options = cat.parse_options(words)
    return Typed(ONCE, lambda readings, _: cat.run_cat(options, readings))


def _cpupower(words: Words, _: Generation) -> Typed:
    options = cpupower.parse_options(words)
    return Typed(ONCE, lambda readings, _: cpupower.run_cpupower(options, readings))


def _free(words: Words, generation: Generation) -> Typed:
    layout = generation.free
    options = free.parse_options(words, layout)
    return Typed(
        options.sampling, lambda readings, _: free.run_free(options, readings, layout=layout)
    )


def _iostat(words: Words, generation: Generation) -> Typed:
    layout = generation.iostat
    options = iostat.parse_options(words, layout)
    return Typed(
        options.sampling,
        lambda readings, at: iostat.run_iostat(
            options,
            readings,
            layout=layout,
            hostname=at.hostname,
            release=at.release,
            machine=at.machine,
            wall=at.wall,
            times=at.times,
        ),
    )


def _mpstat(words: Words, generation: Generation) -> Typed:
    _needs_sysstat_12("mpstat", generation)
    options = mpstat.parse_options(words)
    return Typed(
        options.sampling,
        lambda readings, at: mpstat.run_mpstat(
            options,
            readings,
            title=generation.iostat,
            hostname=at.hostname,
            release=at.release,
            machine=at.machine,
            wall=at.wall,
            times=at.times,
        ),
    )


def _pidstat(words: Words, generation: Generation) -> Typed:
    _needs_sysstat_12("pidstat", generation)
    options = pidstat.parse_options(words)
    return Typed(
        options.sampling,
        lambda readings, at: pidstat.run_pidstat(
            options,
            readings,
            title=generation.iostat,
            hostname=at.hostname,
            release=at.release,
            machine=at.machine,
            wall=at.wall,
            times=at.times,
        ),
    )


def _needs_sysstat_12(tool: str, generation: Generation) -> None:
    """Refuse a tool whose columns of older generations are not modelled."""
    if generation.iostat is not SYSSTAT_12:
        problem = f"its columns are known of sysstat 12 alone, and this is {generation.iostat.name}"
        raise ToolUsageError(tool, problem, "--tools sysstat-12")


def _sar(words: Words, generation: Generation) -> Typed:
    options = sar.parse_options(words, generation.sar)
    return Typed(
        options.sampling,
        lambda readings, at: sar.run_sar(
            options,
            readings,
            title=generation.iostat,
            hostname=at.hostname,
            release=at.release,
            machine=at.machine,
            wall=at.wall,
            times=at.times,
        ),
    )


def _swapon(words: Words, generation: Generation) -> Typed:
    layout = generation.swapon
    options = swapon.parse_options(words, layout)
    return Typed(ONCE, lambda readings, _: swapon.run_swapon(options, readings, layout=layout))


def _top(words: Words, generation: Generation) -> Typed:
    options = top.parse_options(words)
    return Typed(
        options.sampling,
        lambda readings, at: top.run_top(
            options, readings, layout=generation.top, wall=at.wall, users=at.users
        ),
    )


def _uptime(words: Words, generation: Generation) -> Typed:
    uptime.parse_options(words)
    layout = generation.uptime
    return Typed(
        ONCE,
        lambda readings, at: uptime.run_uptime(
            readings, wall=at.wall, users=at.users, layout=layout
        ),
    )


def _vmstat(words: Words, generation: Generation) -> Typed:
    layout = generation.vmstat
    options = vmstat.parse_options(words, layout)
    return Typed(
        options.sampling,
        lambda readings, _: vmstat.run_vmstat(options, readings, layout=layout),
    )


@dataclass(frozen=True, slots=True)
class Tool:
    """One command: the files below /proc that it reads, and how its words are understood."""

    files: tuple[str, ...]
    type: Callable[[Words, Generation], Typed]


TOOLS = {
    "cat": Tool((*cat.PROC_FILES, WHOLE), _cat),
    "cpupower": Tool((), _cpupower),
    "free": Tool(("meminfo",), _free),
    "iostat": Tool(("stat", "uptime", "diskstats"), _iostat),
    "mpstat": Tool(("stat", "uptime", WHOLE), _mpstat),
    "pidstat": Tool(("stat", "uptime", "meminfo", WHOLE), _pidstat),
    "sar": Tool(("stat", "uptime", "diskstats", "loadavg", "meminfo", "vmstat"), _sar),
    "swapon": Tool(("swaps",), _swapon),
    "top": Tool(("stat", "uptime", "loadavg", "meminfo", PROCESSES), _top),
    "uptime": Tool(("uptime", "loadavg"), _uptime),
    "vmstat": Tool(("stat", "meminfo", "vmstat", "diskstats"), _vmstat),
}
FILES = {name: tool.files for name, tool in TOOLS.items()}
"""The files below /proc that each tool reads."""


def tool_sampling(argv: Sequence[str], *, layout: str = "sysstat-12") -> Sampling:
    """Return when the tool reads /proc; raise ToolUsageError for a command line it refuses."""
    return _typed(argv, layout).sampling


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
    typed = _typed(argv, layout)
    if locale not in TIME_FORMATS:
        raise ToolUsageError(argv[0], f"unknown locale {locale!r}", ", ".join(TIME_FORMATS))
    at_zero = boot_wallclock if boot_wallclock.tzinfo else boot_wallclock.replace(tzinfo=UTC)
    terminal = Terminal(
        hostname=hostname,
        release=release,
        machine=machine,
        wall=Wall(at_zero),
        times=TIME_FORMATS[locale],
        users=users,
    )
    return typed.run(snapshots, terminal)


def _typed(argv: Sequence[str], layout: str) -> Typed:
    name = argv[0] if argv else ""
    if name not in TOOLS:
        raise ToolUsageError(name or "(nothing)", "no such tool on this server", ", ".join(TOOLS))
    if layout not in GENERATIONS:
        raise ToolUsageError("layout", f"unknown {layout!r}", ", ".join(GENERATIONS))
    return TOOLS[name].type(argv[1:], GENERATIONS[layout])
