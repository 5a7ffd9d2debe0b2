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


def test_what_comes_in_one_instant_is_one_interrupt_where_the_card_waits_for_it():
    """100 us for the first packet, 30 for each that comes with it, in the same message or not."""
    rig = Rig()
    line = InterruptLine(rig.sched, 0, 100 * US, 30 * US)
    for packets in (1, 2, 1):
        rig.at(MS, lambda _, packets=packets: line.serve(packets))
    rig.at(5 * MS, lambda _: line.serve())
    rig.run(0.01)
    assert rig.cpu_s("softirq_ns") == (100 + 3 * 30 + 100) * 1e-6
    assert rig.sched.nr_interrupts == 2
