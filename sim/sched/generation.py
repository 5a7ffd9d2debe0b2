"""Generations of processors: [machine.cpu], what the kernel's code costs on which machine.

Models: the age of a server. All CPU times of the kernel's core are declared for a 3 GHz Xeon of
2005. `generation` names a file with those of another machine: a part of a [machine] table, laid
under the scenario's own values and over the defaults, also over those of a kernel release. What was
measured and published of a machine stands there by its key (an entry, a page copied, a page added,
a switch, a packet). All other costs of the kernel's code are `code` times their default.

A generation is the machine's, not the kernel's: what a release does differently is in the tables of
releases. Page table isolation is of both. From 4.15 on the kernel changes the page tables at each
entry and exit, on processors that have the flaw (Meltdown): there the generation says in `pti` what
an entry costs more. pti=off at boot is `pti = "0 ns"` here.

By hand, of skylake-2017: a hot page is read in 0.48 us, 4096 B / 0.48 us = 8.5 GB/s. dd takes 0.34
us to fill a page with zeroes, 0.48 us to copy it into the page cache and 0.45 x 1.5 us for what the
file system does about it: 4096 B / 1.5 us = 2.7 GB/s. The defaults give 0.95 and 2.0 GB/s.

Linux counterpart: none; arch/x86/kernel/cpu/common.c (cpu_set_bug_bits: X86_BUG_CPU_MELTDOWN),
 arch/x86/mm/pti.c 4.15, Documentation/arch/x86/pti.rst.
Invariants: without `generation` each cost is as declared; netburst-2005 names just that machine.
Left out: clocks (machine.cpufreq says what a lower one does), caches, other mitigations than page
 table isolation, programs' own CPU times: these are their scenario's. PTI also makes interrupts of
 user mode dearer, and costs global pages: below 1 % (pti.rst).
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sim.param import param
from sim.toml.errors import unknown
from sim.toml.layers import Leaf, Table, merge
from sim.toml.profile import Shelf
from sim.toml.reading import Reading

GENERATIONS: Final = Shelf("generation", Path(__file__).parent / "generations")


@dataclass(frozen=True, kw_only=True)
class CpuParams:
    """[machine.cpu]"""

    generation: str | None = param(
        None,
        dim="text",
        source="scenario",
        doc="the machine whose CPU costs count, by name or by a file of your own, such as"
        ' "./mine.toml"; none: a 3 GHz Xeon of 2005',
    )
    code: float = param(
        1.0,
        dim="number",
        minimum=0.01,
        maximum=100,
        source="derived: the machine of the defaults, a 3 GHz Xeon of 2005",
        doc="time of the kernel's code, of what the defaults say; costs that are given keep theirs",
    )
    pti_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="assumed: pti=off, or a processor without the flaw",
        doc="what page table isolation adds to an entry into the kernel, from 4.15 on",
    )
    hwp: bool = param(
        False,
        dim="bool",
        source="assumed: a processor before Skylake",
        doc="whether the processor chooses its clock itself (HWP), which is not modelled",
    )


def under_generation(
    reading: Reading, machine: Table, folder: Path, core: Collection[str]
) -> Table:
    """Return [machine] laid over its generation's; note what is wrong with the file's tables."""
    leaf = _named(machine)
    generation = GENERATIONS.read(reading, leaf, folder) if leaf is not None else None
    if generation is None:
        return machine
    for name, child in generation.children.items():
        if name not in core:
            place = child.key if isinstance(child, Leaf) else child.place
            reading.problems.append(unknown(place, "table", name, core, " in a generation"))
    return merge(generation.without(*set(generation.children) - set(core)), machine)


def _named(machine: Table) -> Leaf | None:
    cpu = machine.table("cpu")
    return cpu.leaf("generation") if cpu is not None else None
