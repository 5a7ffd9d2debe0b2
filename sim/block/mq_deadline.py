"""mq-deadline: deadline for the multi-queue block layer.

Models: deadline's order of service (deadline.py), and what it does to the tags. The limit of 5.14
on what is no read was none: it asked for three quarters of nr_requests, but sbitmap compares that
with the tags of one of its words, which are a quarter of them at most. From 6.6 to 6.8 it was three
quarters of each word, so that a read finds a tag. It was too slow, and was reverted. From 6.11 to
6.19 the limit is nr_requests, so again none, but the least depth that it could be set to is 1. From
that sbitmap takes how many waiters to wake at a time (an eighth of the least depth): one, for each
tag that is freed, where it was eight after eight.
Hand estimate: of 62 tags for a disk of 31 writers get 46 on 6.6, and 62 before and after.
Linux counterpart: block/mq-deadline.c (4.11; dd_limit_depth, dd_depth_updated, 5.14 to 7.0);
sbq_calc_wake_batch, lib/sbitmap.c.
Invariants: as deadline.py.
Left out: the lists of each I/O priority (5.14) and what they let pass (prio_aging_expire); the tag
that each word keeps whole (writes get 3/4 of all tags here).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.block.deadline import Deadline, DeadlineParams
from sim.block.features import MQ_DEADLINE_CHANGES, MQ_DEADLINE_SINCE
from sim.param import param
from sim.registry import register
from sim.sched.version import changed_defaults
from sim.units import Value

_FILE: Final = "block/mq-deadline.c"


@dataclass(frozen=True, kw_only=True)
class MqDeadlineParams(DeadlineParams):
    """Tunables under /sys/block/*/queue/iosched."""

    write_percent: float = param(
        100.0,
        dim="percent",
        source=_FILE + " 4.11: no limit",
        key="async",
        minimum=1,
        maximum=100,
        doc="share of the tags for all that is no read (async_depth)",
    )
    wake_batch: int = param(
        0,
        dim="count",
        minimum=0,
        source="kernel: lib/sbitmap.c, sbq_calc_wake_batch",
        doc="waiters for a tag that are woken at a time, after as many tags were freed; 0: an"
        " eighth of the tags, at most 8",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from the declared defaults in this release."""
        return changed_defaults(MQ_DEADLINE_CHANGES, kernel)


class MqDeadline(Deadline):
    """deadline with tags."""

    multiqueue = True
    limits_sync_writes = True

    def __init__(self, params: MqDeadlineParams) -> None:
        super().__init__(params)
        self._write_percent = params.write_percent
        self.wake_batch = params.wake_batch

    def async_depth(self, tags: int) -> int:
        return max(1, int(tags * self._write_percent / 100))


# Not as a decorator: mypyc compiles no decorated class to a native one.
register(
    "elevator",
    "mq-deadline",
    params=MqDeadlineParams,
    doc="deadline for multi-queue devices",
    since=MQ_DEADLINE_SINCE,
)(MqDeadline)
