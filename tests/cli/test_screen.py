"""The screen of `iotwin follow`: what it draws, and what is typed into it."""

import io
import os
import pty
import select
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from rich.console import Console

from calibration.follow.follower import Loads
from sim.cli.screen import Screen, table_of

AT = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
ROWS = [
    ("vda", "r_per_s", 120.0, 126.0),
    ("vda", "w_per_s", 0.0, 0.0),
    ("vda", "r_await_ms", 1.5, None),
    ("CPUs", "busy_pct", 25.0, 20.0),
]
LOADS = Loads(average=1.2, settles=1.0, known_to=0.08, twin=1.1)
DRAWN = """\
known
┏━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━┳━━━━━━━┓
┃      ┃            ┃    server ┃ twin ┃ apart ┃
┡━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━╇━━━━━━━┩
│ load │ average    │       1.2 │      │       │
│      │ settles at │ 1 +- 0.08 │  1.1 │ +10 % │
│ vda  │ reads/s    │       120 │  126 │  +5 % │
│      │ ms a read  │       1.5 │    - │       │
│ CPUs │ % busy     │        25 │   20 │ -20 % │
└──────┴────────────┴───────────┴──────┴───────┘
"""


def test_server_and_twin_stand_side_by_side_without_what_is_nothing() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(table_of("known", ROWS, LOADS))
    assert "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n" == DRAWN


@pytest.mark.parametrize(
    ("keys", "line", "left"),
    [
        (["load=2\r"], "load=2", ""),
        (["lo", "ad=2", "\n"], "load=2", ""),
        (["loa\x7f\x7fine\x15cpus=8\r"], "cpus=8", ""),
        (["load"], "", "load"),
        (["\x1b\x00\x7f"], "", ""),
        (["load=2\rnvme"], "load=2", "nvme"),
    ],
)
def test_a_typed_line_is_taken_when_it_is_whole(keys: list[str], line: str, left: str) -> None:
    screen = Screen("known")
    found = [screen.take(one) for one in keys]
    assert found[-1] == line
    assert screen.typed == left


@pytest.mark.skipif(not os.path.exists("/proc/diskstats"), reason="follows a Linux host")
def test_on_a_terminal_it_draws_takes_keys_and_ends_at_ctrl_c() -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "sim", "follow", "--here", "--no-twin", "--interval", "1s"]
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        seen = _read_until(master, "what if? ")
        os.write(master, b"lo")
        seen += _read_until(master, "lo\x1b")
        process.send_signal(signal.SIGINT)
        seen += _read_until(master, "% of one core")
        assert process.wait(20) == 0
    finally:
        process.kill()
        os.close(master)
    assert "settles at" in seen
    assert "Traceback" not in seen


def _read_until(master: int, text: str) -> str:
    seen, deadline_s = "", time.monotonic() + 60
    while text not in seen and time.monotonic() < deadline_s:
        if select.select([master], [], [], 0.1)[0]:
            try:
                seen += os.read(master, 65536).decode(errors="replace")
            except OSError:  # the other end was closed
                break
    assert text in seen
    return seen
