"""How much to read ahead from swap: as much as was of use before.

Models: the window around the next fault, from the pages read ahead that were used since the last.
Linux counterpart: mm/swap_state.c, swapin_nr_pages and __swapin_nr_pages (3.14, 579f82901f6f).
Invariants: a window is at least one page, the one wanted.
Left out: a window for each region (4.14): there is one for the machine.
"""


class SwapRa:
    """How useful read-ahead was (3.14 on)."""

    __slots__ = ("hits", "last_pages", "last_slot")

    def __init__(self) -> None:
        self.hits: int = 4  # atomic_set(&swapin_readahead_hits, 4)
        self.last_pages: int = 0
        self.last_slot: int = -2

    def window(self, slot: int, most: int) -> int:
        """Return how many pages to read around a slot (__swapin_nr_pages)."""
        pages = self.hits + 2
        if pages == 2:
            if abs(slot - self.last_slot) != 1:
                pages = 1
        else:
            pages = max(4, 1 << (pages - 1).bit_length())
        pages = max(min(pages, most), self.last_pages // 2)
        self.hits = 0
        self.last_slot = slot
        self.last_pages = pages
        return pages
