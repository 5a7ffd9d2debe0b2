"""Interrupts: which CPU serves them, and how long that takes.

Models: a line of a device that is wired to one CPU. Serving it takes time from whatever runs there.
A device with several hardware queues has a vector for each: a completion interrupts the CPU that
submitted, or the first CPU of those that share its queue. So with 8 us an interrupt one line ends
125,000 requests a second, and leaves its CPU nothing; eight vectors a million.
Linux counterpart: kernel/irq/handle.c handle_IRQ_event, arch/i386/kernel/irq.c do_IRQ (2.6.16);
 kernel/irq/affinity.c irq_create_affinity_masks, block/blk-mq-cpumap.c blk_mq_map_queues (4.10).
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

    def completed(self, pid: int) -> None:
        """Serve the interrupt that tells of a request, whoever it was for."""
        self.serve()

    def backlog_ns(self) -> int:
        """Return how long until the CPU has served what it was interrupted for."""
        self._rq.account()
        return self._rq.stolen_ns


class InterruptVectors:
    """The vectors of a device with ``queues`` hardware queues; a handler takes as a line's does."""

    __slots__ = ("_lines", "_tasks")

    def __init__(self, sched: Sched, queues: int, ns: int, merged_ns: int | None = None) -> None:
        cpus = len(sched.rqs)
        groups = min(queues, cpus)
        of_group = [
            InterruptLine(sched, -(-g * cpus // groups), ns, merged_ns) for g in range(groups)
        ]
        # By CPU: that of the group that shares its queue.
        self._lines: list[InterruptLine] = [of_group[cpu * groups // cpus] for cpu in range(cpus)]
        self._tasks = sched.processes.tasks

    def completed(self, pid: int) -> None:
        """Serve the interrupt that tells of a request of that process."""
        task = self._tasks.get(pid)
        self._lines[0 if task is None else task.cpu].serve()
