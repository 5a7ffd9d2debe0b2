"""Limits of CPU time, affinity and policy in a scenario: what they mean, and mistakes in them."""

from pathlib import Path

import pytest

from sim.machine import Machine
from sim.scenario import ScenarioError
from sim.scenario.load import load_text
from sim.sched.task import SCHED_BATCH

BASE = """
title = "limits"
[machine]
kernel = "%s"
cpus = 2
memory = "256 MiB"
[machine.mount."/"]
type = "tmpfs"
[process.p]
program = "cpuburn"
runtime = "2 s"
%s
[link.l]
latency = "1 ms"
[process.outside]
program = "ping"
via = "l"
%s
[run]
duration = "1 s"
"""


def load(group="", own="", outside="", kernel="6.1"):
    return load_text(BASE % (kernel, own, outside) + group, Path("limits.toml"), seed=1)


def ran(group="", own="", kernel="6.1"):
    machine = Machine(load(group, own, kernel=kernel), 1)
    machine.run_until(1_000_000_000)
    machine.check()
    return machine


def files(machine):
    texts = machine.proc.snapshot()
    return {name: text for name, text in texts.items() if name.startswith("cgroup")}


QUOTA = """
[machine.cgroup.g]
cpu_quota = "25 ms"
cpu_weight = 50
"""


def test_files_of_version_2_say_what_was_set_and_what_happened():
    """In the last period the hog ran over to a tick, by 2 ms."""
    found = files(ran(QUOTA, 'cgroup = "g"'))
    stat = found.pop("cgroup/g/cpu.stat").splitlines()
    assert stat == [
        "usage_usec 252000",
        "nr_periods 10",
        "nr_throttled 10",
        "throttled_usec 748000",
    ]
    assert found == {"cgroup/g/cpu.weight": "50\n", "cgroup/g/cpu.max": "25000 100000\n"}


def test_files_of_version_1_say_so_under_their_own_names_and_in_ns():
    group = """
[machine.cgroup.g]
version = 1
cpu_shares = 512
cpu_quota = "25 ms"
[machine.cgroup.h]
version = 1
"""
    found = files(ran(group, 'cgroup = "g"', kernel="4.4"))
    assert found["cgroup/cpu/g/cpu.shares"] == "512\n"
    assert found["cgroup/cpu/g/cpu.cfs_quota_us"] == "25000\n"
    assert found["cgroup/cpu/h/cpu.cfs_quota_us"] == "-1\n"
    assert found["cgroup/cpu/h/cpu.cfs_period_us"] == "100000\n"
    lines = dict(line.split() for line in found["cgroup/cpu/g/cpu.stat"].splitlines())
    assert list(lines) == ["nr_periods", "nr_throttled", "throttled_time"]
    assert int(lines["throttled_time"]) > 500_000_000


def test_without_a_word_to_the_cpu_controller_it_is_off():
    machine = ran('[machine.cgroup.g]\nmemory = "64 MiB"\n', 'cgroup = "g"')
    assert not [name for name in files(machine) if name.rpartition("/")[2].startswith("cpu")]
    assert machine.kernel.terms == {}


def test_a_group_that_says_nothing_competes_as_well_once_another_says_something():
    machine = ran(QUOTA + '[machine.cgroup.other]\nmemory = "64 MiB"\n')
    assert list(machine.groups) == ["g", "other"]
    assert machine.groups["other"].shares == 1024


def test_a_child_named_before_its_parent_is_in_it_and_in_its_memory_limit():
    group = """
[machine.cgroup."web/php"]
cpu_weight = 10
[machine.cgroup.web]
memory = "64 MiB"
"""
    machine = ran(group, 'cgroup = "web/php"')
    assert machine.groups["web/php"].parent is machine.groups["web"]
    assert machine.kernel.cgroups["p"] == "web"


def test_a_process_asks_for_slices_of_its_own():
    machine = ran("", 'slice = "0.3 ms"', kernel="6.12")
    assert machine.kernel.terms["p"].slice_ns == 300_000


def test_a_process_is_pinned_to_what_it_and_its_groups_allow():
    group = '[machine.cgroup.g]\ncpus = "1"\n'
    machine = ran(group, 'cgroup = "g"\ncpus = "0-1"\npolicy = "batch"')
    terms = machine.kernel.terms["p"]
    assert (terms.allowed, terms.policy, terms.group) == (frozenset([1]), SCHED_BATCH, None)
    assert machine.sched.cpu_times[0].user_ns == 0
    assert machine.sched.cpu_times[1].user_ns > 900_000_000


@pytest.mark.parametrize(
    ("group", "own", "kernel", "problem"),
    [
        ("[machine.cgroup.g]\ncpu_wait = 3\n", "", "6.1", "did you mean 'cpu_weight'"),
        ("[machine.cgroup.g]\ncpu_weight = 0\n", "", "6.1", "cpu_weight"),
        ('[machine.cgroup.g]\ncpu_quota = "20"\n', "", "6.1", "cpu_quota"),
        ('[machine.cgroup.g]\ncpu_quota = "0.5 ms"\n', "", "6.1", "at least 1 ms"),
        ("[machine.cgroup.g]\ncpu_shares = 9\n", "", "6.1", "accepted: cpu_weight, or another"),
        ("[machine.cgroup.g]\ncpu_weight = 9\nversion = 1\n", "", "6.1", "accepted: cpu_shares"),
        (QUOTA, "", "4.4", "version 2 has a cpu controller from 4.15 on"),
        ('[machine.cgroup.g]\ncpu_quota = "9 ms"\nversion = 1\n', "", "2.6.32", "came with 3.2"),
        ("[machine.cgroup.g]\ncpu_shares = 9\nversion = 1\n", "", "2.6.16", "came with 2.6.24"),
        ('[machine.cgroup.g]\ncpu_period = "9 ms"\n', "", "6.1", "there is no 'cpu_quota'"),
        (QUOTA + 'cpu_burst = "30 ms"\n', "", "6.1", "more than the quota"),
        (QUOTA + 'cpu_burst = "3 ms"\n', "", "5.4", "came with 5.14"),
        ('[machine.cgroup."a/b"]\n', "", "6.1", "parent cgroup 'a'"),
        ('[machine.cgroup."a//b"]\n', "", "6.1", "named as below /sys/fs/cgroup"),
        ('[machine.cgroup.a]\n[machine.cgroup."a/b"]\nmemory = "9 MiB"\n', "", "6.1", "at the top"),
        ('[machine.cgroup.a]\nswap = "9 MiB"\n', "", "6.1", "lacks 'memory' beside 'swap'"),
        ('[machine.cgroup.g]\ncpus = "2"\n', "", "6.1", "there is no CPU 2"),
        ('[machine.cgroup.g]\ncpus = "1-0"\n', "", "6.1", "not a range of CPUs"),
        ("", 'cpus = "0,x"', "6.1", 'accepted: such as "0" or "0-1"'),
        ('[machine.cgroup.g]\ncpus = "0"\n', 'cgroup = "g"\ncpus = "1"', "6.1", "no CPU is left"),
        ("", 'policy = "fifo"', "6.1", '"other", "batch", "idle"'),
        ("", 'policy = "idle"', "2.6.18", "came with 2.6.23"),
        ("", 'slice = "3 ms"', "6.6", "slices of a program's own came with 6.12"),
        ("", 'slice = "50 us"', "6.12", "100 us"),
        ("", 'slice = "1 s"', "6.12", "100 ms"),
        ("", 'cgroup = "h"', "6.1", "cgroup 'h'"),
    ],
)
def test_a_mistake_is_told_with_its_place(group, own, kernel, problem):
    with pytest.raises(ScenarioError) as told:
        load(group, own, kernel=kernel)
    assert problem in str(told.value)
    assert "limits.toml:" in str(told.value)


@pytest.mark.parametrize("key", ['cpus = "0"', 'policy = "idle"', 'slice = "3 ms"', 'cgroup = "g"'])
def test_a_program_outside_the_server_has_no_cpu_there(key):
    with pytest.raises(ScenarioError, match="runs outside the server: no"):
        load("[machine.cgroup.g]\n", outside=key)


def test_threads_of_a_core_come_in_pairs():
    base = BASE.replace("cpus = 2", "cpus = 3") % ("6.1", "", "")
    with pytest.raises(ScenarioError, match="each core has two of them, got 3") as told:
        load_text(base + "[machine.smt]\n", Path("limits.toml"), seed=1)
    assert "limits.toml:5:8" in str(told.value)


def test_cpuinfo_and_sys_tell_the_threads_of_a_core():
    machine = ran("[machine.smt]\n[machine.cpufreq]\n")
    paragraph = machine.proc.read("cpuinfo").split("\n\n")[1].splitlines()
    assert paragraph[-4:] == [
        "physical id\t: 0",
        "siblings\t: 2",
        "core id\t\t: 0",
        "cpu cores\t: 1",
    ]
    files = machine.proc.snapshot()
    assert files["cpu1/topology/thread_siblings_list"] == "0,1\n"


AUTOGROUPS = """
[machine.sched]
autogroup = true
[process.many]
program = "cpuburn"
runtime = "2 s"
count = 3
cpus = "0"
nice = 19
"""


@pytest.mark.parametrize(("kernel", "share"), [("2.6.38", 1 / 4), ("6.1", 1 / 4), ("2.6.37", 0.98)])
def test_with_autogroups_nice_counts_in_a_session_alone(kernel, share):
    """Of one CPU: a session of nice 0, three of 19; before 2.6.38 1024 of 1024 + 3 x 15."""
    machine = ran(AUTOGROUPS, 'cpus = "0"', kernel=kernel)
    tasks = machine.sched.processes.tasks.values()
    [used] = [task.utime_ns for task in tasks if task.nice == 0 and task.comm == "cpuburn"]
    assert used / 1e9 == pytest.approx(share, abs=0.03)
    assert not [name for name in files(machine) if name.rpartition("/")[2].startswith("cpu")]


WEIGHTS = """
[machine.disk.sda]
profile = "%s"
[machine.cgroup.heavy]
version = 1
blkio_weight = 800
[machine.cgroup.light]
version = 1
blkio_weight = 200
[machine.mount."/data"]
type = "ext3"
device = "sda"
%s"""
READERS = """
[process.%s]
program = "fio"
filename = "/data/%s"
size = "1 GiB"
rw = "randread"
block_size = "4 KiB"
direct = true
runtime = "20 s"
cgroup = "%s"
"""


def readers(*names):
    return "".join(READERS % (name, name, name) for name in names)


def test_weights_share_a_disk():
    """Two random readers of one file each: 800 to 200 of the disk's time."""
    text = BASE.replace('duration = "1 s"', 'duration = "10 s"') % ("3.2", "", "")
    scenario = load_text(
        text + WEIGHTS % ("sata-7200", readers("heavy", "light")), Path("limits.toml"), seed=1
    )
    assert scenario.omissions == ()
    machine = Machine(scenario, 1)
    machine.run_until(10_000_000_000)
    machine.check()
    found = files(machine)
    assert found["cgroup/blkio/heavy/blkio.weight"] == "800\n"
    times = [
        int(found[f"cgroup/blkio/{name}/blkio.time"].split()[1]) for name in ("heavy", "light")
    ]
    assert times[0] / times[1] == pytest.approx(4, rel=0.1)
    assert sum(times) == pytest.approx(10_000, rel=0.1)
    assert found["cgroup/blkio/light/blkio.sectors"].startswith("8:0 ")


def test_version_2_has_weights_under_its_own_name_and_its_own_scale():
    group = """
[machine.disk.sda]
profile = "sata-7200"
[machine.cgroup.g]
io_weight = 20
"""
    machine = ran(group, kernel="4.14")
    assert files(machine)["cgroup/g/io.weight"] == "default 20\n"
    assert machine.blkcgs["g"].weight == 100


@pytest.mark.parametrize(("elevator", "told"), [("cfq", False), ("deadline", True)])
def test_a_weight_that_no_elevator_asks_for_is_told_with_its_place(elevator, told):
    group = f"""
[machine.disk.sda]
profile = "sata-7200"
scheduler = "{elevator}"
[machine.cgroup.g]
version = 1
blkio_weight = 100
"""
    line = (
        "limits.toml:27:16: machine.cgroup.g.blkio_weight: without effect on disks whose elevator"
        " weighs no groups: sda (deadline)"
    )
    assert load(group, kernel="3.2").omissions == ((line,) if told else ())


WEIGHT = "[machine.cgroup.g]\nversion = 1\nblkio_weight = %s\n"


@pytest.mark.parametrize(
    ("group", "kernel", "problem"),
    [
        (WEIGHT % 1001, "3.2", "blkio_weight: must be at most 1000, got 1001"),
        (WEIGHT % 5, "3.2", "blkio_weight: must be at least 10, got 5"),
        (WEIGHT % 99, "2.6.38", "too little for this release, got 99 (accepted: 100 to 1000)"),
        (WEIGHT % 100, "2.6.32", "got Linux 2.6.32 (accepted: 2.6.33 to 4.20)"),
        (WEIGHT % 100, "5.0", "got Linux 5.0 (accepted: 2.6.33 to 4.20)"),
        ("[machine.cgroup.g]\nblkio_weight = 100\n", "4.9", "accepted: io_weight, or another"),
        ("[machine.cgroup.g]\nversion = 1\nio_weight = 9\n", "4.9", "accepted: blkio_weight, or"),
        ("[machine.cgroup.g]\nio_weight = 9\n", "4.4", "got Linux 4.4 (accepted: 4.5 to 4.20)"),
        (
            '[machine.cgroup.a]\n[machine.cgroup."a/b"]\nio_weight = 9\n',
            "4.9",
            "shared among the groups at the top",
        ),
    ],
)
def test_a_wrong_weight_is_told_with_its_place(group, kernel, problem):
    with pytest.raises(ScenarioError) as told:
        load(group, kernel=kernel)
    assert problem in str(told.value)
    assert "limits.toml:" in str(told.value)
