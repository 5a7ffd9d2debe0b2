"""Interrupts: which CPU serves them, and how long that takes.

Models: a line of a device that is wired to one CPU. Serving it takes time from whatever runs there.
Linux counterpart: kernel/irq/handle.c handle_IRQ_event, arch/i386/kernel/irq.c do_IRQ (2.6.16).
Invariants: wake-ups in the same instant come from that CPU.
Left out: balancing over CPUs (irqbalance), masking, sharing, softirqs put off to ksoftirqd.
"""

from sim.sched.core import Sched


class InterruptLine:
    """A device's line to `cpu`; a handler takes `ns` for each completion or packet."""

    __slots__ = ("_ns", "_rq", "_sched")

    def __init__(self, sched: Sched, cpu: int, ns: int) -> None:
        self._sched = sched
        self._rq = sched.rqs[cpu]
        self._ns = ns

    def serve(self, packets: int = 1) -> None:
        """Serve the interrupt that brings a completion, or so many packets."""
        sched = self._sched
        rq = self._rq
        sched.nr_interrupts += 1
        sched.interrupted_rq = rq
        sched.interrupted_ns = sched.calendar.now
        rq.interrupted(self._ns * packets)

    def backlog_ns(self) -> int:
        """Return how long until the CPU has served what it was interrupted for."""
        return self._rq.stolen_ns
