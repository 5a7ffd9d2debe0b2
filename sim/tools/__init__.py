"""The administrator's tools: text of /proc in, text of a terminal out.

Models: iostat, mpstat, pidstat and sar (sysstat), vmstat, uptime, free and top (procps), swapon
(util-linux) of several generations, reading the files that a real server or the twin shows under
/proc. A recorded /proc is read equally well.
Linux counterpart: sysstat 7.0.x .. 12.6.1, procps 3.2.x .. 4.0.2, util-linux 2.17 .. 2.38.
Invariants: nothing here imports another part of `sim`; reading (`parse`), computing (`*_report`)
and rendering (`*_layout`) are apart; every formula stands in a docstring and is computed once.
Left out: colours, JSON, `--human`; locales other than the tabulated ones.
"""

from sim.tools.iostat import CpuReport, DeviceReport, IostatReport, compute_iostat
from sim.tools.parse import ProcFormatError
from sim.tools.run import FILES, GENERATIONS, PROCESSES, run_tool, tool_sampling
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError

__all__ = [
    "FILES",
    "GENERATIONS",
    "PROCESSES",
    "run_tool",
    "tool_sampling",
    "Sampling",
    "Snapshot",
    "ProcFormatError",
    "ToolUsageError",
    "CpuReport",
    "DeviceReport",
    "IostatReport",
    "compute_iostat",
]
