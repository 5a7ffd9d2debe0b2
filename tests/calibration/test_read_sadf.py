"""sadf -j: the same figures as sar's text."""

import copy
import json
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.readers import read_text
from tests.calibration.mangle import read_any

DOCUMENT = {
    "sysstat": {
        "hosts": [
            {
                "nodename": "vm",
                "sysname": "Linux",
                "release": "6.1.0",
                "machine": "x86_64",
                "number-of-cpus": 2,
                "file-date": "2026-11-21",
                "file-utc-time": "23:59:58",
                "statistics": [
                    {
                        "timestamp": {"date": "2026-11-21", "time": "23:59:59", "interval": 1},
                        "cpu-load": [{"cpu": "all", "usr": 1.5, "sys": 0.5, "idle": 98.0}],
                        "io": {
                            "tps": 3.0,
                            "io-reads": {"rtps": 1.0, "bread": 8.0},
                            "io-writes": {"wtps": 2.0, "bwrtn": 16.0},
                        },
                        "memory": {
                            "memfree": 10,
                            "memused": 20,
                            "memused-percent": 66.67,
                            "inactive": 5,
                        },
                        "disk": [
                            {
                                "disk-device": "vda",
                                "tps": 3.0,
                                "rd_sec": 8.0,
                                "rkB": 4.0,
                                "util-percent": 0.4,
                            }
                        ],
                        "network": {"net-dev": [{"iface": "lo", "rxkB": 1.0}]},
                        "hugepages": {"hugfree": 0},
                    },
                    {
                        "timestamp": {"date": "2026-11-22", "time": "00:00:00", "interval": 1},
                        "queue": {"runq-sz": 2, "ldavg-1": 1.25},
                    },
                ],
            }
        ]
    }
}


def read(document):
    return read_text(json.dumps(document, indent=1) + "\n", "x")


def test_names_are_those_of_the_text_and_sizes_bytes():
    recording = read(DOCUMENT)
    values = {(s.kind, s.name, s.column): s.value for s in recording.samples}
    assert recording.formats == ("sadf -j",)
    assert values == {
        ("cpu", "all", "user_pct"): 1.5,
        ("cpu", "all", "system_pct"): 0.5,
        ("cpu", "all", "idle_pct"): 98.0,
        ("system", "", "all_io_per_s"): 3.0,
        ("system", "", "all_r_per_s"): 1.0,
        ("system", "", "all_read_bytes_per_s"): 4096.0,
        ("system", "", "all_w_per_s"): 2.0,
        ("system", "", "all_write_bytes_per_s"): 8192.0,
        ("system", "", "mem_free_bytes"): 10240,
        ("system", "", "mem_used_bytes"): 20480,
        ("system", "", "mem_used_pct"): 66.67,
        ("system", "", "mem_inactive_bytes"): 5120,
        ("device", "vda", "io_per_s"): 3.0,
        ("device", "vda", "read_bytes_per_s"): 4096.0,
        ("device", "vda", "util_pct"): 0.4,
        ("interface", "lo", "rx_bytes_per_s"): 1024.0,
        ("system", "", "procs_running"): 2,
        ("system", "", "load1"): 1.25,
    }


def test_times_begin_with_the_first_interval_and_pass_midnight():
    recording = read(DOCUMENT)
    assert sorted({(s.time_s, s.report) for s in recording.samples}) == [(1.0, 0), (2.0, 1)]
    assert recording.facts["start"] == "2026-11-21T23:59:58"
    assert recording.facts["cpus"] == "2"


def test_what_is_not_taken_is_named_once():
    assert [p.why for p in read(DOCUMENT).problems] == ["sadf: not taken: hugepages"]


@pytest.mark.parametrize("value", [None, "1.5", True, [1]])
def test_a_value_that_is_no_number_is_reported(value):
    document = copy.deepcopy(DOCUMENT)
    document["sysstat"]["hosts"][0]["statistics"][1]["queue"]["ldavg-1"] = value
    recording = read(document)
    assert f"sadf: report 1: ldavg-1: {value!r}" in [p.why for p in recording.problems]
    assert recording.select("load1") == []


@pytest.mark.parametrize("stamp", [{}, {"date": "2026-13-01", "time": "00:00:00"}, "noon", None])
def test_a_report_without_a_time_is_reported_and_has_none(stamp):
    document = copy.deepcopy(DOCUMENT)
    document["sysstat"]["hosts"][0]["statistics"][1]["timestamp"] = stamp
    recording = read(document)
    assert [s.time_s for s in recording.select("load1")] == [None]
    assert any("not a date and a time" in p.why for p in recording.problems)


@st.composite
def damaged(draw):
    """Return the document with one value, anywhere, replaced by any JSON."""
    document = copy.deepcopy(DOCUMENT)
    place, key = {"": document}, ""
    while isinstance(place[key], dict | list) and (key == "" or draw(st.integers(0, 5))):
        place = place[key]
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = draw(st.sampled_from(keys))
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    place[key] = draw(st.recursive(leaves, lambda inner: st.lists(inner, max_size=2)))
    return document


@given(damaged())
@settings(max_examples=300, deadline=None)
def test_a_damaged_document_never_fails_and_makes_no_other_figures(document):
    whole = {(s.name, s.column) for s in read(DOCUMENT).samples}
    recording = read_any(json.dumps(document, indent=1) + "\n")
    assert {s.column for s in recording.samples} <= {column for _name, column in whole}


@pytest.mark.skipif(shutil.which("sadf") is None, reason="no sysstat here")
def test_text_and_json_of_one_file_of_the_real_tools_are_the_same_table(tmp_path):
    file = tmp_path / "sa"
    made = subprocess.run(
        ["sar", "-o", str(file), "-A", "1", "2"], capture_output=True, check=False
    )
    if made.returncode or not file.exists():
        pytest.skip("sar cannot collect here")
    texts = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for command in (["sar", "-A", "-f", str(file)], ["sadf", "-j", str(file), "--", "-A"])
    ]
    text, document = (
        {(s.time_s, s.kind, s.name, s.column, s.report, s.value) for s in read_text(t, "x").samples}
        for t in texts
    )
    assert len(text) > 100
    assert text == document
