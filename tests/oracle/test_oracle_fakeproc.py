"""What real tools printed on crafted /proc files, recorded once with the script beside it."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from sim.tools.run import run_tool
from sim.tools.snapshot import Snapshot

pytestmark = pytest.mark.oracle
RECORDED = (
    Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "groundtruth/h_fakeproc/fakeproc.out"
)
SECTIONS: dict[str, str] = {}
if RECORDED.exists():
    for section in RECORDED.read_text().split("### ")[1:]:
        title, _, body = section.partition("\n")
        SECTIONS[title] = body


def tree(s: int) -> Snapshot:
    """Return rig/fakeproc.sh's files at uptime `s`: 2 CPUs, one disk, everything steady."""
    cpu = [s * 60, 0, s * 20, s * 80, s * 40, 0, 0, 0, 0, 0]
    half = [n // 2 for n in cpu]
    disk = [s * 120, 0, s * 960, s * 600, s * 60, s * 6, s * 960, s * 600, 2, s * 900, s * 1200]
    lines = [("cpu ", cpu), ("cpu0", half), ("cpu1", half)]
    return Snapshot(
        (s - 1000) * 10**9,
        {
            "stat": "".join(f"{name} {' '.join(map(str, ticks))}\n" for name, ticks in lines)
            + f"intr {s * 1000} 0\nctxt {s * 5000}\nbtime 1200000000\nprocesses {s * 4}\n"
            "procs_running 3\nprocs_blocked 7\n",
            "uptime": f"{s}.00 {s * 8 // 10}.00\n",
            "loadavg": "12.34 5.67 2.50 3/456 12345\n",
            "diskstats": f"   8       0 sda {' '.join(map(str, disk))} 0 0 0 0 0 0\n",
            "meminfo": "MemFree: 65536 kB\nBuffers: 32768 kB\nCached: 458752 kB\n"
            "SwapTotal: 2097152 kB\nSwapFree: 1572864 kB\nSReclaimable: 20000 kB\n",
            "vmstat": f"pgpgin {s * 480}\npgpgout {s * 480}\npswpin {s * 50}\npswpout {s * 25}\n",
        },
    )


def ours(command: str) -> str:
    texts = run_tool(
        command.split(),
        [tree(1000), tree(1010)],
        hostname="vm",
        release="6.18.44-fc-v445",
        boot_wallclock=datetime(2026, 11, 21, 2, 1, 7),
        locale="ISO",
        users=0,
    )
    return "".join(texts)


@pytest.mark.skipif(not SECTIONS, reason=f"no recording at {RECORDED}")
@pytest.mark.parametrize(
    ("command", "section"),
    [
        ("uptime", "uptime"),
        ("vmstat -n 1 2", "vmstat 1 2"),
        ("iostat -dx 1 1", "iostat -p ALL"),
    ],
)
def test_recorded_text_is_ours(command: str, section: str) -> None:
    assert ours(command).rstrip("\n") == SECTIONS[section].rstrip("\n")


@pytest.mark.skipif(not SECTIONS, reason=f"no recording at {RECORDED}")
def test_recorded_iostat_with_crafted_block_devices_is_ours() -> None:
    text = SECTIONS["with a crafted /sys/block too"].partition("\n")[2]
    assert text.startswith(ours("iostat -dx 1 2"))
