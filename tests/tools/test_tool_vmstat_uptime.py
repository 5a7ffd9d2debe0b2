"""vmstat and uptime: their columns, their rounding, and what changed between generations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import pytest

from sim.tools.run import run_tool
from sim.tools.snapshot import Snapshot
from sim.tools.uptime import time_up
from sim.tools.usage import ToolUsageError
from tests.tools.tool_texts import NS_PER_S, disk_text, stat_text

BOOT = datetime(2009, 5, 14, 5, 11, 51)


def server(idle: int = 80, step_s: int = 10) -> Iterator[Snapshot]:
    """Read /proc of a server with two CPUs: 30 % user, 10 % system, 20 % iowait."""
    for s in range(1000, 2000, step_s):
        cpu = [s * ticks for ticks in (60, 0, 20, idle, 40, 0, 0, 0)]
        yield Snapshot(
            s * NS_PER_S,
            {
                "stat": stat_text(cpu, cpus=2, intr=s * 1000, ctxt=s * 5000),
                "meminfo": (
                    "MemTotal: 1048576 kB\nMemFree: 65536 kB\nBuffers: 32768 kB\n"
                    "Cached: 458752 kB\nSwapTotal: 2097152 kB\nSwapFree: 1572864 kB\n"
                    "SReclaimable: 20000 kB\n"
                ),
                "vmstat": (
                    f"pgpgin {s * 480}\npgpgout {s * 480}\npswpin {s * 50}\npswpout {s * 25}\n"
                ),
                "uptime": f"{s}.99 {s}.00\n",
                "loadavg": "37.02 12.41 4.90 2/131 9021\n",
            },
        )


def run(command: str, layout: str, **options: int) -> str:
    texts = run_tool(
        command.split(),
        server(),
        hostname="mail",
        release="2.6.16",
        boot_wallclock=BOOT,
        layout=layout,
        **options,  # type: ignore[arg-type]
    )
    return "".join(texts)


VMSTAT_3_2 = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ----cpu----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa
 2  7 524288  65536  32768 458752  100   50   240   240  500 2500 30 10 40 20
 2  7 524288  65536  32768 458752  200  100   480   480 1000 5000 30 10 40 20
"""
VMSTAT_4_0 = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 3  7 524288  65536  32768 478752  100   50   240   240  500 2500 30 10 40 20  0
 3  7 524288  65536  32768 478752 2000 1000  4800  4800 10000 50000 30 10 40 20  0
"""


def test_vmstat_3_2_leaves_itself_out_of_r_and_halves_rates_since_boot_on_two_cpus() -> None:
    assert run("vmstat 10 2", "sysstat-7") == VMSTAT_3_2


def test_vmstat_4_0_divides_by_the_delay_asked_for_as_recorded() -> None:
    assert run("vmstat 1 2", "sysstat-12") == VMSTAT_4_0


TOTALS_3_2 = """\
      1048576  total memory
       983040  used memory
            0  active memory
            0  inactive memory
        65536  free memory
        32768  buffer memory
       458752  swap cache
      2097152  total swap
       524288  used swap
      1572864  free swap
        60000 non-nice user cpu ticks
            0 nice user cpu ticks
        20000 system cpu ticks
        80000 idle cpu ticks
        40000 IO-wait cpu ticks
            0 IRQ cpu ticks
            0 softirq cpu ticks
            0 stolen cpu ticks
       480000 pages paged in
       480000 pages paged out
        50000 pages swapped in
        25000 pages swapped out
      1000000 interrupts
      5000000 CPU context switches
   1200000000 boot time
         4000 forks
"""


def test_vmstat_s_shows_what_was_counted_since_boot() -> None:
    assert run("vmstat -s", "sysstat-9") == TOTALS_3_2


def test_vmstat_s_of_4_0_counts_slab_as_cache_and_what_is_paged_in_k() -> None:
    new = run("vmstat -s", "sysstat-12").splitlines()
    assert new[6] == "       478752 K swap cache"
    assert "       480000 K paged in" in new
    assert len(new) == len(TOTALS_3_2.splitlines()) + 2  # time of guests


def test_vmstat_d_shows_disks_and_no_partitions() -> None:
    rows = disk_text("sda", [1234567, *range(2, 8), 9000, 1, 7999, 9]) + disk_text("sda1", [1] * 11)
    texts = run_tool(
        ["vmstat", "-d"],
        [Snapshot(0, {"diskstats": rows})],
        hostname="a",
        release="b",
        boot_wallclock=BOOT,
    )
    _, titles, row = "".join(texts).splitlines()
    assert titles.split()[-2:] == ["cur", "sec"]
    assert row == "sda   1234567      2       3       4      5      6       7    9000      0      7"


@pytest.mark.parametrize("command", ["vmstat -s 1", "vmstat -s -d"])
def test_totals_stand_alone(command: str) -> None:
    with pytest.raises(ToolUsageError, match="stands alone"):
        run(command, "sysstat-12")


def test_wide_columns_have_the_figures_of_narrow_ones() -> None:
    wide, narrow = (run(f"vmstat {words}", "sysstat-12") for words in ("-wn 1 2", "-n 1 2"))
    assert [row.split()[:17] for row in wide.splitlines()[1:]] == [
        row.split() for row in narrow.splitlines()[1:]
    ]
    assert run("vmstat -w -s", "sysstat-12") == run("vmstat -s", "sysstat-12")


@pytest.mark.parametrize(
    ("command", "generation", "told"),
    [
        ("vmstat -w 1", "sysstat-9", "unknown option '-w'; allowed: -n (header once), DELAY"),
        ("vmstat -na 1", "sysstat-12", "unknown option '-a'; allowed: -n (header once), -w (wide)"),
    ],
)
def test_an_option_that_a_generation_lacks_is_refused_with_what_it_has(
    command: str, generation: str, told: str
) -> None:
    with pytest.raises(ToolUsageError, match=re.escape(told)):
        run(command, generation)


def test_header_comes_again_every_21_lines_unless_told_once() -> None:
    assert run("vmstat 10 43", "sysstat-7").count("procs") == 3
    assert run("vmstat -n 10 43", "sysstat-7").count("procs") == 1


def test_idle_that_runs_backwards_is_owed_to_the_next_line() -> None:
    idles = [1000, 990, 1040]
    snapshots = [
        Snapshot(0, {**next(server()).files, "stat": stat_text((100 * n, 0, 0, idle))})
        for n, idle in enumerate(idles)
    ]
    lines = "".join(
        run_tool(["vmstat", "1", "3"], snapshots, hostname="a", release="b", boot_wallclock=BOOT)
    ).splitlines()
    idle_column = [line.split()[-3] for line in lines[2:]]
    assert idle_column == ["100", "0", "29"]  # 40 of 140


@pytest.mark.parametrize(
    ("uptime_s", "text"),
    [
        (59, "0 min"),
        (3599, "59 min"),
        (3600, " 1:00"),
        (86_400, "1 day, 0 min"),
        (90_000, "1 day,  1:00"),
        (1246 * 86_400 + 14 * 3600 + 49 * 60, "1246 days, 14:49"),
    ],
)
def test_time_up(uptime_s: int, text: str) -> None:
    assert time_up(uptime_s) == text


def test_uptime_line() -> None:
    line = run("uptime", "sysstat-7")
    assert line == " 05:28:31 up 16 min,  1 user,  load average: 37.02, 12.41, 4.90\n"


@pytest.mark.parametrize(("layout", "noun"), [("sysstat-7", "0 users"), ("sysstat-12", "0 user")])
def test_nobody_logged_in(layout: str, noun: str) -> None:
    assert f",  {noun},  load" in run("uptime", layout, users=0)
