"""The real procps 4 and util-linux print of memory, swap and processes what ours print."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from sim.tools.run import run_tool
from sim.tools.snapshot import Snapshot
from tests.oracle import real_tools
from tests.oracle.test_oracle_tools import needs, server
from tests.tools.memory_texts import process
from tests.tools.memory_texts import server as server_with_processes

pytestmark = pytest.mark.oracle
FREE = ("free", "free -b", "free -m", "free -g", "free -h", "free -w -t", "free -h -w")
VMSTAT = ("vmstat -s", "vmstat -d")
SWAPON = ("swapon -s", "swapon --show", "swapon --show --bytes", "swapon --show --noheadings")
WHOLE_PROC = """
mount --bind "$1" /proc || exit 97
export LC_ALL=C TZ=UTC TERM=dumb COLUMNS=80
exec $2
"""


def ours(command: str, snapshots: Sequence[Snapshot]) -> str:
    texts = run_tool(
        command.split(),
        snapshots,
        hostname="h",
        release="r",
        boot_wallclock=datetime(2026, 1, 1),
        locale="ISO",
        users=0,
    )
    return "".join(texts)


@pytest.mark.parametrize("seed", range(3))
def test_free_and_totals_of_vmstat(seed: int, tmp_path: Path) -> None:
    needs("free", r"procps-ng 4\.0\.[0-2]$")
    snapshots = server(seed)
    commands = (*FREE, *VMSTAT)
    real = real_tools.outputs(commands, snapshots, tmp_path)
    assert [ours(command, snapshots) for command in commands] == real


def swap_areas(draw: random.Random, count: int) -> str:
    """Return /proc/swaps in the form of a kernel up to 5.10."""
    rows = []
    for number in range(count):
        size = 4 * draw.randrange(1, 10 ** draw.randint(3, 9))
        used = draw.choice((0, size, draw.randrange(size)))
        kind = draw.choice(("partition", "file\t"))
        rows.append(f"{f'/dev/sd{number}':<40}{kind}\t{size}\t{used}\t{-1 - number}\n")
    return "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n" + "".join(rows)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_swapon(count: int, tmp_path: Path) -> None:
    needs("swapon", r"util-linux 2\.3[89]")
    text = swap_areas(random.Random(count), count)
    snapshots = [Snapshot(0, {"swaps": text})] * 2
    real = real_tools.outputs(SWAPON, snapshots, tmp_path)
    assert [ours(command, snapshots) for command in SWAPON] == real


def processes(draw: random.Random) -> list[dict[str, str]]:
    """Return processes of all sizes and ages."""
    found = []
    for pid in draw.sample(range(300, 32000), 30):
        pages = draw.randrange(10 ** draw.randint(3, 9))
        found.append(
            process(
                pid,
                draw.choice(("sh", "a-long-command", "kworker/0:1")),
                ticks=draw.randrange(10 ** draw.randint(1, 10)),
                state=draw.choice("SRDTZ"),
                nice=draw.randrange(-20, 20),
                pages=(pages, pages // 3, pages // 9),
            )
        )
    return found


def test_top_with_a_whole_proc_of_its_own(tmp_path: Path) -> None:
    """Nothing changes while the real one looks, so that all %CPU are 0 and the order is its own."""
    needs("top", r"procps-ng 4\.0\.[0-2]$")
    reading = server_with_processes(1000, (5,) * 8, *processes(random.Random(1)))
    proc = tmp_path / "proc"
    write_proc(proc, reading)
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", WHOLE_PROC, "sh", str(proc), "top -b -n 1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    real = done.stdout.splitlines()
    mine = ours("top -b -n 1", [reading, reading]).splitlines()
    assert real[1] == mine[1]
    assert real[3:7] == mine[3:7]  # Without the CPU's states: of no time, each has its own idea.
    assert sorted(real[7:]) == sorted(mine[7:])


def write_proc(root: Path, snapshot: Snapshot) -> None:
    """Write a /proc with all that the real top wants to find."""
    (root / "sys" / "kernel").mkdir(parents=True)
    (root / "sys" / "kernel" / "pid_max").write_text("32768\n")
    (root / "sys" / "kernel" / "osrelease").write_text("5.10.0\n")
    for name, text in snapshot.files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    for name in snapshot.files:
        if name.endswith("/status"):
            (root / name).with_name("cmdline").write_text("")
    own = next(name for name in snapshot.files if name.endswith("/stat"))
    shutil.copytree((root / own).parent, root / "self")
    with (root / "self" / "status").open("a") as file:
        file.write("Cpus_allowed:\tffffffff\nMems_allowed:\t00000001\n")
    (root / "cpuinfo").write_text("processor\t: 0\nmodel name\t: none\nflags\t\t: fpu\n\n")
    (root / "vmstat").write_text("nr_free_pages 1\npgpgin 5\npgpgout 6\npswpin 1\npswpout 1\n")
