"""The reference of the model: chapters show what the sources say, and every file says enough."""

from pathlib import Path

import pytest

from docs.declared import TOP
from docs.model import (
    FOLDERS,
    NOTHING_LEFT_OUT,
    as_markdown,
    filled_chapter,
    source_files,
    too_short,
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_of_the_model_says_what_is_asked_of_it(folder: str) -> None:
    assert list(too_short(f"sim/{folder}")) == []


def test_a_file_that_says_too_little_is_found(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "a.py").write_text('"""One line."""\n')
    (tmp_path / "part" / "b.py").write_text('"""A part.\n\nModels: this.\n"""\n')
    whole = "Theory of operation. So.\nCounterpart: it.\nInvariants: this.\nLeft out: that."
    (tmp_path / "part" / "c.py").write_text(f'"""A part.\n\n{whole}\n"""\n')
    assert list(too_short("part", tmp_path)) == [
        "part/a.py: its opening text is no more than a line",
        "part/b.py: does not say what its counterpart is ('Linux counterpart: ...')",
        "part/b.py: does not say what always holds ('Invariants: ...')",
        "part/b.py: does not say what is left out ('Left out: ...')",
    ]


def test_what_is_excused_is_there_and_needs_it() -> None:
    for name in NOTHING_LEFT_OUT:
        text = (TOP / name).read_text(encoding="utf-8").split('"""')[1]
        assert "\nLeft out" not in text, name


def test_every_folder_of_the_model_has_its_chapter() -> None:
    for folder in FOLDERS:
        chapter = (TOP / f"docs/reference/model/{folder}.md").read_text(encoding="utf-8")
        shown = filled_chapter(chapter)
        for path in source_files(f"sim/{folder}"):
            name = path.relative_to(TOP / "sim" / folder).as_posix()
            assert f"\n## `{name}`\n" in shown


def test_an_opening_text_becomes_markdown() -> None:
    text = (
        "Models: a < b.\nGo on: here.\nTheory of operation (2.6)\n - one\n   more\n - two\n"
        "Left out: c."
    )
    assert as_markdown(text) == (
        "\n**Models:** a \\< b.\nGo on: here.\nTheory of operation (2.6)\n\n - one\n   more\n"
        " - two\n\n**Left out:** c."
    )
