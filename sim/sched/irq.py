"""Interrupts: which CPU serves them, and how long that takes.

Models: a line of a device that is wired to one CPU. Serving it takes time from whatever runs there.
Linux counterpart: kernel/irq/handle.c handle_IRQ_event, arch/i386/kernel/irq.c do_IRQ (2.6.16).
Invariants: wake-ups in the same instant come from that CPU.
Left out: balancing over CPUs (irqbalance), masking, sharing, softirqs put off to ksoftirqd.
"""

from sim.sched.core import Sched


class InterruptLine:
    """A device's line to `cpu`; a handler takes `ns` for each completion or packet.

    Of a device that tells of several at once, what comes in the same instant is one interrupt: each
    but the first takes `merged_ns`.
    """

    __slots__ = ("_at_ns", "_merged_ns", "_merges", "_ns", "_rq", "_sched")

    def __init__(self, sched: Sched, cpu: int, ns: int, merged_ns: int | None = None) -> None:
        self._sched = sched
        self._rq = sched.rqs[cpu]
        self._ns = ns
        self._merged_ns: int = ns if merged_ns is None else merged_ns
        self._merges: bool = self._merged_ns != ns
        self._at_ns: int = -1  # when it was last served

    def serve(self, packets: int = 1) -> None:
        """Serve the interrupt that brings a completion, or so many packets."""
        sched = self._sched
        rq = self._rq
        now = sched.calendar.now
        sched.interrupted_rq = rq
        sched.interrupted_ns = now
        if not self._merges:
            sched.nr_interrupts += 1
            rq.interrupted(self._ns * packets)
            return
        first_ns = 0 if self._at_ns == now else self._ns - self._merged_ns
        sched.nr_interrupts += self._at_ns != now
        self._at_ns = now
        rq.interrupted(first_ns + self._merged_ns * packets)

    def backlog_ns(self) -> int:
        """Return how long until the CPU has served what it was interrupted for."""
        return self._rq.stolen_ns
