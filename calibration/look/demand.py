"""What a transaction asks of each resource, and what that allows at most.

Models: demand D = U / X per resource, and the asymptotic bounds of operational analysis.
Linux counterpart: none.
Invariants: given the throughput, from outside the recording; a bound is a bound, no prediction:
locks, think time and a resource that was not recorded make the true throughput less.
Left out: what waits for no resource (sleeps, other hosts): it is in the think time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibration.look.devices import DeviceLook, lowest
from calibration.look.intervals import Interval, rate_of
from calibration.look.laws import capacity_per_s, demand_ms, population_bound_per_s


@dataclass(frozen=True, kw_only=True)
class Demand:
    """Of one resource by a transaction: time, requests, bytes; the throughput that fills it.

    `busiest_ms` and `busiest_visits` are of the interval in which the busiest device was busiest.
    """

    resource: str
    demand_ms: float
    visits: float | None
    bytes: float | None
    busiest_ms: float
    busiest_visits: float | None
    bound_per_s: float
    busiest_bound_per_s: float


@dataclass(frozen=True, kw_only=True)
class Customers:
    """How many send transactions, and how long each thinks in between."""

    number: float
    think_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Demands:
    """All demands at a throughput, and the bounds that follow."""

    throughput_per_s: float
    source: str
    rows: tuple[Demand, ...]
    population_bound_per_s: float | None


def demands_of(
    intervals: Sequence[Interval],
    devices: Sequence[DeviceLook],
    *,
    cpus: int | None,
    busy: float | None,
    throughput_per_s: float,
    source: str,
    customers: Customers | None,
) -> Demands:
    """Return demands of the CPUs and of every device below the volumes."""
    disks = [one for one in lowest(devices) if one.util_pct]
    busiest = _busiest(intervals, disks)
    rows = [_of_device(disk, busiest, throughput_per_s) for disk in disks]
    if busy is not None and busiest.busy is not None:
        rows.insert(0, _of_cpus(cpus or 1, busy, busiest.busy, throughput_per_s))
    bound = customers and population_bound_per_s(
        customers.number, [row.busiest_ms for row in rows], customers.think_s
    )
    return Demands(
        throughput_per_s=throughput_per_s,
        source=source,
        rows=tuple(rows),
        population_bound_per_s=bound or None,
    )


def _busiest(intervals: Sequence[Interval], disks: Sequence[DeviceLook]) -> Interval:
    """Return the interval in which the busiest device was busiest; without one, the CPUs."""
    if not disks:
        return max(intervals, key=lambda one: one.busy or 0.0)
    name = max(disks, key=lambda disk: disk.util_pct or 0.0).name
    return max(intervals, key=lambda one: one.devices.get(name, {}).get("util_pct", 0.0))


def _of_cpus(cpus: int, busy: float, busiest: float, throughput_per_s: float) -> Demand:
    return Demand(
        resource="CPU",
        demand_ms=demand_ms(busy, cpus, throughput_per_s),
        visits=None,
        bytes=None,
        busiest_ms=demand_ms(busiest, cpus, throughput_per_s),
        busiest_visits=None,
        bound_per_s=capacity_per_s(busy, throughput_per_s),
        busiest_bound_per_s=capacity_per_s(busiest, throughput_per_s),
    )


def _of_device(disk: DeviceLook, busiest: Interval, throughput_per_s: float) -> Demand:
    row: Mapping[str, float] = busiest.devices.get(disk.name, {})
    util, top = (disk.util_pct or 0.0) / 100, row.get("util_pct", 0.0) / 100
    moved = disk.bytes_per_s
    return Demand(
        resource=disk.name,
        demand_ms=demand_ms(util, 1, throughput_per_s),
        visits=disk.rate_per_s / throughput_per_s,
        bytes=moved / throughput_per_s if moved is not None else None,
        busiest_ms=demand_ms(top, 1, throughput_per_s),
        busiest_visits=rate_of(row) / throughput_per_s,
        bound_per_s=capacity_per_s(util, throughput_per_s),
        busiest_bound_per_s=capacity_per_s(top, throughput_per_s),
    )
