"""What a hypervisor takes from a guest's CPUs beside the exits of its devices: [machine.guest].

Models: in outline, as a share of all CPU time: page walks in two dimensions, more of them where
memory is mapped in small pages, caches refilled after the host moved a vCPU. With `host_cpus` also
the time that other guests steal, by mechanism (vcpu.py): vCPUs share the host's CPUs.
Linux counterpart: arch/x86/kvm/, mm/huge_memory.c; taskset, virsh vcpupin.
Invariants: shares add up; without the table there is no hypervisor.
Left out: ballooning. Exits of devices are sim/drivers' front ends and
 sim/net/nic.py; merging of equal pages is a program, sim/user/ksmd.py.
"""

from dataclasses import dataclass

from sim.component import Component
from sim.param import param
from sim.registry import register


@dataclass(frozen=True, kw_only=True)
class GuestParams:
    """[machine.guest]"""

    page_walk_percent: float = param(
        3.0,
        dim="percent",
        minimum=0,
        maximum=100,
        key="page_walk",
        source="assumed: EPT makes a TLB miss 1.5 to 2 times as dear; misses are 2 to 6 % of time",
        doc="CPU time added by page walks through two tables",
    )
    small_pages_percent: float = param(
        0.0,
        dim="percent",
        minimum=0,
        maximum=100,
        key="small_pages",
        source="assumed: the host backs the guest with transparent huge pages",
        doc="CPU time added because the guest's memory is mapped in pages of 4 KiB",
    )
    migration_percent: float = param(
        0.5,
        dim="percent",
        minimum=0,
        maximum=100,
        key="migration",
        source="assumed: 100 us of refilled caches for each of some 50 moves a second",
        doc="CPU time added because the host moves vCPUs about; 0: they are pinned",
    )
    host_cpus: int = param(
        0,
        dim="count",
        minimum=0,
        maximum=256,
        source="assumed: an over-provisioned host",
        doc="physical CPUs that all guests share; 0: each vCPU has one of its own",
    )
    neighbours: int = param(
        0,
        dim="count",
        minimum=0,
        maximum=1000,
        source="scenario",
        doc="vCPUs of other guests on these CPUs",
    )
    neighbour_busy_percent: float = param(
        20.0,
        dim="percent",
        minimum=0,
        maximum=100,
        key="neighbour_busy",
        source="assumed: guests are some way from idle",
        doc="share of the time each wants to run",
    )
    neighbour_burst_ns: int = param(
        "20 ms",
        dim="time_ns",
        minimum=1000,
        source="assumed: a page of a web service",
        doc="mean CPU time of one of their bursts, exponential",
    )

    @property
    def overhead_percent(self) -> float:
        """All of it, % of the CPU time without a hypervisor."""
        return self.page_walk_percent + self.small_pages_percent + self.migration_percent


@register("component", "guest", params=GuestParams, doc="what the hypervisor costs a guest")
class GuestTable(Component[GuestParams]):
    """[machine.guest]"""
