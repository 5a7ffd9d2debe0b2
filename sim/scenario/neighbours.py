"""[neighbour.NAME]: another guest of the same host, a scenario of its own.

Models: what stands in for the other guests of a host where their programs are known. Their vCPUs
and this server's share the host's CPUs; each has its disks, network and programs for itself.
Linux counterpart: the host's other qemu-kvm processes.
Invariants: a neighbour is a complete scenario, with what-if or without, and has no neighbours; the
 host is that of [machine.guest] of who names it.
Left out: disks and links that guests share; what a neighbour measures (its figures are those of its
 own scenario, run by itself or with this one as its neighbour).
"""

from collections.abc import Callable
from dataclasses import dataclass

from sim.param import param
from sim.scenario.spec import Scenario, ServerSpec
from sim.sched.guest import GuestParams
from sim.toml.errors import ScenarioError
from sim.toml.layers import Table
from sim.toml.reading import Reading


@dataclass(frozen=True, kw_only=True)
class NeighbourParams:
    """Which scenario a neighbour is."""

    scenario: str = param(dim="text", source="scenario", doc="its scenario, by name or file")
    what_if: str = param("", dim="text", source="scenario", doc="a what-if of that; empty: none")


def read_neighbours(
    reading: Reading,
    root: Table,
    server: ServerSpec | None,
    read: Callable[[str, str | None], Scenario],
) -> dict[str, Scenario]:
    """Return the neighbours by name; `read` reads a scenario by name and what-if."""
    found: dict[str, Scenario] = {}
    for name, table, path in reading.named_tables(root, (), "neighbour"):
        [values] = reading.values(table, path, [NeighbourParams])
        if values is None:
            continue
        guest = server.one("guest") if server is not None else None
        if server is not None and not (isinstance(guest, GuestParams) and guest.host_cpus):
            reading.error(
                table.place,
                "neighbours share a host's CPUs: none is described",
                given="no machine.guest.host_cpus",
                allowed="machine.guest.host_cpus = 1 or more",
            )
        asked = NeighbourParams(**values)
        leaf = table.leaf("what_if" if asked.what_if else "scenario")
        place = leaf.at if leaf is not None else table.place
        try:
            found[name] = read(asked.scenario, asked.what_if or None)
        except LookupError as error:
            reading.error(place, f"neighbour.{name}: {error}")
        except ScenarioError as error:
            reading.error(place, f"neighbour.{name}: {error.problems[0].render()}")
    return found
