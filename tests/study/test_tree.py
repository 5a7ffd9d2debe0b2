"""What the tree of a server adds to its /proc, against what was worked out by hand."""

from math import exp
from pathlib import Path

import pytest

from sim.fs.proc.root import PROCESSES
from sim.machine import simulate
from sim.scenario import Scenario, load
from sim.study.tree.folder import Folder, replace, rewrite
from sim.study.tree.pressure import Pressure
from sim.study.tree.whole import Server
from sim.units import NS_PER_S
from tests.cli.small import SMALL, small_file

MIB = 1 << 20

HEAD = """\
title = "One program"
[machine]
kernel = "5.10"
cpus = 1
memory = "1 GiB"
disk.sda = { device = "ram", capacity = "4 GiB", latency = "2 ms", scheduler = "none" }
mount."/" = { type = "ext4", device = "sda" }
[run]
duration = "30 s"
[measure]
interval = "1 s"
"""
COPY = """\
[process.reader]
program = "dd"
if = "/old"
input_size = "64 MiB"
bs = "1 MiB"
[process.writer]
program = "dd"
if = "/dev/zero"
of = "/new"
bs = "1 MiB"
blocks = 64
output_direct = true
start = "10 s"
"""
HOGS = """\
[process.hog]
program = "cpuburn"
count = 2
runtime = "1 h"
"""


def scenario(folder: Path, processes: str) -> Scenario:
    path = folder / "one.toml"
    path.write_text(HEAD + processes)
    return load(str(path))


def accounts(tree: dict[str, str]) -> dict[str, dict[str, int]]:
    """Return the /proc/PID/io of each dd by its path."""
    return {
        path: {name: int(value) for name, value in map(str.split, text.splitlines())}
        for path, text in tree.items()
        if path.endswith("/io") and tree.get(path.replace("/io", "/comm")) == "dd\n"
    }


def test_io_of_a_process_is_what_dd_was_told_to_copy(tmp_path: Path) -> None:
    server = Server(scenario(tmp_path, COPY))
    found: dict[str, dict[str, int]] = {}
    while server.now_ns() < 12 * NS_PER_S:
        server.run_to(server.now_ns() + 10_000_000)
        found |= accounts(server.tree())
    # A request of up to 1.25 MiB takes 2 ms, 64 MiB 100 ms or more. The last reading is up to 10 ms
    # before the end, in which 6 MiB are done.
    read, written = found.values()
    assert 56 * MIB < read["rchar:"] <= 64 * MIB
    assert read["syscr:"] == -(-read["rchar:"] // MIB)
    assert 0 <= read["read_bytes:"] - read["rchar:"] <= 8 * MIB, "read-ahead"
    assert 56 * MIB < written["wchar:"] <= 64 * MIB
    assert written["wchar:"] <= written["write_bytes:"] <= written["wchar:"] + 2 * MIB
    assert read["write_bytes:"] == written["read_bytes:"] == 0


BUFFERED = """\
[process.writer]
program = "dd"
if = "/dev/zero"
of = "/new"
bs = "1 MiB"
blocks = 64
"""


def test_who_makes_pages_dirty_counts_them_and_not_who_writes_them(tmp_path: Path) -> None:
    server = Server(scenario(tmp_path, BUFFERED))
    written: dict[str, int] = {}
    while server.now_ns() < 1 * NS_PER_S:
        server.run_to(server.now_ns() + 5_000_000)
        found = accounts(server.tree())
        written |= {path: each["write_bytes:"] for path, each in found.items()}
    # The last reading may be 5 ms before its end, in which it copies some MiB.
    assert 48 * MIB < max(written.values()) <= 65 * MIB
    server.run_to(40 * NS_PER_S, beyond=True)  # 30 s old, the flusher writes them
    assert server.machine.devices["sda"].stats.write_sectors * 512 >= 64 * MIB
    flushers = [task for task in server.machine.sched.processes.tasks.values() if task.is_kthread]
    assert sum(task.write_bytes for task in flushers) < MIB, "but for the journal's own blocks"


def test_who_truncates_dirty_pages_counts_them_as_cancelled(tmp_path: Path) -> None:
    second = BUFFERED.replace("writer", "second") + 'start = "5 s"\n'
    server = Server(scenario(tmp_path, BUFFERED + second))
    found: dict[str, dict[str, int]] = {}
    while server.now_ns() < 6 * NS_PER_S:
        server.run_to(server.now_ns() + 5_000_000)
        found |= accounts(server.tree())
    first, other = found.values()
    assert first["cancelled_write_bytes:"] == 0
    # All that the first had left dirty, and nobody had begun to write.
    assert other["cancelled_write_bytes:"] == server.machine.vm.discarded * 4096 > 0


def test_two_that_share_a_cpu_wait_while_the_other_runs(tmp_path: Path) -> None:
    server = Server(scenario(tmp_path, HOGS))
    server.run_to(20 * NS_PER_S)
    tree = server.tree()
    hogs = [path for path, text in tree.items() if text == "cpuburn\0"]
    rows = [list(map(int, tree[path.replace("cmdline", "schedstat")].split())) for path in hogs]
    assert len(rows) == 2
    for (ran_ns, waited_ns, turns), (other_ns, _, _) in (rows, rows[::-1]):
        assert ran_ns == pytest.approx(10e9, rel=0.01)
        # It may be in the middle of a turn or a wait of some ms.
        assert waited_ns == pytest.approx(other_ns, abs=20e6)
        assert turns > 100
    [cpu] = [line for line in tree["proc/schedstat"].splitlines() if line.startswith("cpu0")]
    assert int(cpu.split()[8]) == pytest.approx(20e9, rel=0.01), "what both waited"


@pytest.mark.parametrize("kernel", ["2.6.16", "2.6.26", "2.6.32", "4.18"])
def test_the_lines_of_interrupts_sum_to_the_total_of_stat(tmp_path: Path, kernel: str) -> None:
    server = Server(load(small_file(tmp_path, SMALL.replace("2.6.16", kernel))))
    server.run_to(10 * NS_PER_S)
    tree = server.tree()
    rows = [line.split() for line in tree["proc/interrupts"].splitlines()[1:]]
    sums = {row[0].rstrip(":"): sum(int(word) for word in row[1:3]) for row in rows}
    [intr] = [line for line in tree["proc/stat"].splitlines() if line.startswith("intr")]
    counted = [
        n for name, n in sums.items() if name != "LOC" or server.machine.version >= (2, 6, 27)
    ]
    assert sum(counted) == int(intr.split()[1])


def test_who_looks_changes_nothing(tmp_path: Path) -> None:
    small = load(small_file(tmp_path))
    names = ("stat", "diskstats", "loadavg", "meminfo", "vmstat", "uptime")
    plain = {sample.t_ns: sample.files for sample in simulate(small, small.seed).samples}
    server = Server(small)
    for second in range(0, 16, 2):
        server.run_to(second * NS_PER_S)
        tree = server.tree()
        assert {name: tree[f"proc/{name}"] for name in names} == dict(plain[second * NS_PER_S])


def test_a_process_has_what_top_reads_and_the_fields_of_its_release(tmp_path: Path) -> None:
    small = load(small_file(tmp_path, SMALL.replace("2.6.16", "4.18")))
    server = Server(small)
    server.run_to(5 * NS_PER_S)
    tree = server.tree()
    server.machine.proc.snapshot_also((PROCESSES,))
    for path, text in server.machine.proc.snapshot().items():
        if path.endswith("/stat"):
            longer = tree[f"proc/{path}"]
            assert longer.startswith(text.rstrip("\n"))
            assert len(longer.rpartition(")")[2].split()) + 2 == 52
        if path.endswith("/status"):
            assert set(text.splitlines()) < set(tree[f"proc/{path}"].splitlines())


@pytest.mark.parametrize("write", [replace, rewrite])
def test_a_folder_follows_its_tree(tmp_path: Path, write: object) -> None:
    folder = Folder(tmp_path, replace if write is replace else rewrite)
    folder.update({"proc/1/stat": "one\n", "proc/stat": "a long text\n", "sys/block/": ""})
    kept = (tmp_path / "proc/stat").open()
    assert folder.update({"proc/2/stat": "two\n", "proc/stat": "short\n", "sys/block/": ""}) == 2
    there = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert there == ["proc", "proc/2", "proc/2/stat", "proc/stat", "sys", "sys/block"]
    with kept:
        assert kept.read() == ("a long text\n" if write is replace else "short\n")


def pressures(tree: dict[str, str], resource: str) -> dict[str, dict[str, float]]:
    """Return the lines of /proc/pressure/RESOURCE by their first words."""
    found = {}
    for line in tree[f"proc/pressure/{resource}"].splitlines():
        how, *pairs = line.split()
        found[how] = {name: float(value) for name, value in (pair.split("=") for pair in pairs)}
    return found


def test_pressure_of_two_that_share_a_cpu_is_all_of_the_time(tmp_path: Path) -> None:
    server = Server(scenario(tmp_path, HOGS))
    server.run_to(20 * NS_PER_S)
    some = pressures(server.tree(), "cpu")["some"]
    assert some["total"] == pytest.approx(20e6, rel=0.001)
    for window_s in (10, 60, 300):
        share = 100 * (1 - exp(-20 / window_s))
        assert some[f"avg{window_s}"] == pytest.approx(share, rel=0.03)
    assert pressures(server.tree(), "io")["some"]["total"] < 0.01e6


def test_pressure_of_one_that_reads_is_the_iowait_of_its_cpu(tmp_path: Path) -> None:
    reader = COPY.partition("[process.writer]")[0]
    direct = reader.replace("64 MiB", "3 GiB").replace("1 MiB", "64 KiB")  # 2 ms each: 98 s
    server = Server(scenario(tmp_path, direct + "input_direct = true\n"))
    server.run_to(10 * NS_PER_S)
    tree = server.tree()
    iowait_s = int(tree["proc/stat"].splitlines()[1].split()[5]) / 100
    found = pressures(tree, "io")
    assert iowait_s > 8
    # Pressure weighs each period by what was not idle in it; alone on its CPU that is all.
    assert found["full"]["total"] == pytest.approx(iowait_s * 1e6, rel=0.02)
    assert found["full"]["total"] <= found["some"]["total"]
    assert pressures(tree, "memory")["some"]["total"] == 0


def test_a_total_of_pressure_is_up_to_the_moment_at_which_it_is_read() -> None:
    """psi_show collects whenever it is read; only the averages wait for the end of 2 s."""
    told = Pressure(1)
    told.change(0, 7, 0, "io")
    for second in (1, 2, 3):
        read = told.files(second * 10**9, (6, 1))["pressure/io"]
        assert f"total={second}000000" in read.splitlines()[0]
        assert ("avg10=0.00" in read) is (second < 2)


def test_releases_before_4_20_tell_no_pressure(tmp_path: Path) -> None:
    server = Server(load(small_file(tmp_path, SMALL.replace("2.6.16", "4.18"))))
    assert not [path for path in server.tree() if path.startswith("proc/pressure")]


def sysctls(tree: dict[str, str]) -> dict[str, str]:
    """Return what a tree has of /proc/sys/vm."""
    below = "proc/sys/vm/"
    return {path.removeprefix(below): text for path, text in tree.items() if path.startswith(below)}


def test_sysctls_are_those_of_the_scenario_in_the_units_of_their_names(tmp_path: Path) -> None:
    text = HEAD + HOGS
    given = "[machine.vm]\nswappiness = 10\ndirty_ratio = 30\ndirty_expire = '15 s'\n"
    (tmp_path / "set.toml").write_text(text.replace("[run]", f"{given}[run]"))
    found = sysctls(Server(load(str(tmp_path / "set.toml"))).tree())
    assert found["swappiness"] == "10\n"
    assert found["dirty_ratio"] == "30\n"
    assert found["dirty_expire_centisecs"] == "1500\n"
    assert found["dirty_bytes"] == "0\n"
    assert found["min_free_kbytes"] == "4096\n"  # the root of 16 x 1 GiB in KiB
    assert found["watermark_scale_factor"] == "10\n"


def test_a_limit_in_bytes_sets_its_ratio_to_nothing(tmp_path: Path) -> None:
    text = (HEAD + HOGS).replace("[run]", "[machine.vm]\ndirty_limit = '64 MiB'\n[run]")
    (tmp_path / "bytes.toml").write_text(text)
    found = sysctls(Server(load(str(tmp_path / "bytes.toml"))).tree())
    assert (found["dirty_bytes"], found["dirty_ratio"]) == ("67108864\n", "0\n")
    assert (found["dirty_background_bytes"], found["dirty_background_ratio"]) == ("0\n", "10\n")


def test_releases_before_2_6_29_have_no_limits_in_bytes(tmp_path: Path) -> None:
    found = sysctls(Server(load(small_file(tmp_path))).tree())
    assert "dirty_ratio" in found
    assert not {"dirty_bytes", "watermark_scale_factor"} & set(found)
