"""Copies of a lesson: the student's has no solution, a page has outputs, work is kept."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli import extras
from sim.lesson import __main__ as opening
from sim.lesson.copies import notebook_of, without_solutions

pytest.importorskip("jupytext")
pytest.importorskip("nbconvert")

TOP = Path(__file__).parents[2]
LESSON = """\
# %% [markdown]
# # A lesson

# %%
print("six times seven:", 6 * 7)

# %% [markdown] tags=["solution"]
# ## Solutions

# %% tags=["solution"]
secret = 4711
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with one lesson, on a machine without JupyterLab."""
    monkeypatch.setattr(opening, "find_spec", lambda _name: None)
    (tmp_path / "07_small.py").write_text(LESSON)
    return tmp_path


def opened(*words: object) -> Result:
    """Return how the command ended."""
    return CliRunner().invoke(opening.main, [str(word) for word in words])


def test_a_student_gets_no_solution(folder: Path) -> None:
    notebook = notebook_of(folder / "07_small.py")
    student = without_solutions(notebook)
    assert [cell.source for cell in student.cells] == [cell.source for cell in notebook.cells[:2]]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the commands that were called on a machine with JupyterLab."""
    called: list[list[str]] = []
    monkeypatch.setattr(opening, "find_spec", lambda name: name)
    monkeypatch.setattr(opening.subprocess, "call", lambda words: called.append(words) or 0)
    return called


def test_solutions_are_for_who_asks_for_them(folder: Path, called: list[list[str]]) -> None:
    opened(folder, "7")
    opened(folder, "7", "--solutions")
    students, teachers = (Path(words[-1]) for words in called)
    assert students == folder / "work" / "07_small.ipynb"
    assert "six times seven" in students.read_text()
    assert "4711" not in students.read_text()
    assert teachers == folder / "work" / "07_small_solutions.ipynb"
    assert "4711" in teachers.read_text()


def test_a_notebook_is_written_once(folder: Path, called: list[list[str]]) -> None:
    opened(folder, "7")
    place = Path(called[0][-1])
    place.write_text("a student's work")
    assert "is kept" in opened(folder, "7").output
    assert place.read_text() == "a student's work"


def test_without_jupyterlab_a_lesson_becomes_a_page(folder: Path) -> None:
    pytest.importorskip("ipykernel")
    done = opened(folder, "7")
    place = folder / "work" / "07_small.html"
    assert done.output.splitlines()[-1] == str(place)
    assert "six times seven: 42" in place.read_text(encoding="utf-8")
    assert "4711" not in place.read_text(encoding="utf-8")


def test_a_page_has_solutions_for_who_asks_for_them(folder: Path) -> None:
    pytest.importorskip("ipykernel")
    place = Path(opened(folder, "7", "--solutions").output.splitlines()[-1])
    assert place == folder / "work" / "07_small_solutions.html"
    assert "4711" in place.read_text(encoding="utf-8")


def test_with_jupyterlab_a_lesson_is_opened_there(folder: Path, called: list[list[str]]) -> None:
    assert opened(folder, "7").exit_code == 0
    [[_python, *words]] = called
    assert words == ["-m", "jupyterlab", str(folder / "work" / "07_small.ipynb")]


def test_a_lesson_that_is_not_there_is_told_with_those_that_are(folder: Path) -> None:
    done = opened(folder, "8")
    assert done.exit_code == 2
    assert f"no lesson '8' in {folder} (known: 7 (small))" in done.output


def test_a_missing_package_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_lesson: Path) -> object:
        raise ModuleNotFoundError("No module named 'jupytext'", name="jupytext")

    monkeypatch.setattr(opening, "notebook_of", refuse)
    done = opened(folder, "7")
    assert done.exit_code == 2
    assert "jupytext is missing, which the extra 'lesson' has: " in done.output
    assert extras.install_command("lesson") in done.output
