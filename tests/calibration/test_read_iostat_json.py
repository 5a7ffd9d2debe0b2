"""iostat's JSON: the same table as the text; cut, malformed and repeated documents."""

import json

import pytest

from calibration.readers import UnreadableRecording, read_text

CPU = {"user": 5.92, "nice": 0.0, "system": 5.36, "iowait": 21.74, "steal": 0.0, "idle": 66.98}
DISK = {
    "disk_device": "sda",
    "r/s": 0.0,
    "w/s": 3.0,
    "rMB/s": 0.0,
    "wMB/s": 0.05,
    "rrqm/s": 0.0,
    "wrqm/s": 10.0,
    "rrqm": 0.0,
    "wrqm": 76.92,
    "r_await": 0.0,
    "w_await": 8.53,
    "wareq-sz": 18.67,
    "aqu-sz": 0.03,
    "util": 1.6,
}
# 11.5.1 to 11.5.6: rates without "/s", sizes in sectors
DISK_11_5_1 = {
    "disk_device": "sda",
    "rrqm": 0.0,
    "wrqm": 10.0,
    "r": 0.0,
    "w": 3.0,
    "rkB": 0.0,
    "wkB": 56.0,
    "avgrq-sz": 37.33,
    "avgqu-sz": 0.03,
    "await": 8.53,
    "r_await": 0.0,
    "w_await": 8.53,
    "svctm": 5.33,
    "util": 1.6,
}
TIMES = ("2017-04-30T23:59:58+0000", "2017-05-01T00:00:03+0000")


def document(*disks, times=TIMES):
    reports = [{"timestamp": time, "avg-cpu": CPU, "disk": list(disks)} for time in times]
    host = {
        "nodename": "mx1",
        "sysname": "Linux",
        "release": "4.9.0",
        "machine": "x86_64",
        "number-of-cpus": 4,
        "date": "2017-04-30",
        "statistics": reports,
    }
    return {"sysstat": {"hosts": [host]}}


def row(sample):
    return sample.report, sample.kind, sample.name, sample.column, sample.value, sample.since_boot


def read(text):
    return read_text(text, "a.json")


def last(recording):
    return {s.column: s.value for s in recording.samples if s.report == 1 and s.name == "sda"}


def test_a_document_says_what_its_text_says():
    recording = read(json.dumps(document(DISK)))
    assert recording.formats == ("iostat -o JSON",)
    assert recording.facts["kernel"] == "4.9.0"
    assert recording.facts["interval_s"] == "5"
    assert {(s.report, s.since_boot, s.time_s) for s in recording.samples} == {
        (0, True, 0.0),
        (1, False, 5.0),
    }
    assert last(recording) == pytest.approx(
        {
            "r_per_s": 0,
            "w_per_s": 3,
            "read_bytes_per_s": 0,
            "write_bytes_per_s": 52428.8,
            "rrqm_per_s": 0,
            "wrqm_per_s": 10,
            "rrqm_pct": 0,
            "wrqm_pct": 76.92,
            "r_await_ms": 0,
            "w_await_ms": 8.53,
            "wareq_bytes": 19118.08,
            "aqu_sz": 0.03,
            "util_pct": 1.6,
        }
    )


def test_before_11_5_7_the_same_keys_are_rates_and_sectors():
    found = last(read(json.dumps(document(DISK_11_5_1))))
    assert (found["wrqm_per_s"], found["w_per_s"], found["write_bytes_per_s"]) == (10, 3, 57344)
    assert found["areq_bytes"] == pytest.approx(37.33 * 512)
    assert "wrqm_pct" not in found


def test_a_group_is_no_device_of_that_name():
    group = {**DISK, "disk_device": " all"}
    assert read(json.dumps(document(DISK, group))).names("device") == ["sda", "group all"]


@pytest.mark.parametrize("indent", [None, "\t"])
def test_of_a_cut_document_the_complete_rows_are_taken_and_the_cut_is_told(indent):
    text = json.dumps(document(DISK, {**DISK, "disk_device": "sdb"}), indent=indent)
    whole = [row(s) for s in read(text).samples]
    taken = 0
    for end in range(0, len(text) - 1, 3):
        try:
            recording = read(text[:end])
        except UnreadableRecording:
            assert not taken
            continue
        cut = [row(s) for s in recording.samples]
        assert cut == whole[: len(cut)]
        assert len(cut) >= taken
        assert "cut JSON" in recording.problems[-1].why
        taken = len(cut)
    assert taken == len(whole)


@pytest.mark.parametrize(
    "fault",
    [
        lambda text: text.replace("]}]}}", ",]}]}}"),
        lambda text: text.replace('"statistics": [', '"statistics": [,'),
        lambda text: text.replace("76.92", "-nan", 1),
    ],
    ids=["comma at the end", "comma at the beginning (-y)", "nan"],
)
def test_known_faults_of_the_tool_are_mended_and_told(fault):
    text = json.dumps(document(DISK))
    recording = read(fault(text))
    assert fault(text) != text
    assert last(recording) == last(read(text))
    assert "mended JSON" in recording.problems[-1].why


def test_a_row_with_something_else_is_reported_whole():
    for bad in ({**DISK, "w/s": "x"}, {**DISK, "w/s": -1}, {**DISK, "sectors": 1}, {}, 3):
        recording = read(json.dumps(document(DISK, bad)))
        assert [p.text for p in recording.problems] == [
            'statistics[0]["disk"][1]',
            'statistics[1]["disk"][1]',
        ]
        assert recording.names("device") == ["sda"]


def test_documents_and_lines_follow_each_other():
    text = json.dumps(document(DISK), indent=1)
    recording = read(f"nohup: ignoring input\n{text}\nStopped\n{text}\n")
    assert [p.text for p in recording.problems] == ["nohup: ignoring input", "Stopped"]
    assert recording.problems[1].line == text.count("\n") + 3
    assert sum(s.since_boot for s in recording.samples) * 2 == len(recording.samples)
    assert {s.line for s in recording.samples} == {2, text.count("\n") + 4}


def test_other_json_is_refused():
    for text in ("{}", "[]", '{"sysstat": {"hosts": [{"statistics": [{}]}]}}', "{", "[1, 2"):
        with pytest.raises(UnreadableRecording, match="nothing in it is understood"):
            read(text)
