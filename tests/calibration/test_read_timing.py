"""dd, hdparm, time and fio: results of single measurements, in every layout they were printed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.readers import UnreadableRecording, read_text
from tests.calibration.mangle import read_any
from tests.calibration.texts import (
    DD,
    DD_5,
    DD_6,
    DD_GERMAN,
    HDPARM,
    TIME_BASH,
    TIME_GNU,
    TIME_POSIX,
    TIME_VERBOSE,
    row,
    values,
)

MIB = 2**20


@pytest.mark.parametrize(
    ("text", "size", "seconds"),
    [
        (DD, 1048576000, 0.0199022),
        (DD_6, 2**31, 16.088),
        (DD_5, 2**31, 16.088),
        (DD_GERMAN, 8589934592, 136.916),
        ("9 bytes copied, 1.5e-05 s, 600 kB/s\n", 9, 1.5e-05),
        ("4194304 bytes (4.0MB) copied, 0.031 seconds, 129.0MB/s\n", 4194304, 0.031),  # busybox
        (
            "20971520 bytes (21 MB) copied, 3 s, 7.0 MB/s\n".join(["2+0 records in\n" * 2, ""]),
            20971520,
            3.0,
        ),
    ],
)
def test_dd_gives_bytes_seconds_and_their_ratio(text, size, seconds):
    assert row(read_text(text, "x")) == {
        "copied_bytes": size,
        "elapsed_s": seconds,
        "copied_bytes_per_s": size / seconds,
    }


def test_progress_of_dd_is_no_result():
    progress = "123731968 bytes (124 MB, 118 MiB) copied, 1 s, 124 MB/s\r"
    recording = read_text(progress + progress.replace(" 1 s", " 2 s") + "\n" + DD, "x")
    assert values(recording, "copied_bytes") == [1048576000]
    assert recording.problems == ()


def test_three_runs_of_dd_are_three_reports():
    assert [s.report for s in read_text(DD * 3, "x").select("elapsed_s")] == [0, 1, 2]


def test_hdparm_times_a_device_in_mib():
    recording = read_text(HDPARM, "x")
    assert values(recording, "cached_read_bytes_per_s") == [1904.67 * MIB]
    assert values(recording, "buffered_read_bytes_per_s") == [64.25 * MIB]
    assert recording.names("device") == ["sda1"]


@pytest.mark.parametrize(
    ("text", "elapsed", "user", "system"),
    [
        (TIME_BASH, 16.088, 0.009, 8.756),
        (TIME_BASH.replace(".", ","), 16.088, 0.009, 8.756),
        (TIME_BASH.replace("0m16.088s", "1h2m3.500s"), 3723.5, 0.009, 8.756),
        (TIME_POSIX, 16.09, 0.01, 8.76),
        (TIME_GNU, 16.08, 0.01, 8.75),
        (TIME_VERBOSE, 3736.5, 0.01, 8.75),
    ],
)
def test_time_gives_elapsed_user_and_system_seconds(text, elapsed, user, system):
    read = row(read_text(text, "x"))
    assert read["elapsed_s"] == pytest.approx(elapsed)
    assert (read["cpu_user_s"], read["cpu_system_s"]) == (user, system)


def test_gnu_time_counts_faults_and_memory():
    read = row(read_text(TIME_VERBOSE, "x"))
    assert read["max_rss_bytes"] == 1032 * 1024
    assert (read["major_faults"], read["minor_faults"]) == (1, 71)
    assert read_text(TIME_VERBOSE, "x").names("system") == ["dd if=/dev/zero of=x"]
    assert row(read_text(TIME_GNU, "x"))["major_faults"] == 3


def test_dd_and_its_time_are_read_from_one_paste():
    recording = read_text(f"$ time dd if=/dev/zero of=x bs=1M count=2048\n{DD_6}\n{TIME_BASH}", "x")
    assert recording.facts["command"].startswith("dd if=")
    assert values(recording, "elapsed_s") == [16.088, 16.088]
    assert recording.problems == ()


def test_jc_reads_the_same_from_time():
    jc = pytest.importorskip("jc")
    theirs = jc.parse("time", TIME_VERBOSE, quiet=True)
    ours = row(read_text(TIME_VERBOSE, "x"))
    assert ours["elapsed_s"] == theirs["elapsed_time_total_seconds"]
    assert ours["cpu_system_s"] == theirs["system_time"]
    assert ours["max_rss_bytes"] == theirs["maximum_resident_set_size"] * 1024


FIO_3 = {
    "fio version": "fio-3.36",
    "timestamp": 1526519641,
    "jobs": [
        {
            "jobname": "randread",
            "usr_cpu": 1.5,
            "sys_cpu": 3.25,
            "read": {
                "io_bytes": 4096000,
                "bw_bytes": 409600,
                "bw": 400,
                "iops": 100.0,
                "runtime": 10000,
                "total_ios": 1000,
                "lat_ns": {"mean": 9950000.0},
                "clat_ns": {
                    "mean": 9900000.0,
                    "percentile": {
                        "50.000000": 9000000,
                        "95.000000": 15000000,
                        "99.000000": 20000000,
                    },
                },
            },
            "write": {"bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "lat_ns": {"mean": 0}},
            "sync": {"lat_ns": {"mean": 2500000.0}},
        }
    ],
    "disk_util": [{"name": "sda", "util": 97.5}],
}
FIO_2 = {
    "fio version": "fio-2.2.10",
    "jobs": [
        {
            "jobname": "w",
            "usr_cpu": 0.5,
            "sys_cpu": 1.0,
            "write": {
                "io_bytes": 4000,
                "bw": 400,
                "iops": 100.0,
                "runtime": 10000,
                "lat": {"mean": 9950.0},
                "clat": {"percentile": {"50.000000": 9000}},
            },
        }
    ],
}


def test_fio_3_counts_bytes_and_nanoseconds():
    recording = read_text(json.dumps(FIO_3, indent=1), "x")
    assert row(recording, 0, "randread") == {
        "job_r_per_s": 100.0,
        "job_read_bytes_per_s": 409600.0,
        "job_r_ms": pytest.approx(9.95),
        "job_runtime_s": 10.0,
        "job_r_p50_ms": pytest.approx(9.0),
        "job_r_p95_ms": pytest.approx(15.0),
        "job_r_p99_ms": pytest.approx(20.0),
        "job_user_pct": 1.5,
        "job_system_pct": 3.25,
        "job_sync_ms": pytest.approx(2.5),
    }
    assert values(recording, "util_pct") == [97.5]
    assert recording.formats == ("fio",)


def test_fio_2_counts_kib_and_microseconds():
    read = row(read_text(json.dumps(FIO_2), "x"))
    assert read["job_write_bytes_per_s"] == 400 * 1024
    assert read["job_w_ms"] == pytest.approx(9.95)
    assert read["job_w_p50_ms"] == pytest.approx(9.0)


def test_words_around_fios_document_do_not_hide_it():
    text = f"fio: terminating on signal 2\n{json.dumps(FIO_2)}\n"
    recording = read_text(text, "x")
    assert values(recording, "job_w_per_s") == [100.0]
    assert [problem.line for problem in recording.problems] == [1]


values_of_json = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "read",
                    "iops",
                    "bw",
                    "runtime",
                    "lat_ns",
                    "mean",
                    "percentile",
                    "name",
                    "clat_ns",
                    "50.000000",
                    "util",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(values_of_json, values_of_json)
def test_any_document_that_calls_itself_fios_never_fails(jobs, disks):
    document = {"fio version": "fio-3", "jobs": [jobs], "disk_util": disks}
    read_any(json.dumps(document))


def test_a_document_of_another_kind_is_not_understood():
    with pytest.raises(UnreadableRecording, match="nothing in it is understood"):
        read_text('{"what": 1}', "x")
