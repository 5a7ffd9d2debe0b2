"""The samples table and what every reader stands on: lines, clocks, titles, JSON, gzip."""

import gzip
import json
from datetime import date, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.readers import UnreadableRecording, read_bytes, read_file, read_text
from calibration.readers.clock import Clock, parse_dates, parse_moment, parse_time
from calibration.readers.json_text import find_documents
from calibration.readers.line import NotANumber, Sink, lines_of, number
from calibration.readers.title import LoneTime, Title
from calibration.samples import COLUMNS, Sample, UnknownColumn, merge
from tests.calibration.iostat_texts import CPU, TEXTS


def sample(**changes):
    values = {
        "time_s": 0.0,
        "kind": "cpu",
        "name": "all",
        "column": "idle_pct",
        "value": 1.0,
        "since_boot": False,
        "report": 0,
        "line": 1,
    }
    return Sample(**(values | changes))


def test_a_sample_stands_in_a_known_column_of_its_kind_and_is_finite():
    with pytest.raises(UnknownColumn, match="'idle_pc'; the nearest is 'idle_pct'"):
        sample(column="idle_pc")
    with pytest.raises(ValueError, match="belongs to a cpu, not device"):
        sample(kind="device")
    with pytest.raises(ValueError, match="not finite"):
        sample(value=float("inf"))


def test_every_column_says_its_unit():
    endings = ("_pct", "_ms", "_bytes", "_per_s", "_sz", "_s")
    plain = [name for name, c in COLUMNS.items() if not name.endswith(endings)]
    assert [name for name in plain if not COLUMNS[name].meaning] == []
    assert all("%" in c.meaning for name, c in COLUMNS.items() if name.endswith("_pct"))


@given(st.text(alphabet="ab\t \r\n", max_size=40))
def test_lines_are_numbered_with_any_line_end_and_count_the_blanks_above(text):
    lines = list(lines_of(text))
    assert "\n".join(line.text for line in lines) == text.replace("\r\n", "\n").replace(
        "\r", "\n"
    ).removesuffix("\n")
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert all(line.ended for line in lines[:-1])
    for line in lines:
        above = lines[line.number - 1 - line.blanks : line.number - 1]
        assert not any(one.fields for one in above)
    if lines:
        assert lines[-1].ended == text.endswith(("\n", "\r"))


def test_a_number_is_one_or_refused():
    assert [number(text) for text in ("1.50", "1,50", "-2", ".5", "1e3")] == [
        1.5,
        1.5,
        -2,
        0.5,
        1e3,
    ]
    for text in (
        "",
        "nan",
        "-nan",
        "****",
        "1.502.50",
        "1,234.5",
        "0x10",
        "1 2",
        "inf",
        "\uff11.5",
    ):
        with pytest.raises(NotANumber):
            print(number(text))


@given(st.times().map(lambda t: t.replace(microsecond=0)))
def test_twelve_and_twenty_four_hours_are_the_same_time(clock):
    for form in ("%H:%M:%S", "%I:%M:%S %p", "%I:%M:%S%p"):
        assert parse_time(clock.strftime(form)) == clock


@given(
    st.datetimes(allow_imaginary=False).filter(lambda t: t.year > 1970),
    st.lists(st.integers(1, 11 * 3600), max_size=30),
    st.sampled_from(
        [
            "%H:%M:%S",
            "%d.%m.%Y %H:%M:%S",
            "%Y-%m-%dT%H:%M:%S",
            "%m/%d/%y %H:%M:%S",
            "%d/%m/%Y %H:%M:%S",
            "%m/%d/%Y %I:%M:%S %p",
        ]
    ),
)
def test_time_goes_on_by_the_steps_of_the_clock(start, steps, form):
    start = start.replace(microsecond=0, year=2001 + start.year % 90)
    clock, now, passed = Clock(), start, 0
    for step in (0, *steps):
        now += timedelta(seconds=step)
        passed += step
        moment = parse_moment(now.strftime(form))
        assert moment is not None
        assert clock.at_moment(moment) == passed


def test_a_date_of_two_readings_is_read_by_its_distance_only():
    assert parse_dates("05/04/17") == {"mdy": date(2017, 5, 4), "dmy": date(2017, 4, 5)}
    assert parse_dates("31/04/17") == {}
    assert parse_moment("05/04/17 01:02:03").isoformat() == "01:02:03"
    assert parse_moment("2017-04-05 01:02:03").isoformat() == "2017-04-05T01:02:03"


def test_a_change_to_summer_time_passes_no_hour():
    clock = Clock()
    stamps = ("2017-03-26T01:59:58+0100", "2017-03-26T03:00:03+0200", "2017-03-26T01:00:08Z")
    assert [clock.at_moment(parse_moment(text)) for text in stamps] == [0, 5, 10]


@given(st.text(max_size=30))
def test_what_is_no_time_is_none(text):
    moment = parse_moment(text)
    assert moment is None or isinstance(moment.clock, time)


@pytest.mark.parametrize(
    "line, facts",
    [
        (
            "Linux 2.4.21-4.ELsmp (mx1) \t05/01/03",
            {"kernel": "2.4.21-4.ELsmp", "hostname": "mx1", "date": "05/01/03"},
        ),
        (
            "Linux 6.1.0 ((none)) 2026-11-21 _x86_64_ (1 CPU)",
            {
                "kernel": "6.1.0",
                "hostname": "(none)",
                "date": "2026-11-21",
                "arch": "x86_64",
                "cpus": "1",
            },
        ),
    ],
)
def test_a_title_gives_the_facts(line, facts):
    sink = Sink()
    assert Title(sink).feed(next(lines_of(line)))
    assert sink.facts == facts


@pytest.mark.parametrize(
    "text", ["Time: 05:11:56 AM", "Zeit: 05:11:56", "Heure : 05:11:56", "01.05.2007 05:11:56"]
)
def test_a_line_with_a_time_alone_is_the_time_of_the_next_report(text):
    sink = Sink()
    assert LoneTime(sink).feed(next(lines_of(text)))
    assert (sink.stamp_s, sink.stamps) == (0, 1)
    assert not LoneTime(sink).feed(next(lines_of(f"{text} up 3 days")))


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
).filter(lambda value: isinstance(value, dict | list))


@given(documents, documents, st.booleans())
def test_documents_are_found_one_after_the_other(first, second, is_wide):
    indent = 1 if is_wide else None
    text = f"x\n{json.dumps(first, indent=indent)}\n{json.dumps(second, indent=indent)}\ny\n"
    assert [one.content for one in find_documents(text)] == [first, second]


@given(documents, st.data())
def test_what_is_saved_of_a_cut_document_was_in_it(content, data):
    text = json.dumps(content)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    assert all(_is_part(one.content, content) for one in find_documents(cut))


def _is_part(part, whole):
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and _is_part(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(_is_part, part, whole))
    return part == whole


def test_gzip_is_read_as_far_as_it_goes(tmp_path):
    text = TEXTS["9"] + CPU * 200
    raw = gzip.compress(text.encode())
    path = tmp_path / "iostat.txt.gz"
    path.write_bytes(raw)
    whole = read_file(path)
    assert whole.problems == ()
    assert read_bytes(raw + raw, "twice").samples[-1].report == 2 * whole.samples[-1].report + 1
    cut = read_bytes(raw[:-12], "cut")
    assert "the gzip data are cut" in cut.problems[-1].why
    assert cut.samples == whole.samples[: len(cut.samples)]


def test_utf_16_and_bytes_that_are_no_characters_are_no_obstacle():
    assert len(read_bytes(CPU.encode("utf-16"), "a").samples) == 6
    assert len(read_bytes(b"\xff\xe4 caf\xe9\n" + CPU.encode(), "a").samples) == 6


@given(st.binary(max_size=200) | st.binary(max_size=80).map(lambda raw: b"\x1f\x8b" + raw))
def test_any_bytes_are_read_or_refused(raw):
    try:
        recording = read_bytes(raw, "a")
    except UnreadableRecording as error:
        assert str(error).startswith("a: ")
    else:
        assert recording.samples


@pytest.mark.parametrize(
    "text, why",
    [("", "empty"), (" \n\n", "empty"), ("\0\1\2", "sadf -j"), ("hello", "line 1: .*'hello'")],
)
def test_a_file_of_which_nothing_is_understood_says_why(text, why):
    with pytest.raises(UnreadableRecording, match=why):
        read_text(text, "a")


def test_recordings_of_one_server_are_merged_in_order():
    first, second = (read_text(TEXTS[name], name) for name in ("7 -k -x", "9"))
    both = merge([first, second], "both")
    assert both.samples == first.samples + second.samples
    assert both.facts["kernel"] == first.facts["kernel"]
    assert both.facts["cpus"] == "4"
