"""What a wake-up costs the simulator; run with -s to see the figures."""

import time

import pytest

from sim.engine.calendar import Calendar
from sim.sched.task import TASK_UNINTERRUPTIBLE
from sim.sched.wait import WaitQueue
from tests.sched.rig import CFS, O1, US, Rig

CYCLES = 20_000


def us_per_cycle(kernel, cpus):
    rig = Rig(cpus, kernel, switch_ns=2 * US)
    queue = WaitQueue()

    def main(task):
        while True:
            task.charge_system(5 * US)
            yield from queue.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "test")

    def wake(_):
        queue.wake_one()
        rig.calendar.post(20 * US, wake, None)

    rig.sched.spawn("main", main)
    rig.calendar.post(US, wake, None)
    began = time.process_time()
    rig.run(CYCLES * 20e-6)
    assert rig.sched.rqs[0].nr_switches == pytest.approx(2 * CYCLES, abs=4)
    return (time.process_time() - began) / CYCLES * 1e6


def us_per_timer():
    """Return what a bare timer takes, which is how fast this machine is."""
    calendar = Calendar()

    def again(_):
        calendar.post(US, again, None)

    calendar.post(US, again, None)
    began = time.process_time()
    calendar.run_until(CYCLES * US)
    return (time.process_time() - began) / CYCLES * 1e6


@pytest.mark.parametrize("kernel", [O1, CFS])
@pytest.mark.parametrize("cpus", [1, 4])
def test_a_wake_run_and_sleep_cycle_takes_as_long_as_some_timers(kernel, cpus):
    best = min(us_per_cycle(kernel, cpus) for _ in range(3))
    timer = min(us_per_timer() for _ in range(3))
    print(f"\n{kernel}, {cpus} CPUs: {best:.2f} us per wake, run, sleep; {timer:.2f} us per timer")
    assert best < 120 * timer  # Some 12: this finds a mistake of ten times.
