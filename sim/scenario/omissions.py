"""What a machine of its kernel's days has, the twin leaves out, and a figure would show.

Models: the small print, read aloud. A scenario that may be wrong by more than a tenth, because it
says nothing of something that its kernel's machines have by default, is told so at load: one line
for each such thing, with the key that silences it.
Linux counterpart: none.
Invariants: a row says what moves a figure by more than 10 %, and where that was measured or
 published; what nobody showed is no row. `[machine] accepts = ["NAME"]` silences a row; the rows'
 conditions look at the description alone, never at a run.
Left out: what the opening docstrings call left out and no figure shows; the multi-generational LRU
 (CONFIG_LRU_GEN_ENABLED is off in the kernel's own defaults), several memory nodes (numa_nodes: the
 machine's, which its author knows).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sim.scenario.spec import Scenario
from sim.sched.version import KernelVersion, kernel_version

# file system -> release whose buffered writes make large folios
LARGE_FOLIOS: Final = {"ext4": (6, 16), "xfs": (6, 6)}
NEW_MACHINES_SINCE: Final = (4, 0)  # 2015: nobody runs it on a machine of 2005
HUGE_PAGES_SINCE: Final = (2, 6, 38)  # 71e3aac0724f: transparent huge pages for anonymous memory
_FILLS_MEMORY: Final = ("memload", "pipeline")  # programs that touch memory page by page


@dataclass(frozen=True, kw_only=True)
class Omission:
    """One thing left out: its name, what is told of it, who showed that it counts, and where."""

    name: str
    told: str
    key: str  # what says otherwise, or silences it
    source: str
    applies: Callable[[Scenario], bool]


def _release(scenario: Scenario) -> KernelVersion:
    return kernel_version(scenario.server.kernel)


def _costs_of_2005(scenario: Scenario) -> bool:
    no_generation = scenario.server.core["cpu"].generation is None
    return no_generation and _release(scenario) >= NEW_MACHINES_SINCE


def _has_large_folios(scenario: Scenario) -> bool:
    kinds = {mount.type for mount in scenario.server.all("mount").values()}
    release = _release(scenario)
    return any(kind in kinds and release >= since for kind, since in LARGE_FOLIOS.items())


def _fills_memory(scenario: Scenario) -> bool:
    programs = {process.program for process in scenario.processes.values()}
    return _release(scenario) >= HUGE_PAGES_SINCE and not programs.isdisjoint(_FILLS_MEMORY)


def _chooses_its_clock(scenario: Scenario) -> bool:
    server = scenario.server
    return server.core["cpu"].hwp and server.one("cpufreq") is not None


OMISSIONS: Final[tuple[Omission, ...]] = (
    Omission(
        name="cpu-generation",
        told="CPU costs are those of a 3 GHz Xeon of 2005; machines of this kernel's days take a"
        " third to a half of them",
        key='machine.cpu.generation = "NAME"',
        source="recorded: iotwin's own run of dd into the page cache: 0.95 GB/s without a"
        " generation, 2.7 with skylake-2017 (tests/scenario/test_generation.py)",
        applies=_costs_of_2005,
    ),
    Omission(
        name="large-folios",
        told="the page cache pays for each page of 4 KiB; this kernel's file system handles large"
        " folios, and large buffered transfers take up to 40 % less CPU",
        key='machine.accepts = ["large-folios"]',
        source="published: Zhang Yi, ext4: enable large folio for regular file (2024): buffered"
        " reads of 64 KiB 57 % faster, Xeon Gold 6240",
        applies=_has_large_folios,
    ),
    Omission(
        name="huge-pages",
        told="programs' memory is filled by pages of 4 KiB; transparent huge pages, on by default,"
        " take half the time",
        key='machine.accepts = ["huge-pages"]',
        source="published: perf bench mem map in the cover letter of mm: folio_zero_user (2025):"
        " 2 MiB at 11.8 GB/s, 178 us; here 512 faults of 0.5 to 0.7 us, 256 to 358 us",
        applies=_fills_memory,
    ),
    Omission(
        name="hwp",
        told="the governor chooses the clock; a processor of this generation does so itself (HWP)",
        key='machine.accepts = ["hwp"]',
        source="kernel: Documentation/admin-guide/pm/intel_pstate.rst: with HWP the processor"
        " selects P-states by itself; what clocks decide: scenario web-governor's what-ifs",
        applies=_chooses_its_clock,
    ),
)


def omissions_of(scenario: Scenario) -> tuple[str, ...]:
    """Return a line for each row that applies and is not accepted."""
    kernel = scenario.server.kernel
    return tuple(
        f"{scenario.name}: Linux {kernel}: {row.told} (silenced by {row.key})"
        for row in OMISSIONS
        if row.name not in scenario.server.accepts and row.applies(scenario)
    )
