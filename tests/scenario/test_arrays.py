# ruff: noqa: E501  (one mistake a line reads better than broken lines)
"""Arrays in a scenario: what can be said, what it becomes, and what is told of a mistake."""

import re

import pytest

from sim.scenario import Scenario, ScenarioError
from tests.user.servers import scenario

DISKS = "".join(
    f'[machine.disk.{name}]\ndevice = "ram"\ncapacity = "{size}"\nscheduler = "noop"\n'
    for name, size in (
        ("sda", "1 GiB"),
        ("sdb", "1 GiB"),
        ("sdc", "2 GiB"),
        ("sdd", "1 GiB"),
        ("sde", "32 KiB"),
    )
)
ROOT = '[machine.mount."/"]\ntype = "ext3"\ndevice = "sda"\n'
ARRAY = """\
[machine.array.md0]
level = 5
devices = ["sdb", "sdc", "sdd"]
chunk = "64 KiB"
"""
VOLUME = '[machine.volume.dm-0]\non = "md0"\nsize = "1 GiB"\n'
MIB = 2**20


def with_array(array: str = ARRAY, more: str = "", *sets: str) -> Scenario:
    return scenario(machine=DISKS + ROOT + array + more, sets=sets)


def complaints(array: str, more: str = "") -> str:
    with pytest.raises(ScenarioError) as caught:
        with_array(array, more)
    return str(caught.value)


def listed(found: Scenario, path: str) -> tuple[object, str]:
    """Return a parameter's value and source."""
    [parameter] = [p for p in found.parameters if p.path == f"machine.array.md0.{path}"]
    return parameter.value, parameter.source


def test_a_number_is_the_raid_of_that_number() -> None:
    [array] = with_array().server.all("array").values()
    assert (array.level, array.devices) == ("raid5", ("sdb", "sdc", "sdd"))
    assert array.params.chunk_bytes == 64 * 1024  # type: ignore[attr-defined]


def test_a_volume_may_lie_on_an_array_and_an_array_on_an_array() -> None:
    upper = '[machine.array.md1]\nlevel = 0\ndevices = ["md0", "sda2"]\n'
    disk = '[machine.disk.sda.partition.sda2]\nsize = "100 MiB"\n'
    found = with_array(ARRAY, upper + disk).server
    assert list(found.all("array")) == ["md0", "md1"]
    assert with_array(ARRAY, VOLUME).server.all("volume")["dm-0"].on == "md0"


def test_capacity_and_what_is_lost_of_larger_devices_are_listed() -> None:
    found = with_array()
    assert listed(found, "capacity") == (2 * (1024 * MIB - 65536), "derived: raid5 of 3 devices")
    lost, why = listed(found, "unused")
    assert (lost, why) == (
        1024 * MIB,
        "derived: raid5 takes as much of each device as of the smallest",
    )


def test_raid0_uses_larger_devices_to_their_end() -> None:
    found = with_array(ARRAY.replace("5", "0", 1))
    assert listed(found, "capacity")[0] == 4096 * MIB - 3 * 65536
    assert not [p for p in found.parameters if p.path.endswith("unused")]


def test_the_default_chunk_is_that_of_mdadm_of_the_time() -> None:
    array = ARRAY.replace('chunk = "64 KiB"\n', "")
    assert listed(with_array(array), "chunk")[0] == 64 * 1024
    assert listed(with_array(array, "", 'machine.kernel="3.2"'), "chunk")[0] == 512 * 1024


def test_parameters_of_an_array_have_sources() -> None:
    found = [p for p in with_array().parameters if p.path.startswith("machine.array.md0.")]
    assert {"chunk", "level", "devices", "stripe_cache_size", "speed_limit_min"} <= {
        p.path.rpartition(".")[2] for p in found
    }
    assert all(p.source and p.doc for p in found)


WRONG = [
    (
        "level = 5\n",
        "",
        r"small.toml:\d+:16: error: \[machine.array.md0\] lacks 'level' \(accepted: raid0",
    ),
    (
        "level = 5",
        "level = 6",
        r"small.toml:\d+:9: error: unknown array 'raid6' - did you mean 'raid",
    ),
    ("level = 5", 'level = "raid"', r"unknown array 'raid'"),
    ("level = 5", "level = 1", r"unknown key 'chunk' in \[machine.array.md0\]"),
    (
        "64 KiB",
        "65 KiB",
        r"small.toml:\d+:9: error: raid5: a chunk is a power of two \(accepted: 64 KiB or 128 KiB\)",
    ),
    ("64 KiB", "1 KiB", r"machine.array.md0.chunk: must be at least 4 KiB"),
    ("64 KiB", "64 ms", r"machine.array.md0.chunk: expected a size"),
    ('devices = ["sdb", "sdc", "sdd"]\n', "", r"lacks 'devices' \(what it is made of\)"),
    (
        ', "sdd"]',
        "]",
        r"small.toml:\d+:11: error: raid5: too few devices, 2 \(accepted: 3 or more\)",
    ),
    (
        '"sdd"',
        '"sdx"',
        r"unknown device 'sdx' - did you mean 'sd.'\? \(accepted: sda, sdb, sdc, sdd, sde, missing\)",
    ),
    ('"sdd"', '"sdb"', r"sdb is in md0 twice"),
    ('"sdd"', '"md0"', r"unknown device 'md0'"),
    (
        '"sdd"',
        '"sde"',
        r"nothing of the devices is left for the array: sde is too small, got 32.* kB",
    ),
    (
        '["sdb", "sdc", "sdd"]',
        '["sdb", "missing", "missing"]',
        r"raid5 on 3 devices does not stand without 2 of them \(accepted: 1 'missing' at most\)",
    ),
    ('["sdb", "sdc", "sdd"]', '"sdb"', r"raid5: too few devices, 1"),
    ('["sdb", "sdc", "sdd"]', "[1, 2, 3]", r"machine.array.md0.devices: expected a list of texts"),
    ("md0]", "sda]", r"there is a device 'sda' already"),
    ("chunk =", "chunc =", r"unknown key 'chunc' in \[machine.array.md0\] - did you mean 'chunk'"),
    (
        "chunk =",
        'sync_action = "recover"\nchunk =',
        r"sync_action 'recover' and 'rebuilding' \(the device that is filled\) go together",
    ),
    (
        "chunk =",
        'sync_action = "recover"\nrebuilding = "sda"\nchunk =',
        r"unknown member 'sda' - did you mean 'sd.'\? \(accepted: sdb, sdc, sdd\)",
    ),
    ("chunk =", 'algorithm = "left"\nchunk =', r'not one of the choices, got "left"'),
]


@pytest.mark.parametrize(("good", "bad", "message"), WRONG)
def test_a_mistake_is_placed_and_explained(good: str, bad: str, message: str) -> None:
    assert good in ARRAY
    assert re.search(message, complaints(ARRAY.replace(good, bad, 1)))


def test_a_member_is_not_mounted_nor_under_a_volume() -> None:
    mount = '[machine.mount."/b"]\ntype = "ext3"\ndevice = "sdb"\n'
    assert "sdb is part of the array md0 (accepted: sda, sde, md0)" in complaints(ARRAY, mount)
    assert "sdb is part of the array md0" in complaints(ARRAY, VOLUME.replace("md0", "sdb"))


def test_a_device_is_in_one_array() -> None:
    other = ARRAY.replace("md0", "md1").replace("sdb", "sda")
    assert "sdc is part of md0 already" in complaints(ARRAY, other)


def test_a_volume_ends_with_the_array() -> None:
    assert "'dm-0' ends" in complaints(ARRAY, VOLUME.replace("1 GiB", "3 GiB"))


def test_raid10_stands_without_two_that_are_no_pair() -> None:
    array = ARRAY.replace("level = 5", "level = 10")
    apart = array.replace('"sdb", "sdc", "sdd"', '"sdb", "missing", "missing", "sdd"')
    pair = array.replace('"sdb", "sdc", "sdd"', '"missing", "missing", "sdb", "sdd"')
    assert with_array(apart).server.all("array")["md0"].devices[1] == "missing"
    assert "raid10 on 4 devices does not stand without 2 of them" in complaints(pair)


def test_copies_for_want_of_devices_are_one_mistake() -> None:
    array = '[machine.array.md0]\nlevel = 10\ndevices = ["sdb"]\n'
    told = complaints(array)
    assert "raid10: too few devices, 1" in told
    assert "copies" not in told
