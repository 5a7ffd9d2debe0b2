"""mkfs: make a file system on a device.

Models: mke2fs and mkfs.xfs as far as a disk sees them: the whole device is discarded, in steps, if
it knows that and nobody said -E nodiscard or -K; then what must not stay as it was is written: the
journal, the inode tables if the kernel will not zero them later (`fresh` of a mounted ext4), the
descriptors of the groups and their copies; then fsync.
Hand estimate: 100 GB on a SATA SSD. Lazy: a journal of 512 MiB and 2 MB of descriptors at 500 MB/s,
one second, and 50 discards of 2 GiB. Not lazy: 745 groups of 2 MiB more, 1.6 GB, three seconds. On
a 7200 rpm disk 10 s and, not lazy, half a minute.
Counterpart: e2fsprogs misc/mke2fs.c (mke2fs_discard_device, write_inode_tables, 1.42 to 1.47), lib/
ext2fs/mkjournal.c; xfsprogs mkfs/xfs_mkfs.c (discard_blocks, 3.1 to 6.1).
Invariants: bytes discarded = the device's size, or none; records: "mkfs_ns", "mkfs_discard_ns" its
times, "mkfs_discarded", "mkfs_written" bytes, "mkfs_done"; "mkfs_errno" why there is no device.
Left out: bitmaps (of groups in use only: one block in eight thousand); reading what was there; the
file system that comes of it: what is mounted during a run was made before. Writes go past the page
cache (mke2fs -D; mkfs.xfs always), since nothing buffers those of a device here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.observation import Family, Metric, mean_of
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_DIRECT, O_RDWR, Sys
from sim.units import NS_PER_S
from sim.user.program import ServerProgram

MIB: Final = 1 << 20
BLOCK: Final = 4096
GROUP: Final = 32768 * BLOCK  # what a block's bits can say of blocks
DESCRIPTOR: Final = 64  # bytes of a group, with 64-bit block numbers
DISCARD_STEP: Final = 2048 * MIB  # mke2fs.c: DISCARD_STEP_MB; xfs_mkfs.c: 2 GiB
WRITE_STEP: Final = 8 * MIB  # lib/ext2fs/mkjournal.c: ext2fs_zero_blocks2, STRIDE_LENGTH 8 MiB
# ext2fs_default_journal_size of e2fsprogs 1.43.2: (below this many MiB, journal in MiB)
JOURNALS: Final = (
    (8, 0),
    (128, 4),
    (1 << 10, 16),
    (2 << 10, 32),
    (16 << 10, 64),
    (32 << 10, 128),
    (64 << 10, 256),
    (128 << 10, 512),
    (1 << 60, 1024),
)
XFS_GROUPS: Final = 4  # xfs_mkfs.c: groups on one disk of up to 4 TiB
XFS_HEADERS: Final = 8 * BLOCK  # of a group: headers, roots of the trees, a list
XFS_LOG_SHARE: Final = 2048  # xfs_mkfs.c: the log's share of the device
XFS_LOG: Final = (64 * MIB, 2047 * MIB)  # least (5.15) and most


@dataclass(frozen=True, kw_only=True)
class MkfsParams:
    """The command line."""

    type: str = param(
        "ext4", dim="text", choices=("ext4", "xfs"), source="scenario", doc="mke2fs or mkfs.xfs"
    )
    device: str = param("/dev/sdb", dim="text", source="scenario", doc="what it is made on")
    discard: bool = param(
        True,
        dim="bool",
        source="e2fsprogs 1.42, xfsprogs 3.1: unless -E nodiscard, -K",
        doc="the whole device is discarded first",
    )
    lazy_itable_init: bool = param(
        True,
        dim="bool",
        source="e2fsprogs 1.42 mke2fs.c: where the kernel zeroes inode tables",
        doc="ext4: the inode tables are left to the kernel",
    )
    lazy_journal_init: bool = param(
        False,
        dim="bool",
        source="e2fsprogs 1.42 mke2fs.c: off",
        doc="ext4: the journal is not zeroed",
    )
    inode_ratio_bytes: int = param(
        16384,
        dim="bytes",
        minimum=1024,
        source="e2fsprogs mke2fs.conf: inode_ratio 16384",
        doc="ext4: an inode for so many bytes",
    )
    inode_size_bytes: int = param(
        256,
        dim="bytes",
        minimum=128,
        source="e2fsprogs mke2fs.conf: inode_size 256",
        doc="ext4: bytes of an inode",
    )
    start_ns: int = param(0, dim="time_ns", minimum=0, source="scenario", doc="when it is started")


FIGURES: Final = Family(
    "mkfs",
    (
        Metric("mkfs_s", "s", mean_of("mkfs_ns", per=NS_PER_S)),
        Metric("mkfs_discard_s", "s", mean_of("mkfs_discard_ns", per=NS_PER_S)),
        Metric("mkfs_written_bytes", "B", mean_of("mkfs_written")),
    ),
)


class Mkfs(ServerProgram):
    """One call."""

    figures: ClassVar[tuple[Family, ...]] = (FIGURES,)
    marks: ClassVar[tuple[str, ...]] = (
        "mkfs_discard_ns",
        "mkfs_discarded",
        "mkfs_done",
        "mkfs_errno",
        "mkfs_ns",
        "mkfs_written",
    )

    def __init__(self, params: MkfsParams) -> None:
        self.params = params

    def main(self, sys: Sys) -> Blocking[None]:
        """Discard, write, sync; tell how long each took."""
        params = self.params
        yield from sys.sleep(params.start_ns)
        begun_ns = sys.clock_ns()
        try:
            fd = yield from sys.open(params.device, O_RDWR | O_DIRECT)
        except OSError as error:
            sys.trace_marker("mkfs_errno", error.errno or 0)
            return
        size = sys.fstat_size(fd)
        discarded = yield from self._discard(sys, fd, size)
        sys.trace_marker("mkfs_discard_ns", sys.clock_ns() - begun_ns)
        written = 0
        for position, length in LAYOUTS[params.type](params, size):
            done = 0
            while done < length:
                step = min(WRITE_STEP, length - done)
                yield from sys.pwrite(fd, step, position + done)
                done += step
            written += length
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        sys.trace_marker("mkfs_ns", sys.clock_ns() - begun_ns)
        sys.trace_marker("mkfs_discarded", discarded)
        sys.trace_marker("mkfs_written", written)
        sys.trace_marker("mkfs_done", 0)

    def _discard(self, sys: Sys, fd: int, size: int) -> Blocking[int]:
        """Discard the device in steps; the first that fails ends it (mke2fs_discard_device)."""
        position = 0
        while self.params.discard and position < size:
            step = min(DISCARD_STEP, size - position)
            try:
                yield from sys.blkdiscard(fd, step, position)
            except OSError:
                return position  # "Discarding device blocks: failed": it goes on without.
            position += step
        return position


def ext4_writes(params: MkfsParams, size: int) -> Iterator[tuple[int, int]]:
    """Yield (position, bytes) of what mke2fs writes."""
    groups = -(-size // GROUP)
    descriptors = -(-(groups * DESCRIPTOR) // BLOCK) * BLOCK
    table = GROUP // params.inode_ratio_bytes * params.inode_size_bytes
    if not params.lazy_itable_init:
        for group in range(groups):
            start = group * GROUP + BLOCK + descriptors
            yield start, max(0, min(table, size // BLOCK * BLOCK - start))
    journal = next(mib for limit, mib in JOURNALS if size < limit * MIB) * MIB
    if not params.lazy_journal_init:
        yield size // 2 // GROUP * GROUP, journal
    for group in range(groups):
        if has_copy(group):
            yield group * GROUP, min(BLOCK + descriptors, size // BLOCK * BLOCK - group * GROUP)


def has_copy(group: int) -> bool:
    """Return whether a group has a copy of the descriptors (sparse_super): 0, 1, 3^n, 5^n, 7^n."""
    if group < 2:
        return True
    for base in (3, 5, 7):
        power = base
        while power < group:
            power *= base
        if power == group:
            return True
    return False


def xfs_writes(params: MkfsParams, size: int) -> Iterator[tuple[int, int]]:
    """Yield (position, bytes) of what mkfs.xfs writes."""
    group = size // XFS_GROUPS // BLOCK * BLOCK
    least, most = XFS_LOG
    yield group * (XFS_GROUPS // 2), min(max(size // XFS_LOG_SHARE, least), most, group)
    for number in range(XFS_GROUPS):
        yield number * group, XFS_HEADERS


LAYOUTS: Final = {"ext4": ext4_writes, "xfs": xfs_writes}

register("program", "mkfs", params=MkfsParams, doc="mke2fs or mkfs.xfs of a whole device")(Mkfs)
