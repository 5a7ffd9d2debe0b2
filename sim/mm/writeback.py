"""What a writeback pass may do: the order that callers hand to writepages().

Models: struct writeback_control.
Linux counterpart: include/linux/writeback.h, 2.6.16 to 6.5.
Invariants: ``nr_to_write`` only falls; a pass ends when it is not positive.
Left out: reclaim's and laptop mode's flags; cgroups.
"""

WB_SYNC_NONE = 0  # Write what is dirty and free to be written; do not wait for anything.
WB_SYNC_ALL = 1  # Data integrity: wait for pages that are being written, write them again.

LAST_PAGE = 1 << 52  # Behind every page of a file.
ALL_PAGES = 1 << 40  # More than any machine holds: "no limit" for nr_to_write.


class WritebackControl:
    """How much to write, of what, and what was met on the way."""

    __slots__ = (
        "encountered_congestion",
        "for_kupdate",
        "nonblocking",
        "nr_to_write",
        "older_than_ns",
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
        self.older_than_ns: int = -1  # Only inodes dirtied at or before this time; -1: all.
        self.encountered_congestion: bool = False
