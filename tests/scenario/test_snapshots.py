# ruff: noqa: E501  (one mistake a line reads better than broken lines)
"""Snapshots in a scenario: what can be said, what it becomes, and what is told of a mistake."""

import re

import pytest

from sim.machine import Machine, simulate
from sim.scenario import Scenario, ScenarioError
from tests.user.servers import scenario

DISKS = "".join(
    f'[machine.disk.{name}]\ndevice = "ram"\ncapacity = "{size}"\nscheduler = "noop"\nlatency = "1 ms"\n'
    for name, size in (("sda", "4 GiB"), ("sdb", "1 GiB"), ("sdc", "1 GiB"))
)
MOUNTS = """\
[machine.mount."/"]
type = "ext3"
device = "sda"
[machine.mount."/data"]
type = "ext3"
device = "lv"
"""
VOLUME = """\
[machine.volume.lv]
on = "sdb"
size = "600 MiB"
"""
SNAPSHOT = """\
[machine.volume.snap]
snapshot_of = "lv"
on = "sdb"
size = "200 MiB"
chunk = "8 KiB"
"""
DD = """\
[process.dd]
program = "dd"
if = "/dev/zero"
of = "/data/file"
bs = "1 MiB"
blocks = 50
fsync = true
start = "2 s"
"""
GIB, MIB = 2**30, 2**20


def with_snapshot(
    snapshot: str = SNAPSHOT, processes: str = "", sets: tuple[str, ...] = ()
) -> Scenario:
    machine = DISKS + MOUNTS + VOLUME + snapshot
    return scenario(processes or DD, machine=machine, sets=sets)


def complaints(snapshot: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        with_snapshot(snapshot)
    return str(caught.value)


def test_a_snapshot_lies_behind_what_its_disk_has_already() -> None:
    second = SNAPSHOT.replace("volume.snap", "volume.snap2").replace('size = "200', 'size = "100')
    found = with_snapshot(SNAPSHOT + second).server.all("volume")
    assert [(snap.name, snap.offset_bytes) for snap in list(found.values())[1:]] == [
        ("snap", 600 * MIB),
        ("snap2", 800 * MIB),
    ]


def test_the_default_chunk_is_that_of_the_kernels_days() -> None:
    plain = SNAPSHOT.replace('chunk = "8 KiB"\n', "")
    found = [
        with_snapshot(plain, sets=(f'machine.kernel="{kernel}"',)).server.all("volume")["snap"]
        for kernel in ("2.6.18", "2.6.24", "2.6.32")
    ]
    assert [(snap.chunk_bytes, snap.in_order) for snap in found] == [
        (8192, False),
        (4096, False),
        (4096, True),
    ]


WRONG = [
    (
        'size = "200 MiB"',
        'size = "500 MiB"',
        r"snapshot 'snap' \(524.28 MB\) is larger than what is free of sdb.*up to 444.59 MB",
    ),
    ('size = "200 MiB"', 'size = "0 B"', "machine.volume.snap.size: must be at least 512 B"),
    ('size = "200 MiB"', 'size = "16 KiB"', "too small for a header, metadata and one chunk"),
    ('"lv"', '"lw"', "unknown volume 'lw' - did you mean 'lv'"),
    ('"lv"', '"snap"', "unknown volume 'snap'"),
    ('on = "sdb"', 'on = "sdd"', "unknown disk, partition or array 'sdd'"),
    ('on = "sdb"', 'on = "lv"', "unknown disk, partition or array 'lv'"),
    ('"8 KiB"', '"12 KiB"', "a chunk is a power of two.*8 KiB or 16 KiB"),
    ('"8 KiB"', '"1 MiB"', "machine.volume.snap.chunk: must be at most"),
    ('"8 KiB"', '"8 KiB"\ncopied = "300 MiB"', "more than the snapshot has room for"),
    ('"8 KiB"', '"8 KiB"\nchunks = 3', "unknown key 'chunks' .*did you mean 'chunk'"),
    (
        'size = "200 MiB"',
        'size = "200 MiB"\noffset = "900 MiB"',
        "larger than what is free of sdb.*up to 130.02 MB",
    ),
]


@pytest.mark.parametrize(("good", "bad", "message"), WRONG)
def test_a_mistake_is_placed_and_explained(good: str, bad: str, message: str) -> None:
    assert good in SNAPSHOT
    told = complaints(SNAPSHOT.replace(good, bad, 1))
    assert re.search(message, told, re.DOTALL), told
    assert told.count("error:") == 1, told


def test_every_layer_has_its_row_and_a_minor_of_its_own() -> None:
    machine = Machine(with_snapshot(), 1)
    rows = [d.stats for d in machine.devices.values() if d.stats.major == 253]
    assert [row.name for row in rows] == ["lv", "lv-real", "snap", "snap-cow"]
    assert len({row.minor for row in rows}) == 4


def test_writing_a_file_copies_what_it_overwrites_and_the_sectors_add_up() -> None:
    machine = Machine(with_snapshot(), 1)
    machine.run_until(59 * 10**9)
    machine.check()
    rows = {name: device.stats for name, device in machine.devices.items()}
    assert any(record.name == "dd_done" for record in machine.records)
    assert rows["lv"].write_sectors >= 50 * MIB // 512
    assert rows["lv-real"].write_sectors == rows["lv"].write_sectors
    copied = rows["lv-real"].read_sectors - rows["lv"].read_sectors
    assert copied >= 50 * MIB // 512
    assert rows["snap-cow"].write_sectors > copied  # metadata
    assert (
        rows["sdb"].write_sectors == rows["lv-real"].write_sectors + rows["snap-cow"].write_sectors
    )
    assert rows["snap"].reads == rows["snap"].writes == 0


def test_a_full_snapshot_is_logged_and_dd_goes_on() -> None:
    small = with_snapshot(SNAPSHOT.replace('"200 MiB"', '"20 MiB"'))
    result = simulate(small, 1)
    logged = [record.value for record in result.records if record.name == "dmesg"]
    assert logged == [
        "device-mapper: snapshots: Invalidating snapshot: Unable to allocate exception."
    ]
    assert [record.value for record in result.records if record.name == "dd_done"] == [50 * MIB]


def test_a_direct_read_of_a_full_snapshot_is_an_error() -> None:
    reader = """\
[process.reader]
program = "dd"
if = "/dev/snap"
of = "/dev/null"
bs = "1 MiB"
blocks = 1
input_direct = true
start = "50 s"
"""
    small = with_snapshot(SNAPSHOT.replace('"200 MiB"', '"20 MiB"'), DD + reader)
    printed = [r.value for r in simulate(small, 1).records if r.comm == "reader"]
    assert any("Input/output error" in str(value) for value in printed), printed
