"""Marking: an answer is right, or wrong with a hint that says where to think again.

Models: an assistant who walks through the laboratory.
Linux counterpart: none.
Invariants: the right answer is computed, by a simulation or by hand, when it is asked for; a number
 is right within the share that its question states, in any unit that measures the same; a wrong
 answer is never told the right one. A prediction is told what came out: it was typed before.
Left out: marks. The sources are open, so an exercise is practice and no examination.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from sim.lab.number import is_near, slip
from sim.lesson import questions
from sim.lesson.runs import alike
from sim.registry import did_you_mean
from sim.report.tables import figure

Answer = float | str | None
FACTORS = (1e3, 1e6, 1024.0, 1024.0**2, 100.0, 60.0)  # how far apart units of one thing lie


class AnswerError(ValueError):
    """An answer that is no answer to any question; the message says what is expected."""


@dataclass(frozen=True, kw_only=True)
class Trap:
    """A wrong answer that many give, and what to tell whoever gives it."""

    value: Callable[[], float] | str
    told: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of a lesson.

    `answer` computes the number, or is the word; `within` is the share by which a number may be
    off. `words` are those that are accepted as answer or as trap.
    """

    asked: str
    answer: Callable[[], float] | str
    unit: str = ""
    within: float = 0.1
    hint: str = ""
    traps: tuple[Trap, ...] = ()
    is_prediction: bool = False


def check(name: str, answer: Answer, unit: str = "") -> bool:
    """Print whether an answer is right, with a hint if it is not; return it.

    check("1.2", 12.5, "%")
    """
    asked = question(name)
    if answer is None:
        print(f"{name}: no answer yet. {asked.asked}")
        return False
    if isinstance(asked.answer, str):
        right, told = _word(asked, answer)
    else:
        right, told = _number(asked, _in_unit(name, asked, answer, unit))
    print(f"{name}: {told}")
    return right


def question(name: str) -> Question:
    """Return a question by its number, such as "1.2"; raise AnswerError."""
    known = all_questions()
    if name not in known:
        hint = did_you_mean(name, known)
        raise AnswerError(f"no question {name!r}{hint} (known: {', '.join(sorted(known))})")
    return known[name]


def questions_of(number: str) -> dict[str, Question]:
    """Return the questions of a lesson, such as "1"."""
    return {name: one for name, one in all_questions().items() if name.partition(".")[0] == number}


@cache
def all_questions() -> Mapping[str, Question]:
    """Return the questions of all lessons, by their numbers."""
    found: dict[str, Question] = {}
    for module in iter_modules(questions.__path__):
        name = f"{questions.__name__}.{module.name}"
        found |= import_module(name).QUESTIONS
    return found


def _word(asked: Question, answer: Answer) -> tuple[bool, str]:
    given = str(answer).strip().lower()
    assert isinstance(asked.answer, str)
    if given == asked.answer.lower():
        return True, "right."
    for trap in asked.traps:
        if isinstance(trap.value, str) and trap.value.lower() == given:
            return False, f"not yet. {trap.told}"
    return False, f"not yet. {asked.hint}"


def _number(asked: Question, given: float) -> tuple[bool, str]:
    assert callable(asked.answer)
    right = asked.answer()
    if asked.is_prediction:
        return _predicted(asked, given, right)
    if is_near(given, right, asked.within):
        return True, "right."
    for trap in asked.traps:
        if callable(trap.value) and is_near(given, trap.value(), asked.within / 2):
            return False, f"not yet. {trap.told}"
    off = slip(given, right, asked.within, FACTORS)
    if off is not None:
        factor = max(off, 1 / off)
        return False, f"not yet. A factor of {factor:g} is missing: look at the units."
    return False, f"not yet. {asked.hint}"


def _predicted(asked: Question, given: float, right: float) -> tuple[bool, str]:
    """Return how a prediction came out; it was typed before, so the figure may be told."""
    came = f"the simulation gives {figure(right)} {asked.unit}".rstrip()
    near = is_near(given, right, asked.within)
    if near:
        return True, f"{came}; your prediction is within {100 * asked.within:.0f} %."
    if given > 0 and right > 0:
        ratio = max(given / right, right / given)
        way = "high" if given > right else "low"
        told = f"your prediction is too {way} by a factor of {ratio:.1f}"
        return False, f"{came}; {told}. {asked.hint}"
    return False, f"{came}. {asked.hint}"


def _in_unit(name: str, asked: Question, answer: Answer, unit: str) -> float:
    """Return the number in the question's unit; raise AnswerError."""
    example = f'check("{name}", 12.3, "{asked.unit}")'
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        raise AnswerError(f"{name} asks for a number and its unit, got {answer!r} ({example})")
    if not math.isfinite(answer):
        raise AnswerError(f"{name} asks for a number, got {answer} ({example})")
    if unit == asked.unit:
        return float(answer)
    ones = alike(f"1 {unit}", f"1 {asked.unit}") if unit and asked.unit else None
    if ones is not None:
        return float(answer) * ones[0] / ones[1]
    wanted = asked.unit or "no unit"
    raise AnswerError(f"{name} asks for {wanted}, got {unit or 'none'!r} ({example})")
