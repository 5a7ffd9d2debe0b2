"""A journal on a disk of its own: what is written where, what it gains, what it promises."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import BIO_FLUSH, BIO_FUA, BIO_SYNC
from sim.engine.trace import Record
from sim.machine import Machine
from sim.scenario import ScenarioError
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_WRONLY, Sys
from tests.user.servers import S, boot

MS = 1_000_000
DISK = 'disk.{} = {{ profile = "sas-15k", write_cache = {}, scheduler = "noop" }}\n'


def server(
    kind: str, *, log: str, cache: bool = False, options: str = "", kernel: str = "3.10"
) -> Machine:
    text = DISK.format("sda", str(cache).lower()) + DISK.format("sdb", str(cache).lower())
    text = text if kernel < "5" else text.replace("noop", "none")
    where = f', journal_device = "{log}"' if log else ""
    text += f'mount."/" = {{ type = "{kind}", device = "sda"{where}{options} }}\n'
    machine = boot(machine=text, sets=(f'machine.kernel="{kernel}"',))
    for _path, file_system in machine.vfs.mounts:
        file_system.expect_power_cut()
    return machine


def mail(sys: Sys) -> Blocking[None]:
    """Make files durable, one after the other."""
    number = 0
    while True:
        fd = yield from sys.open(f"/m{number}", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 4096)
        yield from sys.fsync(fd)
        sys.trace_marker("synced", number)
        yield from sys.close(fd)
        number += 1


def synced(machine: Machine) -> int:
    return sum(record.name == "synced" for record in machine.records)


def run(machine: Machine, until_ns: int) -> Machine:
    machine.kernel.start("mail", "mail", mail)
    machine.run_until(until_ns)
    return machine


@pytest.mark.parametrize("kind", ["ext3", "ext4", "xfs"])
def test_the_log_is_on_its_disk_and_the_rest_is_not(kind):
    machine = server(kind, log="sdb")
    issued: dict[str, list[int]] = {"sda": [], "sdb": []}
    machine.tracer.start("block_rq_issue", sink=lambda r: issued[r.args[0]].append(r.args[2]))
    run(machine, 2 * S)
    log = issued["sdb"]
    # Descriptor with metadata, and commit block, of each; XFS: a record.
    assert len(log) >= (1 if kind == "xfs" else 2) * synced(machine)
    assert log == sorted(log)  # and one behind the other
    assert len(issued["sda"]) >= synced(machine)  # the data
    machine.check()


@pytest.mark.parametrize("kind", ["ext3", "ext4", "xfs"])
def test_a_log_of_its_own_saves_the_seeks_between_data_and_log(kind):
    """A commit's two writes take a revolution each at most, without a seek to and fro."""
    beside, alone = (synced(run(server(kind, log=log), 3 * S)) for log in ("", "sdb"))
    assert alone > 1.15 * beside


@pytest.mark.parametrize("kind", ["ext3", "ext4", "xfs"])
@given(cut_ms=st.integers(0, 900), cache=st.booleans())
@settings(max_examples=8)
def test_what_was_synced_survives_a_power_cut_of_both_disks(kind, cut_ms, cache):
    """With caches, the data's drive is flushed before the commit block is written (2.6.33)."""
    machine = run(server(kind, log="sdb", cache=cache, options=", barrier = true"), cut_ms * MS)
    [(_, file_system)] = [one for one in machine.vfs.mounts if one[0] in ("", "/")]
    found = file_system.remains()
    assert found.damage == ()
    for number in range(synced(machine)):
        assert found.has(f"/m{number}", 4096)


@pytest.mark.parametrize(
    ("mount", "told"),
    [
        ('type = "ext3", device = "sda", journal_device = "sdc"', r'"sdc"'),
        ('type = "ext3", device = "sda", journal_device = "sda"', "sda is mounted on / already"),
        (
            'type = "ext4", device = "sda", journal_device = "tiny"',
            "tiny has 1024 KiB, a journal of ext4 takes 4100 KiB or more",
        ),
        (
            'type = "xfs", device = "sda", journal_device = "tiny"',
            "tiny has 1024 KiB, a journal of xfs takes 2048 KiB or more",
        ),
        (
            'type = "nfs", journal_device = "sdb"',
            r"nfs has no journal on another device \(known: ext3, ext4, xfs\)",
        ),
    ],
)
def test_a_device_that_cannot_be_the_log_is_told(mount, told):
    text = DISK.format("sda", "false") + DISK.format("sdb", "false")
    text += 'disk.tiny = { device = "ram", capacity = "1 MiB" }\n'
    with pytest.raises(ScenarioError, match=told):
        boot(machine=f'{text}mount."/" = {{ {mount} }}\n')


@pytest.mark.parametrize(("kernel", "barrier"), [("2.6.32", False), ("3.10", True), ("6.1", True)])
def test_xfs_has_no_barriers_with_a_log_of_its_own_until_it_flushes_the_data_first(
    kernel: str, barrier: bool
) -> None:
    machine = server("xfs", log="sdb", kernel=kernel)
    [fs] = [one for path, one in machine.vfs.mounts if path in ("", "/")]
    assert fs.info.log.barrier is barrier  # type: ignore[attr-defined]


@pytest.mark.parametrize("kernel", ["3.10", "6.1"])
def test_xfs_flushes_the_datas_cache_before_each_record_that_moves_the_tail(kernel: str) -> None:
    machine = server("xfs", log="sdb", cache=True, kernel=kernel)
    order: list[tuple[str, bool]] = []
    machine.tracer.start("block_rq_issue", sink=lambda r: order.append((r.args[0], not r.args[3])))
    run(machine, 1 * S)
    log = [at for at, (disk, is_flush) in enumerate(order) if disk == "sdb" and not is_flush]
    assert log
    for before, at in zip([0, *log], log, strict=False):
        assert ("sda", True) in order[before:at]


def test_a_log_of_its_own_leaves_its_place_to_the_files() -> None:
    inside, outside = (
        server("xfs", log=log).vfs.file_system_of("/").statfs() for log in ("", "sdb")
    )
    assert outside.blocks > inside.blocks
    assert outside.blocks_free - inside.blocks_free == outside.blocks - inside.blocks


@pytest.mark.parametrize(("kernel", "flushes"), [("5.10", 4), ("6.1", 2)])
def test_the_data_s_drive_is_flushed_before_each_record_and_from_5_14_on_before_those_that_ask(
    kernel: str, flushes: int
) -> None:
    """Three buffers and a bit: the first record asks, two follow it, the forced one asks."""
    machine = server("xfs", log="sdb", cache=True, kernel=kernel)
    log = next(fs.info.log for path, fs in machine.vfs.mounts if path in ("", "/"))
    flushed: list[str] = []

    def sink(record: Record) -> None:
        if record.args[3] == 0:
            flushed.append(record.args[0])

    def long_record(sys: Sys) -> Blocking[None]:
        yield from log.write(sys.task, 3 * log.iclogs[0].room_bytes + 4096)
        yield from log.force(sys.task)

    machine.tracer.start("block_rq_issue", sink=sink)
    machine.kernel.start("writer", "writer", long_record)
    machine.run_until(S)
    assert log.records == 4
    assert flushed.count("sda") == flushes


@pytest.mark.parametrize(
    ("log", "flags"), [("", BIO_SYNC | BIO_FUA | BIO_FLUSH), ("sdb", BIO_SYNC | BIO_FUA)]
)
def test_a_record_to_a_log_of_its_own_flushes_no_cache_but_the_data_s(log: str, flags: int) -> None:
    machine = server("xfs", log=log, cache=True, kernel="3.10")
    found = next(fs.info.log for path, fs in machine.vfs.mounts if path in ("", "/"))
    assert found._flags(found.iclogs[0]) == flags
