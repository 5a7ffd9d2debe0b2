"""vmstat's table and lists: every column, since boot, units, time stamps, repeated headers."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.readers import read_file, read_text
from sim.tools.vmstat import PROCPS_3_2, PROCPS_4_0, header, line
from tests.calibration.texts import (
    VMSTAT,
    VMSTAT_2,
    VMSTAT_3_2,
    VMSTAT_DISK,
    VMSTAT_PARTITION,
    VMSTAT_STAMPED,
    VMSTAT_SUM,
    VMSTAT_WIDE,
    row,
    values,
)

SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
# The guest rig's runs (u_*) have an empty file: no vmstat ran there.
RECORDED = [
    path
    for path in sorted(SHARED.glob("groundtruth/*/*/vmstat.txt.gz"))
    if gzip.decompress(path.read_bytes())
]
needs_recordings = pytest.mark.skipif(
    not RECORDED, reason=f"no groundtruth in {SHARED}: set IOTWIN_SHARED"
)
# The columns as the manual page orders them, with what one of each is worth.
MANUAL = (
    ("procs_running", 1),
    ("procs_blocked", 1),
    ("swap_used_bytes", 1024),
    ("mem_free_bytes", 1024),
    ("mem_buffers_bytes", 1024),
    ("mem_cached_bytes", 1024),
    ("swapin_bytes_per_s", 1024),
    ("swapout_bytes_per_s", 1024),
    ("pgin_bytes_per_s", 1024),
    ("pgout_bytes_per_s", 1024),
    ("intr_per_s", 1),
    ("ctxt_per_s", 1),
    ("user_pct", 1),
    ("system_pct", 1),
    ("idle_pct", 1),
    ("iowait_pct", 1),
    ("steal_pct", 1),
)
TITLES = (
    "r",
    "b",
    "swpd",
    "free",
    "buff",
    "cache",
    "si",
    "so",
    "bi",
    "bo",
    "in",
    "cs",
    "us",
    "sy",
    "id",
    "wa",
    "st",
)


def test_the_first_row_is_since_boot_and_the_others_are_not():
    recording = read_text(VMSTAT, "x")
    assert values(recording, "ctxt_per_s", since_boot=True) == [16624]
    assert values(recording, "ctxt_per_s") == [792, 979]


def test_every_column_of_a_row_has_its_unit():
    assert row(read_text(VMSTAT, "x"), 2) == {
        "procs_running": 2,
        "procs_blocked": 1,
        "swap_used_bytes": 2**20,
        "mem_free_bytes": 23872808 * 1024,
        "mem_buffers_bytes": 2128 * 1024,
        "mem_cached_bytes": 642112 * 1024,
        "swapin_bytes_per_s": 4096,
        "swapout_bytes_per_s": 8192,
        "pgin_bytes_per_s": 296 * 1024,
        "pgout_bytes_per_s": 0,
        "intr_per_s": 614,
        "ctxt_per_s": 979,
        "user_pct": 0,
        "system_pct": 1,
        "idle_pct": 50,
        "iowait_pct": 50,
        "steal_pct": 0,
    }


def test_time_stamps_give_times_the_date_and_the_interval():
    recording = read_text(VMSTAT_STAMPED, "x")
    assert sorted({sample.time_s for sample in recording.samples}) == [0.0, 2.0]
    assert recording.facts["start"] == "2026-11-21T07:37:26"
    assert recording.facts["interval_s"] == "2"
    assert values(recording, "mem_active_bytes") == [343572 * 1024]


def test_a_time_stamp_with_a_named_zone_is_one_too():
    text = VMSTAT_STAMPED.replace("07:37:26", "23:59:59 CEST").replace(
        "2026-11-21 07:37:28", "2026-11-22 00:00:01 CEST"
    )
    assert sorted({s.time_s for s in read_text(text, "x").samples}) == [0.0, 2.0]


def test_without_a_clock_time_is_counted_in_the_interval_that_the_user_knows():
    times = {sample.time_s for sample in read_text(VMSTAT, "x", interval_s=5.0).samples}
    assert times == {0.0, 5.0, 10.0}
    assert {sample.time_s for sample in read_text(VMSTAT, "x").samples} == {None}


def test_dates_between_rows_are_their_times():
    first, second, *rows = VMSTAT.splitlines()
    dates = ["Thu Jul 16 23:59:50 CEST 2009", "Fri Jul 17 00:00:00 CEST 2009", "1247781610"]
    mixed = [first, second, *(text for pair in zip(dates, rows, strict=True) for text in pair)]
    recording = read_text("\n".join(mixed[:-2]) + "\n", "x")
    assert [s.time_s for s in recording.samples if s.column == "ctxt_per_s"] == [0.0, 10.0]
    assert recording.problems == ()


def test_older_headers_have_fewer_columns():
    assert "steal_pct" not in row(read_text(VMSTAT_3_2, "x"), 1)
    assert row(read_text(VMSTAT_3_2, "x"), 1)["iowait_pct"] == 50
    assert row(read_text(VMSTAT_2, "x"), since_boot=True)["mem_cached_bytes"] == 45348 * 1024


def test_guest_time_has_a_column_of_its_own_since_4_0_4():
    assert row(read_text(VMSTAT_WIDE, "x"), 1)["guest_pct"] == 6


@pytest.mark.parametrize(
    ("unit", "free", "swapin"),
    [("k", 1000, 1024), ("K", 1024, 1024), ("m", 10**6, None), ("M", 2**20, None), ("b", 1, 1)],
)
def test_a_prompt_tells_the_unit(unit, free, swapin):
    recording = read_text(f"[admin@mail ~]$ vmstat -S {unit} 5\n{VMSTAT}", "x")
    assert row(recording, 2)["mem_free_bytes"] == 23872808 * free
    assert row(recording, 2).get("swapin_bytes_per_s") == (None if swapin is None else 4 * swapin)
    assert recording.facts["command"] == f"vmstat -S {unit} 5"


def test_memory_that_is_no_whole_number_of_pages_in_kib_is_told_and_not_taken():
    lines = VMSTAT.replace("23872808", "23313").splitlines(keepends=True)
    recording = read_text("".join(lines), "x")
    assert recording.select("mem_free_bytes") == []
    assert recording.select("procs_running") != [] and recording.select("pgout_bytes_per_s") != []
    assert [problem.why for problem in recording.problems] == [
        "memory is no whole number of pages in KiB (-S?): not taken"
    ]


def test_with_y_no_row_is_since_boot():
    recording = read_text(f"# vmstat -y 1 3\n{VMSTAT}", "x")
    assert values(recording, "ctxt_per_s") == [16624, 792, 979]


def test_a_header_repeated_by_the_terminal_does_not_begin_anew():
    head, body = VMSTAT.splitlines(keepends=True)[:2], VMSTAT.splitlines(keepends=True)[3]
    long = "".join([*head, body * 21, *head, body * 3])
    assert len(values(read_text(long, "x"), "ctxt_per_s", since_boot=True)) == 1
    restarted = "".join([*head, body * 5, *head, body * 3])
    assert len(values(read_text(restarted, "x"), "ctxt_per_s", since_boot=True)) == 2


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (" 2  1      0 23872808   2128 642112    0    0   208\n", "9 numbers under 17 titles"),
        (VMSTAT.splitlines()[3].replace("555  792", "555792") + "\n", "16 numbers"),
        (VMSTAT.splitlines()[3].replace("56 36", "56 96") + "\n", "add up to 161"),
        (VMSTAT.splitlines()[3].replace("555", "****") + "\n", "not of a known format"),
        (VMSTAT.splitlines()[3].replace("555", "-nan") + "\n", "not of a known format"),
    ],
)
def test_a_row_that_is_not_whole_is_reported_with_its_line(bad, why):
    recording = read_text(VMSTAT + bad, "x")
    assert [problem.line for problem in recording.problems] == [6]
    assert why in recording.problems[0].why
    assert len(values(recording, "ctxt_per_s")) == 2


def test_a_stamped_row_whose_stamp_was_cut_is_reported():
    cut = VMSTAT_STAMPED.replace(" 2026-11-21 07:37:28", "")
    assert [problem.why for problem in read_text(cut, "x").problems] == ["no time stamp"]


def test_disk_tables_are_counters_since_boot():
    sda = row(read_text(VMSTAT_DISK, "x"), 0, "sda", since_boot=True)
    assert sda["reads_total"] == 12004
    assert sda["read_bytes_total"] == 480112 * 512
    assert sda["write_ms_total"] == 60033
    assert sda["io_ticks_ms_total"] == 90000


def test_a_device_that_comes_again_begins_the_next_table():
    again = "".join(VMSTAT_DISK.splitlines(keepends=True)[2:])
    recording = read_text(VMSTAT_DISK + again, "x", interval_s=2.0)
    assert [(s.report, s.time_s) for s in recording.samples if s.column == "reads_total"] == [
        (0, 0.0),
        (0, 0.0),
        (1, 2.0),
        (1, 2.0),
    ]


def test_a_partition_and_a_list_are_counters_too():
    assert row(read_text(VMSTAT_PARTITION, "x"), 0, "sda1", since_boot=True) == {
        "reads_total": 12004,
        "read_bytes_total": 480112 * 512,
        "writes_total": 6001,
        "write_bytes_total": 480112 * 512,
    }
    recording = read_text(VMSTAT_SUM, "x")
    assert values(recording, "iowait_ms_total", since_boot=True) == [34970]
    assert values(recording, "pgin_bytes_total", since_boot=True) == [9634785 * 1024]
    assert values(recording, "mem_cached_bytes") == [2113696 * 1024]


whole = st.integers(0, 10**9).map(lambda number: 4 * number)  # as memory, in pages
shares = st.lists(st.integers(0, 100), min_size=4, max_size=4).map(
    lambda cut: [b - a for a, b in zip([0, *sorted(cut)], [*sorted(cut), 100], strict=True)]
)


@given(st.lists(st.tuples(st.lists(whole, min_size=12, max_size=12), shares), min_size=1))
@settings(deadline=None)
def test_what_our_vmstat_prints_is_read_back(table):
    layout = PROCPS_4_0
    rows = [[*numbers, *cpu] for numbers, cpu in table]
    text = header(layout.columns) + "".join(
        line(dict(zip(TITLES, numbers, strict=False)), layout.columns) for numbers in rows
    )
    recording = read_text(text, "x")
    for at, (column, worth) in enumerate(MANUAL):
        read = [sample.value for sample in recording.samples if sample.column == column]
        assert read == [numbers[at] * worth for numbers in rows]


def test_what_our_vmstat_of_3_2_prints_is_read_back():
    numbers = [*range(0, 48, 4), 10, 20, 30, 40]
    text = header(PROCPS_3_2.columns) + line(
        dict(zip(TITLES, numbers, strict=False)), PROCPS_3_2.columns
    )
    read = row(read_text(text, "x"), since_boot=True)
    assert [read[column] / worth for column, worth in MANUAL[:16]] == numbers


@needs_recordings
@pytest.mark.slow
def test_every_recorded_vmstat_is_read_without_loss():
    """Column sums against a count of the words of each line that begins with a number."""
    for path in RECORDED:
        text = gzip.decompress(path.read_bytes()).decode()
        rows = [w[:17] for w in map(str.split, text.splitlines()) if w and w[0].isdigit()]
        recording = read_file(path)
        assert recording.problems == (), path
        for at, (column, worth) in enumerate(MANUAL):
            read = [sample.value for sample in recording.samples if sample.column == column]
            assert len(read) == len(rows), (path, column)
            assert sum(read) == sum(int(words[at]) for words in rows) * worth, (path, column)
        since_boot = {sample.report for sample in recording.samples if sample.since_boot}
        assert since_boot == {0}, path


@needs_recordings
@pytest.mark.parametrize("path", RECORDED[:: max(len(RECORDED) // 8, 1)], ids=str)
def test_jc_reads_the_same_from_a_recorded_vmstat(path):
    jc = pytest.importorskip("jc")
    theirs = jc.parse("vmstat", gzip.decompress(path.read_bytes()).decode(), quiet=True)
    keys = (
        "runnable_procs",
        "uninterruptible_sleeping_procs",
        "virtual_mem_used",
        "free_mem",
        "buffer_mem",
        "cache_mem",
        "swap_in",
        "swap_out",
        "blocks_in",
        "blocks_out",
        "interrupts",
        "context_switches",
        "user_time",
        "system_time",
        "idle_time",
        "io_wait_time",
        "stolen_time",
    )
    recording = read_file(path)
    for key, (column, worth) in zip(keys, MANUAL, strict=True):
        ours = [sample.value / worth for sample in recording.samples if sample.column == column]
        assert ours == [one[key] for one in theirs], (column, json.dumps(theirs[0]))
