"""Laptop mode: what is dirty is written while the disk runs anyway (vm.laptop_mode).

Models: a timer of each device that every read and every write sets anew; when there was none for so
long, all that is dirty is written, so that the disk may stop and need not start again for old data.
And the background threshold starts nothing: only who exceeds the limit does, and then all is
written down to the threshold (page_writeback.py).
Theory: with a read every T and writes in between, a disk that would be started by each pass over
old data (every dirty_expire, 30 s) is started by reads alone, T + laptop_mode apart.
Linux counterpart: mm/page-writeback.c: laptop_io_completion, laptop_mode_timer_fn (2.6.6 to 6.5);
to 2.6.31 one timer wrote the dirty data of all devices.
Invariants: one timer of a device at a time; it ends when nothing is dirty.
Left out: reads and writes past the page cache (direct I/O, a journal's own) set no timer; sync()
does not stop it; kswapd's may_writepage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sim.mm.backing_dev import BackingDevInfo
    from sim.mm.mmzone import Vm

SINCE_OWN_TIMER: Final = (2, 6, 32)


class LaptopTimer:
    """The timer of one device."""

    __slots__ = ("bdi", "due_ns", "is_set", "vm")

    def __init__(self, vm: Vm, bdi: BackingDevInfo) -> None:
        self.vm = vm
        self.bdi = bdi
        self.due_ns: int = 0
        self.is_set: bool = False

    def io_completed(self) -> None:
        """Put the write off: the disk has just done something (laptop_io_completion)."""
        self.due_ns = self.vm.calendar.now + self.vm.params.laptop_mode_ns
        if not self.is_set:
            self.is_set = True
            self.vm.calendar.post_at(self.due_ns, self._expired, None)

    def _expired(self, _: None) -> None:
        """Have all written that is dirty, unless there was I/O meanwhile (laptop_mode_timer_fn)."""
        if self.vm.calendar.now < self.due_ns:
            self.vm.calendar.post_at(self.due_ns, self._expired, None)
            return
        self.is_set = False
        for bdi in self._devices():
            if bdi.nr_dirty:
                bdi.pages_asked = bdi.nr_dirty
                self.vm.wb.flusher.start_background(bdi)

    def _devices(self) -> list[BackingDevInfo]:
        return self.vm.bdis if self.vm.kernel < SINCE_OWN_TIMER else [self.bdi]
