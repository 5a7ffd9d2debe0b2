"""How a bio gets from a stacked device to what that is made of.

Models: the interface of the ways down, the members they lead to, and the cutting of a run of bios
at the borders of a layout: whole bios stay together, a bio that crosses a border goes in pieces.
Linux counterpart: make_request of a personality, drivers/md/md.h: struct md_personality, md_rdev.
Invariants: submit() takes bios in order; when it answers False, either ``bio.clone`` is set, and it
wants this very object back, or any object that goes on at that place will do.
Left out: bad blocks, replacement devices, write-mostly members.
"""

from mypy_extensions import mypyc_attr

from sim.block.bio import Bio
from sim.block.device import BlockDevice
from sim.drivers.md.barrier import Barrier
from sim.sched.task import Blocking, Task


class Member:
    """One of the devices that an array is made of (struct md_rdev)."""

    __slots__ = (
        "barrier", "device", "head_position", "in_sync", "index", "next_seq_sector", "nr_pending",
        "recovering",
    )  # fmt: skip

    def __init__(self, index: int, device: BlockDevice) -> None:
        device.hold()
        self.index = index
        self.device = device
        self.in_sync: bool = True  # its contents are good: it may be read
        self.recovering: bool = False  # it is being filled: it is written, not read
        self.head_position: int = 0  # sector behind the last I/O that ended
        self.next_seq_sector: int = -1  # behind the last read it was chosen for
        self.nr_pending: int = 0  # bios begun and not ended
        self.barrier: Barrier | None = None  # of the array, while it is resynced

    def name(self) -> str:
        """Return its device's name."""
        return self.device.name

    def get(self, count: int) -> None:
        """Some bios for it begin (rdev->nr_pending, nr_pending of the barrier)."""
        self.nr_pending += count
        if self.barrier is not None:
            self.barrier.get(count)

    def put(self, sector: int, count: int) -> None:
        """They have ended, its head is at that sector now."""
        self.nr_pending -= count
        self.head_position = sector
        if self.barrier is not None:
            self.barrier.put(count)

    def written(self) -> bool:
        """Return whether writes go to it."""
        return self.in_sync or self.recovering


@mypyc_attr(allow_interpreted_subclasses=True)
class Path:
    """A way down."""

    def submit(self, bio: Bio) -> bool:
        """Take over the rest of the run; False when its next bio has to wait."""
        raise NotImplementedError

    def wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep until the bio where submit() stopped may be tried again."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Borders:
    """Where a layout changes from one place to another."""

    def room(self, sector: int) -> int:
        """Return how many sectors from ``sector`` on lie together."""
        raise NotImplementedError


class Chunks(Borders):
    """A border every ``chunk_sectors``."""

    def __init__(self, chunk_sectors: int) -> None:
        self._chunk_sectors = chunk_sectors

    def room(self, sector: int) -> int:
        return self._chunk_sectors - sector % self._chunk_sectors


def cut(bio: Bio, borders: Borders) -> list[tuple[int, int, int]]:
    """Return the run as (sector, sectors, bios) between borders; a piece of a bio is 1 bio."""
    pieces = []
    sector = bio.sector
    end = bio.sector + bio.nr_sectors
    while sector < end:
        into = (sector - bio.sector) % bio.size
        room = min(borders.room(sector), end - sector)
        count = 1
        if into or room < bio.size:  # inside a bio that a border goes through
            room = min(room, bio.size - into)
        else:
            count = room // bio.size
            room = count * bio.size
        pieces.append((sector, room, count))
        sector += room
    return pieces


def nothing(clone: Bio) -> None:
    """Do nothing at the end of a clone: its bios have ended one by one."""
