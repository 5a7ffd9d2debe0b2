"""A machine with swap on the fixed-rate device, and programs that use memory."""

from collections import deque

from sim.mm.memory import Mm, touch_at_random, touch_in_order
from sim.mm.params import PAGE_SIZE
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.mm.machines import Machine

SWAP_PAGES = 1 << 18


def swapping(kernel="6.5", memory_mib=256, swap_pages=SWAP_PAGES, rate_mib_per_s=4000, **params):
    """Return a machine with that much swap (0: none)."""
    machine = Machine(kernel=kernel, memory_mib=memory_mib, rate_mib_per_s=rate_mib_per_s, **params)
    if swap_pages:
        add_swap(machine, "/dev/test", swap_pages)
    return machine


def add_swap(machine, path, pages, prio=None, start=0):
    """Turn a stretch of the device on as swap; the first page is the header."""
    return machine.vm.swap.swapon(path, machine.device, [(start, pages + 1)], prio, True)


def limited(machine, pages, version=2, swap_pages=None):
    """Return a memory cgroup of that limit."""
    return machine.vm.add_memcg("group", pages, swap_pages, version)


def program(machine, memcg, body):
    """Start a program: `body(task, mm)`; return its Mm."""
    mm = Mm(machine.vm, None, memcg)

    def main(task):
        mm.task = task
        yield from body(task, mm)

    task = machine.sched.spawn("program", main)
    task.memcg = memcg
    task.at_exit = lambda _: mm.release()
    return mm


def uniform_user(pages, touches, counts, write_share=0.3, warm=0, stay_ns=0):
    """Return a body that fills so many pages and then touches them at random.

    It appends its major faults to `counts`, without those of the first `warm` touches.
    """

    def body(task, mm):
        region = mm.mmap(pages * PAGE_SIZE)
        yield from touch_in_order(task, mm.vm, region, 0, pages * PAGE_SIZE, True)
        pool = region.pools[0]
        yield from touch_at_random(task, mm.vm, pool, warm, write_share)
        yield from sleep_ns(task, stay_ns, TASK_INTERRUPTIBLE)
        before = mm.majflt
        yield from touch_at_random(task, mm.vm, pool, touches, write_share)
        counts.append(mm.majflt - before)

    return body


class ExactClock:
    """Page by page: anonymous pages on two lists as Linux 4.4 keeps them, without I/O."""

    def __init__(self, frames):
        self.frames = frames
        self.active = deque()
        self.inactive = deque()
        self.used = {}  # page in memory: its accessed bit
        self.known = set()  # pages ever touched: those not in memory are in swap

    def touch(self, page):
        """Touch a page; return whether it was there."""
        if page in self.used:
            self.used[page] = True
            return True
        if len(self.used) >= self.frames:
            self._reclaim(32)
        self.used[page] = True
        (self.inactive if page in self.known else self.active).append(page)
        self.known.add(page)
        return False

    def _reclaim(self, wanted):
        while wanted > 0:
            while len(self.inactive) < len(self.active):  # at each priority, until it is not low
                page = self.active.popleft()
                self.used[page] = False
                self.inactive.append(page)
            for _ in range(min(32, len(self.inactive))):
                page = self.inactive.popleft()
                if self.used[page]:
                    self.used[page] = False
                    self.active.append(page)
                else:
                    del self.used[page]
                    wanted -= 1
