"""The power goes: what fsync promised is there, what nobody promised may be gone."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.genhd import UnmodelledError
from sim.fs.super import RemainingFile, Remains
from sim.machine import Machine
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_TRUNC, O_WRONLY, Sys
from tests.user.servers import S, boot

MS = 1_000_000
EXT3 = {"type": "ext3", "device": "sda"}
EXT4 = {"type": "ext4", "device": "sda"}
XFS = {"type": "xfs", "device": "sda"}


CACHELESS = 'profile = "sas-15k", write_cache = false'
CACHE = 'profile = "sas-15k", write_cache = true'
SSD = 'profile = "ssd-sata", buffer_protected = false'
PROTECTED_SSD = 'profile = "ssd-sata"'
NVME = 'profile = "ssd-nvme", buffer_protected = false'


def server(mount: dict[str, object], *, disk: str = CACHELESS, kernel: str = "2.6.16") -> Machine:
    options = ", ".join(f"{name} = {_toml(value)}" for name, value in mount.items())
    text = f"""\
disk.sda = {{ {disk} }}
mount."/" = {{ {options} }}
"""
    machine = boot(machine=text, sets=(f'machine.kernel="{kernel}"',))
    for _path, file_system in machine.vfs.mounts:
        file_system.expect_power_cut()
    return machine


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def left(machine: Machine) -> Remains:
    return next(fs for path, fs in machine.vfs.mounts if path in ("", "/")).remains()


@dataclass
class Ledger:
    """What one program may rely on."""

    durable: dict[str, int] = field(default_factory=dict)  # path: size that fsync() has promised


def workload(ledger: Ledger, steps: list[tuple[str, int, int]], own: str):
    """Return a program that does the steps on files of its own."""

    def program(sys: Sys) -> Blocking[None]:
        for what, number, pages in steps:
            path = f"/{own}{number}"
            if what == "write":
                fd = yield from sys.open(path, O_WRONLY | O_CREAT | O_TRUNC)
                ledger.durable.pop(path, None)
                yield from sys.write(fd, 4096 * pages)
                yield from sys.close(fd)
            elif what == "sync":
                fd = yield from sys.open(path, O_WRONLY | O_CREAT | O_TRUNC)
                ledger.durable.pop(path, None)
                yield from sys.write(fd, 4096 * pages)
                yield from sys.fsync(fd)
                ledger.durable[path] = 4096 * pages
                yield from sys.close(fd)
            elif what == "remove":
                ledger.durable.pop(path, None)
                try:
                    yield from sys.unlink(path)
                except FileNotFoundError:
                    continue
            elif what == "move":
                other = f"/{own}{pages % 4}"
                ledger.durable.pop(path, None)
                ledger.durable.pop(other, None)
                try:
                    yield from sys.rename(path, other)
                except FileNotFoundError:
                    continue
            else:
                yield from sys.sleep(number * pages * 20 * MS)

    return program


steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "sync", "sync", "remove", "move", "sleep"]),
        st.integers(0, 3),
        st.integers(1, 12),
    ),
    min_size=1,
    max_size=25,
)
MODES = [
    (EXT3, "2.6.16"),
    (EXT3 | {"data": "writeback"}, "2.6.16"),
    (EXT3 | {"data": "journal"}, "2.6.16"),
    (EXT3, "2.6.32"),
    (EXT3, "6.1"),
    (EXT4, "2.6.32"),
    (EXT4, "6.1"),
    (EXT3 | {"data": "journal"}, "6.1"),
    (EXT4 | {"data": "writeback"}, "6.1"),
    (EXT4 | {"data": "journal"}, "6.1"),
    (EXT4 | {"delalloc": False}, "6.1"),
    (EXT4 | {"dirsync": True}, "2.6.32"),
    (EXT4 | {"fast_commit": True}, "5.10"),
    (EXT4 | {"fast_commit": True, "delalloc": False}, "6.1"),
    (XFS, "2.6.16"),
    (XFS, "2.6.32"),
    (XFS, "2.6.39"),
    (XFS | {"wsync": True}, "3.2"),
    (XFS, "3.10"),
    (XFS, "4.18"),
    (XFS, "6.1"),
]
# Without a journal there is no order among what nobody synced.
BARE = EXT4 | {"has_journal": False}
UNJOURNALLED = [
    (BARE | {"dirsync": True}, "3.16"),
    (BARE, "6.1"),
    (BARE | {"delalloc": False}, "6.18"),
    (BARE, "6.18"),
]


@pytest.mark.parametrize(("mount", "kernel"), MODES + UNJOURNALLED)
@settings(max_examples=10)
@given(
    first=steps,
    second=steps,
    cut_ms=st.integers(0, 1500),
    disk=st.sampled_from([CACHELESS, CACHE, SSD, PROTECTED_SSD, NVME]),
)
def test_nothing_is_lost_that_fsync_promised(mount, kernel, first, second, cut_ms, disk):
    """Two programs; without a volatile cache, or with one and barriers."""
    must_flush = mount["type"] == "xfs" and kernel == "6.1"  # nobarrier is gone
    barrier = must_flush or disk not in (CACHELESS, PROTECTED_SSD)
    machine = server(mount | {"barrier": barrier}, disk=disk, kernel=kernel)
    ledgers = [Ledger(), Ledger()]
    for own, ledger, todo in zip("ab", ledgers, (first, second), strict=True):
        machine.kernel.start(own, own, workload(ledger, todo, own))
    machine.run_until(cut_ms * MS)
    found = left(machine)
    assert found.damage == ()
    for ledger in ledgers:
        for path, size in ledger.durable.items():
            assert found.has(path, size), (path, size, found)
    machine.run_until(cut_ms * MS + 20 * S)  # Looking did no harm: everything ends well.
    machine.check()


@pytest.mark.parametrize(("mount", "kernel"), MODES)
@settings(max_examples=10)
@given(files=st.integers(1, 40), cut_ms=st.integers(0, 12_000))
def test_files_made_one_after_the_other_leave_the_first_ones(mount, kernel, files, cut_ms):
    """Transactions are kept or lost in order: what remains was the tree at some moment."""
    machine = server(mount, kernel=kernel)

    def program(sys: Sys) -> Blocking[None]:
        for number in range(files):
            fd = yield from sys.open(f"/f{number:02d}", O_WRONLY | O_CREAT)
            yield from sys.close(fd)
            yield from sys.sleep(150 * MS)

    machine.kernel.start("maker", "maker", program)
    machine.run_until(cut_ms * MS)
    names = sorted(left(machine).files)
    assert names == [f"/f{number:02d}" for number in range(len(names))]


@pytest.mark.parametrize("mount", [EXT3, EXT4, XFS])
@given(cut_ms=st.integers(0, 4000))
@settings(max_examples=10)
def test_a_name_that_is_replaced_by_rename_is_never_missing(mount, cut_ms):
    machine = server(mount, kernel="2.6.32")

    def program(sys: Sys) -> Blocking[None]:
        for _ in range(20):
            fd = yield from sys.open("/new", O_WRONLY | O_CREAT)
            yield from sys.write(fd, 4096)
            yield from sys.fsync(fd)
            yield from sys.close(fd)
            yield from sys.rename("/new", "/config")
            yield from sys.sleep(100 * MS)

    machine.kernel.start("writer", "writer", program)
    machine.run_until(cut_ms * MS)
    found = left(machine)
    if machine.calendar.now > 1 * S:
        assert found.has("/config", 4096) or found.has("/new", 4096)
    if "/config" in found.files:
        assert found.files["/config"].is_complete


def beside(data: str) -> Remains:
    """Return what is left when one file was written, and then another one synced."""
    machine = server(EXT3 | {"data": data})

    def program(sys: Sys) -> Blocking[None]:
        one = yield from sys.open("/idle", O_WRONLY | O_CREAT)
        yield from sys.write(one, 8 * 4096)
        two = yield from sys.open("/synced", O_WRONLY | O_CREAT)
        yield from sys.write(two, 4096)
        yield from sys.fsync(two)

    machine.kernel.start("writer", "writer", program)
    machine.run_until(1 * S)
    return left(machine)


@pytest.mark.parametrize(
    ("data", "complete"), [("ordered", True), ("journal", True), ("writeback", False)]
)
def test_a_size_without_its_contents_is_what_data_writeback_leaves(data, complete):
    found = beside(data)
    assert found.has("/synced", 4096)
    assert found.files["/idle"].size_bytes == 8 * 4096
    assert found.files["/idle"].is_complete is complete


def lost_promises(mount: dict[str, object], kernel: str, disk: str, *, barrier: bool) -> int:
    """Count promises broken over many cuts, on a disk that may have a volatile cache."""
    machine = server(mount | {"barrier": barrier}, disk=disk, kernel=kernel)
    ledger = Ledger()
    todo = [("sync", number % 4, 1 + number % 7) for number in range(200)]
    machine.kernel.start("a", "a", workload(ledger, todo, "a"))
    broken = 0
    for cut in range(1, 200):
        machine.run_until(cut * 3 * MS)
        found = left(machine)
        broken += any(not found.has(path, size) for path, size in ledger.durable.items())
    return broken


@pytest.mark.parametrize(
    ("mount", "kernel", "disk"),
    [
        (EXT3, "2.6.16", CACHE),
        (EXT4, "6.1", CACHE),
        (XFS, "2.6.16", CACHE),
        (XFS, "2.6.39", CACHE),
        (XFS, "4.18", CACHE),
        (EXT3, "2.6.32", SSD),
        (XFS, "4.18", SSD),
        (EXT4, "6.1", NVME),
        (BARE, "3.16", CACHE),
        (BARE, "6.18", NVME),
    ],
)
def test_without_barriers_a_volatile_cache_breaks_promises_and_with_them_it_does_not(
    mount, kernel, disk
):
    assert lost_promises(mount, kernel, disk, barrier=False) > 0
    assert lost_promises(mount, kernel, disk, barrier=True) == 0


@pytest.mark.parametrize(("kernel", "is_kept"), [("3.15", False), ("3.16", True)])
def test_without_a_journal_fsync_flushes_from_3_16_on(kernel, is_kept):
    assert (lost_promises(BARE, kernel, CACHE, barrier=True) == 0) is is_kept


def test_a_buffer_that_capacitors_save_breaks_no_promise_without_barriers():
    assert lost_promises(EXT4, "6.1", PROTECTED_SSD, barrier=False) == 0


@pytest.mark.parametrize(
    ("kernel", "size", "complete"), [("2.6.16", 8 * 4096, False), ("2.6.32", 0, True)]
)
def test_xfs_logs_a_size_after_its_data_from_2_6_22_on(kernel, size, complete):
    """Before, a file that was written and renamed had its length and no contents: a null file."""
    machine = server(XFS, kernel=kernel)

    def program(sys: Sys) -> Blocking[None]:
        one = yield from sys.open("/idle", O_WRONLY | O_CREAT)
        yield from sys.write(one, 8 * 4096)
        yield from sys.rename("/idle", "/renamed")
        two = yield from sys.open("/synced", O_WRONLY | O_CREAT)
        yield from sys.write(two, 4096)
        yield from sys.fsync(two)

    machine.kernel.start("writer", "writer", program)
    machine.run_until(1 * S)
    found = left(machine)
    assert found.has("/synced", 4096)
    assert found.files["/renamed"] == RemainingFile(size, size if complete else 0)


@pytest.mark.parametrize(
    ("mount", "kernel"),
    [(EXT3, "2.6.16"), (BARE, "6.18"), (EXT4, "6.1"), (XFS, "2.6.16"), (XFS, "6.1")],
)
@given(cut_ms=st.integers(0, 600))
@settings(max_examples=20)
def test_what_was_synced_of_a_mailbox_survives_what_is_appended(mount, kernel, cut_ms):
    machine = server(mount, kernel=kernel)
    synced = [0]

    def program(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/mbox", O_WRONLY | O_CREAT)
        for number in range(20):
            yield from sys.write(fd, 4096 * (1 + number % 3))
            if number % 2:
                yield from sys.fsync(fd)
                synced[0] = sum(4096 * (1 + n % 3) for n in range(number + 1))
            yield from sys.sleep(10 * MS)

    machine.kernel.start("writer", "writer", program)
    machine.run_until(cut_ms * MS)
    assert not synced[0] or left(machine).has("/mbox", synced[0])


def test_nothing_is_left_of_a_tmpfs():
    machine = boot(machine='mount."/" = { type = "tmpfs" }')

    def program(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/a", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 4096)
        yield from sys.fsync(fd)

    machine.kernel.start("writer", "writer", program)
    machine.run_until(1 * S)
    assert left(machine).files == {}


def test_a_cache_whose_contents_are_not_modelled_is_refused():
    text = """\
disk.sda = { device = "multiserver", capacity = "4 GiB" }
mount."/" = { type = "ext4", device = "sda" }
"""
    machine = boot(machine=text, sets=('machine.kernel="6.1"',))
    for _path, file_system in machine.vfs.mounts:
        file_system.expect_power_cut()
    with pytest.raises(UnmodelledError, match="cache"):
        left(machine)
