"""What may be said of a hard disk: the parameters of hdd.py.

Models: a data sheet, and what it leaves out.
Linux counterpart: none. Data sheets of the profiles.
Invariants: the defaults are a 15K SCSI disk of 2006; a mechanism that not every disk has is off.
Left out: parameters that follow from others, such as the number of cylinders.
"""

from dataclasses import dataclass
from typing import Final

from sim.drivers.hdd_seek import BLEND, TWO_PART
from sim.param import param

FIFO: Final = "fifo"
SPTF: Final = "sptf"


@dataclass(frozen=True, kw_only=True)
class HddParams:
    """What a data sheet says of a disk, and what it doesn't. Defaults: a 15K SCSI disk of 2006."""

    capacity_bytes: int = param(
        "146.8 GB", dim="bytes", source="scenario", doc="size", minimum=1 << 20
    )
    rpm: float = param(15000, dim="rpm", source="data sheet", doc="spindle speed", minimum=1)
    heads: int = param(4, dim="count", source="data sheet", doc="surfaces", minimum=1)
    zones: int = param(
        16, dim="count", source="assumed: drives have 10 to 30 recording zones",
        doc="zones of equal width", minimum=1,
    )  # fmt: skip
    outer_rate_bytes_per_s: float = param(
        "125 MB/s", dim="bytes_per_s", source="data sheet: sustained transfer rate, outer",
        doc="sequential rate at the first sectors", minimum=1, key="outer_rate",
    )  # fmt: skip
    inner_rate_bytes_per_s: float = param(
        "73 MB/s", dim="bytes_per_s", source="data sheet: sustained transfer rate, inner",
        doc="sequential rate at the last sectors", minimum=1, key="inner_rate",
    )  # fmt: skip
    seek_track_ns: int = param(
        "0.2 ms", dim="time_ns", source="data sheet", doc="seek to the next track", minimum=0
    )
    seek_average_ns: int = param(
        "3.5 ms", dim="time_ns", source="data sheet", doc="average seek, read", minimum=0
    )
    seek_full_ns: int = param(
        "7.4 ms", dim="time_ns", source="data sheet", doc="seek over all tracks, read", minimum=0
    )
    seek_curve: str = param(
        BLEND, dim="text", choices=(BLEND, TWO_PART),
        source="assumed: the simplest curve with the data sheet's three values",
        doc="shape of the seek curve between the data sheet's values",
    )  # fmt: skip
    seek_exponent: float = param(
        0.4, dim="number", minimum=0.1, maximum=0.9,
        source="fit: published seek curves of five drives of 1992 to 1999, 0.05 to 90 % of the"
        " stroke; with 0.5 seeks over 1 to 10 % of it come out 10 to 25 % short",
        doc="power of the distance of short seeks, of a curve in two parts",
    )  # fmt: skip
    write_settle_ns: int = param(
        "0.5 ms", dim="time_ns", source="data sheet: average write seek less average read seek",
        doc="longer settling before a write", minimum=0,
    )  # fmt: skip
    head_switch_ns: int = param(
        "0.3 ms", dim="time_ns", source="assumed: a little more than a seek to the next track",
        doc="to another head of the cylinder", minimum=0,
    )  # fmt: skip
    overhead_ns: int = param(
        "0.1 ms", dim="time_ns", source="assumed: SCSI and SAS drives take 0.05 to 0.1 ms",
        doc="command processing and transfer of status", minimum=0,
    )  # fmt: skip
    write_overhead_ns: int = param(
        "0 ms", dim="time_ns", source="assumed: as fast as a read",
        doc="command processing of a write, beside overhead", minimum=0,
    )  # fmt: skip
    positioning_overhead_ns: int = param(
        "0 ms", dim="time_ns", source="assumed: firmware starts the arm as fast as a transfer",
        doc="command processing before the arm moves, beside overhead", minimum=0,
    )  # fmt: skip
    interface_rate_bytes_per_s: float = param(
        "300 MB/s", dim="bytes_per_s", source="SAS 3 Gbit/s, 8b/10b coded",
        doc="rate from and to the buffer", minimum=1, key="interface_rate",
    )  # fmt: skip
    queue_depth: int = param(
        32, dim="count", source="assumed: usual depth of a SCSI LUN under Linux",
        doc="commands in the drive", minimum=1,
    )  # fmt: skip
    order: str = param(
        SPTF, dim="text", choices=(FIFO, SPTF),
        source="assumed: drives of the time reorder by seek and rotation", doc="order of service",
    )  # fmt: skip
    age_limit_ns: int = param(
        "500 ms", dim="time_ns", source="assumed: firmware bounds the wait; not published",
        doc="a command that has waited this long is served first", minimum=0,
    )  # fmt: skip
    miss_margin_ns: int = param(
        "0.6 ms", dim="time_ns", minimum=0,
        source="fit: random 4 KiB reads at depth 32, some 370 /s at 15K, 165 /s at 7200 rpm",
        doc="a sector this close behind the arm's arrival counts as missed when choosing",
    )  # fmt: skip
    read_ahead: bool = param(
        True,
        dim="bool",
        source="manual: drives are shipped so (DRA=0)",
        doc="read on into the buffer",
    )
    read_on_arrival: bool = param(
        False, dim="bool", source="assumed: the buffer is filled from the request on",
        doc="buffer what passes on its track while the head waits for a read's first sector",
    )  # fmt: skip
    buffer_bytes: int = param(
        "16 MiB", dim="bytes", source="data sheet", doc="buffer, for reads or cached writes",
        minimum=4096, key="buffer",
    )  # fmt: skip
    segments: int = param(
        8, dim="count", source="assumed: a power of two; drives adapt it",
        doc="streams that the read buffer follows", minimum=1,
    )  # fmt: skip
    write_cache: bool = param(
        False, dim="bool", source="manual: SCSI and SAS drives are shipped with WCE=0",
        doc="acknowledge writes from the buffer",
    )  # fmt: skip
