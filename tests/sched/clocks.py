"""CPUs with clocks and idle states, and programs that work in bursts."""

from sim.engine.calendar import Calendar
from sim.sched.capacity import ClockedSched, Power
from sim.sched.cpufreq import CpufreqParams
from sim.sched.cpuidle import CpuidleParams
from sim.sched.params import SchedParams
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import MODERN, Rig

GHZ = 1_000_000
HASWELL = CpuidleParams(table="haswell")


def clock(driver="acpi-cpufreq", governor="powersave", **more):
    """Return the clocks of the Xeon of the defaults: 1.2 to 2.4 GHz."""
    return CpufreqParams(driver=driver, governor=governor, **more)


class ClockedRig(Rig):
    """A machine's scheduler with clocks; context switches are free unless asked for."""

    def __init__(
        self,
        cpus=1,
        kernel=MODERN,
        *,
        cpufreq=None,
        cpuidle=None,
        overhead=0.0,
        switch_ns=0,
        hz=250,
        notsc=False,
    ):
        self.calendar = Calendar()
        params = SchedParams(context_switch_ns=switch_ns, hz=hz, notsc=notsc)
        power = Power(cpufreq, cpuidle, overhead)
        self.sched = ClockedSched(self.calendar, cpus, kernel, params, power=power)
        self.log = []

    @property
    def khz(self):
        return self.sched.clocks_khz[0]

    def residency_ns(self):
        """Return the residencies of all CPUs' idle states, summed over CPUs."""
        self.sched.update()
        cpus = [self.sched.cpu_at(cpu) for cpu in range(self.sched.nr_cpus)]
        return [sum(column) for column in zip(*(cpu.residency_ns for cpu in cpus), strict=True)]


def bursts(work_ns, every_ns, log=None):
    """A program that computes for `work_ns` every `every_ns`; it notes how long after its timer."""

    def main(task):
        calendar = task.sched.calendar
        due_ns = calendar.now
        while True:
            due_ns += every_ns
            began_ns = max(due_ns, calendar.now)
            if due_ns > calendar.now:
                yield from sleep_ns(task, due_ns - calendar.now, TASK_INTERRUPTIBLE)
            task.charge_user(work_ns)
            yield
            if log is not None:
                log.append(calendar.now - began_ns)

    return main
