"""On the twin's /proc of three kernels our tools print what the real ones printed, byte for byte.

tests/oracle/tool_goldens.py makes the goldens with the real tools.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from sim.tools.run import run_tool
from sim.tools.snapshot import Snapshot
from tests.oracle.tool_goldens import GOLDENS, MOMENTS, masked

NO_SHORT_ROWS = "vmstat: Unable to create diskstat structure\n"
TOOLS = ("iostat", "sar", "mpstat", "pidstat", "vmstat", "free", "uptime", "top")


@cache
def golden(scenario: str) -> dict[str, Any]:
    """Return the texts of /proc, and what the real tools printed."""
    content: dict[str, Any] = json.loads((GOLDENS / f"{scenario}.json").read_text())
    return content


def ours(scenario: str, command: str) -> str:
    """Return what our tool prints on the same texts."""
    content = golden(scenario)
    snapshots = [Snapshot(each["t_ns"], each["files"]) for each in content["readings"]]
    if command.startswith("top"):
        snapshots.insert(0, snapshots[0])  # its first frame comes at once
    if command.startswith("vmstat"):  # 4.0.2 reads memory for its first line alone
        memory = {"meminfo": snapshots[0].files["meminfo"]}
        snapshots = [Snapshot(each.t_ns, {**each.files, **memory}) for each in snapshots]
    texts = run_tool(
        command.split(),
        snapshots,
        hostname=content["hostname"],
        release=content["kernel"],
        boot_wallclock=datetime(2026, 1, 1, tzinfo=UTC),
        locale="ISO",
        users=0,
    )
    return masked("".join(texts))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("scenario", MOMENTS)
def test_our_tool_prints_what_the_real_one_printed(scenario: str, tool: str) -> None:
    commands = [each for each in golden(scenario)["printed"] if each.split()[0] == tool]
    printed = {command: golden(scenario)["printed"][command] for command in commands}
    # procps 4.0 does not take the short rows that 2.6.16 has for partitions; ours does.
    real = {command: text for command, text in printed.items() if text != NO_SHORT_ROWS}
    assert real
    assert {command: ours(scenario, command) for command in real} == real
