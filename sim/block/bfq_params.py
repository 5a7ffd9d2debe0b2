"""bfq's tunables.

Models: the files of /sys/block/*/queue/iosched.
Linux counterpart: block/bfq-iosched.c (5.4): bfq_attrs, bfq_init_queue.
Invariants: frozen.
Left out: strict_guarantees; what bfq.py leaves out.
"""

from dataclasses import dataclass
from typing import Final

from sim.param import param

_SOURCE: Final = "block/bfq-iosched.c, Linux 5.4"


@dataclass(frozen=True, kw_only=True)
class BfqParams:
    """Tunables under /sys/block/*/queue/iosched."""

    fifo_expire_sync_ns: int = param(
        "125 ms", dim="time_ns", source=_SOURCE, doc="a waited-for request is due", minimum=0
    )
    fifo_expire_async_ns: int = param(
        "250 ms", dim="time_ns", source=_SOURCE, doc="any other is due", minimum=0
    )
    back_seek_max_bytes: int = param(
        "16 MiB", dim="bytes", source=_SOURCE, doc="farthest way back", minimum=0
    )
    back_seek_penalty: int = param(
        2, dim="count", source=_SOURCE, doc="a way back counts as this many", minimum=1
    )
    slice_idle_ns: int = param(
        "8 ms", dim="time_ns", source=_SOURCE + ": bfq_slice_idle",
        doc="wait for a process's next request; 0 = never", minimum=0,
    )  # fmt: skip
    max_budget: int = param(
        0, dim="count", source=_SOURCE, minimum=0,
        doc="sectors of a turn at most; 0 = what the disk does in timeout_sync",
    )  # fmt: skip
    timeout_sync_ns: int = param(
        "125 ms", dim="time_ns", source=_SOURCE + ": bfq_timeout = HZ / 8", doc="longest turn",
        minimum=1,
    )  # fmt: skip
    low_latency: bool = param(
        True, dim="bool", source=_SOURCE, doc="raise the weight of interactive processes"
    )
