"""The active item list: what waits to be written home, in the order of its records."""

from sim.block.bio import WRITE, Bio
from sim.fs.xfs.buf import Buf
from sim.fs.xfs.log import BufHomeWrite
from sim.fs.xfs.mount import InodeItem
from sim.fs.xfs.super import Xfs
from tests.fs.machine import Machine, S


def with_a_file() -> tuple[Xfs, InodeItem]:
    """Return a file system with one durable file, and the file's item in the list."""
    machine = Machine("6.18")
    fs = machine.mount_xfs()
    machine.run(lambda task: machine.write_file(task, "/a", 4096), for_ns=S)
    items = [item for item in fs.info.ail.items if isinstance(item, InodeItem)]
    return fs, items[-1]


def log_anew(fs: Xfs, item: InodeItem | Buf, lsn: int) -> None:
    """Have another record with this item reach the disk."""
    item.pin_count += 1
    fs.info.ail.committed({item: None}, [], lsn, fs.info.ail.durable_transaction)


def go_home(fs: Xfs, buf: Buf) -> BufHomeWrite:
    """Begin to write a buffer home."""
    buf.io = True
    return BufHomeWrite(fs.info.ail, buf)


def end(write: BufHomeWrite) -> None:
    write.end_io(Bio(WRITE, write.buf.sector, write.buf.sectors, write.end_io, None, 1, 0, 1))


def test_what_is_home_leaves_the_list() -> None:
    fs, item = with_a_file()
    home = item.home()
    assert home is not None
    end(go_home(fs, home))
    assert item not in fs.info.ail.items
    assert item.lsn == -1


def test_an_inode_that_is_logged_anew_on_its_way_home_stays_for_the_newer_record() -> None:
    """What goes home is what it was; the log's tail may not pass the record of what it is."""
    fs, item = with_a_file()
    home = item.home()
    assert home is not None
    newer = item.lsn + 100
    write = go_home(fs, home)
    log_anew(fs, item, newer)
    end(write)
    assert item in fs.info.ail.items
    assert item.lsn == newer


def test_a_record_that_was_overtaken_does_not_put_an_item_back() -> None:
    fs, item = with_a_file()
    newer = item.lsn + 100
    log_anew(fs, item, newer)
    log_anew(fs, item, newer - 50)
    assert item.lsn == newer
    assert [one.lsn for one in fs.info.ail.items] == sorted(one.lsn for one in fs.info.ail.items)


def test_a_buffer_whose_blocks_were_freed_has_no_home_and_is_not_listed() -> None:
    fs, item = with_a_file()
    buf = Buf(80000, 8)
    buf.mask = 1
    log_anew(fs, buf, item.lsn + 10)
    assert buf in fs.info.ail.items
    buf.stale = True
    log_anew(fs, buf, item.lsn + 20)
    assert buf not in fs.info.ail.items
