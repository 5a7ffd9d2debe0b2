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
from sim.block.features import MQ_DEADLINE_CHANGES, MQ_DEADLINE_SINCE
from sim.param import param
from sim.registry import register
from sim.sched.version import changed_defaults
from sim.units import Value

_FILE: Final = "block/mq-deadline.c"


@dataclass(frozen=True, kw_only=True)
class MqDeadlineParams(DeadlineParams):
    """Tunables under /sys/block/*/queue/iosched."""

    async_percent: float = param(
        100.0,
        dim="percent",
        source=_FILE + " 4.11: no limit",
        key="async",
        minimum=1,
        maximum=100,
        doc="share of the tags for requests that nobody waits for (async_depth)",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from the declared defaults in this release."""
        return changed_defaults(MQ_DEADLINE_CHANGES, kernel)


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
    "elevator",
    "mq-deadline",
    params=MqDeadlineParams,
    doc="deadline for multi-queue devices",
    since=MQ_DEADLINE_SINCE,
)(MqDeadline)
