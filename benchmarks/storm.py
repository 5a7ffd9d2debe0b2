"""What the mail storm costs: CPU and wall time and memory, for 1, 4 and 16 times the messages.

Each size runs in a process of its own (worker.py), so that its peak memory is its own.
"""

import resource
import time

from benchmarks.measure import Row
from sim.machine import simulate
from sim.scenario import load

MESSAGES = 2030
KIB_PER_MIB = 1024


def storm(size: int) -> list[Row]:
    """Simulate the storm with ``size`` times its messages, queue on disk."""
    return _storm(size, None)


def storm_tmpfs(size: int) -> list[Row]:
    """Simulate the storm with ``size`` times its messages, queue on tmpfs."""
    return _storm(size, "tmpfs")


def _storm(size: int, what_if: str | None) -> list[Row]:
    sets = (f"process.blast.messages={MESSAGES * size}", f"run.duration={20 * size} min")
    scenario = load("sendmail", what_if=what_if, sets=sets)
    start_wall_s, start_s = time.perf_counter(), time.process_time()
    result = simulate(scenario, seed=7)
    cpu_s = time.process_time() - start_s
    wall_s = time.perf_counter() - start_wall_s
    accepted = sum(1 for _ in result.marks("message_accepted"))
    simulated_s = result.samples[-1].t_ns / 1e9
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB
    case = f"{what_if or 'disk'}, {size}x messages"
    return [
        Row("storm", f"{case}: wall time", wall_s, "s"),
        Row("storm", f"{case}: CPU time", cpu_s, "s"),
        Row("storm", f"{case}: simulated", simulated_s, "s"),
        Row("storm", f"{case}: CPU time per 1000 accepted", 1000 * cpu_s / accepted, "s"),
        Row("storm", f"{case}: peak memory", peak_mib, "MiB"),
    ]
