"""CFQ's tunables, and what kernel versions changed about it.

Models: the files of /sys/block/*/queue/iosched, and changes of behaviour as switches.
Linux counterpart: block/cfq-iosched.c (2.6.16 to 2.6.34).
Invariants: frozen; the declared defaults are 2.6.16's.
Left out: what cfq.py leaves out; slices by I/O priority.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.param import param
from sim.sched.version import Change, changed_defaults
from sim.units import Value

_SOURCE: Final = "block/cfq-iosched.c, Linux 2.6.16"


@dataclass(frozen=True, kw_only=True)
class CfqParams:
    """Tunables under /sys/block/*/queue/iosched, and what versions changed."""

    quantum: int = param(
        4, dim="count", source=_SOURCE, doc="requests dispatched in one go", minimum=1
    )
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
    slice_sync_ns: int = param(
        "100 ms", dim="time_ns", source=_SOURCE, doc="slice of a process", minimum=1
    )
    slice_async_ns: int = param(
        "40 ms", dim="time_ns", source=_SOURCE, doc="slice of the shared queue", minimum=1
    )
    slice_async_rq: int = param(
        2, dim="count", source=_SOURCE, doc="requests of the shared queue's slice, x 8", minimum=1
    )
    slice_idle_ns: int = param(
        "10 ms", dim="time_ns", source=_SOURCE + ": cfq_slice_idle = HZ / 100",
        doc="wait for a process's next request", minimum=0,
    )  # fmt: skip
    max_depth: int = param(
        2, dim="count", source=_SOURCE + ": cfq_max_depth", minimum=1,
        doc="requests in the driver if the process is not waited for (to 2.6.16)",
    )  # fmt: skip
    early: bool = param(
        True, dim="bool", source=_SOURCE,
        doc="the form to 2.6.16, blind to seeks and to drives that queue (see cfq.py)",
    )  # fmt: skip
    merge_across: bool = param(
        True, dim="bool", source=_SOURCE + ": no elevator_allow_merge_fn",
        doc="a bio may join another process's request (to 2.6.19)",
    )  # fmt: skip
    sync_preempts: bool = param(
        False, dim="bool",
        source=_SOURCE + ": cfq_should_preempt asks wait_request of the new queue",
        doc="a synchronous request ends the shared queue's slice (from 2.6.20)",
    )  # fmt: skip
    restarts_idling: bool = param(
        True, dim="bool", source=_SOURCE + ": cfq_select_queue calls cfq_arm_slice_timer",
        doc="a request of another process begins the wait for this one anew (to 2.6.21)",
    )  # fmt: skip

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from 2.6.16 in this release, each with its source."""
        return changed_defaults(KERNEL_CHANGES, kernel)


_FILE: Final = "block/cfq-iosched.c"
KERNEL_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 17), "early", False, _FILE + " 2.6.17: cfq_update_io_seektime, hw_tag"),
    ((2, 6, 18), "slice_idle_ns", 8_000_000, _FILE + " 2.6.18: HZ / 125"),
    ((2, 6, 20), "merge_across", False, _FILE + " 2.6.20: cfq_allow_merge, da775265021b"),
    ((2, 6, 20), "sync_preempts", True, _FILE + " 2.6.20: cfq_should_preempt"),
    ((2, 6, 22), "restarts_idling", False, _FILE + " 2.6.22: cfq_select_queue, timer_pending"),
    ((2, 6, 34), "quantum", 8, _FILE + " 2.6.34: cfq_quantum"),
)
