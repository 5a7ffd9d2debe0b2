"""Marking: units, traps, and answers that are none."""

import pytest

from sim.lesson import marking
from sim.lesson.marking import AnswerError, Question, Trap, check

ASKED = {
    "9.0": Question(
        asked="How long?", answer=lambda: 20.0, unit="ms", hint="Think.", is_prediction=True
    ),
    "9.1": Question(
        asked="How long does it take?",
        answer=lambda: 20.0,
        unit="ms",
        hint="Think of Little's law.",
        traps=(Trap(value=lambda: 40.0, told="Twice? Why?"),),
    ),
    "9.2": Question(asked="Who waits?", answer="kjournald", traps=(Trap(value="dd", told="No."),)),
}


@pytest.fixture(autouse=True)
def sheet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the questions above."""
    monkeypatch.setattr(marking, "all_questions", lambda: ASKED)


def told(capsys: pytest.CaptureFixture[str], *answer: object) -> str:
    """Return what a wrong answer is told."""
    assert not check(*answer)  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_a_number_is_right_in_any_unit_that_measures_the_same() -> None:
    assert check("9.1", 20, "ms")
    assert check("9.1", 0.021, "s")
    assert check("9.1", 19_000, "us")


def test_a_word_is_right_however_it_is_written() -> None:
    assert check("9.2", " Kjournald ")


def test_a_wrong_answer_gets_the_hint_and_not_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = told(capsys, "9.1", 31, "ms")
    assert text == "9.1: not yet. Think of Little's law.\n"


def test_a_trap_is_told_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Twice? Why?" in told(capsys, "9.1", 40, "ms")
    assert "No." in told(capsys, "9.2", "dd")


def test_a_wrong_power_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert "A factor of 1000 is missing" in told(capsys, "9.1", 20, "s")


def test_a_prediction_is_told_what_came_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("9.0", 19, "ms")
    text = told(capsys, "9.0", 60, "ms")
    assert "gives 20.00 ms; your prediction is too high by a factor of 3.0. Think." in text


def test_nothing_typed_is_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "9.1", None, "ms") == "9.1: no answer yet. How long does it take?\n"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (("9.1", 12, "/s"), "9.1 asks for ms, got '/s'"),
        (("9.1", 12), "9.1 asks for ms, got 'none'"),
        (("9.1", "12 ms"), "asks for a number and its unit, got '12 ms'"),
        (("9.1", [12], "ms"), r"asks for a number and its unit, got \[12\]"),
        (("9.1", True, "ms"), "asks for a number and its unit, got True"),
        (("9.1", float("nan"), "ms"), "asks for a number, got nan"),
        (("9.1", float("inf"), "ms"), "asks for a number, got inf"),
        (("9.3", 1, "ms"), "no question '9.3' - did you mean '9.*known: 9.0, 9.1, 9.2"),
    ],
)
def test_what_is_no_answer_is_told_what_one_looks_like(
    answer: tuple[object, ...], message: str
) -> None:
    with pytest.raises(AnswerError, match=message):
        check(*answer)  # type: ignore[arg-type]
