"""What no reader may do, whatever the text: fail, guess, or lose a line in silence."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.readers import read_text
from tests.calibration.mangle import figures, interleavings, noise, read_any
from tests.calibration.texts import IOSTAT, TEXTS

ALL = {**TEXTS, "iostat": IOSTAT}
names = st.sampled_from(sorted(ALL))


@given(noise() | st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_noise_is_reported_and_never_fails(text):
    read_any(text)


@given(names, noise())
@settings(max_examples=200, deadline=None)
def test_noise_after_a_header_is_reported_and_never_fails(name, text):
    read_any(ALL[name] + text)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_cut_anywhere_makes_no_figure_that_the_whole_text_does_not_hold(name):
    text = TEXTS[name]
    whole = set(figures(read_text(text, "x")))
    made_up = {
        end: extra
        for end in range(len(text))
        if (extra := set(figures(read_any(text[:end]))) - whole)
    }
    assert made_up == {}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_every_line_of_a_known_text_is_taken(name):
    recording = read_text(TEXTS[name], name)
    assert recording.problems == ()
    assert recording.samples


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_line_ends_trailing_and_squeezed_blanks_change_nothing(name):
    text = TEXTS[name]
    plain = figures(read_text(text, "x"))
    assert figures(read_text(text.replace("\n", "\r\n"), "x")) == plain
    assert figures(read_text(text.replace("\n", "  \n"), "x")) == plain
    assert figures(read_text(re.sub(r"[ \t]+", " ", text), "x")) == plain


# Two texts whose lines tell by themselves, or by their table's width, whose they are.
MIXED = ("vmstat", "uptime", "free 4.0", "swapon", "dd", "block_dump", "cpuinfo", "hdparm")


@given(st.data(), st.sampled_from(MIXED), st.sampled_from(MIXED))
@settings(max_examples=200, deadline=None)
def test_two_formats_mixed_line_by_line_say_what_each_says(data, one, other):
    if one == other:
        return
    mixed = read_text(data.draw(interleavings(TEXTS[one], TEXTS[other])), "x")
    alone = figures(read_text(TEXTS[one], "x")) + figures(read_text(TEXTS[other], "x"))

    def untimed(rows):
        return sorted((*row[:-1],) for row in rows)

    assert mixed.problems == ()
    assert untimed(figures(mixed)) == untimed(alone)


@given(st.data(), names, names)
@settings(max_examples=200, deadline=None)
def test_any_two_tools_mixed_never_fail_and_make_no_figure_but_rates(data, one, other):
    """Rates may change, as a line of the other may part two readings of /proc.

    Two generations of one tool are left out: their rows look alike.
    """
    if one.split()[0] == other.split()[0]:
        return
    text = data.draw(interleavings(ALL[one], ALL[other]))
    recording = read_any(text)
    known = {value for name in (one, other) for *_, value, _, _ in figures(read_any(ALL[name]))}
    reported = {problem.line for problem in recording.problems}
    added = [s for s in recording.samples if s.value not in known and s.line not in reported]
    assert all(sample.column.endswith(("_per_s", "_pct", "uptime_s")) for sample in added)
