"""iostat's text: every generation in the same columns, nothing guessed, nothing lost unsaid."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.readers import UnreadableRecording, read_text
from calibration.samples import COLUMNS
from tests.calibration.iostat_texts import BASIC_9, CPU, SDA, SHORT_12, TEXTS, TITLE_9


def row(sample):
    return sample.kind, sample.name, sample.column, sample.value, sample.since_boot


def read(text, interval_s=None):
    return read_text(text, "a.txt", interval_s)


VMSTAT = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 1  0      0 811008  12000 401408    0    0     5    11  110  205  3  1 95  1  0
"""


@pytest.mark.parametrize("generation", TEXTS)
def test_every_generation_says_the_same_in_the_same_columns(generation):
    recording = read(TEXTS[generation])
    assert recording.problems == ()
    sda = {s.column: s.value for s in recording.samples if s.name == "sda" and s.report == 1}
    assert len(sda) >= 5
    assert sda == pytest.approx({name: SDA[name] for name in sda}, rel=2e-3)
    cpu = {s.column: s.value for s in recording.samples if s.kind == "cpu" and s.report == 1}
    expected = {"user_pct": 5.92, "system_pct": 5.36, "iowait_pct": 21.74, "idle_pct": 66.98}
    assert {name: cpu[name] for name in expected} == pytest.approx(expected, abs=0.05)


def test_more_numbers_than_a_cpu_table_has_titles_are_another_tools():
    """iostat and vmstat into one file: the latter's row below avg-cpu is its own."""
    header, row = VMSTAT.splitlines()[1:3]
    lines = CPU.splitlines()
    recording = read("\n".join([header, lines[0], row, *lines[1:], ""]))
    assert recording.problems == ()
    assert set(recording.formats) == {"vmstat", "iostat"}
    idle = [s.value for s in recording.samples if s.column == "idle_pct"]
    assert sorted(idle) == sorted([float(row.split()[14]), 66.98])


@pytest.mark.parametrize("generation", TEXTS)
def test_the_first_report_is_since_boot_and_midnight_passes(generation):
    recording = read(TEXTS[generation])
    assert {(s.report, s.since_boot, s.time_s) for s in recording.samples} == {
        (0, True, 0.0),
        (1, False, 5.0),
    }
    assert recording.facts["interval_s"] == "5"
    assert recording.facts["hostname"] == "mx1"


def test_a_text_that_starts_in_the_middle_has_no_report_since_boot():
    recording = read(CPU + BASIC_9)
    assert not any(s.since_boot for s in recording.samples)
    assert {s.time_s for s in recording.samples} == {None}


def test_without_a_clock_the_interval_that_is_known_counts():
    recording = read(TITLE_9 + (CPU + BASIC_9) * 3, interval_s=5.0)
    assert [s.time_s for s in recording.select("user_pct")] == [5.0, 10.0]
    assert [s.time_s for s in recording.select("user_pct", since_boot=True)] == [0.0]


def test_y_is_seen_by_its_empty_line_or_on_the_command_line():
    assert not any(s.since_boot for s in read(TITLE_9 + "\n" + CPU).samples)
    assert not any(s.since_boot for s in read(TITLE_9 + "\n05/01/17 00:00:03\n" + CPU).samples)
    assert all(s.since_boot for s in read(TITLE_9 + "05/01/17 00:00:03\n" + CPU).samples)


def test_a_restart_begins_anew():
    recording = read((TITLE_9 + CPU + BASIC_9 + CPU + BASIC_9) * 2)
    assert [s.report for s in recording.select("user_pct", since_boot=True)] == [0, 2]
    assert [s.report for s in recording.select("user_pct")] == [1, 3]


def test_a_device_report_alone_is_a_report():
    recording = read(TITLE_9 + BASIC_9 * 3)
    assert [s.report for s in recording.select("io_per_s")] == [1, 2]


def test_a_group_is_no_device_of_that_name():
    assert read(CPU + SHORT_12).names("device") == ["sda", "group all"]
    indented = "".join(f"    {line}\n" for line in (CPU + SHORT_12).splitlines())
    assert read(indented).names("device") == ["sda", "group all"]
    last = " tps  kB_read/s Device\n 3.00 1.0k sda\n 3.00 1.0k  all\n"
    assert read(last).names("device") == ["sda", "group all"]


@pytest.mark.parametrize("generation", TEXTS)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\t", " ").replace("\n", "  \n"),
        lambda text: "\n".join(f"\x1b[32;22m{line}\x1b[0m" for line in text.split("\n")),
        lambda text: "\ufeff" + text,
        lambda text: "\n".join(_comma(line) for line in text.split("\n")),
        lambda text: "\n".join(line or "\xa0" for line in text.split("\n")),
    ],
    ids=["CRLF", "blanks", "colours", "byte order mark", "commas", "no-break spaces"],
)
def test_how_a_text_was_copied_changes_nothing(generation, change):
    text = TEXTS[generation]
    changed = change(text).removeprefix("\ufeff")
    assert [row(s) for s in read(changed).samples] == [row(s) for s in read(text).samples]


def _comma(line):
    """Write the numbers of a row as a locale with a decimal comma does."""
    return line if line.startswith(("Linux", "Time")) or ":" in line else line.replace(".", ",")


def test_squeezed_blanks_are_read_all_the_same():
    for generation in ("7 -k -x", "9", "12.0", "12 -s"):
        text = TEXTS[generation]
        squeezed = "\n".join(" ".join(line.split()) for line in text.split("\n"))
        assert [row(s) for s in read(squeezed).samples] == [row(s) for s in read(text).samples]


@pytest.mark.parametrize(
    "bad, why",
    [
        ("sda 3.00 0.00 -nan 0 560", "'-nan' is not a number"),
        ("sda 3.00 0.00 **** 0 560", "'****' is not a number"),
        ("sda 3.00 0.00112.00 0 560", "4 numbers under 5 titles"),
        ("sda 3.00 0.00 112.00112.00 0 560", "'112.00112.00' is not a number"),
        ("sda 3.00 0.00 112.00 0", "4 numbers under 5 titles"),
        ("sda 3.00 0.00 112.0 0 560", "other decimals"),
        ("sda 3.00 0.00 -112.00 0 560", "negative"),
        ("nohup: ignoring input", "not of a known format"),
        ("1 0 0 3 4 560", "not of a known format"),
        ("Average: 3.00 0.00 112.00 0 560", "not of a known format"),
        ("05:11:56 3.00 0.00 112.00 0 560", "not of a known format"),
    ],
)
def test_a_row_that_is_none_is_reported_with_its_line(bad, why):
    good = CPU + BASIC_9.rstrip("\n") + "\n"
    recording = read(good + bad + "\nsdb 3.00 0.00 112.00 0 560\n")
    assert len(recording.problems) == 1
    problem = recording.problems[0]
    assert (problem.line, problem.text) == (good.count("\n") + 1, bad)
    assert why in problem.why
    assert recording.names("device") == ["sda", "sdb"]


def test_a_name_without_numbers_is_reported():
    (problem,) = read(BASIC_9.rstrip("\n") + "\ncciss/c0d0p1234567\n\n" + CPU).problems
    assert problem.why == "a name without numbers"


def test_a_column_that_is_not_known_is_told_once_and_left_out():
    text = CPU + BASIC_9.replace("Blk_wrtn/s", "Blk_wrtten") * 2
    recording = read(text)
    (problem,) = recording.problems
    assert "Blk_wrtten" in problem.why
    assert "Blk_wrtn" in problem.why
    assert "read_bytes_per_s" in {s.column for s in recording.samples}


@pytest.mark.parametrize("generation", TEXTS)
def test_of_a_cut_text_only_complete_rows_are_taken(generation):
    text = TEXTS[generation]
    whole = [row(s) for s in read(text).samples]
    for end in range(len(text)):
        try:
            cut = [row(s) for s in read(text[:end]).samples]
        except UnreadableRecording:
            cut = []
        assert cut == whole[: len(cut)], text[:end][-80:]


FOREIGN = (
    " 05:12:01 up 3 days,  4:05,  2 users,  load average: 0,15, 0,20, 0,25",
    " 1  0      0 123456  12345 654321    0    0     5    10  100  200  5  1 94  0",
    "05:12:01 AM     all      5.05      0.00      4.34     19.98      0.00     70.64",
    "Average:        all      5.05      0.00      4.34     19.98      0.00     70.64",
    "cpu  10 20 30 40 50 60 70 80 90 100",
    "Mem:       8167848    8012345     155503          0     123456    4567890",
    "nohup: ignoring input and appending output to 'nohup.out'",
    "done",
    "",
    "{",
    "[   12.345678] sda: sda1 sda2",
)


def by_line(recording):
    """Return what each line gave."""
    found = {}
    for one in recording.samples:
        found.setdefault(one.line, set()).add((one.kind, one.name, one.column, one.value))
    return found


@settings(max_examples=150, deadline=None)
@given(
    generation=st.sampled_from(sorted(TEXTS)),
    places=st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from(FOREIGN)), min_size=1, max_size=12
    ),
)
def test_among_lines_of_other_tools_a_row_is_the_same_or_reported(generation, places):
    lines = TEXTS[generation].rstrip("\n").split("\n")
    whole = by_line(read("\n".join(lines) + "\n"))
    mixed = list(enumerate(lines, start=1))
    for place, line in sorted(places, reverse=True):
        mixed.insert(min(place, len(mixed)), (None, line))
    try:
        recording = read("\n".join(line for _, line in mixed) + "\n")
    except UnreadableRecording:
        return  # every line was reported
    found = by_line(recording)
    reported = {problem.line for problem in recording.problems}
    for number, (original, _line) in enumerate(mixed, start=1):
        if original is None:
            assert not any(k == "device" and c in SDA for k, _, c, _ in found.get(number, ()))
        elif number in reported:
            assert number not in found
        else:
            assert found.get(number, set()) == whole.get(original, set())


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=60),
            st.sampled_from([line for text in TEXTS.values() for line in text.split("\n")]),
            st.lists(
                st.sampled_from(
                    ["Device", "Device:", "avg-cpu:", "sda", "tps", "r/s", "1.00", "%"]
                ),
                max_size=5,
            ).map(" ".join),
        ),
        max_size=25,
    ).map("\n".join)
)
def test_any_text_is_read_or_refused(text):
    try:
        recording = read(text)
    except UnreadableRecording as error:
        assert str(error).startswith("a.txt: ")
    else:
        assert all(sample.value >= 0 and sample.column in COLUMNS for sample in recording.samples)
