"""Raw /proc text: counters of one moment, rates between two, cut rows, recorded diskstats."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.readers import read_file, read_text
from sim.tools.iostat import compute_iostat
from sim.tools.parse import DISK_FIELDS
from sim.tools.snapshot import Snapshot
from tests.calibration.texts import (
    DISKSTATS,
    LOADAVG,
    MEMINFO,
    PROC,
    STAT,
    UPTIME_PROC,
    VMSTAT_PROC,
    row,
    values,
)

SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
RECORDED = sorted(SHARED.glob("groundtruth/*/*/diskstats.*"))
needs_recordings = pytest.mark.skipif(
    not RECORDED, reason=f"no groundtruth in {SHARED}: set IOTWIN_SHARED"
)
# Ten seconds later: a second of reads on sda, half of the time idle.
LATER = (
    PROC.replace(UPTIME_PROC, "1020.00 818.00\n")
    .replace("sda 120000 0 960000 600000", "sda 121000 0 968000 605000")
    .replace("0 900000 1200000", "0 904000 1205000")
    .replace("cpu  60600 0 20200 80800 40400", "cpu  60700 0 20300 81400 41600")
    .replace("ctxt 2500000", "ctxt 2501000")
    .replace("pgpgin 480000", "pgpgin 484000")
    .replace("pswpin 50000", "pswpin 50100")
)


def test_one_moment_gives_counters_and_averages_since_boot():
    recording = read_text(PROC, "x")
    boot = row(recording, 0, "sda", since_boot=True)
    assert boot["reads_total"] == 120000
    assert boot["read_bytes_total"] == 960000 * 512
    assert boot["r_await_ms"] == 5.0
    assert boot["util_pct"] == pytest.approx(100 * 900 / 1010)
    assert row(recording, 0, "0", since_boot=True)["iowait_pct"] == 20.0
    assert row(recording, 0, "all", since_boot=True)["iowait_ms_total"] == 404000
    now = row(recording, 0, "")
    assert (now["load5"], now["procs_blocked"], now["uptime_s"]) == (5.67, 7, 1010.0)
    assert now["dirty_pages"] == 55
    assert now["swap_used_bytes"] == 524288 * 1024
    assert recording.facts["cpus"] == "2"
    assert recording.facts["memory_bytes"] == str(2**30)


def test_two_moments_give_the_rates_that_iostat_gives():
    recording = read_text(PROC + LATER, "x")
    sda = row(recording, 1, "sda")
    assert sda["r_per_s"] == 100
    assert sda["read_bytes_per_s"] == 800 * 512
    assert sda["r_await_ms"] == 5.0
    assert sda["util_pct"] == 40.0
    assert row(recording, 1, "all")["iowait_pct"] == 60.0
    system = row(recording, 1, "")
    assert system["ctxt_per_s"] == 100
    assert system["pgin_bytes_per_s"] == 400 * 1024
    assert system["swapin_pages_per_s"] == 10
    assert {s.time_s for s in recording.samples if s.report == 1} == {10.0}
    assert not [s for s in recording.samples if s.report == 1 and s.since_boot]


def bare(text):
    return text.replace(UPTIME_PROC, "").replace("1020.00 818.00\n", "")


@pytest.mark.parametrize(
    ("before", "between", "interval_s"),
    [
        ("", "", 10.0),
        ("2026-11-21 23:59:55\n", "2026-11-22 00:00:05\n", None),
        ("Sat Nov 21 23:59:55 UTC 2026\n", "Sun Nov 22 00:00:05 UTC 2026\n", None),
        ("=== 1795305595 ===\n", "=== 1795305605 ===\n", None),
    ],
)
def test_the_time_between_comes_from_dates_or_from_the_user(before, between, interval_s):
    text = before + bare(PROC) + between + bare(LATER)
    recording = read_text(text, "x", interval_s)
    assert values(recording, "ctxt_per_s") == [100]
    assert row(recording, 1, "sda")["util_pct"] == 40.0


def test_without_a_clock_there_are_counters_and_shares_but_no_rates():
    recording = read_text(bare(PROC) + bare(LATER), "x")
    assert values(recording, "ctxt_per_s") == []
    assert values(recording, "ctxt_total", since_boot=True) == [2500000, 2501000]
    assert row(recording, 1, "all")["iowait_pct"] == 60.0


def test_a_restart_between_two_moments_gives_no_rates():
    recording = read_text(LATER + PROC, "x")
    assert values(recording, "ctxt_per_s") == []
    assert values(recording, "r_per_s") == []


def test_lines_picked_from_stat_are_enough():
    recording = read_text("cpu  60600 0 20200 80800 40400 0 0 0 0 0\n", "x")
    assert values(recording, "idle_pct", since_boot=True) == [40.0]
    assert values(recording, "ctxt_total", since_boot=True) == []


def test_a_row_with_fewer_numbers_than_those_above_is_reported():
    cut = DISKSTATS + "   8      16 sdb 1 2 3 4 5 6 7 8 9 10 11\n"
    recording = read_text(cut, "x")
    assert [problem.line for problem in recording.problems] == [4]
    assert "sdb" not in recording.names("device")


def test_partitions_of_2_6_24_have_fewer_numbers():
    text = "   8    0 sda 100 2 300 4 50 6 70 8 0 90 110\n   8    1 sda1 10 80 5 40\n"
    recording = read_text(text, "x")
    assert recording.problems == ()
    assert values(recording, "writes_total", since_boot=True) == [50, 5]


row_of_disk = st.lists(st.integers(0, 2**31), min_size=17, max_size=17)


@given(row_of_disk, row_of_disk, st.integers(1, 10**6))
@settings(deadline=None)
def test_rates_are_those_of_our_iostat(first, increases, interval_cs):
    """The same two snapshots, once through the reader and once through the tool's arithmetic."""
    second = [a + b for a, b in zip(first, increases, strict=True)]
    texts = []
    for uptime_cs, counters in ((100000, first), (100000 + interval_cs, second)):
        disk = f"   8       0 sda {' '.join(map(str, counters))}\n"
        texts.append((f"{uptime_cs // 100}.{uptime_cs % 100:02d} 1.00\n", disk))
    recording = read_text("".join(a + b for a, b in texts), "x")
    snapshots = [
        Snapshot(t_ns=0, files={"uptime": a, "diskstats": b, "stat": STAT}) for a, b in texts
    ]
    tool = compute_iostat(snapshots[0], snapshots[1]).device("sda")
    if not tool.is_unused:
        read = row(recording, 1, "sda")
        assert read["r_per_s"] == tool.r_per_s
        assert read["util_pct"] == tool.util_pct
        assert read["w_await_ms"] == tool.w_await_ms


@needs_recordings
def test_every_recorded_diskstats_is_read_without_loss():
    """Counter by counter, and sums over the devices, against the words of each line."""
    columns = {
        "reads": ("reads_total", 1),
        "read_sectors": ("read_bytes_total", 512),
        "writes": ("writes_total", 1),
        "write_sectors": ("write_bytes_total", 512),
        "write_ms": ("write_ms_total", 1),
        "io_ticks_ms": ("io_ticks_ms_total", 1),
        "time_in_queue_ms": ("time_in_queue_ms_total", 1),
        "flushes": ("flushes_total", 1),
    }
    for path in RECORDED:
        rows = [line.split()[3:] for line in path.read_text().splitlines()]
        recording = read_file(path)
        assert recording.problems == (), path
        for name, (column, worth) in columns.items():
            counted = [int(words[DISK_FIELDS.index(name)]) * worth for words in rows]
            assert values(recording, column, since_boot=True) == counted, (path, name)


def test_jc_reads_the_same_from_proc():
    jc = pytest.importorskip("jc")
    recording = read_text(PROC, "x")
    for theirs in jc.parse("proc_diskstats", DISKSTATS, quiet=True):
        ours = row(recording, 0, theirs["device"], since_boot=True)
        assert ours["reads_total"] == theirs["reads_completed"]
        assert ours["write_bytes_total"] == theirs["sectors_written"] * 512
        assert ours["io_ticks_ms_total"] == theirs["io_time_ms"]
    stat = jc.parse("proc_stat", STAT, quiet=True)
    assert values(recording, "ctxt_total", since_boot=True) == [stat["context_switches"]]
    assert values(recording, "user_ms_total", since_boot=True)[0] == stat["cpu"]["user"] * 10
    load = jc.parse("proc_loadavg", LOADAVG, quiet=True)
    assert values(recording, "load1") == [load["load_1m"]]
    memory = jc.parse("proc_meminfo", MEMINFO, quiet=True)
    assert values(recording, "mem_free_bytes") == [memory["MemFree"] * 1024]
    paging = jc.parse("proc_vmstat", VMSTAT_PROC, quiet=True)
    assert values(recording, "swapin_pages_total", since_boot=True) == [paging["pswpin"]]
