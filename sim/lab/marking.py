"""What is right, and why an answer is not: the runs of a sheet, and its marks.

Models: the marker, who does the exercise on the student's own server and then looks at the blanks.
Linux counterpart: none.
Invariants: the same sheet has the same marks everywhere, since runs are deterministic. Nothing is
 run before every answer and every design was read. Each mark that is not full says why.
Left out: marks for a design that reaches some of its goals.

*Read*: a figure of the seed's own run, right within 2 %. *Predict*: the mean of five seeds. Full
marks within the 90 % interval of that mean, or within 20 % of it where that is wider; half of them
within twice that. *Name*: the word that the seed drew. *Design*: every goal holds in each of three
runs, which have seeds of their own.
A task with power cuts asks for what they leave; a design of such a task holds at each of them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from sim.lab.labs import DESIGN, NAME, PREDICT, RESOURCE, Lab, Task
from sim.lab.sheet import Sheet, allowed_text, cuts_text, leaves_of, named, value_of
from sim.report.tables import figure
from sim.scenario import Scenario
from sim.scenario.levels import read_option
from sim.study.intervals import mean_interval
from sim.study.laboratory import Laboratory
from sim.study.levels import Level, resolve, resolve_among
from sim.study.metrics import units_of
from sim.study.outcome import Replication
from sim.study.promises import UNITS
from sim.study.trial import Trial, trial_of
from sim.toml.errors import Problem, ScenarioError
from sim.toml.lines import split_key
from sim.toml.reading import Parameter
from sim.units import UnitError, given_text, parse_quantity

READ_SHARE: Final = 0.02  # by which a figure that is read may be off
PREDICT_SHARE: Final = 0.2  # and one that is predicted, for full marks
MISTAKE_SHARE: Final = 0.05  # within which a prediction is that of a known wrong way
PREDICT_RUNS: Final = 5
DESIGN_RUNS: Final = 3
HEALTHY_SHARE: Final = 0.1  # by which a healed server may be worse than a healthy one
OK: Final = "OK"
FAIL: Final = "FAIL"
OPEN: Final = "--"
# By which answers in a wrong unit are off, or with a share for a percentage.
_SLIPS: Final = (1e3, 1e6, 1e9, 1024.0, 1024.0**2, 100.0, 60.0, 8.0)


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
    given, names = _given(sheet, base)
    plans: dict[str, list[Trial]] = {}
    for task in lab.tasks:
        is_open = task.kind == PREDICT and sheet.predicted is None and not is_final
        if task.kind == DESIGN:
            design = _designed(sheet, task)
            if design is not None:
                plans[task.name] = _trials_of_design(task, base, design, seeds)
        elif task.kind != NAME and (answers or (task.name in given and not is_open)):
            changed = lab.read(seed, task.change) if task.change else base
            runs = PREDICT_RUNS if task.kind == PREDICT else 1
            asked = [(base, seed), *((changed, seed + number) for number in range(runs))]
            plans[task.name] = [trial_of(*one, cuts_ns=task.cuts_ns) for one in asked]
    # What two tasks want is asked for twice, and done once.
    done = iter(laboratory.run([trial for plan in plans.values() for trial in plan]))
    marks = []
    for task in lab.tasks:
        outcomes = [next(done) for _run in plans.get(task.name, ())]
        if task.kind == NAME:
            marks.append(_judge_name(task, lab, names.get(task.name)))
        elif task.name not in plans:
            marks.append(_unjudged(task, given))
        elif task.kind == DESIGN:
            marks.append(_judge_design(task, base, outcomes, seeds))
        else:
            unit = asked_units(task, base)[task.figure]
            judge = _judge_predicted if task.kind == PREDICT else _judge_read
            before, *after = (_figures_of(task, one) for one in outcomes)
            marks.append(judge(task, given.get(task.name), unit, before, after))
    return marks


def _unjudged(task: Task, given: Mapping[str, float]) -> Mark:
    """Return the mark of a task for which nothing is run."""
    if task.kind == PREDICT and task.name in given:
        told = "typed; it is judged when the answers are shown (-c)"
        return Mark(task=task, status=OPEN, points=0, told=told)
    told = "nothing is set" if task.kind == DESIGN else "a blank"
    return Mark(task=task, status=FAIL, points=0, told=told)


def asked_units(task: Task, base: Scenario) -> Mapping[str, str]:
    """Return the units of the figures that a task may ask for."""
    return UNITS if task.cuts else units_of(base.measure)


def _figures_of(task: Task, outcome: Replication) -> Mapping[str, float]:
    """Return the figures of a run among which a task asks for one."""
    return outcome.cuts[0] if task.cuts else outcome.metrics


def _given(sheet: Sheet, base: Scenario) -> tuple[dict[str, float], dict[str, str]]:
    """Return the answers that were typed: numbers in the units of their figures, and names."""
    found: dict[str, float] = {}
    names: dict[str, str] = {}
    problems: list[Problem] = []
    for task in sheet.lab.tasks:
        leaf = None if task.kind == DESIGN else sheet.answer(task)
        if leaf is not None:
            try:
                if task.kind == NAME:
                    names[task.name] = named(leaf, task, sheet.lab)
                else:
                    found[task.name] = value_of(leaf, task, asked_units(task, base)[task.figure])
            except ScenarioError as error:
                problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return found, names


# -- Name


def _judge_name(task: Task, lab: Lab, given: str | None) -> Mark:
    """Judge a word; a wrong cause is told whether its resource is the right one at least."""
    fault, _decoy = lab.sick[task.server]
    right = fault.resource if task.of == RESOURCE else fault.name
    if given is None:
        return Mark(task=task, status=FAIL, points=0, told="a blank", answer=right)
    if given == right:
        return Mark(task=task, status=OK, points=task.points, answer=right)
    if task.of == RESOURCE:
        return Mark(task=task, status=FAIL, points=0, told=task.hint, answer=right)
    if lab.faults[given].resource == fault.resource:
        told = f"the resource is right. Were it {given}: {lab.faults[given].hint}"
    else:
        told = f"another resource is short. {task.hint}"
    return Mark(task=task, status=FAIL, points=0, told=told, answer=right)


# -- Read and Predict


def _judge_read(
    task: Task,
    given: float | None,
    unit: str,
    before: Mapping[str, float],
    after: Sequence[Mapping[str, float]],
) -> Mark:
    [right] = (one[task.figure] for one in after)
    answer = _with_unit(right, unit)
    if given is None:
        return Mark(task=task, status=FAIL, points=0, told="a blank", answer=answer)
    if is_near(given, right, READ_SHARE):
        return Mark(task=task, status=OK, points=task.points, answer=answer)
    told = _why(task, given, right, before, READ_SHARE)
    return Mark(task=task, status=FAIL, points=0, told=told, answer=answer)


def _judge_predicted(
    task: Task,
    given: float | None,
    unit: str,
    before: Mapping[str, float],
    after: Sequence[Mapping[str, float]],
) -> Mark:
    values = [one[task.figure] for one in after]
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
    told = _why(task, given, right, before, MISTAKE_SHARE)
    points = task.points / 2 if off <= 2 * room else 0
    return Mark(task=task, status=FAIL, points=points, told=told, answer=answer)


def is_near(given: float, right: float, share: float) -> bool:
    """Return whether a number is right but for a share of what is right."""
    return abs(given - right) <= share * abs(right)


def slip(given: float, right: float, share: float, factors: Sequence[float]) -> float | None:
    """Return by which of the factors, or one over it, a number is off; None if by none."""
    either_way = (one for factor in factors for one in (factor, 1 / factor))
    return next((one for one in either_way if is_near(given, one * right, share)), None)


def _why(task: Task, given: float, right: float, before: Mapping[str, float], share: float) -> str:
    """Return the likeliest cause of a wrong number: a known mistake, a unit, else the task's."""
    for one in task.mistakes:
        if is_near(given, one.factor * before[one.figure], share):
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
    scenario = sheet.lab.read(sheet.seed, (), table, task.server)
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


def _trials_of_design(
    task: Task, base: Scenario, design: Scenario, seeds: Sequence[int]
) -> list[Trial]:
    """Return the runs without and with a design, and then, where asked for, those with cuts."""
    runs = [(one, seed) for one in (base, design) for seed in seeds]
    found = [trial_of(*one) for one in runs] if _is_run_whole(task) else []
    return found + [trial_of(*one, cuts_ns=task.cuts_ns) for one in runs if task.cuts]


def _is_run_whole(task: Task) -> bool:
    """Return whether a design is judged by what whole runs show."""
    return bool(task.goals or task.as_healthy)


def _judge_design(
    task: Task, base: Scenario, outcomes: Sequence[Replication], seeds: Sequence[int]
) -> Mark:
    runs = 2 * len(seeds)
    whole, cut = (outcomes[:runs], outcomes[runs:]) if _is_run_whole(task) else ((), outcomes)
    for run in whole[len(seeds) :]:
        if run.seen.missing:
            told = f"with seed {run.seed}: {run.seen.until}"
            return Mark(task=task, status=FAIL, points=0, told=told)
    missed, answer = [], []

    def judge(level: Level, values: Sequence[float], where: str = "") -> None:
        before, after = values[: len(seeds)], values[len(seeds) :]
        was, shown = (
            ", ".join(_with_unit(one, level.unit) for one in two) for two in (before, after)
        )
        answer.append(f"{level.text}{where}: {shown} (as it was: {was})")
        if not all(level.holds(value) for value in after):
            missed.append(f"{level.text} does not hold{where}: {shown} (as it was: {was}).")

    for level in resolve([read_option(goal) for goal in task.goals], base.measure):
        judge(level, [run.metrics.get(level.figure, math.nan) for run in whole])
    if task.as_healthy:
        unit = units_of(base.measure)[task.as_healthy]
        values = [run.metrics.get(task.as_healthy, math.nan) for run in whole]
        healthy, healed = values[: len(seeds)], values[len(seeds) :]
        was, shown = (", ".join(_with_unit(one, unit) for one in two) for two in (healthy, healed))
        text = f"{task.as_healthy} within 10 % of a healthy server's"
        answer.append(f"{text}: {shown} (healthy: {was})")
        pairs = zip(healed, healthy, strict=True)
        if not all(after <= (1 + HEALTHY_SHARE) * before for after, before in pairs):
            missed.append(f"{text} does not hold: {shown} (healthy: {was}).")
    for level in resolve_among([read_option(goal) for goal in task.cut_goals], UNITS, {}):
        worst = min if level.relation.startswith(">") else max
        values = [worst(one[level.figure] for one in run.cuts) for run in cut]
        judge(level, values, f", {cuts_text(task)}")
    if missed:
        return Mark(task=task, status=FAIL, points=0, told=" ".join([*missed, task.hint]))
    return Mark(task=task, status=OK, points=task.points, answer="; ".join(answer))
