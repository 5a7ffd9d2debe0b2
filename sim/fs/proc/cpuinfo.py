"""/proc/cpuinfo: which processor, how many, at what clock.

Models: the file's text, of the processor and clocks of [machine.cpu].
Linux counterpart: arch/x86/kernel/cpu/proc.c:show_cpuinfo (arch/x86_64/kernel/setup.c in 2.6.16).
Invariants: one paragraph per CPU; "cpu MHz" is the clock of now, which a governor may have lowered.
All CPUs are of one package; "siblings" and "core id" are there if cores have several threads.
Left out: flags, address sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CpuModel:
    """What a processor says about itself."""

    vendor_id: str = "GenuineIntel"
    cpu_family: int = 6
    model: int = 15
    model_name: str = "Intel(R) Xeon(R) CPU"
    stepping: int = 6
    cache_size_kib: int = 4096


def render_cpuinfo(model: CpuModel, clocks_khz: Sequence[int], cores: Sequence[int] = ()) -> str:
    """Return the text of /proc/cpuinfo, with the present clock of each CPU.

    `cores` has each CPU's core, where a core has several; none: there is no topology to tell.
    """
    return "".join(_paragraph(number, model, khz, cores) for number, khz in enumerate(clocks_khz))


def _paragraph(number: int, model: CpuModel, khz: int, cores: Sequence[int]) -> str:
    lines = [
        f"processor\t: {number}",
        f"vendor_id\t: {model.vendor_id}",
        f"cpu family\t: {model.cpu_family}",
        f"model\t\t: {model.model}",
        f"model name\t: {model.model_name}",
        f"stepping\t: {model.stepping}",
        f"cpu MHz\t\t: {khz // 1000}.{khz % 1000:03d}",
        f"cache size\t: {model.cache_size_kib} KB",
    ]
    if cores:
        lines += [
            "physical id\t: 0",
            f"siblings\t: {len(cores)}",
            f"core id\t\t: {cores[number]}",
            f"cpu cores\t: {len(set(cores))}",
        ]
    return "\n".join(lines) + "\n\n"
