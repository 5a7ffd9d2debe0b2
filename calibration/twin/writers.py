"""Who writes, where flushes do not tell: programs that wait for their writes, or a flusher.

Models: what an administrator concludes from iostat alone about who stands behind a disk's writes.
Linux counterpart: fs/fs-writeback.c (wb_check_old_data_flush; before 2.6.32 mm/page-writeback.c:
wb_kupdate), block/blk-core.c (get_request), block/blk-wbt.c.
Invariants: every piece of evidence is arithmetic on recorded columns, and says how much of the
writes can be a flusher's at most; the least of them counts. What no evidence decides is tried both
ways, and the twin that comes nearer is taken (fitting.py).
Left out: large writes, whose bursts are told from their size (demands.py: burst_of); full devices,
where every writer waits; how much each of two kinds of writers has on one device.

Flushes tell who waits, if they are counted (Linux 5.5) and the drive has a cache to flush: a drive
that writes through is asked for none, and 0.00 flushes a second say nothing. Then this is left:

Theory. A flusher wakes every T = 5 s and hands over all that is older than 30 s. Three things
follow from it which are otherwise where programs wait. Let W be the writes a second, S the busy
time of one, and p the share of them that is the flusher's.
 - Queue. n = W T writes come together, but no more than the queue takes (nr_requests, 128). The
   k-th is done after k S, the mean one after (n + 1) S / 2. A write that somebody waits for takes S
   or a little more. So the recorded await is at least p (n + 1) S / 2, and p <= (2 await / S) /
   (n + 1). Since 4.10 writeback is throttled to a few requests at a time (blk-wbt): there the queue
   says nothing. Where n is below 8, it says little, and is not asked.
 - Age. What waits for the flusher is dirty for 30 s. By Little's law 30 s p B of it are in memory,
   where B bytes are written a second, or as much as makes the flusher begin at once (a fiftieth of
   memory at least). What somebody waits for is dirty for a few milliseconds. So
   p <= dirty / (30 s B).
 - Rhythm. In intervals of a second or two, the flusher's writes are in less than half of them, if
   the disk is done with them soon. The median interval has the others: p <= 1 - median / mean.
A share of a quarter at most is taken for none, half or more for all.
By hand: `generic`, 2.6.32: 28 writes/s of S = 5.6 ms that take 10.3 ms. n = 128 of a flusher would
take 361 ms on average: p <= 3 %. A journal's blocks adjoin, and 38 writes/s were merged: fsyncs.
The same server without fsyncs: 60 writes/s of 3 ms take 200 ms: p <= 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from calibration.dataset import Source
from calibration.look.devices import DeviceLook
from calibration.look.intervals import Interval
from sim.sched.version import kernel_version
from sim.units import format_quantity

NONE: Final = (
    0.25  # of the writes, at most: the share is an upper bound, and a quarter is its error
)
ALL: Final = 0.5  # of the writes, or more
WAKES_S: Final = 5.0  # dirty_writeback_centisecs
EXPIRE_S: Final = 30.0  # dirty_expire_centisecs
REQUESTS_MAX: Final = 128  # BLKDEV_MAX_RQ
TOGETHER_MIN: Final = 8.0  # writes that come together; fewer wait hardly longer than those alone
THROTTLED_SINCE: Final = (4, 10)  # 87760e5eef35: block: hook up writeback throttling
BEGINS_AT: Final = 0.02  # of memory; dirty_background_ratio is 5 or 10 % of what may be dirty
MEMORY_LEAST: Final = 256 * 2**20  # assumed, where it was not recorded
SOON: Final = 0.5  # of the time: then the median interval has none of the flusher's writes
INTERVALS_MIN: Final = 8  # for a median that chance does not make
PAGE: Final = 4096
MS: Final = 1000.0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the flusher can have of the writes at most, 0 to 1, and why."""

    most: float
    said: str

    @property
    def is_none(self) -> bool:
        """Whether the writes are waited for."""
        return self.most <= NONE

    @property
    def is_all(self) -> bool:
        """Whether the writes are the flusher's."""
        return self.most >= ALL


def evidence_of(
    device: DeviceLook,
    writes_per_s: float,
    write_bytes: int,
    used: Sequence[Interval],
    source: Source,
    *,
    fsyncs_per_s: float = 0.0,
) -> Evidence | None:
    """Return the strongest evidence about who writes to a device; None if there is none.

    Writes of fsyncs, if some are known, are not asked about. Beside them a queue tells nothing.
    """
    kernel = source.facts.get("kernel", "")
    found = [
        *(() if fsyncs_per_s else _by_the_queue(device, writes_per_s, kernel)),
        *_by_the_age(writes_per_s * write_bytes, source),
        *_by_the_rhythm(device, writes_per_s, used, fsyncs_per_s),
    ]
    return min(found, key=lambda one: one.most, default=None)


def _by_the_queue(device: DeviceLook, writes_per_s: float, kernel: str) -> Iterator[Evidence]:
    together = min(writes_per_s * WAKES_S, REQUESTS_MAX)
    service_ms, waits_ms = device.service_ms, _await_ms(device, writes_per_s)
    if not service_ms or waits_ms is None or together < TOGETHER_MIN or _throttles(device, kernel):
        return
    would_ms = (together + 1) * service_ms / 2
    share = min(1.0, waits_ms / would_ms)
    if waits_ms >= TOGETHER_MIN * service_ms / 2:
        share = max(share, (NONE + ALL) / 2)
    yield Evidence(
        most=share,
        said=f"a flusher's writes come {together:.0f} at a time and would take {would_ms:.0f} ms;"
        f" these take {waits_ms:.3g}",
    )


def _await_ms(device: DeviceLook, writes_per_s: float) -> float | None:
    """Return how long a write takes; what it takes at most where only a mean of both is known."""
    row = device.row
    if "w_await_ms" in row or "await_ms" not in row:
        return row.get("w_await_ms")
    alone = (device.rate_per_s - writes_per_s) * (device.service_ms or 0.0)
    return (device.rate_per_s * row["await_ms"] - alone) / writes_per_s


def _throttles(device: DeviceLook, kernel: str) -> bool:
    """Return whether this kernel throttles writeback; one that is not known may.

    A column of svctm is older: sysstat 12.1.2 has none.
    """
    try:
        return kernel_version(kernel) >= THROTTLED_SINCE
    except ValueError:
        return "svctm_ms" not in device.row


def _by_the_age(bytes_per_s: float, source: Source) -> Iterator[Evidence]:
    dirty = _dirty_bytes(source)
    if dirty is None or not bytes_per_s:
        return
    memory = float(source.facts.get("memory_bytes", MEMORY_LEAST))
    expires_s = EXPIRE_S
    if source.host is not None:
        expires_s = source.host.vm.get("dirty_expire_centisecs", 0) / 100 or EXPIRE_S
    would = min(expires_s * bytes_per_s, BEGINS_AT * memory)
    told = (format_quantity(round(one / PAGE) * PAGE, "bytes") for one in (would, dirty))
    yield Evidence(
        most=min(1.0, dirty / would),
        said="{} of a flusher's data would be dirty; {} are".format(*told),
    )


def _dirty_bytes(source: Source) -> float | None:
    """Return how much is dirty in memory, on average; None if nothing counted it."""
    for column, unit in (("mem_dirty_bytes", 1), ("dirty_pages", PAGE)):
        values = [unit * s.value for one in source.recordings for s in one.select(column)]
        if values:
            return fmean(values)
    return None


def _by_the_rhythm(
    device: DeviceLook, writes_per_s: float, used: Sequence[Interval], fsyncs_per_s: float
) -> Iterator[Evidence]:
    lengths = [one.length_s for one in used if one.length_s]
    counts = [one.devices.get(device.name, {}).get("w_per_s", 0.0) for one in used]
    if len(lengths) < max(len(used), INTERVALS_MIN) or not device.service_ms:
        return
    if "w_per_s" not in device.row:
        return
    # The intervals in which the flusher begins, and those in which the disk still writes.
    touched = median(lengths) / WAKES_S + writes_per_s * device.service_ms / MS
    if touched > SOON:
        return
    usual = max(0.0, median(counts) - fsyncs_per_s)
    yield Evidence(
        most=min(1.0, max(0.0, 1 - usual / writes_per_s)),
        said=f"a flusher writes every {WAKES_S:g} s; of these {writes_per_s:.3g} writes/s"
        f" {usual:.3g} are in half of the intervals of {median(lengths):g} s or more",
    )
