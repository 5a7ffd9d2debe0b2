"""Check [machine.cpufreq], [machine.smt]: clocks in order, a governor of the driver's, whole cores;
list the idle states of [machine.cpuidle].

Models: what the driver's probe refuses.
Linux counterpart: cpufreq_register_driver, intel_pstate's ->setpolicy.
Invariants: a description that passes has a table of clocks and a governor.
Left out: whether the processor of that name has those clocks.
"""

from sim.scenario.layers import Layer, Table
from sim.scenario.reading import Reading, origin_stated
from sim.scenario.spec import Parameter
from sim.sched.cpufreq import GOVERNORS
from sim.sched.cpufreq_params import CpufreqParams
from sim.sched.cpuidle import SOURCES, CpuidleParams
from sim.sched.smt import THREADS
from sim.units import format_quantity, given_text


def check_clocks(reading: Reading, machine: Table, found: object | None) -> None:
    """Note clocks out of order, and a governor that is another driver's."""
    if not isinstance(found, CpufreqParams):
        return
    table = machine.table("cpufreq")
    assert table is not None
    known = GOVERNORS[found.driver]
    if found.chosen_governor not in known:
        leaf = table.leaf("governor")
        reading.error(
            leaf.at if leaf else table.place,
            f"machine.cpufreq.governor: {found.driver} has no such governor",
            given=given_text(found.chosen_governor), allowed=", ".join(known),
        )  # fmt: skip
    base = format_quantity(found.base_khz, "clock_khz")
    if found.lowest_khz > found.base_khz:
        _out_of_order(reading, table, "lowest", found.lowest_khz, f"up to the base, {base}")
    if found.turbo_khz is not None and found.turbo_khz < found.base_khz:
        _out_of_order(reading, table, "turbo", found.turbo_khz, f"from the base, {base}, on")


def check_threads(reading: Reading, machine: Table, cpus: int | None) -> None:
    """Note an odd number of CPUs where each core has two."""
    table = machine.table("smt")
    if table is not None and cpus is not None and cpus % THREADS:
        leaf = machine.leaf("cpus")
        reading.error(
            leaf.at if leaf else table.place,
            "machine.cpus: with [machine.smt] each core has two of them",
            given=str(cpus), allowed="an even number",
        )  # fmt: skip


def note_idle_states(reading: Reading, found: object | None) -> None:
    """List how long a CPU takes to wake from each of its idle states."""
    if not isinstance(found, CpuidleParams):
        return
    source = SOURCES[found.table]
    if found.exit_scale != 1:
        source = f"{source}; times exit_scale"
    for state in found.states()[1:]:
        reading.parameters.append(
            Parameter(
                path=f"machine.cpuidle.{state.name}.exit_latency",
                value=found.exit_latency_ns(state), dim="time_ns", source=source,
                origin=origin_stated(source), layer=Layer.DEFAULT,
                doc=f"time to wake from the idle state {state.name}",
            )
        )  # fmt: skip


def _out_of_order(reading: Reading, table: Table, key: str, khz: int, allowed: str) -> None:
    leaf = table.leaf(key) or table.leaf("base")
    reading.error(
        leaf.at if leaf else table.place, f"machine.cpufreq.{key}: clocks out of order",
        given=given_text(format_quantity(khz, "clock_khz")), allowed=allowed,
    )  # fmt: skip
