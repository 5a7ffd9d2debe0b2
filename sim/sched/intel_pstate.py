"""intel_pstate's own "powersave": a governor that follows the load, more or less.

Models: to 4.12 a controller (PID, of which only P is used) that wants the CPU 97 % busy *at the
clock it asked for*. While a CPU works it gets what it asked for, so that it always seems 100 %
busy, and the clock climbs one step of 100 MHz at every look, 10 ms. What brings it down is sleep:
the timer is deferred while the CPU sleeps, and if it comes more than three periods late, the load
counts for the less the later it was. From 4.13 on the share of time that it worked, times 1.25, of
the highest clock.
Linux counterpart: drivers/cpufreq/intel_pstate.c 3.9, 3.14, 4.4 (intel_pstate_get_scaled_busy,
 pid_calc), 4.13 (get_target_pstate).
Invariants: a choice is a row of the table.
Left out: hardware P-states (HWP: Skylake and later choose themselves), the boost of CPUs that
 waited for I/O (4.6 on), the Atom's algorithm.

By hand: a request that computes for 80 ms after 250 ms of silence begins at the lowest clock, 1.2
GHz, is at 1.3 after 10 ms, at 1.9 at its end; the silence counts 10 / 250 = 4 %, the controller
goes (97 - 4) x 20 % = 19 steps down: the next one begins at the lowest again.
"""

from math import floor
from typing import Final

from sim.sched.cpufreq_governors import Governor, Load
from sim.sched.cpufreq_params import CpufreqParams
from sim.sched.features import BY_LOAD, OF_THE_TIME, PSTATE_BUSY, UNLESS_LATE
from sim.sched.version import KernelVersion, in_force
from sim.units import NS_PER_MS

SAMPLE_NS: Final = 10 * NS_PER_MS  # pid_params.sample_rate_ms
LATE: Final = 3  # periods after which a look counts as late


class PstatePowersave(Governor):
    """The governor "powersave" of intel_pstate."""

    def __init__(self, params: CpufreqParams, kernel: KernelVersion) -> None:
        super().__init__(params, kernel)
        self.period_ns = SAMPLE_NS
        self._busy: str = in_force(PSTATE_BUSY, kernel)
        self._average_khz: float = float(self.table_khz[0])

    def next_khz(self, load: Load, cur_khz: int) -> int:
        wanted_khz = self._by_load(load) if self._busy == BY_LOAD else self._by_pid(load, cur_khz)
        return self._row(wanted_khz)

    def _by_pid(self, load: Load, cur_khz: int) -> float:
        """Return the clock so many steps off as the controller says (pid_calc)."""
        error = self.params.setpoint_percent - self._scaled_busy(load, cur_khz)
        steps = floor(self.params.p_gain_percent / 100 * error + 0.5)
        return cur_khz - steps * self.params.step_khz

    def _scaled_busy(self, load: Load, cur_khz: int) -> float:
        """Return how busy the CPU was at the clock wanted, % (intel_pstate_get_scaled_busy)."""
        busy = 100.0 * load.mean_khz(cur_khz) / cur_khz
        if self._busy == OF_THE_TIME:
            return busy * load.busy_ns / load.wall_ns
        if self._busy == UNLESS_LATE and load.wall_ns > LATE * SAMPLE_NS:
            return busy * SAMPLE_NS / load.wall_ns
        return busy

    def _by_load(self, load: Load) -> float:
        """Return a clock a quarter above the load; halfway down only (get_target_pstate)."""
        top_khz = self.table_khz[-1]
        wanted_khz = 1.25 * top_khz * load.busy_ns / load.wall_ns
        wanted_khz = max(wanted_khz, float(self.table_khz[0]))
        if self._average_khz > wanted_khz:
            wanted_khz += (self._average_khz - wanted_khz) / 2
        self._average_khz = wanted_khz
        return wanted_khz

    def _row(self, khz: float) -> int:
        """Return the row at or below; P-states are whole numbers of steps."""
        table = self.table_khz
        found = table[0]
        for row in table:
            if row <= khz:
                found = row
        return found
