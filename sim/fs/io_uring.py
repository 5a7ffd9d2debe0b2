"""io_uring: rings of submissions and completions that a program shares with the kernel.

Models: a program writes entries into the submission ring and tells the kernel of many with one
io_uring_enter(), which may wait for completions as well. Completions are put into the other ring,
where the program finds them without a system call. What happens to an entry:
- a direct read or write is submitted at once, the bios of more than two entries in one plug
- a buffered read of pages that are in memory is done at once. One that misses is done by a worker
  (to 5.8), or its read-ahead is submitted at once, and it goes on in the task that waits for
  completions, or enters, when its page is there (from 5.9 on)
- a buffered write, fsync, and a direct write that makes its file larger or fills a hole go to
  workers (io-wq): as many as the ring has entries, at most four for each CPU. Buffered writes of
  one file wait for each other before a worker has them (io_wq_hash_work)
- a write with O_DSYNC, O_SYNC or RWF_DSYNC is complete when it is durable (aio.py)
IORING_SETUP_IOPOLL: completions are looked for by who waits for them, on the CPU, without an
interrupt; for direct I/O of devices with queues for that. IORING_SETUP_SQPOLL: a thread of the
kernel looks for entries, on a CPU, until there was none for `sq_thread_idle`; then it sleeps, and
needs a system call to wake. Registered buffers are pinned once, registered files are not looked up.

Theory. An operation costs the process E / s + D + E / r with E for an entry into the kernel, s
entries a call, D for the bio, r completions for each wait. One at a time with E = 0.2 us and D = 3
us is 3.4 us, 32 at a time 3.01 us. With a thread that submits it costs the process nothing, and the
thread D, but two CPUs are busy however little there is to do. Polling saves the interrupt and the
two context switches of a wait: 8 us and 2 us of the default costs, so that one read of a device
of 10 us takes 13 instead of 23 us; the CPU is busy all the time.

Linux counterpart: fs/io_uring.c 5.1 (io_submit_sqes, io_issue_sqe, io_cqring_wait, io_iopoll_check,
io_sq_thread), fs/io-wq.c 5.5; io_uring/io_uring.c, rw.c, sqpoll.c, io-wq.c 6.18; features.py has
the releases.
Invariants: entries submitted = completions reaped + completions in the ring + operations in flight;
 the submission ring never holds more than its entries, the completion ring with what is in flight
 never more than twice as many; an operation has one completion. The bio of a polled operation is
 ended by no interrupt.
Left out: operations but read, write and fsync; linked entries; what an entry may ask for beside
 RWF_DSYNC (IOSQE_ASYNC, RWF_NOWAIT, RWF_DONTCACHE); the overflow list: what might have no room in
 the completion ring stays in the other one (EBUSY if that is all). Submitting waits for
 a request slot and for the file's lock, where the kernel would leave that to a worker. XFS's
 buffered writes without a worker (6.0). Polled I/O of a device without queues for it, which earlier
 releases took, and then interrupted.
"""

from collections import deque
from typing import Final

from sim.block.bio import BIO_POLLED, Plug
from sim.fs import read_write, sync
from sim.fs.aio import Kiocb, submit_direct, submit_locked, submit_rest
from sim.fs.direct_io import (
    DIRECT_FLAGS,
    PAGE_MASK,
    SECTOR_MASK,
    has_hole,
)
from sim.fs.errors import bad_address, bad_file, busy, invalid, not_supported
from sim.fs.namei import Vfs
from sim.fs.super import O_DIRECT, O_DSYNC, PAGE_SHIFT, File, Inode, bytes_to_read
from sim.mm.filemap import start_file_read
from sim.sched.core import Sched
from sim.sched.syscalls import SchedAttr
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.sched.workqueue import Workqueue
from sim.units import NS_PER_S

# include/uapi/linux/io_uring.h
IORING_SETUP_IOPOLL: Final = 1
IORING_SETUP_SQPOLL: Final = 2
IORING_ENTER_GETEVENTS: Final = 1
IORING_ENTER_SQ_WAKEUP: Final = 2
IORING_OP_FSYNC: Final = 3
IORING_OP_READ_FIXED: Final = 4
IORING_OP_WRITE_FIXED: Final = 5
IORING_OP_READ: Final = 22
IORING_OP_WRITE: Final = 23
IORING_FSYNC_DATASYNC: Final = 1
RWF_DSYNC: Final = 2
WRITES: Final = (IORING_OP_WRITE, IORING_OP_WRITE_FIXED)
FIXED: Final = (IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED)

IORING_MAX_ENTRIES: Final = 32768  # 4096 to 5.3
IO_PLUG_THRESHOLD: Final = 2  # entries of a call from which on they are plugged
WORKERS_PER_CPU: Final = 4  # io_init_wq_offload()
SQ_THREAD_IDLE_NS: Final = NS_PER_S  # io_sq_offload_create(): HZ
SPIN_NS: Final = 1_000_000  # A spinning task looks at other things so often: they are seldom.


class IoKiocb(Kiocb):
    """An entry of the submission ring, and the operation that it becomes (struct io_kiocb)."""

    __slots__ = ("fd", "opcode", "ring", "rw_flags", "user_data")

    fd: int
    opcode: int
    rw_flags: int
    user_data: int

    def __init__(self, vfs: Vfs, ring: "IoUring") -> None:
        super().__init__(vfs)
        self.ring = ring
        self.ends_in_task = vfs.features.uring_ends_dio and not ring.iopoll

    def ki_complete(self, result: int) -> None:
        """Post the completion, or let who polls find it (io_complete_rw, io_complete_rw_iopoll)."""
        ring = self.ring
        ring.spare.append(self)
        if ring.iopoll:
            ring.ended.append((self.user_data, result))
        else:
            ring.in_flight -= 1
            ring.cq.append((self.user_data, result))
        if ring.is_watched:
            ring.completed()

    def retry(self) -> None:
        """The page that a buffered read waits for is there (io_async_buf_func)."""
        self.ring.add_task_work(self)

    def work(self, task: Task) -> Blocking[None]:
        """Do in a worker what would make the submitting task wait (io_wq_submit_work).

        It goes on with the writes of the same file that wait behind this one.
        """
        request: IoKiocb | None = self
        while request is not None:
            try:
                result = yield from request.do_blocking(task)
            except OSError as error:
                result = -(error.errno or 0)
            behind = self.ring.next_hashed(request.file.inode) if request.write else None
            request.ki_complete(result)
            request = behind

    def do_blocking(self, task: Task) -> Blocking[int]:
        """Do the operation as the system call of its kind does; return bytes."""
        file = self.file
        if self.opcode == IORING_OP_FSYNC:
            datasync = self.rw_flags & IORING_FSYNC_DATASYNC != 0
            yield from sync.do_fsync(self.vfs, task, file, datasync)
            return 0
        if not self.write:
            return (yield from read_write.read(self.vfs, task, file, self.count, self.pos))
        written = yield from read_write.write(self.vfs, task, file, self.count, self.pos)
        if self.rw_flags & RWF_DSYNC and not file.flags & O_DSYNC:
            yield from sync.generic_write_sync(self.vfs, task, file, self.pos, written)
        return written


class IoUring:
    """Both rings, and what the kernel has for them (struct io_ring_ctx)."""

    __slots__ = (
        "_bio_flags",
        "_closed",
        "_cq_wait",
        "_direct_ns",
        "_direct_page_ns",
        "_features",
        "_files",
        "_fixed",
        "_has_buffers",
        "_hashed",
        "_idle_ns",
        "_is_special",
        "_params",
        "_sched",
        "_spinner",
        "_sq_spins",
        "_sq_thread",
        "_sq_wait",
        "_task_work",
        "_vfs",
        "_wanted",
        "_workers",
        "cq",
        "ended",
        "entries",
        "in_flight",
        "iopoll",
        "is_watched",
        "needs_wakeup",
        "spare",
        "sq",
        "sqpoll",
    )

    def __init__(
        self,
        vfs: Vfs,
        sched: Sched,
        pid: int,
        files: dict[int, File],
        entries: int,
        flags: int,
        sq_thread_idle_ns: int,
        sq_thread_cpu: int,
    ) -> None:
        """Make them for a process whose open files are `files` (io_uring_create)."""
        if not 0 < entries <= IORING_MAX_ENTRIES:
            raise invalid("io_uring_setup")
        self._vfs = vfs
        self._sched = sched
        self._params = vfs.params
        self._direct_ns: int = vfs.params.direct_ns
        self._direct_page_ns: int = vfs.params.direct_page_ns
        self._files = files
        self._features = vfs.features
        self.entries: int = 1 << (entries - 1).bit_length()
        self.iopoll: bool = flags & IORING_SETUP_IOPOLL != 0
        self.sqpoll: bool = flags & IORING_SETUP_SQPOLL != 0
        self.sq: deque[IoKiocb] = deque()
        self.cq: deque[tuple[int, int]] = deque()  # user_data, and bytes or a negative errno
        self.in_flight: int = 0  # submitted, and no completion in the ring yet
        self.ended: list[tuple[int, int]] = []  # polled ones that nobody has looked for
        self.spare: list[IoKiocb] = []
        self._task_work: deque[IoKiocb] = deque()
        self._wanted: int = 0  # completions that the task in io_cqring_wait waits for
        self._cq_wait = WaitQueue()
        self._spinner: Task | None = None  # who looks for completions again and again
        self._fixed: frozenset[int] = frozenset()  # registered files
        self._has_buffers: bool = False
        self._is_special: bool = self.iopoll or self.sqpoll
        self.is_watched: bool = self._is_special  # somebody wants to know when something ends
        self._bio_flags: int = DIRECT_FLAGS | BIO_POLLED if self.iopoll else DIRECT_FLAGS
        owned = self._features.iou_threads
        self._workers = Workqueue(
            self._sched,
            f"iou-wrk-{pid}" if owned else "io_wqe_worker",
            min(self.entries, WORKERS_PER_CPU * self._sched.nr_cpus),
        )
        self._hashed: dict[Inode, deque[IoKiocb]] = {}  # writes behind the one in a worker
        self._idle_ns = sq_thread_idle_ns
        self._sq_wait = WaitQueue()
        self._sq_spins: bool = False
        self.needs_wakeup: bool = False  # IORING_SQ_NEED_WAKEUP: the thread sleeps
        self._closed: bool = False
        self._sq_thread: Task | None = None
        if self.sqpoll:
            allowed = frozenset({sq_thread_cpu}) if sq_thread_cpu >= 0 else None
            name = f"iou-sqp-{pid}" if owned else "io_uring-sq"
            self._sq_thread = self._sched.spawn(
                name, self._sq_main, terms=SchedAttr(allowed=allowed)
            )
            self._sq_thread.is_kthread = True

    # -- The program's side: memory, no system call.

    def prep(
        self, opcode: int, fd: int, size: int, position: int, user_data: int, rw_flags: int = 0
    ) -> bool:
        """Fill in the next free entry of the submission ring; False if there is none."""
        if len(self.sq) >= self.entries:
            return False
        request = self.spare.pop() if self.spare else IoKiocb(self._vfs, self)
        request.opcode = opcode
        request.fd = fd
        request.count = size
        request.pos = position
        request.user_data = user_data
        request.rw_flags = rw_flags
        self.sq.append(request)
        if self._sq_spins:
            self._kick_sq_thread()
        return True

    def look(self, task: Task) -> Blocking[None]:
        """Look at the completion ring, in user mode, until there is something."""
        while not self.cq:
            if task.user_debt_ns or task.system_debt_ns:
                yield
                continue
            self._spinner = task
            self.is_watched = True
            task.charge_user(SPIN_NS)
            yield
            self.is_watched = self._is_special
            self._spinner = None

    # -- io_uring_register()

    def register_files(self, fds: frozenset[int]) -> None:
        """Look these up once, not for each operation (IORING_REGISTER_FILES)."""
        for fd in fds:
            if fd not in self._files:
                raise bad_file(f"descriptor {fd}")
        if self._fixed:
            raise busy("the files of an io_uring")
        self._fixed = fds

    def register_buffers(self) -> None:
        """Pin the buffers of READ_FIXED and WRITE_FIXED once (IORING_REGISTER_BUFFERS)."""
        if self._has_buffers:
            raise busy("the buffers of an io_uring")
        self._has_buffers = True

    # -- io_uring_enter()

    def enter(self, task: Task, to_submit: int, min_complete: int, flags: int) -> Blocking[int]:
        """Submit entries, then wait for completions if asked to; return how many it submitted."""
        submitted = to_submit
        if self.sqpoll:
            if flags & IORING_ENTER_SQ_WAKEUP:
                self._sq_wait.wake_all()
        elif to_submit:
            submitted = yield from self._submit(task, to_submit)
        if flags & IORING_ENTER_GETEVENTS and (min_complete or self.iopoll or self._task_work):
            yield from self._wait(task, min_complete)
        return submitted

    def _room(self) -> int:
        """Return how many operations the completion ring has room for."""
        return 2 * self.entries - self.in_flight - len(self.cq)

    def _submit(self, task: Task, to_submit: int) -> Blocking[int]:
        """Submit entries in their order; return how many (io_submit_sqes)."""
        sq = self.sq
        wanted = min(to_submit, len(sq))
        count = min(wanted, self._room())
        if wanted and not count:
            raise busy("an io_uring")
        plug = Plug() if count > IO_PLUG_THRESHOLD else None
        for _ in range(count):
            request = sq.popleft()
            self.in_flight += 1
            try:
                rest = self._issue(task, request, plug)
                if rest is not None:
                    yield from rest
            except OSError as error:
                request.ki_complete(-(error.errno or 0))
        if plug is not None:
            plug.flush()
        return count

    def _wait(self, task: Task, min_complete: int) -> Blocking[None]:
        """Wait for so many completions (io_cqring_wait, io_iopoll_check)."""
        wanted = min(min_complete, 2 * self.entries)
        while True:
            if self._task_work:
                yield from self._run_task_work(task)
            if self.iopoll:
                self._reap_polled()
            if len(self.cq) >= wanted:
                return
            if self.iopoll and self.in_flight and not self.sqpoll:
                yield from self._spin_for_ended(task)
                continue
            self._wanted = wanted
            self.is_watched = True
            if self.in_flight and self._features.io_uring_iowait:
                yield from self._cq_wait.io_sleep_on(task, TASK_INTERRUPTIBLE, "io_cqring_wait")
            else:
                yield from self._cq_wait.sleep_on(task, TASK_INTERRUPTIBLE, "io_cqring_wait")
            self.is_watched = self._is_special

    def _spin_for_ended(self, task: Task) -> Blocking[None]:
        """Look at the device until an operation has ended (io_do_iopoll)."""
        if task.user_debt_ns or task.system_debt_ns:
            yield
            return
        self._spinner = task
        task.charge_system(SPIN_NS)
        yield
        self._spinner = None

    def _reap_polled(self) -> bool:
        """Post the completions of what has ended; return whether there was any."""
        ended = self.ended
        if not ended:
            return False
        self.in_flight -= len(ended)
        self.cq.extend(ended)
        ended.clear()
        if self._sq_thread is not None:
            self.completed()
        return True

    def completed(self) -> None:
        """Tell who waits that something has ended."""
        if self._spinner is not None:
            self._sched.end_spin(self._spinner)
        if self._sq_spins and self.ended:
            self._kick_sq_thread()
        if self._cq_wait.waiters and len(self.cq) >= self._wanted:
            self._cq_wait.wake_all()

    # -- What becomes of an entry

    def _issue(self, task: Task, request: IoKiocb, plug: Plug | None) -> Blocking[None] | None:
        """Begin an operation; return what of that may sleep (io_issue_sqe)."""
        file = self._files.get(request.fd)
        if file is None:
            raise bad_file(f"descriptor {request.fd}")
        request.file = file
        request.durable = False
        request.write = False
        if self._is_special:
            self._check(request)
        if request.opcode != IORING_OP_READ:
            self._check_opcode(request)
            if request.opcode == IORING_OP_FSYNC:
                self._workers.queue(request.work)
                return None
        if not file.flags & O_DIRECT:
            if request.write:
                self._queue_hashed(request)
                return None
            return self._read_buffered(task, request)
        # A direct transfer is submitted, or left to a worker if it would wait.
        inode = file.inode
        pos, count = request.pos, request.count
        end = pos + count
        if inode.sb.device is None or (pos | count) & SECTOR_MASK or pos < 0 or count <= 0:
            raise invalid(file.path)
        write = request.write
        if end > inode.size or not (write or file.readable):
            if write:
                self._queue_hashed(request)
                return None
            request.count = bytes_to_read(file, pos, count)
            if not request.count:
                request.ki_complete(0)
                return None
        first, last = pos >> PAGE_SHIFT, (end + PAGE_MASK) >> PAGE_SHIFT
        if write and has_hole(inode, first, last):
            self._queue_hashed(request)
            return None
        pages = inode.mapping.pages
        if pages.count and pages.intersects(first, last):
            if write:
                self._queue_hashed(request)
            else:
                self._workers.queue(request.work)
            return None
        if self._has_buffers or self._fixed:
            task.system_debt_ns += self._cost_ns(request, last - first)
        else:
            task.system_debt_ns += self._direct_ns + self._direct_page_ns * (last - first)
        if write:
            dsync = request.rw_flags & RWF_DSYNC or file.flags & O_DSYNC
            request.durable = dsync != 0
        if write or inode.count > 1 or self._hashed:
            is_shared = inode.count > 1 or bool(self._hashed)  # Others may have the file's lock.
            return submit_locked(task, request, is_shared, self._bio_flags, plug)
        rest = submit_direct(task, request, self._bio_flags, plug)
        return submit_rest(task, request, rest) if rest else None

    def _check_opcode(self, request: IoKiocb) -> None:
        """Refuse what the file, or the ring, was not made for."""
        if request.opcode in FIXED and not self._has_buffers:
            raise bad_address(request.file.path)
        request.write = request.opcode in WRITES
        if request.write and not request.file.writable:
            raise bad_file(request.file.path)

    def _check(self, request: IoKiocb) -> None:
        """Refuse what polling does not have."""
        file = request.file
        if self.sqpoll and not self._features.sqpoll_any_file and request.fd not in self._fixed:
            raise bad_file(file.path)
        if self.iopoll:
            if request.opcode == IORING_OP_FSYNC:
                raise invalid(file.path)
            device = file.inode.sb.device
            if not file.flags & O_DIRECT or device is None or not device.polls:
                raise not_supported(file.path)

    def _cost_ns(self, request: IoKiocb, pages: int) -> int:
        """Return what setting a transfer up costs where something is registered."""
        params = self._params
        saved = params.fget_percent if request.fd in self._fixed else 0
        if request.opcode in FIXED:
            return params.direct_ns * (100 - saved - params.pin_percent) // 100
        return params.direct_ns * (100 - saved) // 100 + params.direct_page_ns * pages

    def _read_buffered(self, task: Task, request: IoKiocb) -> Blocking[None]:
        """Read what is in memory; have the rest of it read, and go on when it is there."""
        file = request.file
        inode = file.inode
        pos, mapping = request.pos, inode.mapping
        count = bytes_to_read(file, pos, request.count)
        first, last = pos >> PAGE_SHIFT, (pos + count + PAGE_MASK) >> PAGE_SHIFT
        if count and not mapping.is_uptodate(first, last):
            if not self._features.async_buffered_reads or inode.sb.device is None:
                self._workers.queue(request.work)
                return
            page = yield from start_file_read(task, mapping, file.ra, pos, count)
            if page >= 0:
                mapping.when_unlocked(page, request.retry)
                return
        done = yield from read_write.read(self._vfs, task, file, count, pos)
        request.ki_complete(done)

    def add_task_work(self, request: IoKiocb) -> None:
        """Have the task that submits go on with a buffered read (task_work_add)."""
        self._task_work.append(request)
        if self.sqpoll:
            self._kick_sq_thread()
        else:
            self._cq_wait.wake_all()

    def _run_task_work(self, task: Task) -> Blocking[None]:
        """Go on with reads whose pages are there."""
        while self._task_work:
            request = self._task_work.popleft()
            yield from self._read_buffered(task, request)

    # -- Workers

    def _queue_hashed(self, request: IoKiocb) -> None:
        """Give a write to a worker, behind the others of its file (io_wq_hash_work)."""
        behind = self._hashed.get(request.file.inode)
        if behind is None:
            self._hashed[request.file.inode] = deque()
            self._workers.queue(request.work)
        else:
            behind.append(request)

    def next_hashed(self, inode: Inode) -> IoKiocb | None:
        """Return the write that a worker goes on with when it is through with one of a file."""
        behind = self._hashed[inode]
        if behind:
            return behind.popleft()
        del self._hashed[inode]
        return None

    # -- The thread that submits

    def _kick_sq_thread(self) -> None:
        """Let the thread see that there is something to do."""
        if self._sq_spins:
            assert self._sq_thread is not None
            self._sq_spins = False
            self._sched.end_spin(self._sq_thread)
        else:
            self._sq_wait.wake_all()

    def _sq_main(self, task: Task) -> Blocking[None]:
        """Submit what there is; spin while there may be more; sleep (io_sq_thread)."""
        calendar = self._sched.calendar
        idle_at_ns = calendar.now + self._idle_ns
        while not self._closed:
            busy = self._reap_polled()
            if self._task_work:
                yield from self._run_task_work(task)
                busy = True
            if self.sq and self._room():
                yield from self._submit(task, len(self.sq))
                busy = True
            if busy or (self.iopoll and self.in_flight):
                idle_at_ns = calendar.now + self._idle_ns
            if self.ended:
                continue
            if task.system_debt_ns:
                yield
            elif calendar.now < idle_at_ns:
                self._sq_spins = True
                task.charge_system(min(SPIN_NS, idle_at_ns - calendar.now))
                yield
                self._sq_spins = False
            else:
                self.needs_wakeup = True
                yield from self._sq_wait.sleep_on(task, TASK_INTERRUPTIBLE, "io_sq_thread")
                self.needs_wakeup = False
                idle_at_ns = calendar.now + self._idle_ns

    def close(self) -> None:
        """The last descriptor of it is closed: its thread ends."""
        self._closed = True
        if self._sq_thread is not None:
            self._kick_sq_thread()
            self._sq_wait.wake_all()

    def check(self) -> None:
        """Assert that both rings keep to their sizes."""
        assert len(self.sq) <= self.entries
        assert self._room() >= 0
