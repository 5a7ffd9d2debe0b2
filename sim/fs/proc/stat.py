"""/proc/stat: CPU time by state, interrupts, context switches, forks.

Models: the cpu lines in USER_HZ ticks of 1/100 s, and the single counters.
Linux counterpart: fs/proc/proc_misc.c:show_stat (2.6.16), fs/proc/stat.c:show_stat (2.6.25 on).
Invariants: the "cpu" line is made of the summed times, so it may exceed the sum of the truncated
"cpuN" lines by less than one tick per CPU.
Left out: times are exact, not charged by whole timer ticks as with CONFIG_TICK_CPU_ACCOUNTING;
counts of the single interrupt lines and softirqs are zero, their totals are kept; guest time is 0.
 Of a tickless kernel the ticks that end an idle time are not counted (hrtimers of a sleeping CPU).
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.fs.proc.counters import CpuTimes, SystemCounters
from sim.sched.version import KernelVersion, in_force

USER_HZ_NS = 10_000_000
_COLUMNS_2_6_11 = 8  # user nice system idle iowait irq softirq steal
CPU_COLUMNS: tuple[tuple[KernelVersion, int], ...] = (
    ((2, 6, 11), _COLUMNS_2_6_11),
    ((2, 6, 24), 9),  # guest
    ((2, 6, 33), 10),  # guest_nice
)
# Softirq kinds listed after the total.
SOFTIRQ_KINDS: tuple[tuple[KernelVersion, int], ...] = (
    ((2, 6, 0), 0),
    ((2, 6, 31), 9),
    ((2, 6, 32), 10),  # BLOCK_IOPOLL, later IRQ_POLL
)
TICKLESS_SINCE: KernelVersion = (2, 6, 24)
LOCAL_TIMERS_COUNTED_SINCE: KernelVersion = (2, 6, 27)
_IDLE, _IOWAIT, _STEAL = 3, 4, 7  # columns of a cpu line
# Interrupt lines listed after the total: NR_IRQS, later nr_irqs, of a small x86-64 machine.
INTERRUPT_LINES: tuple[tuple[KernelVersion, int], ...] = (((2, 6, 0), 224), ((2, 6, 28), 256))


def render_stat(
    cpus: Sequence[CpuTimes], system: SystemCounters, *, btime_s: int, version: KernelVersion
) -> str:
    """Return the text of /proc/stat."""
    times = [_times_ns(cpu) for cpu in cpus]
    total = [sum(column) for column in zip(*times, strict=True)]
    lines = [_cpu_line("cpu ", total, version)]
    lines += [_cpu_line(f"cpu{number}", cpu, version) for number, cpu in enumerate(times)]
    interrupts = system.nr_interrupts + _timer_interrupts(times, system.tick_ns, version)
    lines += [
        f"intr {interrupts}{' 0' * in_force(INTERRUPT_LINES, version)}",
        f"ctxt {system.nr_switches}",
        f"btime {btime_s}",
        f"processes {system.total_forks}",
        f"procs_running {system.nr_running}",
        f"procs_blocked {system.nr_iowait}",
    ]
    kinds = in_force(SOFTIRQ_KINDS, version)
    if kinds:
        lines.append(f"softirq 0{' 0' * kinds}")
    return "\n".join(lines) + "\n"


def _timer_interrupts(
    times: Sequence[tuple[int, ...]], tick_ns: int, version: KernelVersion
) -> int:
    """Return how many of the timer's interrupts the total counts.

    The clock of the board (IRQ 0) ticks HZ times a second until kernels are tickless (x86-64:
    2.6.24). The local timers of the CPUs, which do its work from then on and tick while their CPU
    is busy, are in the total from 2.6.27 on (arch_irq_stat_cpu).
    """
    if version < TICKLESS_SINCE:
        return sum(times[0]) // tick_ns
    if version < LOCAL_TIMERS_COUNTED_SINCE:
        return 0
    return sum((sum(cpu) - cpu[_IDLE] - cpu[_IOWAIT] - cpu[_STEAL]) // tick_ns for cpu in times)


def _times_ns(cpu: CpuTimes) -> tuple[int, ...]:
    return (
        cpu.user_ns,
        cpu.nice_ns,
        cpu.system_ns,
        cpu.idle_ns,
        cpu.iowait_ns,
        cpu.irq_ns,
        cpu.softirq_ns,
        cpu.steal_ns,
    )


def _cpu_line(label: str, times_ns: Sequence[int], version: KernelVersion) -> str:
    ticks = [str(ns // USER_HZ_NS) for ns in times_ns]
    guests = ["0"] * (in_force(CPU_COLUMNS, version) - _COLUMNS_2_6_11)
    return " ".join([label, *ticks, *guests])
