"""From a data sheet to the parameters of the disk model: the same rules for every drive.

Models: what of a drive its data sheet tells, and what its time tells of the rest.
Linux counterpart: none.
Invariants: the same rules hold for every drive; none looks at a drive's name or at its trace. But
 some values in the rules are fits to the five open traces, as their comments say: overheads are
 rounded means of the drives of each generation, the interface's rate agrees with three of them.
Left out: host adapters that differ; what a sheet does not say and a trace may is for fit.py.

The sheet's blocks per track become rates as sim.drivers.hdd turns rates into blocks. A
change of heads costs no less than most of a seek to the next cylinder: with embedded servo the new
head must settle on its track as after a seek (Ruemmler and Wilkes, An Introduction to Disk Drive
Modeling, IEEE Computer 27(3), 1994); figures of a few hundredths of a millisecond are differences
to the skew.
"""

import math
from dataclasses import dataclass
from typing import Final

from calibration.drive.sheet import DataSheet
from sim.drivers.hdd import FIFO, TWO_PART, HddParams

MS: Final = 1_000_000  # ns
# Of the seek to the next cylinder. Data sheets of the drives before 1995: 0.78 (HP C2490A), 0.85
# (DEC RZ26).
HEAD_SWITCH_SHARE: Final = 0.8
# SCSI-2's basic synchronous rate, 5 MHz by 8 bits; fit: hits of three of the five open traces take
# 0.103 ms more for each block, the others 0.06 and 0.155 ms.
INTERFACE_BYTES_PER_S: Final = 5e6


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What drives of one time have in common; for media up to a rate at the outermost track."""

    media_bytes_per_s_max: float
    overhead_ns: int
    positioning_overhead_ns: int
    write_settle_ns: int
    write_cache: bool
    buffer_bytes: int
    segments: int


# Overheads are fits: the rounded mean of the drives of each kind among the five open traces.
# Write caches: SCSI drives reported a write when it was on the medium, until Ultra-SCSI drives were
# delivered with WCE=1. Buffers: data sheets of either time, 256 to 512 KiB, 512 KiB to 2 MiB.
GENERATIONS: Final[tuple[Generation, ...]] = (
    Generation(
        media_bytes_per_s_max=8e6,
        overhead_ns=1_200_000,
        positioning_overhead_ns=1_000_000,
        write_settle_ns=500_000,
        write_cache=False,
        buffer_bytes=256 << 10,
        segments=2,
    ),
    Generation(
        media_bytes_per_s_max=math.inf,
        overhead_ns=250_000,
        positioning_overhead_ns=100_000,
        write_settle_ns=500_000,
        write_cache=True,
        buffer_bytes=1 << 20,
        segments=16,
    ),
)


def params_of_sheet(sheet: DataSheet) -> HddParams:
    """Return the disk that the data sheet describes."""
    made = next(
        one for one in GENERATIONS if sheet.outer_media_bytes_per_s <= one.media_bytes_per_s_max
    )
    single_ns = round(sheet.seek_ms_single * MS)
    switch_ns = max(round(sheet.head_switch_ms * MS), round(HEAD_SWITCH_SHARE * single_ns))
    turn_ns = 60_000 * MS / sheet.rpm
    # A sequential transfer spends so long on a track, with its share of the skews.
    track_ns = turn_ns + switch_ns + max(0, single_ns - switch_ns) / sheet.surfaces
    return HddParams(
        capacity_bytes=sheet.blocks_512 * 512,
        rpm=sheet.rpm,
        heads=sheet.surfaces,
        outer_rate_bytes_per_s=sheet.blocks_per_track_outer * 512 * 1000 * MS / track_ns,
        inner_rate_bytes_per_s=sheet.blocks_per_track_inner * 512 * 1000 * MS / track_ns,
        seek_track_ns=single_ns,
        seek_average_ns=round(sheet.seek_ms_average * MS),
        seek_full_ns=round(sheet.seek_ms_full * MS),
        seek_curve=TWO_PART,
        write_settle_ns=made.write_settle_ns,
        head_switch_ns=switch_ns,
        overhead_ns=made.overhead_ns,
        positioning_overhead_ns=made.positioning_overhead_ns,
        interface_rate_bytes_per_s=INTERFACE_BYTES_PER_S,
        queue_depth=1,
        order=FIFO,
        buffer_bytes=made.buffer_bytes,
        segments=made.segments,
        write_cache=made.write_cache,
    )
