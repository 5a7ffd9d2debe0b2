"""What transactions change of names, sizes and pages, as it was before: for a power cut.

Models: nothing that XFS has: what the log's records would not have if they were missing.
Linux counterpart: none; power_cut.py says what recovery makes of it.
Invariants: in the order in which things were changed in memory; nothing is kept unless somebody
 expects a power cut (XfsSb.kept).
Left out: what only free space and inode trees know.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from sim.fs.inode import Inode

if TYPE_CHECKING:
    from sim.fs.xfs.sb import XfsInode, XfsSb
    from sim.fs.xfs.trans import Transaction

# To 2.6.21 the size that write() made was logged before the data were anywhere (ba87ea699ebd).
SINCE_SIZE_AFTER_DATA: Final = (2, 6, 22)
Runs = tuple[tuple[int, int], ...]


class Change(NamedTuple):
    """One change. Without a transaction: pages given up, whoever still wants to read them."""

    transaction: "Transaction | None"
    inode: Inode  # a directory, if a name is given
    name: str | None
    child: Inode | None  # what the name referred to
    size: int  # of the inode in the log before; -1: not its size
    pages: Runs  # which cannot be read without the change
    freed: Runs  # blocks that were the file's


def keep_name(
    fs: "XfsSb", transaction: "Transaction", directory: Inode, name: str, child: Inode | None
) -> None:
    """Keep what a name refers to before it changes."""
    if fs.kept is not None:
        fs.kept.append(Change(transaction, directory, name, child, -1, (), ()))


def keep_pages(
    fs: "XfsSb", transaction: "Transaction | None", inode: Inode, pages: Runs, freed: Runs = ()
) -> None:
    """Keep which pages cannot be read without the change, and which blocks it frees."""
    if fs.kept is not None and (pages or freed):
        fs.kept.append(Change(transaction, inode, None, None, -1, pages, freed))


def log_size(fs: "XfsSb", transaction: "Transaction", inode: "XfsInode") -> None:
    """An inode's core goes into the log with the size that it has there now."""
    if fs.kept is None:
        return
    after_data = fs.kernel >= SINCE_SIZE_AFTER_DATA
    size = inode.disk_size if after_data else inode.size
    if size != inode.logged_size:
        fs.kept.append(Change(transaction, inode, None, None, inode.logged_size, (), ()))
        inode.logged_size = size


def forget_durable(fs: "XfsSb") -> None:
    """Drop what no power cut can undo, where what is logged is on the medium."""
    if fs.kept is None or not fs.log.is_durable():
        return
    durable = fs.ail.durable_transaction
    while fs.kept:
        transaction = fs.kept[0].transaction
        if transaction is not None and not 0 < transaction.number <= durable:
            return
        fs.kept.popleft()
