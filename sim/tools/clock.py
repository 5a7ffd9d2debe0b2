"""The clock on the server's wall: what the tools print as the time of day.

Linux counterpart: the time zone and CLOCK_REALTIME, which a snapshot of /proc does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Wall:
    """The server's clock: `at_zero` is what it shows at t_ns = 0."""

    at_zero: datetime

    def at(self, t_ns: int) -> datetime:
        """Return the wall-clock time at `t_ns`, to the microsecond."""
        return self.at_zero + timedelta(microseconds=t_ns // 1000)
