"""/proc/mdstat: the arrays, their members, and how far a resync has got.

Models: the lines that administrators read during a rebuild.
Linux counterpart: md_seq_show, status_resync, drivers/md/md.c; status of each level (2.6.16).
Invariants: one paragraph an array, the latest first; blocks of 1 KiB.
Left out: superblock formats other than 0.90 (it prints none), bitmap pages, spares, read-only
arrays. A device-mapper volume is no array of md and has no paragraph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

BLOCK_SECTORS = 2
BAR = 20  # characters of the progress bar


class MdMember(Protocol):
    """A member's place in its array."""

    index: int
    in_sync: bool

    def written(self) -> bool:
        """Whether there is a device in this place."""

    def name(self) -> str:
        """Its name."""


class MdProgress(Protocol):
    """A resync or recovery under way; sectors of a member."""

    end: int
    position: int
    active_sectors: int
    done: bool

    def title(self) -> str:
        """What /proc/mdstat calls it."""

    def since_mark(self) -> tuple[int, int]:
        """Sectors done, and seconds passed (at least 1), since it last set a mark."""


class MdArray(Protocol):
    """What an array says of itself."""

    name: str
    capacity_sectors: int
    personality: str  # the level, as in "raid5"

    @property
    def members(self) -> Sequence[MdMember]:
        """Its places."""

    @property
    def sync(self) -> MdProgress | None:
        """The resync, if there is or was one."""

    def level_status(self) -> str:
        """What the level adds to the line of blocks, as in " level 5, 64k chunk, algorithm 2"."""


def render_mdstat(arrays: Sequence[MdArray]) -> str:
    """Return the text of /proc/mdstat; times left are of the moment of reading."""
    levels = dict.fromkeys(array.personality for array in arrays)
    lines = ["Personalities : " + "".join(f"[{level}] " for level in levels)]
    for array in reversed(arrays):
        lines += _paragraph(array)
    return "\n".join([*lines, "unused devices: <none>"]) + "\n"


def _paragraph(array: MdArray) -> list[str]:
    there = [member for member in array.members if member.written()]
    names = " ".join(f"{member.name()}[{member.index}]" for member in reversed(there))
    lines = [
        f"{array.name} : active {array.personality} {names}",
        f"      {array.capacity_sectors // BLOCK_SECTORS} blocks{array.level_status()}",
    ]
    if array.personality != "raid0":
        good = [member.in_sync for member in array.members]
        marks = "".join("U" if one else "_" for one in good)
        lines[1] += f" [{len(good)}/{sum(good)}] [{marks}]"
    progress = array.sync
    if progress is not None and not progress.done:
        lines.append(_resync(progress))
    return [*lines, "      "]


def _resync(progress: MdProgress) -> str:
    """Return the bar and what stands behind it (status_resync)."""
    total = progress.end // BLOCK_SECTORS
    done = max(0, progress.position - progress.active_sectors) // BLOCK_SECTORS
    per_mille = done * 1000 // max(1, total)
    filled = per_mille // 50
    bar = "=" * filled + ">" + "." * (BAR - filled)
    sectors, seconds = progress.since_mark()
    blocks = sectors // BLOCK_SECTORS
    left_s = seconds * ((total - done) // (blocks // 100 + 1)) // 100
    return (
        f"      [{bar}]  {progress.title()} ={per_mille // 10:3d}.{per_mille % 10}%"
        f" ({done}/{total}) finish={left_s // 60}.{left_s % 60 // 6}min"
        f" speed={blocks // seconds}K/sec"
    )
