"""What mke2fs and mount refuse: options of another release, journals that cannot be.

Models: the messages of mke2fs -J size and of mount, told before anything runs.
Linux counterpart: e2fsprogs misc/util.c figure_journal_size, lib/ext2fs/mkjournal.c;
 fs/jbd2/journal.c jbd2_journal_initialize_fast_commit.
Invariants: what is not refused here can be made and mounted, if the size of the device is known.
Left out: what the file system's own structures leave of a very small device.
"""

from typing import TYPE_CHECKING, Final

from sim.fs.ext4.fast_commit import SINCE as SINCE_FAST_COMMIT
from sim.fs.ext4.flex import default_journal_blocks
from sim.fs.ext4.layout import BLOCK_SIZE
from sim.fs.ext4.sb import DEF_MAX_BATCH_NS, Ext3Params, knows_batch_times
from sim.fs.jbd2.journal import LENGTH_MIN
from sim.sched.version import KernelVersion, numbers

if TYPE_CHECKING:
    from sim.fs.ext4.ext4 import Ext4Params

JOURNAL_BLOCKS_MAX: Final = 10_240_000  # e2fsprogs mkjournal.c: EXT2_MAX_JOURNAL_BLOCKS
JOURNALLED_BLOCKS_MIN: Final = 2048  # e2fsprogs 1.38 figure_journal_size(): "too small"
KIB: Final = 1024


def refusal(params: Ext3Params, kernel: KernelVersion, capacity_bytes: int | None) -> str:
    """Return why ext3's part of the options is refused; nothing if it is not."""
    return _batch_refusal(params, kernel) or _journal_refusal(params, capacity_bytes)


def _batch_refusal(params: Ext3Params, kernel: KernelVersion) -> str:
    """Return why a release does not take the bounds of the pause."""
    given = (params.min_batch_ns, params.max_batch_ns) != (0, DEF_MAX_BATCH_NS)
    if not given or knows_batch_times(params, kernel):
        return ""
    since = "ext4: kernel 2.6.29; ext3 mounted by it: 4.3"
    return f"min_batch_time and max_batch_time are jbd2's ({since}), this is {numbers(kernel)}"


def _journal_refusal(params: Ext3Params, capacity_bytes: int | None) -> str:
    """Return why mke2fs would find no room for the journal, nothing if it would.

    It compares with the free blocks; here it is half the device.
    """
    blocks = (capacity_bytes or 1 << 63) // BLOCK_SIZE
    if blocks < JOURNALLED_BLOCKS_MIN:
        least = JOURNALLED_BLOCKS_MIN * BLOCK_SIZE >> 20
        return f"{capacity_bytes} bytes are too few for a journal (accepted: {least} MiB or more)"
    journal = params.journal_bytes // BLOCK_SIZE
    blocks_max = min(blocks // 2, JOURNAL_BLOCKS_MAX)
    if journal and not LENGTH_MIN <= journal <= blocks_max:
        least, most = LENGTH_MIN * BLOCK_SIZE >> 20, blocks_max * BLOCK_SIZE >> 20
        return f"a journal of {params.journal_bytes} bytes (accepted: {least} to {most} MiB)"
    return ""


def fast_commit_refusal(
    params: "Ext4Params", kernel: KernelVersion, capacity_bytes: int | None
) -> str:
    """Return why there are no fast commits where they are asked for."""
    if not params.fast_commit:
        if params.fast_commit_bytes:
            return "fast_commit_size is the size of an area that fast_commit = true makes"
        return ""
    if kernel < SINCE_FAST_COMMIT:
        return (
            f"fast_commit = true needs kernel {numbers(SINCE_FAST_COMMIT)} or later, "
            f"this is {numbers(kernel)}"
        )
    journal_blocks = params.journal_bytes // BLOCK_SIZE
    if not journal_blocks and capacity_bytes is not None:
        largest = params.journal_bytes_max // BLOCK_SIZE
        journal_blocks = default_journal_blocks(capacity_bytes // BLOCK_SIZE, largest)
    most = max(journal_blocks - LENGTH_MIN, 0) * BLOCK_SIZE
    if journal_blocks and params.fast_commit_bytes > most:
        return (
            f"fast_commit_size = {params.fast_commit_bytes // KIB} KiB of a journal of"
            f" {journal_blocks * BLOCK_SIZE // KIB} KiB: at most {most // KIB} KiB"
        )
    return ""
