"""What RAID 5 costs the CPU.

Models: copying data between bios and the stripe cache, exclusive or over pages, and a part for each
stripe that is handled; all of it in raid5d.
Linux counterpart: crypto/xor.c (calibrate_xor_blocks says at boot how fast it is), async_memcpy,
async_xor, drivers/md/raid5.c.
Invariants: cost grows with pages, whatever runs they come in.
Left out: DMA engines (async_tx offload), several threads, that pages are warm or cold in the cache.
"""

from typing import Final

from sim.drivers.md.path import Member
from sim.drivers.md.stripes import Stripes
from sim.units import NS_PER_S

PAGE: Final = 4096


class ParityCost:
    """Rates in bytes of source data a second, ns a stripe."""

    def __init__(self, xor_bytes_per_s: float, copy_bytes_per_s: float, stripe_ns: int) -> None:
        self._xor_page_ns: float = PAGE / xor_bytes_per_s * NS_PER_S
        self._copy_page_ns: float = PAGE / copy_bytes_per_s * NS_PER_S
        self._stripe_ns = stripe_ns

    def handle_ns(self, pages: int) -> int:
        """Return the cost of looking at stripes once."""
        return pages * self._stripe_ns

    def read_ns(self, run: Stripes, members: list[Member]) -> int:
        """Return the cost of answering readers; of a lost member, from all the others."""
        wanted = {share.member for share in run.shares}
        lost = any(not members[number].in_sync for number in wanted)
        each_ns = len(wanted) * self._copy_page_ns
        if lost:
            each_ns += (len(members) - 1) * self._xor_page_ns
        return round(run.pages() * each_ns)

    def write_ns(self, run: Stripes, count: int) -> int:
        """Return the cost of taking new data over and of the new parity of ``count`` members."""
        touched = len(run.touched)
        # Read-modify-write takes the old data out and the new in; reconstruct-write takes all.
        sources = min(2 * touched + 1, count - 1)
        return round(run.pages() * (touched * self._copy_page_ns + sources * self._xor_page_ns))
