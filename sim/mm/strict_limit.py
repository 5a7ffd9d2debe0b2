"""Strict limits: a device whose writers are held back by its own share of the dirty limit.

Models: BDI_CAP_STRICTLIMIT. Usually a device's share (what it wrote lately of all that was written,
between min_ratio and max_ratio) only matters once so much is dirty on the machine that the limit is
near; up to there a slow stick may fill the page cache with what it takes minutes to write. With a
strict limit its share is its limit: freerun, setpoint and limit are those of the share.
Theory: T = dirty_ratio of memory, 20 % of 2 GiB less what programs have: 370 MB. A stick of 8 MB/s
beside a disk that writes little has nearly all recent write-outs, so a share of nearly 1: it is let
to (background + T) / 2 = 280 MB, and `sync` then takes 35 s. max_ratio 10 alone changes nothing of
that until the machine is above 280 MB. With strict_limit it has 37 MB at most and 28 MB at rest:
sync takes 4 s, and dd, which would have ended 35 s before its data was there, ends 4 s before.
Linux counterpart: mm/page-writeback.c: wb_dirty_limits, wb_position_ratio (strictlimit), 3.12
(5a53748568f7) to 6.18.
Invariants: a device with a strict limit has no more dirty or under writeback than its share and
what its writers dirty between two looks.
Left out: the same for background writeback of devices without a strict limit (2.6.37 on).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.mm.dirty_limits import DirtyDomain, bdi_dirty_limit, dirty_limits

if TYPE_CHECKING:
    from sim.mm.backing_dev import BackingDevInfo
    from sim.mm.mmzone import Vm

FEW: Final = 8  # pages: so many are let through whatever the share is


class StrictDomain(DirtyDomain):
    """One look at a device's own share; pages."""

    __slots__ = ()

    def is_below_setpoint(self) -> bool:
        """Return whether more may be dirty than is; the setpoint is where freerun ends."""
        return self.dirty < self.freerun or self.dirty < FEW

    def pos_ratio(self, bdi: BackingDevInfo, share: float) -> float:
        """Return the feedback (wb_position_ratio, the part for strict limits)."""
        if self.dirty < FEW:
            return 2.0
        if self.dirty >= self.thresh:
            return 0.0
        offset = (self.freerun - self.dirty) / (self.thresh - self.freerun + 1)
        return min(max(1 + offset**3, 0.0), 2.0)


def strict_domain(vm: Vm, bdi: BackingDevInfo) -> StrictDomain | None:
    """Return a device's own limits as they are now; None if they are not strict."""
    if not bdi.strict_limit:
        return None
    background, thresh = dirty_limits(vm)
    own = int(bdi_dirty_limit(vm, bdi, thresh))
    dirty = bdi.nr_dirty + bdi.nr_unstable + bdi.nr_writeback
    return StrictDomain(dirty, own * background // thresh, own)
