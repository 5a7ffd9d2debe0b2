"""mpstat and pidstat: shares that sum to a whole, averages, who is shown, what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.tools.mpstat import spent
from sim.tools.parse import CpuTicks, ProcFormatError, parse_interrupts
from sim.tools.run import run_tool, tool_sampling
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError

NS_PER_S = 1_000_000_000
STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def printed(command: str, snapshots: Sequence[Snapshot]) -> list[list[str]]:
    """Return the words of each line after the title that is not empty."""
    texts = run_tool(
        command.split(),
        snapshots,
        hostname="h",
        release="r",
        boot_wallclock=datetime(2026, 1, 1),
        locale="ISO",
    )
    return [line.split() for line in "".join(texts).splitlines()[1:] if line]


def reading(uptime_s: int, processes: Sequence[tuple[int, int]]) -> Snapshot:
    """Return what both tools read; `processes` are pids with their ticks in user mode.

    CPU 0 is in user mode, CPU 1 is idle, and each serves a timer interrupt a tick.
    """
    ticks = 100 * uptime_s
    files = {
        "stat": f"cpu {ticks} 0 0 {ticks}\ncpu0 {ticks} 0 0 0\ncpu1 0 0 0 {ticks}\n"
        f"intr {2 * ticks} 0\nctxt 0\nbtime 1200000000\nprocesses 1\nprocs_running 1\n"
        "procs_blocked 0\n",
        "uptime": f"{uptime_s}.00 0.00\n",
        "meminfo": "MemTotal: 1000 kB\nMemFree: 500 kB\n",
        "interrupts": f"           CPU0       CPU1\nLOC: {ticks:10d} {ticks:10d}\nERR: 7\n",
    }
    for pid, used in processes:
        fields = [0] * 52
        fields[14 - 3], fields[24 - 3], fields[42 - 3] = used, 25, used
        files[f"{pid}/stat"] = f"{pid} (a b) S {' '.join(map(str, fields[1:]))}\n"
        files[f"{pid}/status"] = (
            f"Uid:\t0\t0\nvoluntary_ctxt_switches:\t{used}\nnonvoluntary_ctxt_switches:\t0\n"
        )
        files[f"{pid}/io"] = f"read_bytes: {1024 * used}\nwrite_bytes: 0\n"
        files[f"{pid}/schedstat"] = f"0 {used * 10_000_000} 1\n"
    return Snapshot(uptime_s * NS_PER_S, files)


@given(*(st.lists(st.integers(0, 10**6), min_size=8, max_size=8) for _ in range(2)))
def test_the_shares_of_a_cpu_sum_to_all_of_its_time(before: list[int], more: list[int]) -> None:
    then = CpuTicks(**dict(zip(STATES, before, strict=True)))
    counted = (a + b for a, b in zip(before, more, strict=True))
    now = CpuTicks(**dict(zip(STATES, counted, strict=True)))
    assert sum(spent(then, now).percents) == pytest.approx(100)


def test_iowait_that_runs_backwards_is_none_and_the_others_are_the_whole() -> None:
    then, now = CpuTicks(user=10, idle=100, iowait=50), CpuTicks(user=20, idle=190, iowait=49)
    assert spent(then, now).total == 100
    assert spent(then, now).percents[3] == 0


def test_mpstat_shows_each_cpu_and_their_mean() -> None:
    rows = printed("mpstat -P ALL 2 1", [reading(10, ()), reading(12, ())])
    assert [(row[1], row[2], row[-1]) for row in rows[1:4]] == [
        ("all", "50.00", "50.00"),
        ("0", "100.00", "0.00"),
        ("1", "0.00", "100.00"),
    ]
    assert [row[1:] for row in rows[5:]] == [row[1:] for row in rows[1:4]], "the averages"


def test_interrupts_of_a_cpu_are_those_of_its_column() -> None:
    rows = printed("mpstat -P ALL -I SUM,CPU 2 1", [reading(10, ()), reading(12, ())])
    assert [row[1:] for row in rows[1:4]] == [["all", "200.00"], ["0", "100.00"], ["1", "100.00"]]
    assert rows[4][2:] == ["LOC/s", "ERR/s"]
    assert rows[5][1:] == ["0", "100.00", "0.00"]


def test_interrupts_that_are_not_a_table_are_refused() -> None:
    with pytest.raises(ProcFormatError, match="interrupts, line 1"):
        parse_interrupts("interrupts", "LOC: 5\n")
    with pytest.raises(ProcFormatError, match="interrupts, line 2"):
        parse_interrupts("interrupts", "CPU0\nLOC 5\n")


def test_a_process_counts_from_its_beginning_and_only_who_did_something_is_shown() -> None:
    readings = [reading(10, [(5, 100)]), reading(12, [(5, 100), (7, 50)])]
    header, row = printed("pidstat 2 1", readings)[:2]
    assert header[2:5] == ["PID", "%usr", "%system"]
    assert (row[2], row[3], row[-2:]) == ("7", "25.00", ["a", "b"])
    both = printed("pidstat -p ALL 2 1", readings)
    assert [row[2] for row in both if row[-1] == "b"] == ["5", "7"] * 2


def test_the_averages_are_over_the_whole_time() -> None:
    readings = [reading(10, [(5, 100)]), reading(12, [(5, 300)]), reading(16, [(5, 300)])]
    rows = printed("pidstat -p ALL -d -w 2 2", readings)
    assert [row[3] for row in rows if row[-1] == "b" and row[0] != "Average:"] == [
        "100.00",  # kB/s, and switches
        "100.00",
        "0.00",
        "0.00",
    ]
    averages = [row for row in rows if row[0] == "Average:" and row[-1] == "b"]
    assert [row[3] for row in averages] == ["33.33", "33.33"]
    assert averages[0][6] == "100", "iodelay: a mean of the two reports"


def test_a_chosen_process_that_is_gone_ends_the_tool() -> None:
    readings = [reading(10, [(5, 1)]), reading(12, []), reading(14, [(5, 9)])]
    assert printed("pidstat -p 5 2 2", readings) == printed("pidstat -p 5 2 2", readings[:2])


def test_without_an_interval_it_is_since_boot() -> None:
    assert printed("pidstat -u", [reading(10, [(5, 100)])])[1][3] == "10.00"
    assert printed("mpstat", [reading(10, [])])[1][2] == "50.00"


@pytest.mark.parametrize("command", ["mpstat 5 3", "pidstat 5 3"])
def test_they_read_once_before_the_first_report(command: str) -> None:
    assert tool_sampling(command.split()) == Sampling(interval_s=5, count=4)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("mpstat -o JSON", "unknown option '-o'"),
        ("mpstat -P 3-1", "-P needs ALL, all or numbers, not '3-1'"),
        ("mpstat -P", "-P needs ALL, all or numbers, not ''"),
        ("mpstat -I LOC", "-I needs SUM, CPU, SCPU or ALL, not 'LOC'"),
        ("mpstat 0", "interval and count must be at least 1"),
        ("pidstat -t", "unknown option '-t'"),
        ("pidstat -p SELF", "-p needs ALL or pids, not 'SELF'"),
        ("pidstat -C (", r"-C '\('"),
        ("pidstat 1 2 3", "unknown argument '3'"),
    ],
)
def test_a_wrong_command_line_is_refused(command: str, said: str) -> None:
    with pytest.raises(
        ToolUsageError, match=said.replace("(", r"\(") if "\\" not in said else said
    ):
        tool_sampling(command.split())


def test_a_cpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(ToolUsageError, match="no CPU 2; there are 2"):
        printed("mpstat -P 2", [reading(10, [])])


@pytest.mark.parametrize("tool", ["mpstat", "pidstat"])
def test_older_generations_say_what_has_it(tool: str) -> None:
    with pytest.raises(ToolUsageError, match="--tools sysstat-12"):
        tool_sampling([tool], layout="sysstat-7")


def test_a_broken_file_of_a_process_is_told() -> None:
    broken = reading(10, [(5, 1)])
    files = {**broken.files, "5/io": "read_bytes: many\n"}
    with pytest.raises(ProcFormatError, match="5/stat"):
        printed("pidstat -d", [Snapshot(broken.t_ns, files)])
