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
from sim.sched.version import kernel_version
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
        """Return what 2.6.17, 2.6.20, 2.6.22 and 2.6.34 changed."""
        found: dict[str, tuple[Value, str]] = {}
        version = kernel_version(kernel)
        if version >= (2, 6, 17):
            found["early"] = (False, "block/cfq-iosched.c 2.6.17: cfq_update_io_seektime, hw_tag")
            found["slice_idle_ns"] = (8_000_000, "block/cfq-iosched.c 2.6.17: HZ / 125")
        if version >= (2, 6, 20):
            source = "block/cfq-iosched.c 2.6.20"
            found["merge_across"] = (False, source + ": cfq_allow_merge, da775265021b")
            found["sync_preempts"] = (True, source + ": cfq_should_preempt")
        if version >= (2, 6, 22):
            source = "block/cfq-iosched.c 2.6.22: cfq_select_queue asks timer_pending"
            found["restarts_idling"] = (False, source)
        if version >= (2, 6, 34):
            found["quantum"] = (8, "block/cfq-iosched.c 2.6.34: cfq_quantum")
        return found
