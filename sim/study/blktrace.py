"""What blktrace(8) would have written on the simulated server: its binary files, disk by disk.

Models: the events of a request queue as struct blk_io_trace, 48 bytes each in the byte order of
x86, in one file for each disk and CPU: DISK.blktrace.CPU. blkparse(1) merges the files of a disk by
time, btt(1) computes from them what of a bio's time is waiting for a request (Q2G), the queue (I2D)
and the drive (D2C). An event has the CPU and the process in whose context it happened. In an
interrupt that is the CPU that serves it and whatever ran there. A process's name comes before its
first event. The first record of each file is a message that says which run it is of. So a file of
the twin's is told from a recorded one.

Estimate: a read that nothing merges with is Q, G, I, D and C: 240 bytes, with the plug's P and U
344. A disk with 200 requests a second gives 70 KB a second.

Linux counterpart: struct blk_io_trace, enum blktrace_act, include/uapi/linux/blktrace_api.h
 (version 7, from 2.6.17 on); __blk_add_trace, blk_add_trace_rq, blk_add_trace_bio,
 blk_add_trace_unplug, trace_note_tsk, trace_note_time, kernel/trace/blktrace.c (5.10);
 blk_fill_rwbs there, before 5.14. The files' names: blktrace.c of blktrace 1.2.
Invariants: the sequence numbers of a disk's events on a CPU are 1, 2, 3, ...; as many bytes are
 completed as were issued, less what is in the drive; each bio is queued once, then joins a request
 (M, F) or becomes one (G).
Left out: remappings (A) and stacked devices, which have no request queue here; splitting (X): the
 pieces of a long bio are bios; META and RAHEAD; that a request which joins another is an M of its
 own (5.11); that a flush sequence with data completes a second time, with no sectors.
"""

from pathlib import Path
from struct import Struct
from typing import ClassVar, Final, NamedTuple

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, BIO_FUA, BIO_SYNC, DISCARD, FLUSH, SECTOR, WRITE
from sim.block.queue import Disk
from sim.engine.trace import Record
from sim.machine import BTIME_S, Machine
from sim.units import NS_PER_S

MAGIC: Final = 0x65617400 | 0x07  # BLK_IO_TRACE_MAGIC | BLK_IO_TRACE_VERSION
HEADER: Final = Struct("<IIQQIIIIIHH")  # struct blk_io_trace, without the data that follow it
CLOCK: Final = Struct("<II")  # what a time stamp says: seconds since 1970, and ns
TASK_COMM_LEN: Final = 16
MESSAGE: Final = "iotwin"  # the first word of each file's message
MESSAGE_MAX: Final = 128  # BLK_TN_MAX_MSG
BUFFERED: Final = 1 << 16  # bytes of a file kept before they are written
_MINORBITS: Final = 20

# enum blktrace_cat, shifted as in an action.
_READ: Final = 1 << 16
_WRITE: Final = 1 << 17
_FLUSH: Final = 1 << 18
_SYNC: Final = 1 << 19
_QUEUE: Final = 1 << 20
_ISSUE: Final = 1 << 22
_COMPLETE: Final = 1 << 23
_NOTIFY: Final = 1 << 26
_DISCARD: Final = 1 << 29
_FUA: Final = 1 << 31

# enum blktrace_act with its category, and enum blktrace_notify.
QUEUE: Final = 1 | _QUEUE
BACKMERGE: Final = 2 | _QUEUE
FRONTMERGE: Final = 3 | _QUEUE
GETRQ: Final = 4 | _QUEUE
SLEEPRQ: Final = 5 | _QUEUE
ISSUE: Final = 7 | _ISSUE
COMPLETE: Final = 8 | _COMPLETE
PLUG: Final = 9 | _QUEUE
UNPLUG_IO: Final = 10 | _QUEUE
UNPLUG_TIMER: Final = 11 | _QUEUE
INSERT: Final = 12 | _QUEUE
TN_PROCESS: Final = 0 | _NOTIFY
TN_TIMESTAMP: Final = 1 | _NOTIFY
TN_MESSAGE: Final = 2 | _NOTIFY

# By tracepoint: of bios, of requests, of the plug.
_BIOS: Final = {
    "block_sleeprq": SLEEPRQ,
    "block_bio_backmerge": BACKMERGE,
    "block_bio_frontmerge": FRONTMERGE,
}
_REQUESTS: Final = {
    "block_rq_insert": INSERT,
    "block_rq_issue": ISSUE,
    "block_rq_complete": COMPLETE,
}
_UNPLUGS: Final = {"block_unplug": UNPLUG_IO, "block_unplug_timer": UNPLUG_TIMER}


def file_name(disk: str, cpu: int) -> str:
    """Return what the file of a disk's events on a CPU is called."""
    return f"{disk.replace('/', '_')}.blktrace.{cpu}"


def is_ours(path: Path) -> bool:
    """Return whether a file begins with the message that an iotwin's does."""
    with path.open("rb") as file:
        head = file.read(HEADER.size + len(MESSAGE))
    if len(head) < HEADER.size + len(MESSAGE):
        return False
    magic, *_, action = HEADER.unpack_from(head)[:6]
    return (magic, action) == (MAGIC, TN_MESSAGE) and head[HEADER.size :] == MESSAGE.encode()


def rwbs(op: int, flags: int, nr_sectors: int) -> str:
    """Return the letters for what a bio or a request does (blk_fill_rwbs)."""
    letters = "F" if op == FLUSH or flags & (BIO_FLUSH | BIO_BARRIER) else ""
    if op == DISCARD:
        letters += "D"
    elif op == WRITE:
        letters += "W"
    else:
        letters += "R" if nr_sectors else "N"
    if flags & BIO_FUA:
        letters += "F"
    return letters + "S" if flags & BIO_SYNC else letters


def kinds(op: int, flags: int) -> int:
    """Return the categories of an event for what it is about."""
    bits = _WRITE if op & 1 else _READ
    if flags & BIO_SYNC:
        bits |= _SYNC
    if op == FLUSH or flags & (BIO_FLUSH | BIO_BARRIER):
        bits |= _FLUSH
    if flags & BIO_FUA:
        bits |= _FUA
    return bits | _DISCARD if op == DISCARD else bits


class Moment(NamedTuple):
    """When something happened, on which CPU, in the context of which process."""

    now_ns: int
    cpu: int
    pid: int
    comm: str


def moment(machine: Machine) -> Moment:
    """Return when and where the machine is: in a task's system call, or in an interrupt."""
    sched = machine.sched
    now_ns = machine.calendar.now
    task = sched.current
    if task is not None:
        return Moment(now_ns, task.cpu, task.pid, task.comm)
    rq = sched.interrupted_rq if sched.interrupted_ns == now_ns else sched.rqs[0]
    if rq.curr is None:
        return Moment(now_ns, rq.cpu, 0, f"swapper/{rq.cpu}")
    return Moment(now_ns, rq.cpu, rq.curr.pid, rq.curr.comm)


class _DiskFiles:
    """The files of one disk."""

    def __init__(self, disk: Disk, folder: Path, cpus: int) -> None:
        self._takes_fua = disk.takes_fua
        self._dev: int = disk.stats.major << _MINORBITS | disk.stats.minor
        self._paths = [folder / file_name(disk.name, cpu) for cpu in range(cpus)]
        self._buffers = [bytearray() for _ in range(cpus)]
        self._sequences = [0] * cpus
        self._named: dict[int, str] = {}  # processes that were told of, by pid
        self._slept: set[tuple[int, int]] = set()  # bios that came and are no request yet

    def start(self, now_ns: int, message: str) -> None:
        """Write what is before the first event."""
        text = f"{MESSAGE} {message}".encode()[:MESSAGE_MAX]
        for cpu in range(len(self._paths)):
            self._append(Moment(now_ns, cpu, 0, ""), TN_MESSAGE, 0, 0, 0, text)
        clock = CLOCK.pack(*divmod(BTIME_S * NS_PER_S + now_ns, NS_PER_S))
        self._append(Moment(now_ns, 0, 0, ""), TN_TIMESTAMP, 0, 0, 0, clock)

    def bio(self, at: Moment, action: int, what: int, sector: int, nr_sectors: int) -> None:
        """Write what happens to a bio; before it, that it came, if it comes now."""
        if (what, sector) in self._slept:
            self._slept.remove((what, sector))
        else:
            self.event(at, QUEUE | what, sector, nr_sectors)
        self.event(at, action | what, sector, nr_sectors)
        if action == SLEEPRQ:
            self._slept.add((what, sector))

    def request(
        self, at: Moment, action: int, op: int, sector: int, nr_sectors: int, flags: int
    ) -> None:
        """Write what happens to a request; in the driver without the flags that are seen to."""
        if action != INSERT and nr_sectors:
            flags &= ~BIO_FLUSH if self._takes_fua else ~(BIO_FLUSH | BIO_FUA)
        self.event(at, action | kinds(op, flags), sector, nr_sectors)

    def event(
        self, at: Moment, action: int, sector: int, nr_sectors: int, pdu: bytes = b""
    ) -> None:
        """Write an event; before it the name of a process that has none yet."""
        if self._named.get(at.pid) != at.comm:
            self._named[at.pid] = at.comm
            name = at.comm.encode()[: TASK_COMM_LEN - 1].ljust(TASK_COMM_LEN, b"\0")
            self._append(at, TN_PROCESS, 0, 0, 0, name)
        self._sequences[at.cpu] = sequence = self._sequences[at.cpu] + 1
        self._append(at, action, sequence, sector, nr_sectors * SECTOR, pdu)

    def forget(self, pid: int) -> None:
        """A process has ended."""
        self._named.pop(pid, None)

    def _append(
        self, at: Moment, action: int, sequence: int, sector: int, size: int, pdu: bytes
    ) -> None:
        buffer = self._buffers[at.cpu]
        buffer += HEADER.pack(
            MAGIC,
            sequence,
            at.now_ns,
            sector,
            size,
            action,
            at.pid,
            self._dev,
            at.cpu,
            0,
            len(pdu),
        )
        buffer += pdu
        if len(buffer) >= BUFFERED:
            self._flush(at.cpu)

    def _flush(self, cpu: int) -> None:
        with self._paths[cpu].open("ab") as file:
            file.write(self._buffers[cpu])
        self._buffers[cpu].clear()

    def finish(self) -> None:
        """Write what is still in memory."""
        for cpu in range(len(self._paths)):
            self._flush(cpu)


class BlkTrace:
    """Takes the records of a tracer that fall into a time, and writes them into a folder."""

    NAMES: ClassVar[frozenset[str]] = frozenset(
        ("block_getrq", "block_plug", "sched_process_exit", *_BIOS, *_REQUESTS, *_UNPLUGS)
    )

    def __init__(self, machine: Machine, folder: Path) -> None:
        self._machine = machine
        cpus = len(machine.sched.rqs)
        self._files = {disk.name: _DiskFiles(disk, folder, cpus) for disk in machine.disks}

    def before(self, record: Record) -> None:
        """Leave out what happens before the time, as blktrace does."""

    def begin(self, now_ns: int) -> None:
        """Begin the time."""
        message = f"{self._machine.scenario.label}, seed {self._machine.streams.seed}"
        for files in self._files.values():
            files.start(now_ns, message)

    def take(self, record: Record) -> None:
        """Write what happens within the time."""
        name = record.name
        if name == "sched_process_exit":
            _comm, pid = record.args
            for files in self._files.values():
                files.forget(pid)
            return
        disk, *args = record.args
        files = self._files[disk]
        at = moment(self._machine)
        if name in _REQUESTS:
            op, sector, nr_sectors, _start_ns, flags = args
            files.request(at, _REQUESTS[name], op, sector, nr_sectors, flags)
        elif name in _BIOS:
            op, sector, nr_sectors, flags, count = args
            size = nr_sectors // count
            for number in range(count):
                files.bio(at, _BIOS[name], kinds(op, flags), sector + number * size, size)
        elif name == "block_getrq":
            op, sector, nr_sectors, _start_ns, flags = args
            # A bio that does nothing but flush is a write, too.
            what = kinds(WRITE if op == FLUSH else op, flags)
            files.bio(at, GETRQ, what, sector, nr_sectors)
        elif name in _UNPLUGS:
            [requests] = args
            files.event(at, _UNPLUGS[name], 0, 0, requests.to_bytes(8, "big"))
        else:
            files.event(at, PLUG, 0, 0)

    def finish(self, now_ns: int) -> None:
        """End the time."""
        for files in self._files.values():
            files.finish()
