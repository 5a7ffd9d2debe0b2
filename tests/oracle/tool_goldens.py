"""Make the goldens of our tools: what the real ones print on the twin's trees.

    .venv/bin/python -m tests.oracle.tool_goldens [SCENARIO]...

needs sysstat 12.6, procps-ng 4.0 and user namespaces. For each scenario it runs the twin to three
moments, lets each command of COMMANDS read these trees, one after the other, and writes the texts
of /proc and what was printed to tests/tools/goldens/. The tests read those, so that they need
neither the real tools nor the simulation (tests/tools/test_tool_goldens.py). On a busy computer a
tool may read while a tree changes: a text counts when two runs gave the same.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sim.scenario import load
from sim.study.tree.folder import Folder, rewrite
from sim.study.tree.namespace import prepare, start
from sim.study.tree.whole import Server
from sim.units import NS_PER_S

GOLDENS = Path(__file__).resolve().parents[1] / "tools" / "goldens"
# Scenario -> the moments, s: one kernel each of 2.6.16, 4.18 and 6.1, while it has work.
MOMENTS = {"sendmail": (195, 205, 215), "page-cache": (20, 24, 29), "fsync-where": (1, 3, 4)}
INTERVAL_S = 4  # of the wall: time for the trees to change between two readings
AT_ONCE = 8
RUNS_MAX = 8
OTHERS = ("stat", "diskstats", "loadavg", "uptime", "meminfo", "vmstat", "interrupts", "softirqs")
OF_PROCESS = ("stat", "statm", "status", "io", "schedstat", "cmdline")
_IOSTAT = (
    *("", "-c", "-d", "-k", "-m", "-t", "-x", "-x -k", "-x -m", "-p", "-p ALL", "-p sda", "-d sda"),
    *("-y {} 2", "-z {} 3", "-x -z {} 3", "-x -t -m -c {} 3", "-x -p ALL {} 3", "-d sda {} 2"),
)
_SAR = (*("-u", "-b", "-B", "-d", "-q", "-r", "-S", "-w", "-W"), "-u -b -B -d -q -r -S -w -W")
_MPSTAT = (
    *("", "-u", "-A", "-P ALL", "-P 0", "-P all,0-1", "-I SUM", "-I CPU", "-I SCPU", "-I ALL"),
    *("{} 2", "-u {} 2", "-A {} 2", "-P ALL {} 2", "-P 1 {} 2", "-P all,0 {} 1", "-I SUM {} 2"),
    *("-I CPU {} 2", "-I SCPU {} 2", "-I ALL {} 2", "-P ALL -I SUM {} 2", "-u -I SUM,CPU {} 2"),
    *("-P 0 -I CPU {} 2", "-P 0 -u -I SUM {} 2"),
)
_PIDSTAT = (
    *("", "-u", "-d", "-r", "-w", "-p ALL", "-p 1", "-p ALL -d -r -u -w", "-h -p ALL -u -d -r -w"),
    *("{} 2", "-d {} 2", "-r {} 2", "-w {} 2", "-u -I {} 2", "-l -p ALL {} 2", "-C [ft]l {} 2"),
    *("-p ALL -d {} 2", "-p ALL -w -r {} 2", "-h -u -d {} 2", "-h -p ALL -u -r -w -I {} 2"),
    *("-p {pid} {} 2", "-p {pid} -d -w {} 2", "-p {pid},{pid} -r {} 2", "-p 99999 {} 2"),
)
COMMANDS = (
    *(f"iostat {options}" for options in _IOSTAT),
    *(f"sar {options} {{}} 2" for options in _SAR),
    *(f"mpstat {options}" for options in _MPSTAT),
    *(f"pidstat {options}" for options in _PIDSTAT),
    *(f"vmstat {options}" for options in ("", "-n", "{} 3", "-n {} 3", "-s", "-d")),
    *(f"vmstat -w {options}".rstrip() for options in ("", "-n {} 3", "{} 3", "-s", "-d")),
    *(f"free -{letter}" for letter in "bkmghtw"),
    *("free", "free -h -w -t", "free -s {} -c 2", "uptime"),
    *("top -b -n 2 -d {}", "top -b -n 2 -d {} -p {pid}"),
)


def readings(scenario: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the moments, ns, and the whole trees."""
    server = Server(load(scenario))
    for moment_s in MOMENTS[scenario]:
        server.run_to(moment_s * NS_PER_S)
        yield server.now_ns(), server.tree()


def kept(tree: Mapping[str, str]) -> dict[str, str]:
    """Return the files that our tools read, by path below /proc."""
    below = {path.removeprefix("proc/"): text for path, text in tree.items() if "proc/" in path}
    return {
        path: text
        for path, text in below.items()
        if path in OTHERS
        or (path.partition("/")[0].isdecimal() and path.partition("/")[2] in OF_PROCESS)
    }


def busy_pid(trees: Sequence[Mapping[str, str]]) -> int:
    """Return the lowest pid above 1 that is in all trees and got CPU time between them."""

    def ticks(tree: Mapping[str, str], pid: int) -> str:
        return " ".join(tree[f"proc/{pid}/stat"].rpartition(")")[2].split()[11:13])

    pids = [
        {int(pid) for pid in re.findall(r"^proc/(\d+)/stat$", "\n".join(tree), re.MULTILINE)}
        for tree in trees
    ]
    there = sorted(set.intersection(*pids) - {1})
    return next(
        (pid for pid in there if len({ticks(tree, pid) for tree in trees}) == len(trees)), there[0]
    )


def printed(trees: Sequence[Mapping[str, str]], commands: Sequence[str], folder: Path) -> list[str]:
    """Return what each command prints that reads the trees one after the other."""
    top = folder / "tree"
    top.mkdir()
    follower = Folder(top, rewrite)
    follower.update(trees[0])
    prepare(top)
    lines = (f"{command} >{folder}/{n} 2>&1 &" for n, command in enumerate(commands))
    environment = "export LC_ALL=C S_TIME_FORMAT=ISO TZ=UTC TERM=dumb COLUMNS=80\n"
    with start(top, ["sh", "-c", environment + "\n".join(lines) + "\nwait\n"]) as running:
        for number, tree in enumerate(trees[1:]):
            time.sleep(INTERVAL_S / 2 if not number else INTERVAL_S)
            follower.update(tree)
        assert running.wait() == 0
    return [(folder / str(n)).read_text() for n in range(len(commands))]


def agreed(trees: Sequence[Mapping[str, str]], commands: Sequence[str]) -> dict[str, str]:
    """Return what each command printed twice."""
    seen: dict[str, Counter[str]] = {command: Counter() for command in commands}
    for run in range(RUNS_MAX):
        left = [each for each in commands if not seen[each] or max(seen[each].values()) < 2]
        print(f"run {run}: {len(left)} commands", flush=True)
        for begin in range(0, len(left), AT_ONCE):
            batch = left[begin : begin + AT_ONCE]
            with tempfile.TemporaryDirectory() as name:
                for command, text in zip(batch, printed(trees, batch, Path(name)), strict=True):
                    seen[command][masked(text)] += 1
        if not left:
            break
    best = {command: texts.most_common(1)[0] for command, texts in seen.items()}
    unsure = [command for command, (_, count) in best.items() if count < 2]
    assert not unsure, f"never twice the same: {unsure}"
    return {command: text for command, (text, _) in best.items()}


def masked(text: str) -> str:
    """Return a text without what is of the computer, not of /proc: the time of day, the release.

    Of rows of top that are equal in %CPU the real one keeps the order in which a folder lists them;
    in a real /proc that is by pid.
    """
    text = text.replace("sensors_init: Kernel interface error\n", "")  # /sys is no sysfs
    if text.startswith("top"):
        text = "\n\ntop".join(_by_pid(frame) for frame in text.split("\n\ntop"))
    text = re.sub(r"^Linux \S+ \((.*)\) \t\S+", r"Linux RELEASE (\1) \tDATE", text)
    text = re.sub(r"^\d{4}-\d\d-\d\dT\S+", "STAMP", text, flags=re.MULTILINE)
    return re.sub(r"^( |top - )?\d\d:\d\d:\d\d", r"\1TIME", text, flags=re.MULTILINE)


def _by_pid(frame: str) -> str:
    """Return a frame of top with its rows by %CPU, then pid."""
    head, titles, table = frame.rpartition(" COMMAND\n")
    rows = sorted(table.splitlines(), key=lambda row: (-float(row.split()[8]), int(row.split()[0])))
    return head + titles + "\n".join(rows) + "\n" * table.endswith("\n")


def make(scenario: str) -> None:
    """Make one file."""
    loaded = load(scenario)
    moments, trees = zip(*readings(scenario), strict=True)
    pid = busy_pid(trees)
    commands = [command.replace("{pid}", str(pid)).format(INTERVAL_S) for command in COMMANDS]
    texts = agreed(trees, commands)
    content = {
        "scenario": scenario,
        "kernel": loaded.server.kernel,
        "hostname": loaded.server.hostname,
        "tools": [_version("mpstat"), _version("vmstat")],
        "readings": [
            {"t_ns": t_ns, "files": kept(tree)} for t_ns, tree in zip(moments, trees, strict=True)
        ],
        "printed": {shlex.join(command.split()): texts[command] for command in commands},
    }
    place = GOLDENS / f"{scenario}.json"
    beside = place.with_suffix(".new")
    beside.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(beside, place)


def _version(tool: str) -> str:
    done = subprocess.run([tool, "-V"], capture_output=True, text=True, check=True)
    return (done.stdout + done.stderr).splitlines()[0]


if __name__ == "__main__":
    for asked in sys.argv[1:] or MOMENTS:
        make(asked)
        print(GOLDENS / f"{asked}.json")
