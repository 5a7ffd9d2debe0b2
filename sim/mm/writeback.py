"""What a writeback pass may do.

Models: struct writeback_control, the order that callers hand to writepages().
Linux counterpart: include/linux/writeback.h, 2.6.16 to 6.5.
Invariants: ``nr_to_write`` only falls; a pass ends when it is not positive.
Left out: reclaim's flags; cgroups.
"""

from __future__ import annotations

from typing import Final

from sim.block.bio import Plug

WB_SYNC_NONE: Final = 0  # Write what is dirty and free to be written; do not wait for anything.
WB_SYNC_ALL: Final = 1  # Data integrity: wait for pages that are being written, write them again.

LAST_PAGE: Final = 1 << 52  # Behind every page of a file.
ANY_AGE_NS: Final = 1 << 62  # Later than any time.
ALL_PAGES: Final = 1 << 40  # More than any machine holds: "no limit" for nr_to_write.


class WritebackControl:
    """How much to write, of what, and what was met on the way."""

    __slots__ = (
        "encountered_congestion",
        "for_kupdate",
        "nonblocking",
        "nr_to_write",
        "older_than_ns",
        "plug",
        "range_cyclic",
        "range_end",
        "range_start",
        "sync_mode",
    )

    def __init__(self, sync_mode: int, nr_to_write: int) -> None:
        self.sync_mode: int = sync_mode
        self.nr_to_write: int = nr_to_write  # pages; decremented as they are written
        self.range_start: int = 0  # page
        self.range_end: int = LAST_PAGE  # page, exclusive
        self.range_cyclic: bool = False  # Go on where the last pass over this file ended.
        self.nonblocking: bool = False  # Leave a device alone that is congested.
        self.for_kupdate: bool = False  # The periodic pass over old inodes.
        self.older_than_ns: int = ANY_AGE_NS  # Only inodes dirtied at or before this time.
        self.encountered_congestion: bool = False
        self.plug: Plug | None = None  # of the task, while a writepages() has one around it all
