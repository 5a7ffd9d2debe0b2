"""Figures in sentences: a changed one is found, and every mistake in a marker is named."""

import re
from pathlib import Path

import pytest

from docs.blocks import placed_blocks
from docs.declared import read
from docs.figures import (
    Book,
    FigureError,
    placed_figures,
    rounded,
    stale_figures,
    with_figures,
    write_figures,
)
from docs.pages import FRONT, Page, all_pages
from docs.runs import Store

VALIDATION = "docs/validation.md"
LOAD = "<!-- figure: recorded sendmail.before load1_peak -->{}<!-- end -->"


@pytest.fixture(scope="module")
def book() -> Book:
    return Book(read(), Store())


def page(text: str) -> Page:
    return Page("docs/a.md", text)


@pytest.mark.parametrize("name", [FRONT, VALIDATION])
def test_a_figure_that_was_changed_by_hand_is_found(book: Book, name: str) -> None:
    real = all_pages()[name]
    assert list(stale_figures({name: real}, book.text_of)) == []
    figures = placed_figures(real)
    assert figures
    for one in figures:
        text = f"{real.text[: one.first]}{one.text}1{real.text[one.end :]}"
        [complaint] = stale_figures({name: Page(name, text)}, book.text_of)
        assert complaint == (
            f"{name}:{one.line}: '{one.text}1' stands there, and '{one.says}' is '{one.text}';"
            " python -m docs make figures"
        )


# Numbers of these two pages that no run and no recording gives, in their order. Whoever changes one
# says so here; all others stand between markers, or in a block that is made.
TYPED = {
    FRONT: ["3.11", "2.6 to", "7.2"],  # Python; the kernels from the oldest to the newest
    VALIDATION: [
        *("6.18.44", "7.2.7 on", "6 µs", "10 ms"),  # the two machines
        "5 %",  # UTIL_MIN of calibration/validate/limits.py
        "90",  # a percentile
        *(
            "10 %",
            "1000 requests",
            "5 %",
            "5 %",
        ),  # asked by tests/calibration/test_drive_recorded.py
        "2021",  # the year of a paper
    ],
}


def typed_numbers(of: Page) -> list[str]:
    """Return the numbers of a page's sentences that are not made, each with the word behind it."""
    lines = of.text.split("\n")
    for block in placed_blocks(of.text, of.name):
        lines[block.first : block.end] = [""] * (block.end - block.first)
    text = re.sub(r"<!-- figure: .*?<!-- end -->", "", "\n".join(lines))
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    found = re.findall(r"(?<![\w.])\d[\d.,]*(?<![.,])(?:\s+[^\s\d]+)?", text)
    return [" ".join(one.split()).rstrip(".,") for one in found]


@pytest.mark.parametrize("name", sorted(TYPED))
def test_a_number_of_the_front_page_or_the_validation_is_made_or_known(name: str) -> None:
    assert typed_numbers(all_pages()[name]) == TYPED[name]


def test_what_is_written_is_read_again_and_nothing_else_changes(book: Book, tmp_path: Path) -> None:
    before = page(f"# A 37\n\nIt is {LOAD.format('?')}, not {LOAD.format('')} or 38.\n")
    (tmp_path / "docs").mkdir()
    assert write_figures({before.name: before}, book, tmp_path) == [before.name]
    after = page((tmp_path / before.name).read_text())
    assert after.text == f"# A 37\n\nIt is {LOAD.format('37')}, not {LOAD.format('37')} or 38.\n"
    assert write_figures({after.name: after}, book, tmp_path) == []
    assert [(one.line, one.text) for one in placed_figures(after)] == [(3, "37"), (3, "37")]


@pytest.mark.parametrize(
    ("says", "text"),
    [
        ("recorded sendmail.before port_refused_s", "some minutes"),
        ("recorded sendmail.before disk.sdb.await_ms digits=2", "23"),
        ("recorded sendmail.before duration_s / recorded sendmail.after duration_s", "5.50"),
        ("recorded factomd.before swap_used_bytes factor=1e-9 digits=2", "0.97"),
        ("given sendmail process.blast.messages", "2000"),
        ("given tunnel link.tunnel.latency digits=1", "10 ms"),
        ("prior sendmail.both process.blast.think_time high", "2 s"),
        ("required await", "35"),
    ],
)
def test_a_figure_is_what_its_source_says(book: Book, says: str, text: str) -> None:
    assert book.text_of(says) == text


def test_a_simulated_figure_is_that_of_its_table(book: Book) -> None:
    [storm] = [
        block.text
        for block in placed_blocks(all_pages()["docs/explanation/storm.md"].text, "storm.md")
        if block.name == "storm"
    ]
    [row] = [line for line in storm.splitlines() if line.startswith("| load average, highest")]
    parts = [book.text_of(f"simulated storm:tmpfs load1_peak {end}") for end in ("", "low", "high")]
    assert row.split(" | ")[5] == parts[0]
    assert row.split(" | ")[6] == f"{parts[1]} .. {parts[2]}"


@pytest.mark.parametrize(
    ("says", "complaint"),
    [
        ("recorde sendmail.before load1_peak", "no kind of figure 'recorde' - did you mean"),
        ("recorded sendmial.before load1_peak", "no recorded case 'sendmial' - did you mean"),
        ("recorded sendmail.befor load1_peak", "no set of figures in .* - did you mean 'before'"),
        ("recorded sendmail.before load1", "no figure in sendmail.before 'load1' - did you mean"),
        ("recorded web-governor.performance ttfb_ms", "ttfb_ms is withheld"),
        ("recorded sendmail.before", "is not what docs/figures.py says"),
        ("recorded sendmail.before port_refused_s digits=1", "'some minutes' is no number"),
        ("recorded sendmail.before load1_peak digits=0", "digits is one or more, got 0"),
        ("recorded sendmail.before load1_peak digits=two", "factor and digits are numbers"),
        ("recorded sendmail.before load1_peak digit=1", "no option 'digit' - did you mean"),
        ("digits=1 recorded sendmail.before load1_peak", "options stand at the end"),
        ("required await / params", "'params' is not what"),
        ("required await /", "a quotient is of two figures"),
        ("simulated strom:tmpfs load1_peak", "no table in docs/tables.toml 'strom' - did you"),
        ("simulated storm load1_peak", "no variant in table 'storm' ''"),
        ("simulated storm:base load1_peak lo", "no end of an interval 'lo' - did you mean 'low'"),
        ("given sendmail:tmpsf machine.cpus", "'sendmail' has no what-if 'tmpsf'"),
        ("given sendmail machine.cpu", "no parameter of sendmail 'machine.cpu' - did you mean"),
        ("fitted sendmail.nobody x", "no fit 'sendmail.nobody' comes along"),
        ("params sendmail guessed", "no origin 'guessed'"),
        ("validation thruput median", "no figure of the validation 'thruput' - did you mean"),
        ("measured a_randread/none ops/s low", "no recorded run 'a_randread/none'"),
    ],
)
def test_a_mistake_in_a_marker_is_named_with_its_place(
    book: Book, says: str, complaint: str
) -> None:
    wrong = page(f"It is <!-- figure: {says} -->37<!-- end -->.\n")
    [found] = stale_figures({wrong.name: wrong}, book.text_of)
    assert found.startswith(f"docs/a.md:1: figure '{says}': ")
    assert re.search(complaint, found)
    with pytest.raises(FigureError, match=r"docs/a\.md:1"):
        with_figures(wrong, book.text_of)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("It is <!-- figure: required await -->37", "docs/a.md:1: a figure is '<!-- figure:"),
        (f"\nText\n{LOAD.format(37)} more", "docs/a.md:3: a figure at the beginning of a line"),
        (f"```\nx {LOAD.format(37)}\n```\n", "docs/a.md:1: a figure in a block of code"),
        (
            f"<!-- generated: a -->\nx {LOAD.format(37)}\n<!-- end -->\n",
            "docs/a.md:2: a figure within a generated block",
        ),
    ],
)
def test_a_marker_that_is_seen_or_hides_something_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(FigureError, match=re.escape(complaint)):
        placed_figures(page(text))


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (9.97, 2, "10"),
        (0.0449, 1, "0.04"),
        (769.8, 2, "770"),
        (198.5, 1, "200"),
        (12345.0, 3, "12,300"),
        (-3.14, 2, "-3.1"),
    ],
)
def test_a_figure_has_as_many_digits_as_are_asked_for(
    number: float, digits: int, text: str
) -> None:
    assert rounded(number, digits) == text
