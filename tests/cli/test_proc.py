"""`iotwin proc`: a tree is whole, is what `iotwin exec` shows, and takes nobody's place."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import EXIT_INTERRUPTED, cli
from sim.cli.proc import interrupts_wait
from sim.study.tree.folder import NOTE
from tests.cli.small import SMALL, small_file
from tests.cli.test_usage import refused

TOP = Path(__file__).resolve().parents[2]


def invoke(*arguments: str) -> Result:
    """Run a command line that succeeds."""
    result = CliRunner().invoke(cli, arguments, prog_name="iotwin", catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def files(top: Path) -> Mapping[str, str]:
    """Return all texts below a folder by path, but the note."""
    found = (path for path in top.rglob("*") if path.is_file() and path.name != NOTE)
    return {str(path.relative_to(top)): path.read_text() for path in found}


def test_a_file_is_what_cat_prints_on_the_simulated_server(tmp_path: Path) -> None:
    small = small_file(tmp_path)
    invoke("proc", small, "--at", "10 s", "--out", str(tmp_path / "tree"))
    names = ("stat", "diskstats", "loadavg", "uptime", "meminfo", "vmstat", "swaps", "slabinfo")
    shown = [
        invoke("exec", small, "--at", "10 s", "--", "cat", f"/proc/{name}").stdout for name in names
    ]
    assert [(tmp_path / "tree/proc" / name).read_text() for name in names] == shown


def test_what_is_printed_says_what_it_is_and_how_to_point_programs_at_it(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    out = invoke("proc", small_file(tmp_path), "--at", "10 s", "--out", str(tree)).stdout
    count = len(files(tree))
    assert out.splitlines()[0] == f"{tree}: small, Linux 2.6.16 at 10 s, {count} files"
    assert f"--path.procfs={tree}/proc --path.sysfs={tree}/sys" in out
    note = (tree / NOTE).read_text().splitlines()
    assert note[0] == "small, Linux 2.6.16: 10 s"
    assert note[1].startswith("seed 5, iotwin ")


def test_without_a_moment_it_is_the_end_of_the_run(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    out = invoke("proc", small_file(tmp_path), "--out", str(tree)).stdout
    uptime_s = float((tree / "proc/uptime").read_text().split()[0])
    assert f"at {uptime_s:g} s," in out
    assert 10 < uptime_s < 60


def test_a_series_has_a_whole_tree_of_each_moment(tmp_path: Path) -> None:
    small, top = small_file(tmp_path), tmp_path / "series"
    invoke("proc", small, "--at", "2 s", "--every", "2.5 s", "--out", str(top))
    names = sorted(path.name for path in top.iterdir())
    assert names[:3] == ["000002", "000004.5", "000007"]
    assert names.pop() == NOTE
    uptimes = [float((top / name / "proc/uptime").read_text().split()[0]) for name in names]
    assert uptimes == [float(name) for name in names]
    invoke("proc", small, "--at", "7 s", "--out", str(tmp_path / "one"))
    assert files(top / "000007") == files(tmp_path / "one")


REFUSED = [
    (("--at", "2 min"), "120 s is not within the run: 0 to 60 s"),
    (("--at", "soon"), "expected a time"),
    (("--every", "0 s"), "0 s is no interval"),
    (("--every", "1 us"), "0.0000010 s gives 60000001 trees (allowed: up to 100000)"),
    (("--every", "1 s", "--live"), "one of them"),
    (("--speed", "2"), "--speed is of --live"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_a_mistake_is_told_and_nothing_is_written(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    said = refused("proc", small_file(tmp_path), "--out", str(tmp_path / "tree"), *words)
    assert message.replace("0.0000010", "1e-06") in " ".join(said.split())
    assert not (tmp_path / "tree").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    for words in ((), ("--replace",), ("--live",), ("--every", "1 s", "--replace")):
        said = refused("proc", small_file(tmp_path), "--out", str(mine), *words)
        assert "is not empty, and iotwin did not write it" in said
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]
    for wrong in (mine / "thesis.txt", tmp_path / "no/where"):
        assert refused("proc", small_file(tmp_path), "--out", str(wrong))


def test_an_earlier_tree_is_replaced_when_that_is_said(tmp_path: Path) -> None:
    small, tree = small_file(tmp_path), tmp_path / "tree"
    invoke("proc", small, "--at", "10 s", "--out", str(tree))
    before = files(tree)
    assert "--replace" in refused("proc", small, "--at", "3 s", "--out", str(tree))
    assert files(tree) == before
    invoke("proc", small, "--at", "3 s", "--out", str(tree), "--replace")
    assert (tree / "proc/uptime").read_text().startswith("3.00 ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.toml", "tree"]


def started(tmp_path: Path, *words: str) -> "subprocess.Popen[str]":
    """Start a command in a process of its own."""
    command = [sys.executable, "-m", "sim", "proc", small_file(tmp_path), *words]
    return subprocess.Popen(
        command,
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Who starts the tests in the background has interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_for(found: Path) -> None:
    """Wait until a file is there."""
    until_s = time.monotonic() + 60
    while not found.exists():
        assert time.monotonic() < until_s, f"no {found}"
        time.sleep(0.05)


def test_a_live_tree_goes_on_and_stays_when_it_is_interrupted(tmp_path: Path) -> None:
    tree = tmp_path / "now"
    process = started(tmp_path, "--live", "--speed", "5", "--out", str(tree))
    try:
        wait_for(tree / "proc/uptime")
        kept_open = (tree / "proc/uptime").open()
        seen = set()
        until_s = time.monotonic() + 60
        while len(seen) < 5 and time.monotonic() < until_s:
            text = (tree / "proc/uptime").read_text()
            assert text.endswith("\n"), "a file is there whole or not at all"
            seen.add(float(text.split()[0]))
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=30)
    finally:
        process.kill()
    with kept_open:
        assert float(kept_open.read().split()[0]) <= min(seen), "files are replaced"
    assert len(seen) == 5
    assert process.returncode == EXIT_INTERRUPTED
    assert "from 0 s on, 5 s a second" in out
    uptime_s = float((tree / "proc/uptime").read_text().split()[0])
    assert f"{tree} stays as of {uptime_s:g} s" in error
    assert "Traceback" not in error
    pids = {task.name for task in (tree / "proc").iterdir() if task.name.isdecimal()}
    threads = (tree / "proc/loadavg").read_text().split()[3].partition("/")[2]
    assert len(pids) == int(threads), "processes that have gone are gone"


def test_an_interrupt_comes_when_a_moments_files_are_written() -> None:
    """Also where other threads run, to which the kernel may give the signal."""
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    done = False
    try:
        with pytest.raises(KeyboardInterrupt), interrupts_wait():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            done = True
        assert done
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
        end.set()
        other.join()


def test_an_interrupted_series_tells_how_many_trees_are_whole(tmp_path: Path) -> None:
    top = tmp_path / "series"
    process = started(tmp_path, "--every", "10 ms", "--out", str(top))
    try:
        wait_for(top / "000000.05/proc/stat")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    finally:
        process.kill()
    trees = [path for path in top.iterdir() if path.is_dir()]
    assert process.returncode == EXIT_INTERRUPTED
    assert f"{len(trees)} trees in {top} are whole" in error
    assert all((tree / "proc/stat").exists() and (tree / NOTE).exists() for tree in trees)


def on(kernel: str) -> str:
    """Return the small scenario on another release; from 5.0 on there is no noop."""
    text = SMALL.replace('"2.6.16"', f'"{kernel}"')
    return text.replace("noop", "none") if kernel >= "5" else text


def test_files_of_components_lie_where_the_kernel_has_them(tmp_path: Path) -> None:
    limited = on("6.1").replace("[link.lan]", "[machine.cgroup.web]\ncpu_weight = 50\n\n[link.lan]")
    small = small_file(tmp_path, limited)
    invoke("proc", small, "--at", "5 s", "--out", str(tmp_path / "tree"))
    found = files(tmp_path / "tree")
    assert found["sys/fs/cgroup/web/cpu.weight"] == "50\n"
    assert found["sys/devices/system/cpu/online"] == "0-1\n"
    assert found["sys/block/sda/queue/scheduler"] == "[none]\n"
    row = found["proc/diskstats"].split()
    assert found["sys/block/sda/stat"].split() == row[3:]
    assert found["sys/block/sda/dev"] == f"{row[0]}:{row[1]}\n"


@pytest.mark.parametrize(
    ("kernel", "there", "missing"),
    [
        ("2.6.16", {"interrupts", "mounts"}, {"softirqs", "schedstat"}),
        ("2.6.26", {"schedstat"}, {"softirqs"}),
        ("4.18", {"softirqs", "schedstat"}, set()),
        ("6.1", {"softirqs", "schedstat"}, set()),
    ],
)
def test_a_file_is_there_from_its_release_on(
    tmp_path: Path, kernel: str, there: set[str], missing: set[str]
) -> None:
    small = small_file(tmp_path, on(kernel))
    invoke("proc", small, "--at", "5 s", "--out", str(tmp_path / "tree"))
    names = set(os.listdir(tmp_path / "tree/proc"))
    assert there <= names
    assert not missing & names
