"""Blocks of TOML and Python that pages show without a file name: each is loaded, or run.

Those with a name are files that the pages' commands use (docs/commands.py, test_add.py); those of
docs/reference/scenario-files.md are tried by tests/scenario/test_reference_page.py.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sim.lesson
from docs.pages import Page, all_pages
from sim.lab.sheet import read_sheet, sheet_text
from sim.scenario import load
from sim.toml.layers import Table

# What a reader has before the block when he types it.
BEFORE = {
    "docs/explanation/fsync-where.md": 'extends = "fsync-where"\n',
    "docs/how-to/capacity.md": 'extends = "sendmail"\n',
    "docs/how-to/fio-and-dd.md": 'extends = "generic"\n',
    "docs/how-to/optimise.md": "",
    "docs/how-to/own-scenario.md": 'extends = "generic"\n[machine]\n',
}
ELSEWHERE = "docs/reference/scenario-files.md"
SHEETS = "docs/how-to/labs.md"  # its block is a part of a sheet
LESSONS = "docs/how-to/lessons.md"  # a cell of the first lesson


@cache
def pages() -> dict[str, Page]:
    return all_pages()


def unnamed(language: str) -> Iterator[tuple[str, int, str]]:
    """Yield page, line and content of the blocks of a language that have no file name."""
    for name, page in pages().items():
        for line, info, content in page.fences():
            if info.split() == [language] and name != ELSEWHERE:
                yield name, line, content


def identity(block: tuple[str, int, str]) -> str:
    return f"{Path(block[0]).stem}-{block[1]}"


@pytest.mark.parametrize("block", list(unnamed("toml")), ids=identity)
def test_what_a_page_shows_of_a_file_can_be_loaded(
    block: tuple[str, int, str], tmp_path: Path
) -> None:
    name, line, content = block
    path = tmp_path / "mine.toml"
    if name == SHEETS:
        text = sheet_text("iostat", 1)
        table = content.partition("\n")[0] + "\n"
        assert table in text, f"{name}:{line}: no such task"
        path.write_text(text.replace(table, content), encoding="utf-8")
        sheet = read_sheet(path)
        task = sheet.lab.task(table.strip("[]\n").rpartition(".")[2])
        assert isinstance(sheet.handed_in(task), Table)
        return
    assert name in BEFORE, f"{name}:{line}: say in this test what stands before the block"
    path.write_text(BEFORE[name] + content, encoding="utf-8")
    scenario = load(str(path))
    for option in scenario.options:
        assert load(str(path), what_if=option.name).what_if == option.what_if


@pytest.mark.parametrize("block", list(unnamed("python")), ids=identity)
def test_what_a_page_shows_of_python_runs(
    block: tuple[str, int, str], capsys: pytest.CaptureFixture[str]
) -> None:
    name, line, content = block
    assert name == LESSONS, f"{name}:{line}: say in this test what stands before the block"
    exec(content, {one: getattr(sim.lesson, one) for one in sim.lesson.__all__})
    page = (Path(__file__).parents[2] / name).read_text(encoding="utf-8")
    shown = page.split(content, 1)[1].split("\n    ", 1)[1].partition("\n")[0]
    assert capsys.readouterr().out.strip() == shown
