"""Lessons: each runs from top to bottom, asks what it should, and marks as it should."""

import re
import runpy
from pathlib import Path

import pytest

from sim.lesson.copies import SOLUTION, executed, notebook_of, without_solutions
from sim.lesson.marking import Question, check, questions_of

FOLDER = Path(__file__).parents[2] / "notebooks"
LESSONS = sorted(FOLDER.glob("[0-9][0-9]_*.py"))
IN_JUPYTER = FOLDER / "04_queueing_laws.py"
PARTS = ("The question", "The recording", "The estimate by hand", "Your prediction")
PARTS += ("The simulation", "Three exercises", "What the model leaves out", "Solutions")

pytest.importorskip("jupytext")
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)


def number_of(lesson: Path) -> str:
    """Return a lesson's number as its questions begin with it."""
    return str(int(lesson.name[:2]))


@each_lesson
def test_a_lesson_runs_and_its_questions_tell_right_from_wrong(
    lesson: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one test, as what the lesson has simulated is not simulated again."""
    runpy.run_path(str(lesson))
    out, err = capsys.readouterr()
    assert err == ""
    asked = questions_of(number_of(lesson))
    assert all(f"{name}: no answer yet. {one.asked}\n" in out for name, one in asked.items())
    for name, one in asked.items():
        marks_as_it_should(name, one)


def marks_as_it_should(name: str, one: Question) -> None:
    """Assert that a right answer is right, and that what is off, or a trap, is not."""
    if isinstance(one.answer, str):
        assert check(name, one.answer)
        assert not any(check(name, str(trap.value)) for trap in one.traps)
        return
    right = one.answer()
    assert check(name, float(right), one.unit)
    for factor in (1 - 1.5 * one.within, 1 + 1.5 * one.within):
        assert not check(name, float(right) * factor, one.unit)
    assert not any(check(name, float(trap.value()), one.unit) for trap in one.traps)


def test_a_lesson_runs_in_jupyter_and_has_its_pictures() -> None:
    """What the site does with each lesson, of the one that takes least; all run in the test above.

    A student's copy is a lesson up to its solutions: see below.
    """
    pytest.importorskip("ipykernel")
    cells = executed(without_solutions(notebook_of(IN_JUPYTER)), FOLDER).cells
    outputs = [one for cell in cells if cell.cell_type == "code" for one in cell.outputs]
    assert not [one for one in outputs if one.get("name") == "stderr"]
    assert [one for one in outputs if "image/png" in one.get("data", {})]


@each_lesson
def test_a_lesson_has_its_parts_in_order(lesson: Path) -> None:
    text = lesson.read_text(encoding="utf-8")
    places = [text.find(f"# ## {part}\n") for part in PARTS]
    assert -1 not in places
    assert places == sorted(places)


@each_lesson
def test_a_lesson_imports_what_a_student_imports_and_no_more(lesson: Path) -> None:
    lines = lesson.read_text(encoding="utf-8").splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    assert len(imports) == 1
    assert imports[0].startswith("from sim.lesson import ")


@each_lesson
def test_a_lesson_predicts_once_and_has_three_exercises(lesson: Path) -> None:
    number = number_of(lesson)
    asked = questions_of(number)
    assert list(asked) == [f"{number}.{i}" for i in range(4)]
    assert [one.is_prediction for one in asked.values()] == [True, False, False, False]


@each_lesson
def test_the_prediction_is_typed_and_judged_before_the_run(lesson: Path) -> None:
    """Its cell stands before the simulation; from there on nobody asks for it any more."""
    name = f"{number_of(lesson)}.0"
    cells = without_solutions(notebook_of(lesson)).cells
    [place] = [i for i, one in enumerate(cells) if f'check("{name}"' in one.source]
    unit = questions_of(number_of(lesson))[name].unit
    blank, call = cells[place].source.splitlines()
    assert re.fullmatch(r"prediction = None  # [\w% ]+", blank)
    assert call == f'check("{name}", prediction, "{unit}")'
    assert "## Your prediction" in cells[place - 1].source
    assert cells[place + 1].source.startswith("## The simulation")


@each_lesson
def test_everything_after_the_solutions_is_a_solution(lesson: Path) -> None:
    cells = notebook_of(lesson).cells
    [first] = [i for i, one in enumerate(cells) if one.source.startswith("## Solutions")]
    tagged = [i for i, one in enumerate(cells) if SOLUTION in one.metadata.get("tags", ())]
    assert tagged == list(range(first, len(cells)))


def test_the_index_lists_every_lesson() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert LESSONS
    assert all(f"({lesson.name})" in index for lesson in LESSONS)
