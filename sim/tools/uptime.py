"""uptime: the time, how long up, users, load averages.

Models: `uptime` without options.
Linux counterpart: procps 3.2.x proc/whattime.c:sprint_uptime; procps-ng 4.0.2 library/uptime.c
(the same line, but "0 user" where 3.2 says "0 users").
Invariants: hours and minutes are whole, truncated; load averages are those of /proc/loadavg.
Left out: -p -s; the count of users comes from utmp, not from /proc, so the caller gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sim.tools.clock import Wall
from sim.tools.parse import parse_loadavg, parse_uptime
from sim.tools.snapshot import Snapshot
from sim.tools.usage import ToolUsageError


@dataclass(frozen=True, slots=True)
class UptimeLayout:
    """Counts of users that take the singular."""

    singular: tuple[int, ...]


PROCPS_3_2 = UptimeLayout(singular=(1,))
PROCPS_4_0 = UptimeLayout(singular=(0, 1))


def parse_options(arguments: Sequence[str]) -> None:
    """Raise ToolUsageError unless there are no arguments."""
    if arguments:
        raise ToolUsageError("uptime", f"unknown argument {arguments[0]!r}", "no argument")


def run_uptime(
    snapshots: Iterable[Snapshot], *, wall: Wall, users: int, layout: UptimeLayout
) -> Iterator[str]:
    """Yield the line for the first snapshot and take no other."""
    for snapshot in snapshots:
        yield render_uptime(snapshot, wall=wall.at(snapshot.t_ns), users=users, layout=layout)
        return


def render_uptime(snapshot: Snapshot, *, wall: datetime, users: int, layout: UptimeLayout) -> str:
    """Return uptime's line."""
    up = time_up(parse_uptime(snapshot.text("uptime")).uptime_cs // 100)
    load = parse_loadavg(snapshot.text("loadavg"))
    noun = "user" if users in layout.singular else "users"
    return (
        f" {wall:%H:%M:%S} up {up}, {users:2d} {noun}, "
        f" load average: {load.load1:.2f}, {load.load5:.2f}, {load.load15:.2f}\n"
    )


def time_up(uptime_s: int) -> str:
    """Return "12 days,  3:04" or "17 min" as after the word "up"."""
    minutes = uptime_s // 60
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    day_part = f"{days} day{'' if days == 1 else 's'}, " if days else ""
    return day_part + (f"{hours:2d}:{minutes:02d}" if hours else f"{minutes} min")
