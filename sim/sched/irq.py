"""Interrupts: which CPU serves them, and how long that takes.

Models: a line of a device that is wired to one CPU. Serving it takes time from whatever runs there.
Linux counterpart: kernel/irq/handle.c handle_IRQ_event, arch/i386/kernel/irq.c do_IRQ (2.6.16).
Invariants: wake-ups in the same instant come from that CPU (Sched.charge_irq).
Left out: balancing over CPUs (irqbalance), masking, sharing, softirqs put off to ksoftirqd.
"""

from sim.sched.core import Sched


class InterruptLine:
    """A device's line to `cpu`; a handler takes `ns` for each completion or packet."""

    __slots__ = ("_cpu", "_ns", "_sched")

    def __init__(self, sched: Sched, cpu: int, ns: int) -> None:
        self._sched = sched
        self._cpu = cpu
        self._ns = ns

    def serve(self) -> None:
        """Serve one interrupt."""
        self._sched.charge_irq(self._cpu, self._ns)

    def backlog_ns(self) -> int:
        """Return how long until the CPU has served what it was interrupted for."""
        return self._sched.rqs[self._cpu].stolen_ns

    def serve_packets(self, packets: int) -> None:
        """Serve the interrupt that brings so many packets."""
        self._sched.charge_irq(self._cpu, self._ns * packets)
