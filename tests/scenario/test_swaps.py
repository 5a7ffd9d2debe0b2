"""[machine.swap.NAME], [machine.cgroup.NAME]: what they mean, and mistakes in them."""

from pathlib import Path

import pytest

from sim.machine import Machine
from sim.scenario import ScenarioError
from sim.scenario.load import load_text

BASE = """
title = "swap"
[machine]
kernel = "4.4"
memory = "256 MiB"
[machine.mount."/"]
type = "ext4"
device = "sda"
[machine.mount."/tmp"]
type = "tmpfs"
[machine.disk.sda]
profile = "sas-15k"
[machine.disk.sdb]
profile = "sas-15k"
capacity = "1 GiB"
[process.m]
program = "memload"
size = "8 MiB"
[run]
duration = "10 s"
until = "progress"
"""


def load(more, base=BASE):
    return load_text(base + more, Path("swap.toml"), seed=1)


def booted(more):
    return Machine(load(more), 1)


def test_areas_are_turned_on_in_order_with_their_priorities():
    machine = booted("""
[machine.swap.a]
device = "sdb"
size = "512 MiB"
[machine.swap.b]
file = "/swapfile"
size = "64 MiB"
priority = 5
""")
    assert machine.proc.read("swaps").split("\n")[1:3] == [
        "/dev/sdb                                partition\t524284\t0\t-1",
        "/swapfile                               file\t\t65532\t0\t5",
    ]
    assert [area.path for area in machine.vm.swap.areas] == ["/swapfile", "/dev/sdb"]
    lies = machine.vm.swap.areas[0].sectors(1, 16383)
    assert sum(pages for _, pages in lies) == 16383


def test_a_process_in_a_group_is_held_to_its_limit():
    machine = booted(
        """
[machine.swap.a]
device = "sdb"
[machine.cgroup.small]
memory = "4 MiB"
""".replace("[process.m]", "")
    )
    assert machine.vm.memcgs["small"].limit == 1024
    held = load_text(
        BASE.replace('program = "memload"', 'program = "memload"\ncgroup = "small"')
        + '[machine.swap.a]\ndevice = "sdb"\n[machine.cgroup.small]\nmemory = "4 MiB"\n',
        Path("swap.toml"),
        seed=1,
    )
    machine = Machine(held, 1)
    while machine.calendar.now < machine.end_ns:
        machine.run_until(machine.calendar.now + 50_000_000)
        assert machine.vm.memcgs["small"].usage <= 1024 + 32
        machine.check()
    assert machine.vm.events.pswpout >= 1024


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("[machine.swap.a]\npriority = 3\n", "needs either 'device' or 'file'"),
        ('[machine.swap.a]\ndevice = "sdc"\n', "unknown device 'sdc'"),
        ('[machine.swap.a]\ndevice = "sda"\n', "sda is mounted on / already"),
        ('[machine.swap.a]\ndevice = "sdb"\nsize = "2 GiB"\n', "larger than sdb"),
        (2 * '[machine.swap.a]\ndevice = "sdb"\n'.replace("a]", "%s]") % ("a", "b"), "'a' already"),
        ('[machine.swap.a]\nfile = "/swapfile"\n', "lacks 'size'"),
        ('[machine.swap.a]\nfile = "/s"\nsize = "2 TB"\n', "no room for /s, got 2 TB (accepted"),
        ('[machine.swap.a]\nfile = "/tmp/s"\nsize = "1 MiB"\n', "no file system with a device"),
        ('[machine.swap.a]\ndevice = "sdb"\nprio = 3\n', "prio"),
        ('[machine.cgroup.g]\nmemory = "4 MiB"\nversion = 3\n', "version"),
    ],
)
def test_a_mistake_is_told_with_its_place(more, problem):
    with pytest.raises(ScenarioError) as told:
        load(more)
    assert problem in str(told.value)
    assert "swap.toml:" in str(told.value)


def test_a_process_in_no_group_that_there_is_is_a_mistake():
    base = BASE.replace('program = "memload"', 'program = "memload"\ncgroup = "smal"')
    with pytest.raises(ScenarioError, match="small"):
        load('[machine.cgroup.small]\nmemory = "4 MiB"\n', base)


GROUPS = """
[machine.swap.a]
device = "sdb"
[machine.cgroup.new]
memory = "4 MiB"
swap = "1 MiB"
[machine.cgroup.old]
memory = "2 MiB"
version = 1
"""


def files_of_groups(group):
    held = BASE.replace('program = "memload"', f'program = "memload"\ncgroup = "{group}"')
    machine = Machine(load_text(held + GROUPS, Path("swap.toml"), seed=1), 1)
    machine.run_until(machine.end_ns)
    found = machine.proc.snapshot()
    return {name: text for name, text in found.items() if name.startswith("cgroup")}


def numbers_of(text):
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def test_files_of_version_2_say_what_the_group_has_and_may_have():
    found = files_of_groups("new")
    stat = numbers_of(found["cgroup/new/memory.stat"])
    assert found["cgroup/new/memory.max"] == f"{4 << 20}\n"
    assert found["cgroup/new/memory.swap.max"] == f"{1 << 20}\n"
    assert int(found["cgroup/new/memory.current"]) == stat["anon"] + stat["file"] <= 4 << 20
    assert stat["anon"] == stat["inactive_anon"] + stat["active_anon"]
    assert int(found["cgroup/new/memory.swap.current"]) <= 1 << 20
    assert numbers_of(found["cgroup/new/memory.events"])["max"] > 0


def test_files_of_version_1_are_below_the_controllers_name():
    found = files_of_groups("old")
    stat = numbers_of(found["cgroup/memory/old/memory.stat"])
    assert found["cgroup/memory/old/memory.limit_in_bytes"] == f"{2 << 20}\n"
    usage = int(found["cgroup/memory/old/memory.usage_in_bytes"])
    assert usage == stat["rss"] + stat["cache"] <= 2 << 20
    assert stat["hierarchical_memory_limit"] == 2 << 20
    assert int(found["cgroup/memory/old/memory.failcnt"]) > 0
