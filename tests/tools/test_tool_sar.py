"""sar's command line and the text of its three generations."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime

import pytest

from sim.tools.run import GENERATIONS, run_tool, tool_sampling
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError
from tests.tools.sar_servers import server
from tests.tools.tool_texts import disk_text, stat_text

BOOT = datetime(2026, 11, 21, 14, 0, 0)
LETTERS = {"sysstat-7": "-ubBdqrRwW", "sysstat-9": "-ubBdqrRSwW", "sysstat-12": "-ubBdqrSwW"}
SDA = (120, 0, 960, 600, 60, 6, 960, 600, 2, 900, 1200)  # per second


def steady(loads: tuple[float, ...] = (1.0, 2.0, 3.0)) -> Iterator[Snapshot]:
    """Read /proc every 10 s of a server with one CPU and a disk, from 1000 s after its boot."""
    for number, load in enumerate(loads):
        s = 1000 + 10 * number
        yield Snapshot(
            s * 10**9,
            {
                "uptime": f"{s}.00 0.00\n",
                "stat": stat_text([s * n for n in (20, 0, 10, 30, 30, 4, 6, 0)], ctxt=s * 500),
                "diskstats": disk_text("sda", [s * n for n in SDA])
                + disk_text("dm-0", [s * n for n in SDA], major=253),
                "loadavg": f"{load:.2f} 5.67 2.50 3/456 12345\n",
                "meminfo": "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 500 kB\n"
                "Buffers: 200 kB\nCached: 300 kB\nSlab: 50 kB\nCommitted_AS: 600 kB\n"
                "SwapTotal: 1000 kB\nSwapFree: 750 kB\nSwapCached: 50 kB\n",
                "vmstat": f"pgpgin {s * 480}\npgpgout {s * 96}\npswpin {s * 5}\npswpout 0\n"
                f"pgsteal_normal {s * 30}\npgscan_kswapd_normal {s * 40}\n",
            },
        )


def sar(command: str, layout: str = "sysstat-12", locale: str = "ISO") -> str:
    texts = run_tool(
        command.split(),
        steady(),
        hostname="vm",
        release="6.1.0",
        boot_wallclock=BOOT,
        layout=layout,
        locale=locale,
    )
    return "".join(texts)


SYSSTAT_12_TEXT = """\
Linux 6.1.0 (vm) \t2026-11-21 \t_x86_64_\t(1 CPU)

14:16:40        CPU     %user     %nice   %system   %iowait    %steal     %idle
14:16:50        all     20.00      0.00     20.00     30.00      0.00     30.00

14:16:40      runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked
14:16:50            2       456      2.00      5.67      2.50         7

14:16:50        CPU     %user     %nice   %system   %iowait    %steal     %idle
14:17:00        all     20.00      0.00     20.00     30.00      0.00     30.00

14:16:50      runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked
14:17:00            2       456      3.00      5.67      2.50         7

Average:        CPU     %user     %nice   %system   %iowait    %steal     %idle
Average:        all     20.00      0.00     20.00     30.00      0.00     30.00

Average:      runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked
Average:            2       456      2.50      5.67      2.50         7
"""
SYSSTAT_7_TEXT = """\
Linux 6.1.0 (vm) \t11/21/2026

02:16:40 PM       CPU     %user     %nice   %system   %iowait    %steal     %idle
02:16:50 PM       all     20.00      0.00     20.00     30.00      0.00     30.00
02:17:00 PM       all     20.00      0.00     20.00     30.00      0.00     30.00
Average:          all     20.00      0.00     20.00     30.00      0.00     30.00
"""
DISKS_9 = """\

02:16:40 PM       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util
02:16:50 PM    dev8-0    180.00    960.00    960.00     10.67      1.20      6.67      5.00     90.00
02:16:50 PM  dev253-0    180.00    960.00    960.00     10.67      1.20      6.67      5.00     90.00
"""  # noqa: E501


def test_sysstat_12_prints_several_tables_with_their_headers_each_time() -> None:
    assert sar("sar -u -q 10 2") == SYSSTAT_12_TEXT


def test_one_table_alone_has_its_header_once() -> None:
    assert sar("sar 10 2", "sysstat-7", "en_US") == SYSSTAT_7_TEXT


def test_devices_have_numbers_before_sysstat_12_and_names_with_p() -> None:
    assert DISKS_9 in sar("sar -d 10 1", "sysstat-9", "en_US")
    assert "        sda    180.00" in sar("sar -dp 10 1", "sysstat-9")


def test_memory_that_can_be_dropped_counts_as_unused_from_sysstat_12_on() -> None:
    old, new = (
        sar("sar -r 10 1", layout).splitlines()[3].split() for layout in ("sysstat-9", "sysstat-12")
    )
    assert old[1:4] == ["100", "900", "90.00"]
    assert new[1:5] == ["100", "500", "350", "35.00"]


def test_swap_space_is_with_memory_in_sysstat_7_and_apart_later() -> None:
    space = ["750", "250", "25.00", "50"]
    assert sar("sar -r 10 1", "sysstat-7").splitlines()[3].split()[-4:] == space
    assert sar("sar -S 10 1", "sysstat-9").splitlines()[3].split()[1:] == [*space, "20.00"]


def test_requests_of_volumes_are_counted_again_in_the_sum_of_disks_before_10_0_4() -> None:
    new, old = (
        sar("sar -b 10 1", layout).splitlines()[3].split() for layout in ("sysstat-12", "sysstat-9")
    )
    assert new[1:] == ["180.00", "120.00", "60.00", "0.00", "960.00", "960.00", "0.00"]
    assert old[1:] == ["360.00", "240.00", "120.00", "1920.00", "1920.00"]


def test_pages_that_went_are_negative_and_the_table_is_gone_in_sysstat_12() -> None:
    first, second = steady((1.0, 2.0))
    memory = second.text("meminfo").replace("MemFree: 100", "MemFree: 60")
    later = Snapshot(second.t_ns, {**second.files, "meminfo": memory})
    texts = run_tool(
        ["sar", "-R", "10", "1"],
        [first, later],
        hostname="vm",
        release="6",
        layout="sysstat-9",
        boot_wallclock=BOOT,
    )
    header, row, _ = "".join(texts).splitlines()[2:]
    assert header.split()[-3:] == ["frmpg/s", "bufpg/s", "campg/s"]
    assert row.split()[-3:] == ["-1.00", "0.00", "0.00"]
    with pytest.raises(ToolUsageError, match="unknown option '-R'"):
        tool_sampling(["sar", "-R", "1"], layout="sysstat-12")


def test_reclaim_is_summed_over_zones_and_compared_with_what_was_scanned() -> None:
    row = sar("sar -B 10 1").splitlines()[3].split()
    assert row[1:3] == ["480.00", "96.00"]
    assert row[-4:] == ["40.00", "0.00", "30.00", "75.00"]


def test_context_switches_stand_alone_in_sysstat_7() -> None:
    assert sar("sar -w 10 1", "sysstat-7").splitlines()[2].split()[1:] == ["cswch/s"]
    assert sar("sar -wW 10 1").splitlines()[3].split()[1:] == ["0.00", "500.00"]


def test_ctrl_c_brings_the_averages_in_sysstat_12_only() -> None:
    assert "Average" not in sar("sar -q 10", "sysstat-9")
    assert sar("sar -q 10").splitlines()[-1].split() == [
        "Average:",
        "2",
        "456",
        "2.50",
        "5.67",
        "2.50",
        "7",
    ]


def test_no_reading_prints_nothing_and_one_reading_the_title_alone() -> None:
    for readings, lines in ((0, 0), (1, 1)):
        texts = run_tool(
            ["sar", "5"],
            server(random.Random(1), range(readings)),
            hostname="vm",
            release="6",
            boot_wallclock=BOOT,
        )
        assert len("".join(texts).splitlines()) == lines


def test_count_bounds_the_snapshots_taken() -> None:
    snapshots = steady()
    texts = run_tool(["sar", "10", "1"], snapshots, hostname="vm", release="6", boot_wallclock=BOOT)
    assert len(list(texts)) == 3  # title, report, averages
    assert next(snapshots).t_ns == 1020 * 10**9
    assert tool_sampling(["sar", "-u", "10", "5"]) == Sampling(10, 6)


@pytest.mark.parametrize("layout", GENERATIONS)
def test_cells_stand_under_their_titles(layout: str) -> None:
    options = LETTERS[layout]
    for block in sar(f"sar {options} 10 1", layout).split("\n\n")[1:]:
        header, *rows = (line for line in block.splitlines() if line.strip())
        assert {len(row) for row in rows} <= {len(header)}


@pytest.mark.parametrize(
    ("command", "layout", "message"),
    [
        ("sar -x 1", "sysstat-12", r"sar: unknown option '-x'; allowed: -u CPU, .*INTERVAL, COUNT"),
        ("sar -S 1", "sysstat-7", "unknown option '-S'"),
        ("sar -p 1", "sysstat-12", "unknown option '-p'"),
        ("sar --human 1", "sysstat-12", "unknown option '--human'"),
        ("sar -u ALL 1", "sysstat-12", "unknown argument 'ALL'"),
        ("sar -u", "sysstat-12", "without INTERVAL it reads the daily file"),
        ("sar 0", "sysstat-12", "must be at least 1"),
    ],
)
def test_wrong_command_line_is_refused(command: str, layout: str, message: str) -> None:
    with pytest.raises(ToolUsageError, match=message):
        tool_sampling(command.split(), layout=layout)
