"""sar's reader against recordings: counts and sums found another way, iostat of the same run.

The recordings are not part of the project: the tests are skipped, visibly, where they are absent.
"""

import gzip
import itertools
import os
from collections import defaultdict
from pathlib import Path
from statistics import mean, median

import pytest

from calibration.readers import read_file

SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
EXIM = SHARED / "cases" / "exim-io" / "sar.txt"
TEXTS = [
    *(SHARED / "cases").glob("*/sar.txt"),
    *sorted((SHARED / "groundtruth").glob("*/*/sar.txt.gz")),
]
needs_shared = pytest.mark.skipif(not TEXTS, reason=f"no {SHARED}: set IOTWIN_SHARED")

# title -> (column, what one printed unit is), written down apart from the reader
COLUMNS = {
    "%user": ("user_pct", 1),
    "%nice": ("nice_pct", 1),
    "%system": ("system_pct", 1),
    "%iowait": ("iowait_pct", 1),
    "%steal": ("steal_pct", 1),
    "%idle": ("idle_pct", 1),
    "pswpin/s": ("swapin_pages_per_s", 1),
    "pswpout/s": ("swapout_pages_per_s", 1),
    "pgpgin/s": ("pgin_bytes_per_s", 1024),
    "pgpgout/s": ("pgout_bytes_per_s", 1024),
    "fault/s": ("pgfault_per_s", 1),
    "majflt/s": ("pgmajfault_per_s", 1),
    "pgfree/s": ("pgfree_per_s", 1),
    "pgscank/s": ("pgscan_kswapd_per_s", 1),
    "pgscand/s": ("pgscan_direct_per_s", 1),
    "pgsteal/s": ("pgsteal_per_s", 1),
    "%vmeff": ("vmeff_pct", 1),
    "tps": ("all_io_per_s", 1),
    "rtps": ("all_r_per_s", 1),
    "wtps": ("all_w_per_s", 1),
    "dtps": ("all_d_per_s", 1),
    "bread/s": ("all_read_bytes_per_s", 512),
    "bwrtn/s": ("all_write_bytes_per_s", 512),
    "bdscd/s": ("all_discard_bytes_per_s", 512),
    "runq-sz": ("procs_running", 1),
    "plist-sz": ("procs_total", 1),
    "ldavg-1": ("load1", 1),
    "ldavg-5": ("load5", 1),
    "ldavg-15": ("load15", 1),
    "blocked": ("procs_blocked", 1),
}


def text_of(path):
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def sums_of_text(text):
    """Return {title: [number of values, their sum]}, as awk would count them."""
    sums = defaultdict(lambda: [0, 0.0])
    titles = []
    for line in text.splitlines():
        if not line[:2].isdigit():
            continue
        fields = line.replace(" AM", "").replace(" PM", "").split()[1:]
        if fields[-1] in COLUMNS:
            titles = [title for title in fields if title != "CPU"]
            continue
        for title, cell in zip(titles, fields[-len(titles) :], strict=True):
            sums[title][0] += 1
            sums[title][1] += float(cell)
    return sums


@needs_shared
@pytest.mark.parametrize("path", TEXTS, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_a_recording_is_read_without_loss(path):
    recording = read_file(path)
    read = defaultdict(lambda: [0, 0.0])
    for sample in recording.samples:
        read[sample.column][0] += 1
        read[sample.column][1] += sample.value
    counted = sums_of_text(text_of(path))
    expected = {
        COLUMNS[title][0]: [count, pytest.approx(total * COLUMNS[title][1], rel=1e-9)]
        for title, (count, total) in counted.items()
    }
    assert expected
    assert dict(read) == expected
    assert recording.problems == ()


@needs_shared
def test_seconds_and_reports_of_a_run_count_up_by_one():
    for path in TEXTS[1:]:
        loads = read_file(path).select("load1")
        assert [sample.report for sample in loads] == list(range(len(loads)))
        steps = [b.time_s - a.time_s for a, b in itertools.pairwise(loads)]
        assert median(steps) == 1.0
        assert min(steps) >= 0.0


@needs_shared
def test_the_mail_server_io_was_recorded_for_14_seconds_in_16_reports():
    idle = read_file(EXIM).select("idle_pct", "all")
    assert len(idle) == 16
    assert (idle[0].time_s, idle[-1].time_s) == (0.0, 13.0)
    assert [sample.report for sample in idle] == list(range(16))
    assert read_file(EXIM).facts == {
        "tool": "sar of sysstat 6.1.1 or later",
        "start": "13:04:35",
        "interval_s": "1",
    }


@needs_shared
def test_sar_and_iostat_of_one_run_agree_about_the_cpu():
    # Two processes that read /proc at their own moments, often a report more or less.
    differences = []
    for path in TEXTS[1:]:
        sar, iostat = read_file(path), read_file(path.with_name("iostat.txt.gz"))
        for column in ("user_pct", "system_pct", "iowait_pct", "idle_pct"):
            ours, theirs = (
                mean(sample.value for sample in recording.select(column, "all"))
                for recording in (sar, iostat)
            )
            differences.append(abs(ours - theirs))
    assert max(differences) < 3.0
    assert median(differences) < 0.05
