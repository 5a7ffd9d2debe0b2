"""How many fsyncs stand behind a device's flushes, and how much was written beside them.

Models: the journal's part in a disk's writes, told from the counters alone.
Linux counterpart: fs/jbd2/journal.c:kjournald2 (the timer), commit.c (who joins a commit).
Invariants: everything is arithmetic on rates and response times; nothing is drawn.
Left out: XFS, whose log is forced every 30 s if nobody asks; asked for, it flushes alike.

Theory. A journal commits by itself 5 s after its first change (JBD2_DEFAULT_MAX_COMMIT_AGE), with a
flush before and after its last block: up to 0.4 flushes a second are made with nobody waiting.
An fsync leaves three requests: data, the journal's blocks, the commit block. Several fsyncs share a
commit if they come while the one before is under way, for T = 2 w_await + 2 f_await. Of fsyncs
that come at random at a rate X that is X T beside the first, so that c commits a second are
    X = c (1 + X T) = c / (1 - c T)
fsyncs, and any number once commits follow each other without a gap. Writes beyond X + 2 c were left
to the flusher by somebody else.
ext4 without a journal (/proc/fs/jbd2 tells) has no commits: each fsync writes its data and the
block with its inode, and flushes once; the flush's own bio counts as a write of no bytes. Nobody
shares anything, and nothing flushes by itself (sim/fs/ext4/nojournal.py has the counts). So X = f,
of 3 requests each; a new name is a fourth. Where mounts were not recorded, the sizes tell: a third
of the writes move nothing, so that the mean one is smaller than a block, with three writes for each
flush. A journal's writes are of a block at least, and XFS's, whose log counts sectors, are two for
each flush.
Who writes over blocks that are there (a database's log, which is laid beforehand) and calls
fdatasync changes nothing that it needs: it writes its data and flushes once, and the flush's own
bio is a write of no bytes. So X = f, of 2 requests each, and more where several share a sync of one
log (sim/user/transactions.py has the law), which flushes do not tell. Whose log it is, the names of
those who were seen asleep may tell: PostgreSQL has one log for all its clients. On ext3 and
ext4 this is told from commits by what was merged: the descriptor of a commit, the metadata and the
commit block adjoin. Recorded on both: 0.7 to 14 merged for each flush of commits (appends, mail
queues, sendmail), 0.000 to 0.033 of overwrites and of PostgreSQL (0.49 where it does not wait for
its log, and 19 writes a flush).
A commit may have no data: of a directory in which a name changed. Mail servers sync a message, then
its directory. So data are w - 2 c; on XFS, which writes a commit's log at once, w - c. Where they
are fewer than commits, who wrote them syncs a directory too, c / data - 1 times or, as directories
share commits as well, up to X / data - 1.
A disk that answers from its cache takes next to nothing for a write, and for a flush as long as it
takes to write what is there. The kernel accounts a write that flushes when its flushes are done,
too (block/blk-flush.c), so that writes alone take (X R - F f) / X, in which they wait for others'
flushes. Where hardly anybody flushes, reads tell: at an arm that is busy with reads for a share U
of the time, who comes by chance waits for half a read in U of all cases. Writes that take less than
half of that do not wait for reads. What the arm writes later no column shows, and reads wait for
it. Flushes that have nothing to write say that what is cached is safe (a battery, a host's memory):
then nothing is told of it.
By hand: 49.8 writes/s of 3.6 ms with 25 flushes/s of 6.0 ms leave 0.6 ms of a write; of 15.7 % util
a flush has 6.3 ms. Of a disk that writes through it is the other way round: 32 writes/s of 6.2 ms
with 16 flushes/s of 1.1 ms leave 5.6.
By hand: 20 reads/s of 10 ms keep an arm busy for 20 %: others wait for 1 ms. 16 writes/s of 0.2 ms
do not.
By hand: 48 writes/s with 38 flushes/s: 19 commits leave 10 of data, each with 0.9 of a directory.
By hand: 49 writes/s of 4 KiB with 25 flushes/s, 0.2 merged: 25 fdatasyncs of 8 KiB.
By hand: 300 writes/s of 2.67 KiB with 100 flushes/s are 100 fsyncs of 4 KiB without a journal.
By hand: 211 writes/s of 4 MB with 1 flush/s (c = 0.5, T = 80 ms): 0.52 fsyncs a second explain 1.5
writes; the other 209.5 are bulk.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from calibration.look.devices import DeviceLook

FLUSHES: Final = 2.0  # of a commit, before and after its last block
SINGLE: Final = 2.25  # writes a flush: halfway from those of a commit, 1.5, to 3 of one flush
SINGLE_MAX: Final = 6.0  # twice those of one flush: from here on most writes are not of fsyncs
LOG_REQUESTS: Final = 2.0  # of a commit: the journal's blocks, its commit block
XFS_LOG_REQUESTS: Final = 1.0  # fs/xfs/xfs_log.c: xlog_write_iclog, one buffer of up to 32 KiB
DATA_MIN: Final = 0.75  # of commits: halfway from those of which every second one has no data
REQUESTS: Final = 3.0  # of an fsync: data, the journal's blocks, its commit block
BLOCK: Final = 4096
JOURNAL_BYTES: Final = 12 * 1024  # descriptor, an inode's block, commit block
COMMIT_AGE_S: Final = 5.0  # JBD2_DEFAULT_MAX_COMMIT_AGE
OWN_FLUSHES_PER_S: Final = FLUSHES / COMMIT_AGE_S  # of a journal that nobody waits for
OVERWRITES_MIN: Final = 1.75  # writes a flush: halfway from those of a commit, 1.5, to 2
JOINED_MIN: Final = 0.25  # merged a flush: half of what a commit has if one block adjoins another
# Merged a flush at most, where data go past the page cache: before a commit block adjoin its
# descriptor and what a direct write may change: inode, block bitmap, group descriptor, extents.
JOINED_MAX: Final = 2.0
MERGED_MIN: Final = 0.001  # of the writes; recorded: XFS 0 to 0.001, ext4's commits 0.007 to 2.2
OWN_MERGED_PER_S: Final = 0.5 / COMMIT_AGE_S  # half of a journal that merges one block at a time
SEVERAL: Final = 4  # customers: of fewer, flushes meet no other write by chance
ALONE_MAX: Final = 0.1  # of a write's service time; recorded: ext3 0.04 and 0.05, ext4 0.6 and more
OWN_WRITES: Final = "some writes move nothing, as a flush's own of a file system without a journal"
OF_FLUSHES: Final = 0.5  # of the time of writes in flight: most of it
# Of a flush's time (recorded: 0.10 to 0.13 of a disk with a cache, 5 without), or of a wait for
# reads.
SOON: Final = 0.5
BESIDE_MIN: Final = 0.25  # of the writes; less is the estimate's own error


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What one fsync, or one commit that several share, leaves beside the data."""

    flushes: float
    requests: float
    bytes: int
    is_shared: bool  # by those who come while it is under way


COMMIT: Final = Promise(flushes=FLUSHES, requests=LOG_REQUESTS, bytes=JOURNAL_BYTES, is_shared=True)
# One flush for three writes, on a drive or a file system of which no more is known.
SINGLE_FLUSH: Final = Promise(
    flushes=1.0, requests=LOG_REQUESTS, bytes=JOURNAL_BYTES, is_shared=False
)
# ext4 without a journal: the inode's block, and the flush's own request of no bytes.
NO_JOURNAL: Final = Promise(flushes=1.0, requests=2.0, bytes=BLOCK, is_shared=False)

# Servers with one log, which one of their threads at a time writes and syncs -> where that is seen.
# MySQL's commit has two: its binary log, too.
ONE_LOG: Final[Mapping[str, str]] = {
    "postgres": "PostgreSQL xlog.c: XLogFlush, under WALWriteLock",
    "mariadbd": "MariaDB log0sync.cc: group_commit_lock",
}

# Nothing of the file system's, and the flush's own request of no bytes.
OVERWRITE: Final = Promise(flushes=1.0, requests=1.0, bytes=0, is_shared=False)


def are_waited_for(flushes_per_s: float) -> bool:
    """Return whether there are more flushes than a journal makes by itself."""
    return flushes_per_s > OWN_FLUSHES_PER_S


def promise_of(writes_per_s: float, flushes_per_s: float, *, alone: bool) -> Promise:
    """Return what an fsync leaves where a journal may be: a commit, or a single flush.

    Commits that several writers share have more writes a flush as well; they come about where
    writers queue. Where there is no queue (`alone`), three requests a flush are single fsyncs: of
    ext4 without a journal, or with a drive that writes through on demand (FUA).
    """
    if not alone or not flushes_per_s:
        return COMMIT
    single = SINGLE <= writes_per_s / flushes_per_s < SINGLE_MAX
    return SINGLE_FLUSH if single else COMMIT


def logs_like_xfs(row: Mapping[str, float]) -> bool:
    """Return whether the writes of fsyncs look like those of XFS, which merges none.

    The descriptor, the metadata and the commit block of a journal of ext3 or ext4 adjoin, and are
    merged: one or two of them for each that stays. XFS writes its log in buffers, each a request.
    Of overwrites such a journal has nothing but its own commits, every 5 s, of which each merges
    one block at least. By hand: 0.2 merged a second of 40 writes are no XFS.
    """
    writes, merged = row.get("w_per_s", 0.0), row.get("wrqm_per_s")
    return merged is not None and merged < max(OWN_MERGED_PER_S, MERGED_MIN * writes)


def moves_nothing(row: Mapping[str, float]) -> bool:
    """Return whether some of an fsync's writes are a flush's own, and none is a journal's.

    See above. Who shares XFS's commits has as many writes for each flush, of a block and more.
    """
    writes, flushes = row.get("w_per_s", 0.0), row.get("f_per_s", 0.0)
    size = row.get("wareq_bytes", BLOCK)
    if not are_waited_for(flushes) or size >= BLOCK or not logs_like_xfs(row):
        return False
    return SINGLE <= writes / flushes < SINGLE_MAX


def overwrites(row: Mapping[str, float]) -> bool:
    """Return whether fsyncs on ext3 or ext4 leave no commit: there is nothing that adjoins."""
    writes, flushes = row.get("w_per_s", 0.0), row.get("f_per_s", 0.0)
    merged = row.get("wrqm_per_s")
    if merged is None or not are_waited_for(flushes) or merged >= JOINED_MIN * flushes:
        return False
    return OVERWRITES_MIN <= writes / flushes < SINGLE_MAX


def data_writes(row: Mapping[str, float], *, is_xfs: bool) -> float:
    """Return the writes per second that hold the data of fsyncs, and not a journal's blocks."""
    of_log = XFS_LOG_REQUESTS if is_xfs else LOG_REQUESTS
    return max(0.0, row.get("w_per_s", 0.0) - of_log * row.get("f_per_s", 0.0) / FLUSHES)


def waits_for_all(row: Mapping[str, float], customers: int | None) -> bool:
    """Return whether a commit's flush meets no other write though several writers wait.

    ext3 (data=ordered, nothing allocated late) writes the data of all before a commit, and others
    wait for that commit: its flush finds the device empty. ext4's and XFS's writers have their
    own data under way meanwhile, for which a flush waits. By hand: writes of 2.9 ms each, a flush
    of 0.1 ms where one that met a write would take 1.5 ms more.
    """
    writes, util = row.get("w_per_s", 0.0), row.get("util_pct", 0.0)
    if (customers or 0) < SEVERAL or not writes or "f_await_ms" not in row:
        return False
    return row["f_await_ms"] < ALONE_MAX * 10 * util / writes


def write_alone_ms(row: Mapping[str, float]) -> float:
    """Return what a write takes on average without the flushes that are its own, ms."""
    writes = row.get("w_per_s", 0.0)
    flushes = row.get("f_per_s", 0.0) * row.get("f_await_ms", 0.0)
    return max(0.0, row.get("w_await_ms", 0.0) - flushes / writes) if writes else 0.0


class CacheSign(Enum):
    """What tells that writes are in a disk's cache when they are answered."""

    BY_FLUSHES = "flushes have most of the time of writes, and a write alone is soon answered"
    BY_READS = "writes do not wait for the reads before them"


def cache_sign(device: DeviceLook) -> CacheSign | None:
    """Return what tells that a disk answers writes from its cache; None: nothing does."""
    row = device.row
    if not device.serves_singly or "w_await_ms" not in row:
        return None
    writes, alone_ms = row.get("w_per_s", 0.0), write_alone_ms(row)
    flush_ms = row.get("f_await_ms", 0.0)
    flushes = row.get("f_per_s", 0.0) * flush_ms
    hardly_flushed = row.get("f_per_s", 0.0) * SINGLE_MAX < writes
    if hardly_flushed and alone_ms < SOON * wait_for_reads_ms(device):
        return CacheSign.BY_READS
    most = flushes > 0 and flushes >= OF_FLUSHES * writes * row["w_await_ms"]
    return CacheSign.BY_FLUSHES if most and alone_ms < SOON * flush_ms else None


def wait_for_reads_ms(device: DeviceLook) -> float:
    """Return how long a request waits on average that comes by chance to an arm with its reads, ms.

    In a share U of all cases, for half of what one takes, U / X. Those that wait themselves are
    left out.
    """
    row = device.row
    reads = row.get("r_per_s", 0.0)
    busy = min(reads * row.get("r_await_ms", 0.0) / 1000, (device.util_pct or 0.0) / 100)
    return 1000 * busy * busy / (2 * reads) if reads else 0.0


def commit_s(row: Mapping[str, float], promise: Promise = COMMIT) -> float:
    """Return how long a commit takes, seconds: two writes and its flushes; 0 if not recorded.

    Without a journal the two are the data and the inode's block, one after the other; of an
    overwrite the data and the flush's own, whose time is the flush.
    """
    write_ms = row.get("w_await_ms", row.get("await_ms", 0.0))
    flushes = 0.0 if promise is OVERWRITE else promise.flushes
    return (LOG_REQUESTS * write_ms + flushes * row.get("f_await_ms", 0.0)) / 1000


def shared_max(commits_per_s: float, time_s: float) -> float:
    """Return the fsyncs per second that share so many commits if they come at random."""
    busy = commits_per_s * time_s
    return commits_per_s / (1 - busy) if busy < 1 else math.inf


def beside(writes_per_s: float, explained_per_s: float) -> float:
    """Return the writes per second that are not of fsyncs; 0 if hardly any."""
    rest = writes_per_s - explained_per_s
    return rest if rest >= BESIDE_MIN * writes_per_s else 0.0
