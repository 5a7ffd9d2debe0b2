"""Interrupt lines: whose CPU serves them, and for how long."""

from sim.sched.irq import InterruptLine
from tests.sched.rig import MS, US, Rig


def test_a_line_takes_its_time_from_its_cpu_only():
    rig = Rig(cpus=2)
    line = InterruptLine(rig.sched, 1, 100 * US)
    rig.at(MS, lambda _: line.serve())
    rig.at(5 * MS, lambda _: line.serve(packets=3))
    rig.run(0.01)
    assert [cpu.softirq_ns for cpu in rig.sched.cpu_times] == [0, 400 * US]
    assert rig.sched.nr_interrupts == 2
