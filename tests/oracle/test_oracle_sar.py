"""The real sar of sysstat 12 prints, on the same /proc, what ours prints."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from sim.tools.run import run_tool
from sim.tools.snapshot import Snapshot
from tests.oracle import real_tools
from tests.tools.sar_servers import server

pytestmark = pytest.mark.oracle
SAR = [
    f"sar {options} {real_tools.INTERVAL_S} 1"
    for options in ("-u", "-q", "-b", "-B", "-W", "-d", "-r", "-S", "-w", "-ubBdqrSwW")
]
CLOCK = re.compile(r"^\d\d:\d\d:\d\d", re.MULTILINE)


def needs_sar() -> None:
    """Skip unless the real sar is there in the generation that ours imitates."""
    reason = real_tools.why_unavailable("sar")
    if not reason and not re.search(r"sysstat version 12\.[67]", real_tools.version("sar")):
        reason = f"sar is {real_tools.version('sar').splitlines()[0]}"
    if reason:
        pytest.skip(f"oracle: {reason}")


def ours(command: str, snapshots: Sequence[Snapshot]) -> str:
    texts = run_tool(
        command.split(),
        snapshots,
        hostname="h",
        release="r",
        boot_wallclock=datetime(2026, 1, 1),
        locale="ISO",
    )
    return "".join(texts)


def without_times(text: str) -> str:
    """Drop sysstat's first line, which names the real host, and replace times of day."""
    return CLOCK.sub("00:00:00", text.partition("\n")[2])


@pytest.mark.parametrize("seed", range(3))
def test_sar(seed: int, tmp_path: Path) -> None:
    needs_sar()
    draw = random.Random(seed)
    snapshots = server(draw, (1000, 1000 + draw.randint(1, 60)))
    real = real_tools.outputs(SAR, snapshots, tmp_path)
    printed = [ours(command, snapshots) for command in SAR]
    assert [without_times(text) for text in printed] == [without_times(text) for text in real]
