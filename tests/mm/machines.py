"""A machine for the tests of memory management: tasks, page cache, and a device of fixed rate."""

from collections import deque
from dataclasses import replace

from sim.block.bio import READ, WRITE, Bio
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.engine.calendar import Calendar
from sim.fs.fs_writeback import start_writeback
from sim.mm.address_space import AddressSpace, AddressSpaceOps, BackingDevInfo
from sim.mm.mm_init import mm_core_init
from sim.mm.page_writeback import balance_dirty_pages, write_cache_pages
from sim.mm.params import VmParams
from sim.mm.vmscan import start_kswapd
from sim.sched.core import Sched
from sim.sched.params import SchedParams
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, sleep_ns
from sim.sched.version import kernel_version
from sim.sched.wait import WaitQueue

MS = 1_000_000
S = 1_000_000_000
MIB = 1 << 20
PAGES_PER_MIB = 256
KERNELS = ["2.6.16", "2.6.18", "2.6.24", "2.6.31", "2.6.32", "3.1", "3.2", "4.4", "6.5"]
PDFLUSH = ["2.6.16", "2.6.24", "2.6.31"]
FLUSHERS = ["2.6.32", "3.2", "6.5"]


def vm_params(kernel):
    """Return the defaults of a kernel release, such as "2.6.32"."""
    return VmParams(**{key: value for key, (value, _) in VmParams.kernel_defaults(kernel).items()})


class FixedRate(BlockDevice):
    """One bio after the other, each as long as its sectors take; ``slots`` bios at most wait."""

    def __init__(self, calendar, rate_bytes_per_s, slots=128):
        super().__init__(DiskStats("test", 8, 0), 1 << 40)
        self.calendar = calendar
        self.ns_per_sector = 512 * S / rate_bytes_per_s
        self.slots = slots
        self.queue = deque()
        self.wait = WaitQueue()
        self.log = []  # (when submitted, op, first page, pages)
        self.unplugs = 0
        self.sectors = [0, 0]

    def submit_bio(self, bio: Bio) -> bool:
        if len(self.queue) >= self.slots:
            return False
        self.log.append((self.calendar.now, bio.op, bio.sector // 8, bio.nr_sectors // 8))
        self.queue.append(bio)
        if len(self.queue) == 1:
            self._start()
        return True

    def get_request_wait(self, task, bio):
        while len(self.queue) >= self.slots:
            yield from self.wait.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "get_request_wait")

    def _start(self):
        bio = self.queue[0]
        self.calendar.post(max(1, int(bio.nr_sectors * self.ns_per_sector)), self._done, bio)

    def _done(self, bio):
        self.queue.popleft()
        if self.queue:
            self._start()
        self.sectors[bio.op] += bio.nr_sectors
        self.stats.start(1, self.calendar.now)
        self.stats.done(bio.op, 1, bio.nr_sectors, 0, self.calendar.now)
        bio.end_io(bio)
        self.wait.wake_all()

    def unplug(self):
        self.unplugs += 1

    def congested(self, op):
        return len(self.queue) > self.slots * 7 // 8

    def pages(self, op):
        return [(page, count) for _, logged, page, count in self.log if logged == op]


class FlatFile:
    """A file whose page n is page n of the device."""

    def __init__(self, size_bytes):
        self.size_bytes = size_bytes


class FlatOps(AddressSpaceOps):
    """A file system without any metadata."""

    def __init__(self, device):
        self.device = device
        self.inodes_written = 0

    def writepages(self, task, mapping, wbc):
        yield from write_cache_pages(task, mapping, wbc)

    def writepage(self, task, mapping, start, end, wbc):
        yield from self._submit(task, WRITE, start, end, mapping.end_writeback)

    def readpages(self, task, mapping, start, end):
        yield from self._submit(task, READ, start, end, mapping.end_read)

    def _submit(self, task, op, start, end, done):
        bio = Bio(op, start * 8, (end - start) * 8, lambda bio: done(start, end))
        yield from self.device.submit(task, bio)

    def end_page(self, mapping):
        return (mapping.host.size_bytes + 4095) // 4096

    def sync_page(self):
        self.device.unplug()

    def write_inode(self, task, mapping, wait):
        self.inodes_written += 1
        return
        yield


class Machine:
    """A machine with one device, one file on it, and the kernel's writeback."""

    def __init__(
        self, kernel="2.6.16", memory_mib=1024, rate_mib_per_s=100, cpus=1, slots=128, **params
    ):
        version = kernel_version(kernel)
        self.calendar = Calendar()
        self.sched = Sched(self.calendar, cpus, version, SchedParams(context_switch_ns=0))
        values = {"page_add_ns": 0, "page_write_ns": 0} | params
        vm_values = replace(vm_params(kernel), **values)
        self.vm = mm_core_init(self.sched, vm_values, memory_mib * MIB)
        self.device = FixedRate(self.calendar, rate_mib_per_s * MIB, slots)
        self.bdi = self.vm.add_bdi(BackingDevInfo("test", self.device))
        self.ops = FlatOps(self.device)
        self.file = self.new_file()
        start_writeback(self.sched, self.vm)
        start_kswapd(self.vm)

    def new_file(self, size_mib=1 << 20):
        return AddressSpace(self.vm, FlatFile(size_mib * MIB), self.ops, self.bdi)

    def has_been_written(self, mib=4096):
        """Give the device nearly all of the recent write-outs, as after hours of work."""
        for _ in range(mib):
            self.vm.count_completions(self.bdi, PAGES_PER_MIB)
        return self

    def run_until(self, seconds):
        self.calendar.run_until(int(seconds * S))
        return self

    def task(self, body, *args):
        """Start a program: a generator function of a task."""
        return self.sched.spawn("program", lambda task: body(task, *args))

    def do(self, body, *args, limit_s=1000):
        """Run a program to its end; return what it returned and when."""
        answer = []

        def main(task):
            value = yield from body(task, *args)
            answer.append(value)
            self.calendar.stop()

        self.sched.spawn("program", main)
        self.calendar.run_until(self.calendar.now + limit_s * S)
        assert answer, "the program did not end"
        return answer[0]


def without_kswapd(vm):
    """Let nobody reclaim in the background."""
    for node in vm.nodes:
        node.wakeup_kswapd = lambda: None


def dirtier(task, mapping, pages, progress=None, chunk=64, copy_ns_per_page=1000, start=0):
    """Write pages one after the other, at memory speed while nobody holds the task back."""
    vm = mapping.vm
    for page in range(start, start + pages, chunk):
        task.charge_system(copy_ns_per_page * chunk)
        mapping.set_dirty(page, page + chunk)
        yield from balance_dirty_pages(task, vm, mapping, chunk)
        yield from task.cond_resched()
        if progress is not None:
            progress.append((vm.calendar.now, page + chunk))


def sleeper(task, ns):
    yield from sleep_ns(task, ns, TASK_INTERRUPTIBLE)
