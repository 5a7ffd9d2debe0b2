"""Which scheduler a machine has: plain, with clocks and idle states, or as a guest among others.

Models: the hardware's share in scheduling.
Linux counterpart: sched_init, kernel/sched/core.c; arch/x86/kernel/setup.c as far as it finds out
what it runs on.
Invariants: without [machine.cpufreq], [machine.cpuidle], [machine.guest] and [machine.smt] CPUs are
 plain ones.
Left out: hot plugging.
"""

from collections.abc import Mapping
from typing import Any

from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.sched.capacity import ClockedSched, Power
from sim.sched.core import Sched
from sim.sched.cpufreq import CpufreqParams
from sim.sched.cpuidle import CpuidleParams
from sim.sched.guest import GuestParams
from sim.sched.params import SchedParams
from sim.sched.smt import SmtParams
from sim.sched.vcpu import GuestSched, Host
from sim.sched.version import KernelVersion


def sched_init(
    calendar: Calendar,
    nr_cpus: int,
    kernel: KernelVersion,
    params: SchedParams,
    tracer: Tracer,
    streams: Streams,
    hardware: Mapping[str, Any],
    host: Host | None = None,
) -> Sched:
    """Return the scheduler of a machine: with clocks and idle states, if its hardware has such.

    `hardware` has CpufreqParams, CpuidleParams, GuestParams, SmtParams by their tables' names.
    `host` is where the machine is a guest, if another guest's description has made it already.
    """
    chance = streams.stream("sched.newidle")
    cpufreq: CpufreqParams | None = hardware.get("cpufreq")
    cpuidle: CpuidleParams | None = hardware.get("cpuidle")
    guest: GuestParams | None = hardware.get("guest")
    smt: SmtParams | None = hardware.get("smt")
    if cpufreq is None and cpuidle is None and guest is None and smt is None and host is None:
        return Sched(calendar, nr_cpus, kernel, params, tracer, chance)
    power = Power(cpufreq, cpuidle, 0.0 if guest is None else guest.overhead_percent, smt)
    if host is None and guest is not None and guest.host_cpus:
        host = Host(calendar, guest, kernel, streams)
    if host is not None:
        return GuestSched(calendar, nr_cpus, kernel, params, tracer, chance, power=power, host=host)
    return ClockedSched(calendar, nr_cpus, kernel, params, tracer, chance, power=power)


def clocks_of(sched: Sched) -> list[int]:
    """Return the list that always holds the clocks of that scheduler's CPUs, kHz; [] for none."""
    return sched.clocks_khz if isinstance(sched, ClockedSched) else []


def cores_of(sched: Sched) -> list[int]:
    """Return each CPU's core, [] where a core is a CPU."""
    return [min(cpu, other.cpu) for cpu, other in enumerate(sched.siblings)]


def readings(sched: Sched) -> list[tuple[str, int]]:
    """Return what no file of /proc tells: tasks in state D, and what the host's own tools say.

    host_busy_ns is CPU time of the host's CPUs, neighbours_wanted_ns what bursts of other guests
    computed, neighbours_took_ns how long these were on their way; of guests that are simulated in
    full, the time that their CPUs worked, and that with what was stolen from them.
    """
    found = [("tasks_uninterruptible", sched.nr_uninterruptible)]
    host = host_of(sched)
    if host is not None:
        found.append(("host_busy_ns", host.busy_ns()))
        found.append(("host_cpus", host.sched.nr_cpus))
        others = [cpu for guest in host.guests if guest is not sched for cpu in guest.cpu_times]
        took_all_ns = sum(cpu.busy_ns() for cpu in others)
        stolen_ns = sum(cpu.steal_ns for cpu in others)
        wanted_ns = sum(one.wanted_ns for one in host.neighbours)
        took_ns = sum(one.took_ns for one in host.neighbours)
        found.append(("neighbours_wanted_ns", wanted_ns + took_all_ns - stolen_ns))
        found.append(("neighbours_took_ns", took_ns + took_all_ns))
    return found


def host_of(sched: Sched) -> Host | None:
    """Return the host that the machine of that scheduler is a guest of, if it is modelled."""
    return sched.host if isinstance(sched, GuestSched) else None
