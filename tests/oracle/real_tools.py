"""Run the installed sysstat and procps on /proc texts of ours, in a mount namespace of their own.

The files are bind-mounted over those of the real /proc and /sys, then rewritten in place between
the tool's two readings (the inode must stay). No privilege is needed where user namespaces work.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from sim.tools.snapshot import Snapshot

INTERVAL_S = 2  # a tool's second reading comes after this, the rewriting half-way
SCRIPT = """
cd "$1"; shift
for f in live/proc/*; do mount --bind "$f" "/proc/$(basename "$f")" || exit 97; done
if [ -d live/block ]; then mount --bind live/block /sys/block || exit 97; fi
export LC_ALL=C S_TIME_FORMAT=ISO TZ=UTC
n=0
for command; do $command > "out.$n" 2>&1 & n=$((n + 1)); done
sleep 1
(cd next && find . -type f) | while read -r f; do cat "next/$f" > "live/$f"; done
wait
"""


@cache
def why_unavailable(tool: str) -> str:
    """Return why the real tool cannot be run, "" if it can."""
    for program in (tool, "unshare", "mount"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    probe = ["unshare", "-Urm", "mount", "--bind", "/proc/uptime", "/proc/loadavg"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        return "no user and mount namespaces here"
    return ""


@cache
def version(tool: str) -> str:
    """Return what the tool says of its version."""
    done = subprocess.run([tool, "-V"], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()


def outputs(commands: Sequence[str], snapshots: Sequence[Snapshot], folder: Path) -> list[str]:
    """Return what each real tool prints, all reading the first snapshot and then the second."""
    for name, snapshot in zip(("live", "next"), snapshots, strict=True):
        write_tree(folder / name, snapshot)
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", SCRIPT, "sh", str(folder), *commands],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [(folder / f"out.{n}").read_text() for n in range(len(commands))]


def write_tree(root: Path, snapshot: Snapshot) -> None:
    """Write the files below root/proc, and those of /sys/block that sysstat 12 wants."""
    (root / "proc").mkdir(parents=True)
    for name, text in snapshot.files.items():
        (root / "proc" / name).write_text(text)
    for row in snapshot.files.get("diskstats", "").splitlines():
        major, minor, name, *numbers = row.split()
        device = root / "block" / name
        (device / "device").mkdir(parents=True)
        (device / "dev").write_text(f"{major}:{minor}\n")
        (device / "stat").write_text(" ".join(numbers) + "\n")
