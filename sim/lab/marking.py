"""What is right, and why an answer is not: the runs of a sheet, and its marks.

Models: the marker, who does the exercise on the student's own server and then looks at the blanks.
Linux counterpart: none.
Invariants: the same sheet has the same marks everywhere, since runs are deterministic. Nothing is
 run before every answer and every design was read. Each mark that is not full says why.
Left out: marks for a design that reaches some of its goals.

*Read*: a figure of the seed's own run, right within 2 %. *Predict*: the mean of five seeds. Full
marks within the 90 % interval of that mean, or within 20 % of it where that is wider; half of them
within twice that. *Design*: every goal holds in each of three runs, which have seeds of their own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from sim.lab.labs import DESIGN, PREDICT, Task
from sim.lab.sheet import Sheet, allowed_text, leaves_of, value_of
from sim.report.tables import figure
from sim.scenario import Scenario
from sim.scenario.levels import read_option
from sim.study.intervals import mean_interval
from sim.study.laboratory import Laboratory
from sim.study.levels import resolve
from sim.study.metrics import units_of
from sim.study.outcome import Replication
from sim.study.trial import trial_of
from sim.toml.errors import Problem, ScenarioError
from sim.toml.lines import split_key
from sim.toml.reading import Parameter
from sim.units import UnitError, given_text, parse_quantity

READ_SHARE: Final = 0.02  # by which a figure that is read may be off
PREDICT_SHARE: Final = 0.2  # and one that is predicted, for full marks
MISTAKE_SHARE: Final = 0.05  # within which a prediction is that of a known wrong way
PREDICT_RUNS: Final = 5
DESIGN_RUNS: Final = 3
OK: Final = "OK"
FAIL: Final = "FAIL"
OPEN: Final = "--"
# By which answers in a wrong unit are off, or with a share for a percentage.
_SLIPS: Final = (1e3, 1e6, 1e9, 1024.0, 1024.0**2, 100.0, 60.0, 8.0)

Run = tuple[Scenario, int]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """The mark of one task; `told` says why, `answer` what is right."""

    task: Task
    status: str
    points: float
    told: str = ""
    answer: str = ""


def score(marks: Sequence[Mark]) -> tuple[float, int]:
    """Return the points that were got, and those that there are."""
    return sum(one.points for one in marks), sum(one.task.points for one in marks)


def blank_predictions(sheet: Sheet) -> list[str]:
    """Return the predictions that were not typed."""
    tasks = (one for one in sheet.lab.tasks if one.kind == PREDICT)
    return [one.name for one in tasks if sheet.answer(one) is None]


def mark(
    sheet: Sheet,
    laboratory: Laboratory,
    design_seeds: Sequence[int] = (),
    *,
    answers: bool = False,
    is_final: bool = False,
) -> list[Mark]:
    """Return the marks of a sheet; raise ScenarioError for what cannot be read.

    Predictions are judged after the answers were shown, or if the sheet `is_final`. `answers`: work
    out what is right for blanks too. `design_seeds` are those of the teacher's key.
    """
    lab, seed = sheet.lab, sheet.seed
    seeds = tuple(design_seeds) or tuple(range(seed, seed + DESIGN_RUNS))
    base = lab.read(seed)
    given = _given(sheet, units_of(base.measure))
    plans: dict[str, list[Run]] = {}
    for task in lab.tasks:
        if task.kind == DESIGN:
            design = _designed(sheet, task)
            if design is not None:
                plans[task.name] = [(one, at) for one in (base, design) for at in seeds]
        elif task.kind == PREDICT:
            is_open = sheet.predicted is None and not is_final
            if answers or (task.name in given and not is_open):
                changed = lab.read(seed, task.change)
                plans[task.name] = [(changed, seed + k) for k in range(PREDICT_RUNS)]
        elif answers or task.name in given:
            plans[task.name] = []
    if not plans:
        return [_unjudged(task, given) for task in lab.tasks]
    runs = [(base, seed), *(run for plan in plans.values() for run in plan)]
    done = iter(laboratory.run([trial_of(scenario, at) for scenario, at in runs]))
    first = next(done)
    units = units_of(base.measure)
    marks = []
    for task in lab.tasks:
        outcomes = [next(done) for _run in plans.get(task.name, ())]
        if task.name not in plans:
            marks.append(_unjudged(task, given))
        elif task.kind == DESIGN:
            marks.append(_judge_design(task, base, outcomes, seeds))
        else:
            unit = units[task.figure]
            judge = _judge_predicted if task.kind == PREDICT else _judge_read
            marks.append(judge(task, given.get(task.name), unit, first, outcomes))
    return marks


def _unjudged(task: Task, given: Mapping[str, float]) -> Mark:
    """Return the mark of a task for which nothing is run."""
    if task.kind == PREDICT and task.name in given:
        told = "typed; it is judged when the answers are shown (-c)"
        return Mark(task=task, status=OPEN, points=0, told=told)
    told = "nothing is set" if task.kind == DESIGN else "a blank"
    return Mark(task=task, status=FAIL, points=0, told=told)


def _given(sheet: Sheet, units: Mapping[str, str]) -> dict[str, float]:
    """Return the answers that were typed, in the units of their figures."""
    found: dict[str, float] = {}
    problems: list[Problem] = []
    for task in sheet.lab.tasks:
        leaf = None if task.kind == DESIGN else sheet.answer(task)
        if leaf is not None:
            try:
                found[task.name] = value_of(leaf, task, units[task.figure])
            except ScenarioError as error:
                problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return found


# -- Read and Predict


def _judge_read(
    task: Task,
    given: float | None,
    unit: str,
    base: Replication,
    _outcomes: Sequence[Replication],
) -> Mark:
    right = base.metrics[task.figure]
    answer = _with_unit(right, unit)
    if given is None:
        return Mark(task=task, status=FAIL, points=0, told="a blank", answer=answer)
    if is_near(given, right, READ_SHARE):
        return Mark(task=task, status=OK, points=task.points, answer=answer)
    told = _why(task, given, right, base, READ_SHARE)
    return Mark(task=task, status=FAIL, points=0, told=told, answer=answer)


def _judge_predicted(
    task: Task,
    given: float | None,
    unit: str,
    base: Replication,
    outcomes: Sequence[Replication],
) -> Mark:
    values = [one.metrics[task.figure] for one in outcomes]
    right = fmean(values)
    interval = mean_interval(values)
    assert interval is not None  # of five runs there is one
    room = max(right - interval[0], PREDICT_SHARE * abs(right))
    answer = f"{_with_unit(right, unit)}, accepted {_range(right - room, right + room, unit)}"
    if given is None:
        return Mark(task=task, status=FAIL, points=0, told="a blank", answer=answer)
    off = abs(given - right)
    if off <= room:
        return Mark(task=task, status=OK, points=task.points, answer=answer)
    told = _why(task, given, right, base, MISTAKE_SHARE)
    points = task.points / 2 if off <= 2 * room else 0
    return Mark(task=task, status=FAIL, points=points, told=told, answer=answer)


def is_near(given: float, right: float, share: float) -> bool:
    """Return whether a number is right but for a share of what is right."""
    return abs(given - right) <= share * abs(right)


def slip(given: float, right: float, share: float, factors: Sequence[float]) -> float | None:
    """Return by which of the factors, or one over it, a number is off; None if by none."""
    either_way = (one for factor in factors for one in (factor, 1 / factor))
    return next((one for one in either_way if is_near(given, one * right, share)), None)


def _why(task: Task, given: float, right: float, base: Replication, share: float) -> str:
    """Return the likeliest cause of a wrong number: a known mistake, a unit, else the task's."""
    for one in task.mistakes:
        if is_near(given, one.factor * base.metrics[one.figure], share):
            return one.hint
    off = slip(given, right, share, _SLIPS)
    if off is not None:
        times = f"{off:g} times too large" if off > 1 else f"{1 / off:g} times too small"
        return f"{times}: look at the unit"
    return f"too {'high' if given > right else 'low'}. {task.hint}"


def _with_unit(value: float, unit: str) -> str:
    return f"{figure(value, unit)} {unit}".rstrip()


def _range(low: float, high: float, unit: str) -> str:
    return f"{figure(low, unit)} .. {_with_unit(high, unit)}"


# -- Design


def _designed(sheet: Sheet, task: Task) -> Scenario | None:
    """Return the server with a design laid over it, None if nothing is set; raise ScenarioError."""
    table = sheet.designs.get(task.name)
    if table is None or next(leaves_of(table), None) is None:
        return None
    scenario = sheet.lab.read(sheet.seed, (), table)
    values = {split_key(path): values for path, values in task.allow.items()}
    parameters = {split_key(one.path): one for one in scenario.parameters}
    problems = []
    for path, leaf in leaves_of(table):
        if not _is_allowed(parameters[path], values[path]):
            message = f"{parameters[path].path}: {task.name} may not set it so"
            allowed = allowed_text(values[path])
            problems.append(Problem(leaf.at, message, given_text(leaf.value), allowed))
    if problems:
        raise ScenarioError(problems)
    return scenario


def _is_allowed(parameter: Parameter, values: tuple[str, ...] | str) -> bool:
    if isinstance(values, str):
        low, _dots, high = values.partition("..")
        ends = [parse_quantity(text, parameter.dim) for text in (low, high)]
        numbers = [
            one for one in (ends[0], parameter.value, ends[1]) if isinstance(one, int | float)
        ]
        assert len(numbers) == 3, f"{parameter.path} has no range"
        return numbers[0] <= numbers[1] <= numbers[2]
    return parameter.value in [_canonical(text, parameter.dim) for text in values]


def _canonical(text: str, dim: str) -> object:
    try:
        return parse_quantity(text, dim)
    except UnitError:
        return text == "true" if dim == "bool" else text


def _judge_design(
    task: Task, base: Scenario, outcomes: Sequence[Replication], seeds: Sequence[int]
) -> Mark:
    before, after = outcomes[: len(seeds)], outcomes[len(seeds) :]
    for run in after:
        if run.seen.missing:
            told = f"with seed {run.seed}: {run.seen.until}"
            return Mark(task=task, status=FAIL, points=0, told=told)
    missed, answer = [], []
    for level in resolve([read_option(goal) for goal in task.goals], base.measure):
        values = [run.metrics.get(level.figure, math.nan) for run in after]
        shown = ", ".join(_with_unit(value, level.unit) for value in values)
        was = ", ".join(
            _with_unit(run.metrics.get(level.figure, math.nan), level.unit) for run in before
        )
        answer.append(f"{level.text}: {shown} (as it was: {was})")
        if not all(level.holds(value) for value in values):
            missed.append(f"{level.text} does not hold: {shown} (as it was: {was}).")
    if missed:
        return Mark(task=task, status=FAIL, points=0, told=" ".join([*missed, task.hint]))
    return Mark(task=task, status=OK, points=task.points, answer="; ".join(answer))
