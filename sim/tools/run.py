"""Run a tool by its command line over snapshots of /proc, as if typed on that server.

Models: a shell that knows iostat, sar, vmstat, uptime and cpupower, in the generation that the
server had.
Linux counterpart: none; the tools themselves are sysstat, procps and cpupower.
Invariants: reads only the snapshots given; what is unknown raises ToolUsageError.
Left out: pipes, redirections, other commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sim.tools import cpupower, iostat, sar, uptime, vmstat
from sim.tools.clock import Wall
from sim.tools.iostat_layout import (
    SYSSTAT_7,
    SYSSTAT_9,
    SYSSTAT_12,
    TIME_FORMATS,
    IostatLayout,
)
from sim.tools.sar_layout import SAR_7, SAR_9, SAR_12, SarLayout
from sim.tools.snapshot import Snapshot
from sim.tools.usage import ONCE, Sampling, ToolUsageError
from sim.tools.vmstat import VmstatLayout


@dataclass(frozen=True, slots=True)
class Generation:
    """The tools that were installed together."""

    iostat: IostatLayout
    sar: SarLayout
    vmstat: VmstatLayout
    uptime: uptime.UptimeLayout


GENERATIONS = {
    "sysstat-7": Generation(SYSSTAT_7, SAR_7, vmstat.PROCPS_3_2, uptime.PROCPS_3_2),
    "sysstat-9": Generation(SYSSTAT_9, SAR_9, vmstat.PROCPS_3_2, uptime.PROCPS_3_2),
    "sysstat-12": Generation(SYSSTAT_12, SAR_12, vmstat.PROCPS_4_0, uptime.PROCPS_4_0),
}
TOOLS = ("cpupower", "iostat", "sar", "uptime", "vmstat")
FILES = {
    "iostat": ("stat", "uptime", "diskstats"),
    "sar": ("stat", "uptime", "diskstats", "loadavg", "meminfo", "vmstat"),
    "uptime": ("uptime", "loadavg"),
    "vmstat": ("stat", "meminfo", "vmstat"),
}
"""The files below /proc that each tool reads."""


def tool_sampling(argv: Sequence[str], *, layout: str = "sysstat-12") -> Sampling:
    """Return when the tool reads /proc; raise ToolUsageError for a command line it refuses."""
    tool, arguments = _split(argv)
    generation = _generation(layout)
    if tool == "iostat":
        return iostat.parse_options(arguments, generation.iostat).sampling
    if tool == "sar":
        return sar.parse_options(arguments, generation.sar).sampling
    if tool == "vmstat":
        return vmstat.parse_options(arguments).sampling
    if tool == "cpupower":
        cpupower.parse_options(arguments)
        return ONCE
    uptime.parse_options(arguments)
    return ONCE


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
        raise ToolUsageError(tool, f"unknown locale {locale!r}", ", ".join(TIME_FORMATS))
    wall = Wall(boot_wallclock if boot_wallclock.tzinfo else boot_wallclock.replace(tzinfo=UTC))
    if tool == "iostat":
        return iostat.run_iostat(
            iostat.parse_options(arguments, generation.iostat), snapshots,
            layout=generation.iostat, hostname=hostname, release=release, machine=machine,
            wall=wall, times=TIME_FORMATS[locale],
        )  # fmt: skip
    if tool == "sar":
        return sar.run_sar(
            sar.parse_options(arguments, generation.sar), snapshots,
            title=generation.iostat, hostname=hostname, release=release, machine=machine,
            wall=wall, times=TIME_FORMATS[locale],
        )  # fmt: skip
    if tool == "vmstat":
        return vmstat.run_vmstat(
            vmstat.parse_options(arguments), snapshots, layout=generation.vmstat
        )
    if tool == "cpupower":
        return cpupower.run_cpupower(cpupower.parse_options(arguments), snapshots)
    uptime.parse_options(arguments)
    return uptime.run_uptime(snapshots, wall=wall, users=users, layout=generation.uptime)


def _split(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    tool = argv[0] if argv else ""
    if tool not in TOOLS:
        raise ToolUsageError(tool or "(nothing)", "no such tool on this server", ", ".join(TOOLS))
    return tool, argv[1:]


def _generation(layout: str) -> Generation:
    if layout not in GENERATIONS:
        raise ToolUsageError("layout", f"unknown {layout!r}", ", ".join(GENERATIONS))
    return GENERATIONS[layout]
