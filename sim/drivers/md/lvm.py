"""How LVM stacks a volume with snapshots.

Models: the layers, from linear volumes up: lv-real and snap-cow below, lv and snap on top. The
snapshots of a machine share one kcopyd thread to 2.6.25; from 2.6.26 each has its own.
Linux counterpart: lib/activate/dev_manager.c of LVM2; kcopyd_init, drivers/md/kcopyd.c (2.6.16).
Invariants: a snapshot is activated when the machine comes up, before any program runs.
Left out: taking and removing snapshots while the machine runs.
"""

from collections.abc import Callable, Sequence

from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.drivers.md.dm_exception_store import ExceptionStore
from sim.drivers.md.dm_kcopyd import Kcopyd
from sim.drivers.md.dm_snap import DmOrigin, DmSnapshot, Snapshot
from sim.drivers.md.features import features
from sim.sched.core import Sched
from sim.sched.version import KernelVersion


class Lvm:
    """The snapshots of a machine."""

    def __init__(self, sched: Sched, kernel: KernelVersion, log: Callable[[str], None]) -> None:
        """`log` is told what the kernel logs."""
        self.snapshots: list[Snapshot] = []
        self._sched = sched
        self._kernel = kernel
        self._log = log
        self._kcopyd: Kcopyd | None = None

    def snapshot(
        self,
        stats: DiskStats,
        real: BlockDevice,
        cow: BlockDevice,
        chunk_sectors: int,
        copied_chunks: int,
        in_order: bool,
    ) -> DmSnapshot:
        """Make a snapshot of ``real``, of which some chunks have been copied to ``cow`` before.

        `in_order`: kcopyd keeps jobs in line that find no pages.
        """
        if self._kcopyd is None or features(self._kernel).kcopyd_own_thread:
            self._kcopyd = Kcopyd(self._sched, self._kernel)
        made = Snapshot(
            self._sched,
            self._kernel,
            stats.name,
            real,
            ExceptionStore(cow, chunk_sectors, self._kernel),
            self._kcopyd,
            self._log,
            in_order,
        )
        made.activate(copied_chunks)
        self.snapshots.append(made)
        return DmSnapshot(stats, self._sched.calendar, self._kernel, real, made)

    def origin(
        self, stats: DiskStats, real: BlockDevice, snapshots: Sequence[DmSnapshot]
    ) -> DmOrigin:
        """Make the volume that the snapshots are of."""
        below = [volume.snapshot for volume in snapshots]
        return DmOrigin(stats, self._sched.calendar, self._kernel, real, below)

    def check(self) -> None:
        """Assert that no chunk is copied twice or forgotten."""
        for snapshot in self.snapshots:
            snapshot.check()


def minor_of(name: str, number: int) -> int:
    """Return the number in a volume's name (dm-6), or its place among the volumes."""
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else number
