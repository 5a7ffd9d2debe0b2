"""Real programs read the twin's trees without error, and what they print is the twin's.

Three releases: 2.6.16, 4.18 and 6.1. A program that is not installed is skipped by name.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sim.report.node_metrics import prometheus_text
from sim.scenario import load
from sim.study.tree.folder import Folder, replace
from sim.study.tree.namespace import NamespaceError, check_namespace
from sim.study.tree.whole import Server
from sim.tools.parse import parse_diskstats, parse_loadavg, parse_meminfo, parse_stat
from sim.tools.snapshot import Snapshot
from sim.units import NS_PER_S
from tests.cli.small import SMALL
from tests.cli.test_proc import wait_for

pytestmark = pytest.mark.oracle
TOP = Path(__file__).resolve().parents[2]
AT_S = 8
KERNELS = ("2.6.16", "4.18", "6.1")
STILL = "0.001"  # simulated seconds a second: the moment stands still while a program looks
# libsensors asks which file system /sys is (statfs), and sadc reads no sensors then.
NO_SENSORS = "sensors_init: Kernel interface error\n"
NODE_EXPORTER = "prometheus-node-exporter"


def needs(*programs: str) -> None:
    """Skip unless these are there, and namespaces too."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"oracle: {program} is not installed")
    try:
        check_namespace()
    except NamespaceError as error:
        pytest.skip(f"oracle: {error}")


def scenario_file(folder: Path, kernel: str) -> str:
    """Write the small scenario for a release; from 5.0 on there is no noop."""
    text = SMALL.replace('"2.6.16"', f'"{kernel}"')
    if kernel >= "4":
        text = text.replace("cpus = 2", 'cpus = 2\naccepts = ["cpu-generation"]')
    path = folder / "small.toml"
    path.write_text(text.replace("noop", "none") if kernel >= "5" else text)
    return str(path)


def shell(folder: Path, kernel: str, *argv: str, speed: str = STILL) -> str:
    """Return what a program prints on the simulated server; it must not fail or complain."""
    words = ["shell", scenario_file(folder, kernel), "--at", f"{AT_S} s", "--speed", speed, "--"]
    done = subprocess.run(
        [sys.executable, "-m", "sim", *words, *argv],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={
            "LC_ALL": "C",
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "TERM": "xterm",
            "HOME": str(folder),
        },
    )
    assert (done.returncode, done.stderr.replace(NO_SENSORS, "")) == (0, "")
    return done.stdout


def twin(folder: Path, kernel: str) -> dict[str, str]:
    """Return the tree of that moment."""
    server = Server(load(scenario_file(folder, kernel)))
    server.run_to(AT_S * NS_PER_S)
    return server.tree()


@pytest.mark.parametrize("kernel", KERNELS)
def test_uptime_free_and_vmstat(tmp_path: Path, kernel: str) -> None:
    needs("uptime", "free", "vmstat")
    tree = twin(tmp_path, kernel)
    load1, load5, load15 = tree["proc/loadavg"].split()[:3]
    assert f"load average: {load1}, {load5}, {load15}" in shell(tmp_path, kernel, "uptime")
    memory = parse_meminfo(tree["proc/meminfo"])
    [_, row, _] = shell(tmp_path, kernel, "free", "-k").splitlines()
    assert [row.split()[n] for n in (1, 3)] == [str(memory["MemTotal"]), str(memory["MemFree"])]
    stat = parse_stat(tree["proc/stat"])
    counted = dict(
        line.strip().split(" ", 1)[::-1]
        for line in shell(tmp_path, kernel, "vmstat", "-s").splitlines()
    )
    assert int(counted["CPU context switches"]) == stat.ctxt
    assert int(counted["IO-wait cpu ticks"]) == stat.cpu.iowait
    assert int(counted["interrupts"]) == stat.intr
    assert int(counted["forks"]) == stat.processes


@pytest.mark.parametrize("kernel", KERNELS)
def test_iostat_since_boot(tmp_path: Path, kernel: str) -> None:
    needs("iostat")
    [disk] = parse_diskstats(twin(tmp_path, kernel)["proc/diskstats"])
    text = shell(tmp_path, kernel, "iostat", "-dx", "-o", "JSON")
    [host] = json.loads(text)["sysstat"]["hosts"]
    assert (host["nodename"], host["number-of-cpus"]) == ("small", 2)
    [row] = host["statistics"][0]["disk"]
    assert row["disk_device"] == "sda"
    assert row["w/s"] == pytest.approx(disk.writes / AT_S, abs=0.0051)
    assert row["wrqm/s"] == pytest.approx(disk.write_merges / AT_S, abs=0.0051)
    assert row["w_await"] == pytest.approx(disk.write_ms / disk.writes, abs=0.0051)
    assert row["util"] == pytest.approx(disk.io_ticks_ms / AT_S / 10, abs=0.05)


@pytest.mark.parametrize("kernel", KERNELS)
def test_mpstat_and_sar(tmp_path: Path, kernel: str) -> None:
    needs("mpstat", "sar")
    text = shell(tmp_path, kernel, "mpstat", "-P", "ALL", "-o", "JSON")
    stat = parse_stat(twin(tmp_path, kernel)["proc/stat"])
    [host] = json.loads(text)["sysstat"]["hosts"]
    rows = {row["cpu"]: row for row in host["statistics"][0]["cpu-load"]}
    for number, cpu in stat.cpus.items():
        assert rows[str(number)]["iowait"] == pytest.approx(cpu.iowait / AT_S, abs=0.1)
        assert rows[str(number)]["usr"] == pytest.approx(cpu.user / AT_S, abs=0.1)
    printed = shell(tmp_path, kernel, "sar", "-q", "1", "1", speed="1")
    average = printed.strip().splitlines()[-1].split()
    assert average[0] == "Average:"
    assert float(average[3]) > 0, "the load average"


@pytest.mark.parametrize("kernel", KERNELS[1:])
def test_pidstat(tmp_path: Path, kernel: str) -> None:
    """sysstat 12 wants 42 fields of /proc/PID/stat, which 2.6.16 has not."""
    needs("pidstat")
    tree = twin(tmp_path, kernel)
    text = shell(tmp_path, kernel, "pidstat", "-u", "-p", "ALL")
    rows = [line.split() for line in text.splitlines()[3:]]
    assert len(rows) == len([path for path in tree if re.fullmatch(r"proc/\d+/stat", path)])
    ticks = {
        path.split("/")[1]: sum(map(int, text.rpartition(")")[2].split()[11:13]))
        for path, text in tree.items()
        if re.fullmatch(r"proc/\d+/stat", path)
    }
    for row in rows:
        assert float(row[7]) == pytest.approx(ticks[row[2]] / AT_S, abs=0.02)
    for option in ("-d", "-w", "-r"):
        assert "sendmail" in shell(tmp_path, kernel, "pidstat", option, "-p", "ALL")


@pytest.mark.parametrize("kernel", KERNELS)
def test_top_and_ps(tmp_path: Path, kernel: str) -> None:
    needs("top", "ps")
    tree = twin(tmp_path, kernel)
    pids = {path.split("/")[1] for path in tree if re.fullmatch(r"proc/\d+/stat", path)}
    text = shell(tmp_path, kernel, "top", "-b", "-n", "1", "-w", "200")
    head = text.splitlines()
    assert f"Tasks: {len(pids):3d} total" in head[1]
    assert tree["proc/loadavg"].split()[0] in head[0]
    assert {line.split()[0] for line in head[7:]} == pids
    listed = shell(tmp_path, kernel, "ps", "-e", "-o", "pid=,comm=").split()
    assert pids <= set(listed[::2])


@pytest.mark.parametrize("kernel", KERNELS)
def test_ps_and_pgrep_in_a_shell_find_themselves(tmp_path: Path, kernel: str) -> None:
    needs("ps", "pgrep", "sh")
    tree = twin(tmp_path, kernel)
    names = {path.split("/")[1]: text for path, text in tree.items() if path.endswith("/wchan")}
    script = "ps -e -o pid=,wchan:40=,comm=; pgrep -c sendmail; ls -d /proc/[0-9]*"
    lines = shell(tmp_path, kernel, "sh", "-c", script).splitlines()
    rows = {words[0]: words[1:] for line in lines if len(words := line.split()) == 3}
    own = rows.keys() - names.keys()
    assert [rows[pid][1] for pid in own] == ["ps"]
    for pid, place in names.items():
        # ps leaves out underlines that a name begins with.
        assert rows[pid][0] == (place.lstrip("_") if place != "0" else "-")
    listed = {line.removeprefix("/proc/") for line in lines if line.startswith("/proc/")}
    assert listed == names.keys(), "nothing of this computer is left in /proc"


@pytest.mark.parametrize("kernel", KERNELS)
def test_atop(tmp_path: Path, kernel: str) -> None:
    needs("atop")
    text = shell(tmp_path, kernel, "atop", "1", "2", speed="1")
    assert "ATOP - small" in text
    assert re.search(r"DSK \|\s+sda", text)
    assert "numcpu     2" in text


@pytest.mark.parametrize("kernel", KERNELS)
def test_btop(tmp_path: Path, kernel: str) -> None:
    needs("btop", "script", "timeout")
    script = tmp_path / "run.sh"
    script.write_text("stty rows 50 cols 160\ntimeout --foreground 4 btop --utf-force\ntrue\n")
    text = shell(tmp_path, kernel, "script", "-qec", f"sh {script}", "/dev/null", speed="1")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert set(re.findall(r"C\d", shown)) == {"C0", "C1"}
    assert "LAV: " + twin(tmp_path, kernel)["proc/loadavg"][:4] in shown
    # It takes names from /proc/PID/comm, which came with 2.6.33.
    assert ("sendmail" in shown) == (kernel != "2.6.16")


@contextmanager
def exporter(tree: Path) -> Iterator[str]:
    """Run node_exporter on a tree; give the address of its metrics."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    words = [f"--path.procfs={tree}/proc", f"--path.sysfs={tree}/sys"]
    process = subprocess.Popen(
        [NODE_EXPORTER, *words, f"--web.listen-address={address}"],
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://{address}/metrics"
    finally:
        process.terminate()
        process.wait()


def metrics(address: str) -> dict[str, float]:
    """Return what it exports, by name and labels, once it answers."""
    for _attempt in range(100):
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                lines = answer.read().decode().splitlines()
            break
        except OSError:
            time.sleep(0.1)
    return values(lines)


def values(lines: Iterable[str]) -> dict[str, float]:
    """Return the figures of a text of metrics by name and labels."""
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


@pytest.mark.parametrize("kernel", KERNELS)
def test_node_exporter(tmp_path: Path, kernel: str) -> None:
    if shutil.which(NODE_EXPORTER) is None:
        pytest.skip(f"oracle: {NODE_EXPORTER} is not installed")
    tree = twin(tmp_path, kernel)
    Folder(tmp_path / "tree", replace).update(tree)
    with exporter(tmp_path / "tree") as address:
        found = metrics(address)
    names = ("stat", "diskstats", "loadavg", "uptime", "meminfo", "vmstat")
    reading = Snapshot(AT_S * NS_PER_S, {name: tree[f"proc/{name}"] for name in names})
    ours = values(prometheus_text(reading).splitlines())
    del ours["node_time_seconds"]  # of the wall
    assert {name: found.get(name) for name in ours} == ours
    average = parse_loadavg(tree["proc/loadavg"])
    [disk] = parse_diskstats(tree["proc/diskstats"])
    stat = parse_stat(tree["proc/stat"])
    memory = parse_meminfo(tree["proc/meminfo"])
    assert found["node_load1"] == average.load1
    assert found['node_disk_writes_completed_total{device="sda"}'] == disk.writes
    assert found['node_disk_io_time_seconds_total{device="sda"}'] == disk.io_ticks_ms / 1000
    assert found['node_cpu_seconds_total{cpu="1",mode="iowait"}'] == stat.cpus[1].iowait / 100
    assert found["node_memory_MemFree_bytes"] == memory["MemFree"] * 1024
    assert found["node_context_switches_total"] == stat.ctxt
    if kernel == "6.1":
        some = tree["proc/pressure/io"].splitlines()[0]
        total_s = int(some.partition("total=")[2]) / 1e6
        assert found["node_pressure_io_waiting_seconds_total"] == pytest.approx(total_s)
    for name in ("cpu", "diskstats", "filesystem", "loadavg", "meminfo", "stat", "vmstat"):
        assert found[f'node_scrape_collector_success{{collector="{name}"}}'] == 1


def ends(pid: int) -> bool:
    """Return whether a process ends within some seconds."""
    for _attempt in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_a_program_is_told_to_end_with_the_command_and_nothing_is_left(tmp_path: Path) -> None:
    needs("sleep")
    (tmp_path / "scratch").mkdir()
    pid = tmp_path / "pid"
    script = tmp_path / "run.sh"
    script.write_text(f"echo $$ > {pid}.new\nmv {pid}.new {pid}\nexec sleep 1000\n")
    words = ["shell", scenario_file(tmp_path, "2.6.16"), "--", "sh", str(script)]
    command = subprocess.Popen(
        [sys.executable, "-m", "sim", *words],
        cwd=TOP,
        env={**os.environ, "TMPDIR": str(tmp_path / "scratch")},
    )
    try:
        wait_for(pid)
        command.terminate()
        assert command.wait(timeout=30) == 128 + signal.SIGTERM
    finally:
        command.kill()
    assert ends(int(pid.read_text()))
    assert not list((tmp_path / "scratch").iterdir())


def test_the_exit_code_is_the_program_s(tmp_path: Path) -> None:
    needs("sh")
    words = ["shell", scenario_file(tmp_path, "2.6.16"), "--", "sh", "-c", "exit 125"]
    done = subprocess.run([sys.executable, "-m", "sim", *words], cwd=TOP, check=False)
    assert done.returncode == 125
