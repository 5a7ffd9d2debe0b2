"""The lists of reclaim page by page: what the generations of sim.mm are compared with.

Written from the rules alone (mm/swap.c, mm/vmscan.c, mm/workingset.c): an ordered dictionary for
each list, an entry for each page, oldest first.
"""

from collections import OrderedDict
from math import isqrt

BATCH = 32


class ExactLists:
    """A page cache of `frames` pages that only ever reads."""

    def __init__(self, kernel, frames):
        self.kernel = kernel
        self.free = frames
        self.inactive = OrderedDict()  # page -> PG_referenced
        self.active = OrderedDict()
        self.shadows = {}
        self.age = 0
        self.activated = self.activated_before = 0

    def read(self, page):
        """Return whether the page was there."""
        if page in self.active:
            self.active[page] = True
            return True
        if page in self.inactive:
            if self.inactive[page]:
                self._activate(page)
            else:
                self.inactive[page] = True
            return True
        self._bring_in(page)
        return False

    def _activate(self, page):
        self.inactive.pop(page, None)
        self.active[page] = False
        self.age += 1

    def _bring_in(self, page):
        if not self.free:
            self._reclaim()
        self.free -= 1
        evicted_at = self.shadows.pop(page, None)
        if evicted_at is not None and self.age - evicted_at <= len(self.active):
            self.activated += 1
            self._activate(page)
            self.active[page] = True
        else:
            self.inactive[page] = True

    def _is_low(self):
        inactive, active = len(self.inactive), len(self.active)
        if self.kernel < (2, 6, 28):
            return True
        if self.kernel < (4, 7):
            return active > inactive
        if self.kernel >= (4, 9) and self.activated != self.activated_before:
            return active > 0
        gib = (inactive + active) >> 18
        return inactive * (isqrt(10 * gib) if gib else 1) < active

    def _reclaim(self):
        freed = 0
        while freed < BATCH:
            inactive, active = len(self.inactive), len(self.active)
            if active and self._is_low():
                share = BATCH if inactive <= BATCH else max(BATCH * active // inactive, 1)
                for _ in range(min(share, active)):
                    page, referenced = self.active.popitem(last=False)
                    self.inactive[page] = referenced
            for _ in range(min(BATCH, len(self.inactive))):
                page, _ = self.inactive.popitem(last=False)
                freed += 1
                self.free += 1
                if self.kernel >= (3, 15):
                    self.age += 1
                    self.shadows[page] = self.age
        self.activated_before = self.activated
