"""cpupower: which clock a CPU has and who chose it; how it sleeps.

Models: `cpupower [-c CPU] frequency-info` and `idle-info`, of cpupower 3.16 as to what they say and
in which order.
Linux counterpart: tools/power/cpupower/utils/cpufreq-info.c, cpuidle-info.c.
Invariants: reads /sys/devices/system/cpu only; numbers are those of the files.
Left out: the other subcommands and options, statistics of clocks, lists of CPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sim.tools.snapshot import Snapshot
from sim.tools.usage import ToolUsageError

ALLOWED = "[-c CPU] frequency-info | idle-info"
KHZ_PER_GHZ = 1_000_000
KHZ_PER_MHZ = 1_000


@dataclass(frozen=True, slots=True)
class CpupowerOptions:
    """What was asked of which CPU."""

    subject: str
    cpu: int = 0


def parse_options(arguments: Sequence[str]) -> CpupowerOptions:
    """Return what was asked; raise ToolUsageError."""
    words = list(arguments)
    cpu = 0
    if words[:1] == ["-c"]:
        if len(words) < 2 or not words[1].isdecimal():
            raise ToolUsageError("cpupower", "-c needs the number of a CPU", ALLOWED)
        cpu = int(words[1])
        words = words[2:]
    if len(words) != 1 or words[0] not in _RENDERERS:
        raise ToolUsageError("cpupower", f"unknown command {' '.join(words)!r}", ALLOWED)
    return CpupowerOptions(subject=words[0], cpu=cpu)


def run_cpupower(options: CpupowerOptions, snapshots: Iterable[Snapshot]) -> Iterator[str]:
    """Yield the text for the first snapshot and take no other."""
    for snapshot in snapshots:
        yield f"analyzing CPU {options.cpu}:\n" + _RENDERERS[options.subject](snapshot, options.cpu)
        return


def render_frequency(snapshot: Snapshot, cpu: int) -> str:
    """Return what frequency-info says of a CPU."""
    if not _has(snapshot, f"cpu{cpu}/cpufreq/scaling_driver"):
        return "  no or unknown cpufreq driver is active on this CPU\n"

    def value(name: str) -> str:
        return snapshot.text(f"cpu{cpu}/cpufreq/{name}").strip()

    low, high = (_clock(int(value(f"cpuinfo_{end}_freq"))) for end in ("min", "max"))
    return (
        f"  driver: {value('scaling_driver')}\n"
        f"  CPUs which run at the same hardware frequency: {cpu}\n"
        f"  maximum transition latency: {int(value('cpuinfo_transition_latency')) / 1000:.1f} us.\n"
        f"  hardware limits: {low} - {high}\n"
        f"  available cpufreq governors: "
        f"{', '.join(value('scaling_available_governors').split())}\n"
        f"  current policy: frequency should be within {low} and {high}.\n"
        f'                  The governor "{value("scaling_governor")}" may decide'
        " which speed to use\n"
        f"                  within this range.\n"
        f"  current CPU frequency is {_clock(int(value('scaling_cur_freq')))}.\n"
    )


def render_idle(snapshot: Snapshot, cpu: int) -> str:
    """Return what idle-info says of a CPU."""
    states = 0
    while _has(snapshot, f"cpu{cpu}/cpuidle/state{states}/name"):
        states += 1
    if not states:
        return f"CPU {cpu}: No idle states\n"
    rows = [_state(snapshot, f"cpu{cpu}/cpuidle/state{number}") for number in range(states)]
    names = " ".join(name for name, _text in rows)
    head = f"Number of idle states: {states}\nAvailable idle states: {names}\n"
    return head + "".join(text for _name, text in rows)


def _state(snapshot: Snapshot, below: str) -> tuple[str, str]:
    name, latency, usage, time = (
        snapshot.text(f"{below}/{file}").strip() for file in ("name", "latency", "usage", "time")
    )
    return name, f"{name}:\nLatency: {latency}\nUsage: {usage}\nDuration: {time}\n"


def _has(snapshot: Snapshot, name: str) -> bool:
    return name in snapshot.files


def _clock(khz: int) -> str:
    """Return "2.40 GHz", or "800 MHz" below one."""
    if khz >= KHZ_PER_GHZ:
        return f"{khz / KHZ_PER_GHZ:.2f} GHz"
    return f"{khz // KHZ_PER_MHZ} MHz"


_RENDERERS = {"frequency-info": render_frequency, "idle-info": render_idle}
