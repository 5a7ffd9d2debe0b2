"""What a wake-up costs the simulator; run with -s to see the figures."""

import time

import pytest

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
    began = time.perf_counter()
    rig.run(CYCLES * 20e-6)
    assert rig.sched.rqs[0].nr_switches == pytest.approx(2 * CYCLES, abs=4)
    return (time.perf_counter() - began) / CYCLES * 1e6


@pytest.mark.parametrize("kernel", [O1, CFS])
@pytest.mark.parametrize("cpus", [1, 4])
def test_a_wake_run_and_sleep_cycle_takes_microseconds(kernel, cpus):
    best = min(us_per_cycle(kernel, cpus) for _ in range(3))
    print(f"\n{kernel}, {cpus} CPUs: {best:.2f} us per wake, run, sleep")
    assert best < 60  # Some 5 on a quiet machine: this finds a mistake of ten times.
