"""What the anticipatory elevator knows of each process, and of processes in general.

Models: for each process moving averages of how long it thinks between a read's end and its next
read, and of how far away that is; how many of its requests wait here, and are on their way to the
driver. Of a process that has not been seen to think yet, what new processes did, how often one
waited for went away instead (exit_prob), and whether another one's request would have helped.
Linux counterpart: struct as_io_context, as_update_iohist, as_update_thinktime, as_update_seekdist,
as_close_req, block/as-iosched.c (2.6.16).
Invariants: averages are in 1/256 of a sample; nr_queued, nr_dispatched >= 0.
Left out: as_antic_close_req's history of requests that cooperate is kept for the process waited
for, as in 2.6.16, not for each pair.
"""

from typing import Final

from sim.block.request import ElevatorData, Request

MAX_THINK_NS: Final = 20_000_000  # MAXTHINKTIME = HZ / 50
NEAR_SECTORS: Final = 8192  # as_close_req: delta of an immediate request
NEAR_DOUBLINGS: Final = 20  # it doubles with every ms of waiting, so often
SURE: Final = 128  # exit_prob, exit_no_coop above 1/2
MS: Final = 1_000_000


class AsContext(ElevatorData):
    """struct as_io_context."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.running: bool = True  # AS_TASK_RUNNING: the process has not exited
        self.has_begun: bool = False  # AS_TASK_IOSTARTED: it has read before
        self.thinks: bool = False  # AS_TASK_IORUNNING: one of its reads has ended
        self.nr_queued: int = 0
        self.nr_dispatched: int = 0  # chosen, and not yet with the driver
        self.last_end_request_ns: int = 0
        self.last_request_pos: int = 0
        self.ttime_samples: int = 0
        self.ttime_total: int = 0
        self.ttime_mean_ns: int = 0
        self.seek_samples: int = 0
        self.seek_total: int = 0
        self.seek_mean: int = 0

    def update_thinktime(self, think_ns: int) -> None:
        """Learn how long it has thought (as_update_thinktime)."""
        self.ttime_samples = (7 * self.ttime_samples + 256) // 8
        self.ttime_total = (7 * self.ttime_total + 256 * think_ns) // 8
        self.ttime_mean_ns = (self.ttime_total + 128) // self.ttime_samples

    def update_seekdist(self, distance: int) -> None:
        """Learn how far it went; a single far request counts for little (as_update_seekdist)."""
        cap = 2 * 1024 * 1024 if self.seek_samples <= 60 else 2 * 1024 * 64
        distance = min(distance, self.seek_mean * 4 + cap)
        self.seek_samples = (7 * self.seek_samples + 256) // 8
        self.seek_total = (7 * self.seek_total + 256 * distance) // 8
        self.seek_mean = (self.seek_total + self.seek_samples // 2) // self.seek_samples


class AsHistory:
    """What is known of processes that are new (the statistics of struct as_data)."""

    def __init__(self) -> None:
        self._contexts: dict[int, AsContext] = {}
        self.exit_prob: int = 0  # of 256: a process waited for exits or times out instead
        self.exit_no_coop: int = 0  # of 256: and no other had a request nearby
        self.new_ttime_total: int = 0
        self.new_ttime_mean_ns: int = 0
        self.new_seek_total: int = 0
        self.new_seek_mean: int = 0

    def context(self, pid: int) -> AsContext:
        """Return what is known of a process (as_get_io_context)."""
        found = self._contexts.get(pid)
        if found is None:
            found = self._contexts[pid] = AsContext(pid)
        return found

    def exit(self, pid: int) -> None:
        """Forget a process; requests of its own still know it."""
        found = self._contexts.pop(pid, None)
        if found is not None:
            found.running = False

    def update(self, context: AsContext, request: Request, now_ns: int) -> None:
        """Learn that the process reads here and now (as_update_iohist)."""
        if context.has_begun:
            think_ns = 0
            if context.thinks and not context.nr_queued and not context.nr_dispatched:
                think_ns = min(now_ns - context.last_end_request_ns, MAX_THINK_NS)
            distance = abs(request.sector - context.last_request_pos)
            self._learn_from_new(context, think_ns, distance)
            context.update_thinktime(think_ns)
            context.update_seekdist(distance)
        context.last_request_pos = request.end
        context.has_begun = True

    def _learn_from_new(self, context: AsContext, think_ns: int, distance: int) -> None:
        """Count the first sample of a process among those of new processes."""
        if context.ttime_samples == 0:
            self.new_ttime_total = (7 * self.new_ttime_total + 256 * think_ns) // 8
            self.new_ttime_mean_ns = self.new_ttime_total // 256
            self.exit_prob = 7 * self.exit_prob // 8
        if context.seek_samples == 0:
            self.new_seek_total = (7 * self.new_seek_total + 256 * distance) // 8
            self.new_seek_mean = self.new_seek_total // 256

    def gave_up(self, context: AsContext) -> None:
        """Learn that waiting for the process was in vain (as_antic_timeout)."""
        if context.ttime_samples == 0:
            self.exit_prob = (7 * self.exit_prob + 256) // 8
        if not context.running:
            self.exit_no_coop = (7 * self.exit_no_coop + 256) // 8

    def helped(self, context: AsContext) -> None:
        """Learn that another process asked for something near instead."""
        if not context.running:
            self.exit_no_coop = 7 * self.exit_no_coop // 8

    def expects_nothing(self, context: AsContext, antic_expire_ns: int) -> bool:
        """Return whether the process is not likely to read again within that time."""
        if not context.running and self.exit_no_coop > SURE:
            return True
        if context.ttime_samples:
            return context.ttime_mean_ns > antic_expire_ns
        if self.new_ttime_mean_ns > antic_expire_ns:
            return True
        return self.exit_prob * self.exit_no_coop > SURE * 256

    def is_near(self, context: AsContext, sector: int, head: int, waited_ns: int) -> bool:
        """Return whether a request is as near to the head as any to be expected (as_close_req)."""
        waited_ms = waited_ns // MS
        if waited_ms > NEAR_DOUBLINGS:
            return True
        delta = NEAR_SECTORS << waited_ms
        if head <= sector + delta // 2 and sector <= head + delta:
            return True
        expected = context.seek_mean if context.seek_samples else self.new_seek_mean
        return expected > abs(head - sector)
