"""mq-deadline: deadline for the multi-queue block layer.

Models: deadline's order of service (deadline.py); of the tags, writes that nobody waits for may
have only three quarters (5.14 to 6.9), so that a read finds one.
Linux counterpart: block/mq-deadline.c (4.11; 5.14: dd_limit_depth, 07757588e507).
Invariants: as deadline.py.
Left out: the lists of each I/O priority (5.14) and what they let pass (prio_aging_expire).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.block.deadline import Deadline, DeadlineParams
from sim.param import param
from sim.registry import register
from sim.sched.version import Change, changed_defaults
from sim.units import Value

_FILE: Final = "block/mq-deadline.c"
KERNEL_CHANGES: Final[tuple[Change, ...]] = (
    ((4, 11), "sequential_batches", False, _FILE + " 4.11: as deadline from 2.6.24"),
    ((5, 14), "async_percent", 75.0, _FILE + " 5.14: dd_depth_updated, 3 * nr_requests / 4"),
    ((6, 10), "async_percent", 100.0, _FILE + " 6.10: dd_depth_updated, nr_requests"),
)


@dataclass(frozen=True, kw_only=True)
class MqDeadlineParams(DeadlineParams):
    """Tunables under /sys/block/*/queue/iosched."""

    async_percent: float = param(
        100.0, dim="percent", source=_FILE + " 4.11: no limit", key="async", minimum=1, maximum=100,
        doc="share of the tags for requests that nobody waits for (async_depth)",
    )  # fmt: skip

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from the declared defaults in this release."""
        return changed_defaults(KERNEL_CHANGES, kernel)


class MqDeadline(Deadline):
    """deadline with tags."""

    multiqueue = True

    def __init__(self, params: MqDeadlineParams) -> None:
        super().__init__(params)
        self._async_percent = params.async_percent

    def async_depth(self, tags: int) -> int:
        return max(1, int(tags * self._async_percent / 100))


# Not as a decorator: mypyc compiles no decorated class to a native one.
register(
    "elevator", "mq-deadline", params=MqDeadlineParams, doc="deadline for multi-queue devices",
    since=(4, 11),
)(MqDeadline)  # fmt: skip
