"""How fast a device takes dirty pages, and how fast tasks may dirty them (Linux 3.2 on).

Models: the estimates behind balance_dirty_pages(): a device's write bandwidth, the rate at which
each of its dirtiers may go on (dirty_ratelimit), and the feedback
pos_ratio that keeps the number of dirty pages near the setpoint, midway between "everything is
free" (freerun) and the limit.
Linux counterpart: mm/page-writeback.c 3.3: bdi_position_ratio, bdi_update_write_bandwidth,
bdi_update_dirty_ratelimit, bdi_max_pause, bdi_min_pause.
Invariants: rates are in pages per second and at least 1; 0 <= pos_ratio; decisions are elsewhere
(page_writeback.py): here is arithmetic only.
Left out: strict limits have an arithmetic of their own (page_writeback.py).
"""

from typing import Final

from sim.units import NS_PER_S

MS: Final = 1_000_000
INIT_BW_PAGES_PER_S: Final = 100 << 8  # 100 MB/s, mm/backing-dev.c
BANDWIDTH_INTERVAL_NS: Final = 200 * MS
BANDWIDTH_PERIOD_NS: Final = 4096 * MS  # roundup_pow_of_two(3 * HZ) at HZ=1000
MAX_PAUSE_NS: Final = 200 * MS
DIRTY_POLL_PAGES: Final = 32  # DIRTY_POLL_THRESH, 128 KiB
IDLE_NS: Final = NS_PER_S
DIRTIERS_MAX: Final = 1024  # remembered at a time


class WriteBandwidth:
    """The estimates of one backing device."""

    __slots__ = (
        "avg_pages_per_s",
        "balanced_ratelimit",
        "dirtied_stamp",
        "dirty_ratelimit",
        "pages_per_s",
        "stamp_ns",
        "written_stamp",
    )

    def __init__(self) -> None:
        self.pages_per_s: float = float(INIT_BW_PAGES_PER_S)
        self.avg_pages_per_s: float = float(INIT_BW_PAGES_PER_S)
        self.dirty_ratelimit: float = float(INIT_BW_PAGES_PER_S)
        self.balanced_ratelimit: float = float(INIT_BW_PAGES_PER_S)
        self.stamp_ns: int = 0
        self.dirtied_stamp: int = 0
        self.written_stamp: int = 0

    def start(self, pages_per_s: float) -> None:
        """Take over estimates from before the run."""
        self.pages_per_s = self.avg_pages_per_s = pages_per_s
        self.dirty_ratelimit = self.balanced_ratelimit = pages_per_s

    def snapshot(self, now_ns: int, dirtied: int, written: int) -> None:
        """Begin the next interval."""
        self.stamp_ns = now_ns
        self.dirtied_stamp = dirtied
        self.written_stamp = written

    def update_write_bandwidth(self, elapsed_ns: int, written: int) -> None:
        """Estimate from the pages written in the interval (bdi_update_write_bandwidth)."""
        pages = written - self.written_stamp
        old = self.pages_per_s
        if elapsed_ns > BANDWIDTH_PERIOD_NS:
            rate = pages * NS_PER_S / elapsed_ns
            average = rate
        else:
            kept = old * (BANDWIDTH_PERIOD_NS - elapsed_ns)
            rate = (pages * NS_PER_S + kept) / BANDWIDTH_PERIOD_NS
            average = self.avg_pages_per_s
            if average > old >= rate:
                average -= (average - old) / 8
            elif average < old <= rate:
                average += (old - average) / 8
        self.pages_per_s = max(rate, 1.0)
        self.avg_pages_per_s = max(average, 1.0)

    def update_dirty_ratelimit(
        self, elapsed_ns: int, dirtied: int, pos_ratio: float, *, below_setpoint: bool
    ) -> None:
        """Move towards the rate at which dirtying equals writing (bdi_update_dirty_ratelimit)."""
        dirty_rate = (dirtied - self.dirtied_stamp) * NS_PER_S / elapsed_ns
        current = self.dirty_ratelimit
        task_ratelimit = current * pos_ratio + 1
        balanced = task_ratelimit * self.avg_pages_per_s / max(dirty_rate, 1.0)
        balanced = min(balanced, self.avg_pages_per_s)
        # Move only where the last estimate, this one and the feedback all point.
        previous = self.balanced_ratelimit
        if below_setpoint:
            target = min(previous, balanced, task_ratelimit)
            step = max(target - current, 0.0)
        else:
            target = max(previous, balanced, task_ratelimit)
            step = min(target - current, 0.0)
        size = abs(step)
        shift = int(current / (2 * size + 1))  # Small steps are noise: leave them.
        moved = (size / (1 << shift) + 7) / 8 if shift < 64 and size >= 1 else 0.0
        self.dirty_ratelimit = max(current + (moved if step > 0 else -moved), 1.0)
        self.balanced_ratelimit = max(balanced, 1.0)

    def max_pause_ns(self, bdi_dirty: int) -> int:
        """Return the longest pause: an eighth of the time to drain the device (bdi_max_pause)."""
        drain_ns = int(bdi_dirty * NS_PER_S / self.avg_pages_per_s)
        return min(drain_ns // 8 + MS, MAX_PAUSE_NS)

    def min_pause(self, max_pause_ns: int, task_ratelimit: float) -> tuple[int, int]:
        """Return (shortest pause in ns, pages to dirty before the next look) (bdi_min_pause)."""
        target_ns = 10 * MS
        high, low = int(self.avg_pages_per_s), int(self.dirty_ratelimit)
        octaves = high.bit_length() - low.bit_length()
        if octaves > 0:  # Many dirtiers: longer pauses, fewer of them.
            target_ns += octaves * 10 * NS_PER_S // 1024
        target_ns = min(target_ns, MS + max_pause_ns // 2)
        pages = int(self.dirty_ratelimit * target_ns / NS_PER_S)
        if pages < DIRTY_POLL_PAGES:
            target_ns = max_pause_ns
            pages = int(self.dirty_ratelimit * target_ns / NS_PER_S)
            if pages > DIRTY_POLL_PAGES:
                pages = DIRTY_POLL_PAGES
                target_ns = int(NS_PER_S * DIRTY_POLL_PAGES / self.dirty_ratelimit)
        if NS_PER_S * pages / (task_ratelimit + 1) > max_pause_ns:
            target_ns = max_pause_ns
            pages = int(task_ratelimit * target_ns / NS_PER_S)
        shortest_ns = MS + target_ns // 2 if pages >= DIRTY_POLL_PAGES else target_ns
        return shortest_ns, pages


class Dirtier:
    """What is remembered of a task that dirties pages (the fields nr_dirtied... of task_struct)."""

    __slots__ = ("nr_dirtied", "nr_dirtied_pause", "paused_when_ns", "recent")

    def __init__(self) -> None:
        self.nr_dirtied: int = 0
        self.nr_dirtied_pause: int = DIRTY_POLL_PAGES
        self.paused_when_ns: int = 0  # 0: not paused yet
        self.recent: float = 0.0  # pages dirtied, halved each period (2.6.24-3.1: tsk->dirties)


class Pacing:
    """The machine-wide part: the limit that is in force, and the dirtiers."""

    __slots__ = ("dirtied_recent", "dirtiers", "dirty_limit", "limit_stamp_ns")

    def __init__(self) -> None:
        self.dirty_limit: float = 0.0  # follows the threshold down slowly
        self.limit_stamp_ns: int = 0
        self.dirtied_recent: float = 0.0  # sum over all dirtiers' recent
        self.dirtiers: dict[int, Dirtier] = {}  # by pid

    def dirtier(self, pid: int) -> Dirtier:
        """Return the record of a task; of too many, forget the task that dirtied least."""
        dirtier = self.dirtiers.get(pid)
        if dirtier is None:
            if len(self.dirtiers) >= DIRTIERS_MAX:
                by_age = sorted(self.dirtiers.items(), key=_last_active)
                self.dirtiers = dict(by_age[DIRTIERS_MAX // 2 :])
            dirtier = self.dirtiers[pid] = Dirtier()
        return dirtier

    def count_dirtied(self, dirtier: Dirtier, pages: int, period: int) -> float:
        """Count pages towards the task's share of recent dirtying; return it (task_dirty_inc)."""
        dirtier.recent += pages
        self.dirtied_recent += pages
        share = dirtier.recent / self.dirtied_recent
        if self.dirtied_recent > period:
            self.dirtied_recent /= 2
            for each in self.dirtiers.values():
                each.recent /= 2
        return share

    def update_dirty_limit(self, thresh: int, dirty: int, now_ns: int) -> None:
        """Follow the threshold: up at once, down by 1/32 every 200 ms (update_dirty_limit)."""
        if self.dirty_limit < thresh:
            self.dirty_limit = float(thresh)
            self.limit_stamp_ns = now_ns
        elif now_ns - self.limit_stamp_ns >= BANDWIDTH_INTERVAL_NS:
            self.limit_stamp_ns = now_ns
            floor = max(thresh, dirty)
            if self.dirty_limit > floor:
                self.dirty_limit -= (self.dirty_limit - floor) / 32


def _last_active(item: tuple[int, Dirtier]) -> tuple[int, float]:
    return item[1].paused_when_ns, item[1].recent


def pos_ratio(
    *,
    dirty: int,
    thresh: int,
    freerun: int,
    limit: float,
    bdi_thresh: float,
    bdi_dirty: int,
    bandwidth: float,
) -> float:
    """Return the factor on dirty_ratelimit; 1 at the setpoint, 0 at the limit (bdi_position_ratio).

    All in pages; ``bandwidth`` in pages per second.
    """
    if dirty >= limit:
        return 0.0
    setpoint = (freerun + limit) / 2
    offset = (setpoint - dirty) / (limit - setpoint + 1)
    ratio = min(max(1 + offset**3, 0.0), 2.0)
    # The device's own part: the same idea, linear, around its share of the setpoint.
    bdi_thresh = max(min(bdi_thresh, thresh), (limit - dirty) / 8)
    share = bdi_thresh / (thresh + 1)
    bdi_setpoint = setpoint * share
    span = (thresh - bdi_thresh + 8 * bandwidth) * share
    intercept = bdi_setpoint + span
    if bdi_dirty < intercept - span / 4:
        ratio *= (intercept - bdi_dirty) / (intercept - bdi_setpoint + 1)
    else:
        ratio /= 4
    # Keep the device busy while it has less than half of its share.
    reserve = bdi_thresh / 2
    if bdi_dirty < reserve:
        ratio *= reserve / bdi_dirty if bdi_dirty > reserve / 8 else 8
    return ratio


def ratelimit_pages(nr_total: int, nr_cpus: int) -> int:
    """Return after how many dirtied pages a CPU looks at the limits (set_ratelimit): 64 KiB-4 MiB.

    With all CPUs dirtying at once the limits are exceeded by 1/32 at most before they notice.
    """
    return min(max(nr_total // (nr_cpus * 32), 16), 1024)
