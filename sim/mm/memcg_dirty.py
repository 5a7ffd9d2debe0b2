"""A memory cgroup's own dirty limits: how many dirty pages it has, and what its writers may do.

Models: the second domain that balance_dirty_pages() looks at: the ratios are of the group's file
pages and of what is left to its limit; a writer goes on at the stricter of the machine's and the
group's pos_ratio. Whose a dirty page is, says who made its file dirty (the owner of the inode).
Linux counterpart: mm/page-writeback.c: mem_cgroup_wb_domain, mdtc (4.2, c2aa723a6093), 4.2 to 6.5.
Invariants: a group below its freerun holds nobody back.
Left out: a rate of each group and device: all groups on a device share one dirty_ratelimit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.mm.bandwidth import pos_ratio
from sim.mm.dirty_limits import DirtyDomain, group_limits

if TYPE_CHECKING:
    from sim.mm.backing_dev import BackingDevInfo
    from sim.mm.mmzone import Vm
    from sim.sched.task import Task


class GroupDomain(DirtyDomain):
    """One look at a group; pages."""

    __slots__ = ()

    def is_below_setpoint(self) -> bool:
        return self.dirty < (self.freerun + self.thresh) / 2

    def pos_ratio(self, bdi: BackingDevInfo, share: float) -> float:
        return pos_ratio(
            dirty=self.dirty,
            thresh=self.thresh,
            freerun=self.freerun,
            limit=float(self.thresh),
            bdi_thresh=self.thresh * share,
            bdi_dirty=self.dirty,
            bandwidth=bdi.bandwidth.avg_pages_per_s,
        )


def group_domain(vm: Vm, task: Task) -> GroupDomain | None:
    """Return the task's group as it is now; None if it has none that paces writers."""
    memcg = task.memcg
    if memcg is None or not memcg.paces_writers:
        return None
    background, thresh = group_limits(vm, memcg)
    return GroupDomain(memcg.nr_unclean(), background, thresh)
