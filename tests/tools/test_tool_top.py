"""top in batch mode: the recorded screen, the forms of numbers, the shares of CPU time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.scenario.cases import data_sets
from sim.tools.run import run_tool, tool_sampling
from sim.tools.snapshot import Snapshot
from sim.tools.top import scale_3_2, scale_4_0, time_3_2, time_4_0
from sim.tools.usage import Sampling, ToolUsageError
from tests.tools.memory_texts import MEMINFO_NEW, process, server

RECORDED = data_sets()["factomd"] / "top.txt"
UP_S = 1246 * 86_400 + 14 * 3600 + 49 * 60
WALL = datetime(2017, 5, 1, 11, 45, 12)
# Of 1000 ticks: user, nice, system, idle, iowait, irq, softirq, steal.
SHARES = (106, 0, 17, 46, 823, 0, 2, 6)


def top(
    command: str, snapshots: Sequence[Snapshot], layout: str = "sysstat-9", users: int = 3
) -> str:
    texts = run_tool(
        command.split(),
        snapshots,
        hostname="h",
        release="r",
        layout=layout,
        users=users,
        boot_wallclock=datetime.fromtimestamp(WALL.timestamp() - UP_S),
    )
    return "".join(texts)


def factomd(ticks: int) -> dict[str, str]:
    return process(29702, "factomd", ticks=ticks, uid=1000, pages=(756_736, 330_216, 996))


def test_recorded_screen_comes_from_counters_like_its_own() -> None:
    others = [process(pid, "sh", state="R" if pid == 101 else "S") for pid in range(101, 208)]
    readings = [
        server(UP_S - 10, (0,) * 8, *others, factomd(2_943_345)),
        server(UP_S, SHARES, *others, factomd(2_943_559)),
    ]
    text = top("top -b -n 1", readings)
    recorded = RECORDED.read_text().replace("john     ", "1000     ").splitlines()
    ours = text.splitlines()
    assert ours[:8] == [line if line.strip() else "" for line in recorded[:8]]


def test_4_0_counts_in_mib_and_has_wider_columns() -> None:
    readings = [
        server(UP_S - 10, (0,) * 8, factomd(0)),
        server(UP_S, SHARES, factomd(214), meminfo=MEMINFO_NEW),
    ]
    lines = top("top -b -n 1", readings, "sysstat-12").splitlines()
    assert lines[2:5] == [
        "%Cpu(s): 10.6 us,  1.7 sy,  0.0 ni,  4.6 id, 82.3 wa,  0.0 hi,  0.2 si,  0.6 st ",
        "MiB Mem :   1655.9 total,     13.1 free,   1577.7 used,     65.2 buff/cache     ",
        "MiB Swap:   2047.0 total,   1067.4 free,    979.6 used.     78.1 avail Mem ",
    ]
    assert lines[7] == (
        "29702 1000      20   0 3026944   1.3g   3984 S  21.4  77.9   0:02.14 factomd"
    )


def test_first_frame_of_3_2_has_cpu_states_since_boot_and_the_next_ones_have_not() -> None:
    readings = [server(100 + 5 * n, (500 * n + 100,) + (0,) * 7) for n in range(3)]
    readings[1] = server(105, (600, 0, 0, 600, 0, 0, 0, 0))
    readings[2] = server(110, (700, 0, 0, 900, 0, 0, 0, 0))
    states = [line for line in top("top -b -n 2", readings).splitlines() if line.startswith("Cpu")]
    assert [line[7:16] for line in states] == [" 50.0%us,", " 25.0%us,"]


def test_busiest_come_first_and_equal_ones_by_pid() -> None:
    ticks = {10: 5, 11: 50, 12: 5, 13: 0}
    readings = [
        server(100, (0,) * 8, *(process(pid, "p") for pid in ticks)),
        server(101, (0,) * 8, *(process(pid, "p", ticks=n) for pid, n in ticks.items())),
    ]
    rows = top("top -b -n 1", readings).splitlines()[7:]
    assert [row.split()[0] for row in rows] == ["11", "10", "12", "13"]
    assert [row.split()[8] for row in rows] == ["50.0", "5.0", "5.0", "0.0"]


def test_a_new_process_has_all_of_its_time_and_p_chooses_it() -> None:
    readings = [
        server(100, (0,) * 8, process(7, "old", ticks=900)),
        server(110, (0,) * 8, process(7, "old", ticks=900), process(8, "new (1)", ticks=100)),
    ]
    text = top("top -b -n 1 -p 8", readings)
    assert text.splitlines()[1].startswith("Tasks:   1 total,")
    assert text.splitlines()[-1].split()[8:] == ["10.0", "0.0", "0:01.00", "new", "(1)"]


def test_frames_are_parted_by_an_empty_line_and_counted() -> None:
    text = top("top -b -n 2 -d 1", [server(100 + n, (n,) * 8) for n in range(9)])
    assert text.count("top - ") == 2
    assert "\n\ntop - " in text
    assert tool_sampling(["top", "-bn2", "-d", "1"]) == Sampling(1, 3)
    assert tool_sampling(["top", "-b"]) == Sampling(3, None)


@given(st.integers(0, 2**42), st.sampled_from([(scale_3_2, 5), (scale_4_0, 7)]))
def test_memory_fits_its_column(kib: int, form: tuple[Callable[[int, int], str], int]) -> None:
    scale, width = form
    assert len(scale(kib, width)) <= width


@pytest.mark.parametrize(
    ("kib", "old", "new"),
    [
        (3984, "3984", "3984"),
        (1_320_864, "1.3g", "1.3g"),
        (863_960, "843m", "863960"),
        (99_999, "97m", "99999"),
        (10**10, "9.3t", "9.3t"),
    ],
)
def test_memory_takes_the_first_form_that_fits(kib: int, old: str, new: str) -> None:
    assert (scale_3_2(kib, 4), scale_4_0(kib, 6)) == (old, new)


@pytest.mark.parametrize(
    ("seconds", "old", "new"),
    [
        (59, "0:59.07", "0:59.07"),
        (21_659, "360:59.07", "360:59.07"),
        (21_660, "361:00.07", "6,01"),
        (349_199, "5819:59", "96,59"),
        (349_200, "5820:00", "4d+1h"),
        (1_295_999, "21599:59", "14d+23h"),
        (1_296_000, "21600:00", "2w+1d"),
    ],
)
def test_times_grow_into_other_units(seconds: int, old: str, new: str) -> None:
    assert (time_3_2(seconds * 100 + 7), time_4_0(seconds * 100 + 7)) == (old, new)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("top", "without -b it wants a terminal"),
        ("top -b -n 0", "-n needs a whole number, not '0'"),
        ("top -b -p x", "-p needs a whole number, not 'x'"),
        ("top -b -c", "unknown option '-c'; allowed: -b batch mode"),
    ],
)
def test_wrong_command_line_is_refused(command: str, message: str) -> None:
    with pytest.raises(ToolUsageError, match=message):
        tool_sampling(command.split())
