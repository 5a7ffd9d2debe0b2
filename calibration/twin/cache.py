"""What a larger page cache would take of the reads, as far as a recording can tell.

Models: the question "would more memory help?", and the answer "that was not recorded".
Linux counterpart: mm/workingset.c: workingset_refault, workingset_activation.
Invariants: nothing is said of memory unless the kernel counted it: a device's reads are those that
missed the cache, and nothing in them tells whether the page had been there before.
Left out: less memory, of which no counter tells what would be missed; how long the shadows of
reclaimed pages are kept, which ends what the kernel remembers; reads past the cache (O_DIRECT).

Theory. A file page that is read again after it was reclaimed is a refault: a cache without limit
would have had it. Of these the kernel activates those that had been away for no longer than the
active list is long: a cache larger by the active list would have had them. So of the pages read
    activated / read <= what twice the cache would save <= refaults / read.
By hand: 400 pages read a second, 300 refaults of which 100 were activated: between a quarter and
three quarters of the reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from calibration.look import Look
from calibration.twin.demands import PAGE, Load

REFAULTS: Final = "refault_per_s"
ACTIVATED: Final = "reactivated_per_s"
READS_MIN_PER_S: Final = 1.0  # fewer are not what memory is bought for


@dataclass(frozen=True, kw_only=True)
class Cache:
    """What twice the cache would save of the reads at least and at most, 0 to 1."""

    least: float
    most: float


def cache_of(seen: Look, loads: Sequence[Load]) -> Cache | None:
    """Return what a larger cache would save; None if nothing recorded tells."""
    refaults, activated = (_mean(seen, column) for column in (REFAULTS, ACTIVATED))
    read = sum(one.reads.rate_per_s * one.reads.size_bytes for one in loads) / PAGE
    if refaults is None or activated is None or not read:
        return None
    most = min(1.0, refaults / read)
    return Cache(least=min(most, activated / read), most=most)


def unknown(seen: Look, loads: Sequence[Load]) -> str:
    """Return why nothing is known of other memory, and what to record; "" if it is, or no reads."""
    reading = [one for one in loads if one.reads.rate_per_s >= READS_MIN_PER_S]
    if not reading or cache_of(seen, loads) is not None:
        return ""
    told = ", ".join(f"{one.reads.rate_per_s:.3g} reads/s of {one.name}" for one in reading)
    return (
        f"not known from this recording: how many of the {told} a larger page cache would take."
        " Record with `iotwin record` on Linux 5.9 or later, which counts pages that are read"
        " again (workingset_refault_file in /proc/vmstat)"
    )


def _mean(seen: Look, column: str) -> float | None:
    values = [one.value for x in seen.source.recordings for one in x.select(column)]
    return fmean(values) if values else None
