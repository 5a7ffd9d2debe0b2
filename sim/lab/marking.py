"""The marks of a sheet: all that it asks for is run, and each task judges what came out.

Models: the marker, who does the exercise on the student's own server and then looks at the blanks.
Linux counterpart: none.
Invariants: the same sheet has the same marks everywhere, since runs are deterministic. Nothing is
 run before every answer and every design was read. Each mark that is not full says why. A design
 whose run ends in an error costs its own task, and no other.
Left out: what is right, which each kind of task says itself (kinds/).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sim.lab.kinds.design import RUNS
from sim.lab.sheet import Sheet
from sim.lab.task import FAIL, OPEN, Bench, Mark, Plan
from sim.study.executors import OtherSourcesError
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.store import StoreFullError
from sim.toml.errors import Problem, ScenarioError

# Errors of a run's place, not of its server.
_OF_THE_PLACE: Final = (
    ScenarioError,
    UnfinishedError,
    StoreFullError,
    OtherSourcesError,
    MemoryError,
)


def score(marks: Sequence[Mark]) -> tuple[float, int]:
    """Return the points that were got, and those that there are."""
    return sum(one.points for one in marks), sum(one.task.points for one in marks)


def blank_predictions(sheet: Sheet) -> list[str]:
    """Return the predictions that were not typed."""
    tasks = (one for one in sheet.lab.tasks if one.is_kept)
    return [one.name for one in tasks if sheet.handed_in(one) is None]


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
    bench = Bench(
        lab=lab,
        seed=seed,
        base=lab.read(seed),
        design_seeds=tuple(design_seeds) or tuple(range(seed, seed + RUNS)),
        shows=answers,
    )
    plans = _plans(sheet, bench)
    waits = sheet.predicted is None and not (answers or is_final)
    opened = [
        one.name for one in lab.tasks if one.is_kept and waits and sheet.handed_in(one) is not None
    ]
    for name in opened:
        del plans[name]
    judged = _judged(plans, laboratory)
    marks = []
    for task in lab.tasks:
        if task.name in judged:
            marks.append(judged[task.name])
        elif task.name in opened:
            told = "typed; it is judged when the answers are shown (-c)"
            marks.append(task.mark(OPEN, 0, told))
        else:
            marks.append(task.mark(FAIL, 0, task.blank))
    return marks


def _judged(plans: Mapping[str, Plan], laboratory: Laboratory) -> dict[str, Mark]:
    """Return the marks of what is run, by task; raise what is no student's doing."""
    try:
        # What two tasks want is asked for twice, and done once.
        done = iter(laboratory.run([trial for plan in plans.values() for trial in plan.trials]))
    except Exception as error:
        if not _is_of_a_run(error):
            raise
        # Whose it is: each task's runs alone tell.
        return {name: _judged_alone(plan, laboratory) for name, plan in plans.items()}
    return {
        name: plan.judge([next(done) for _trial in plan.trials]) for name, plan in plans.items()
    }


def _judged_alone(plan: Plan, laboratory: Laboratory) -> Mark:
    try:
        outcomes = laboratory.run(plan.trials)
    except Exception as error:
        if plan.failed is None or not _is_of_a_run(error):
            raise
        return plan.failed(error)
    return plan.judge(outcomes)


def _is_of_a_run(error: Exception) -> bool:
    """Return whether an error is one of a simulated server, not of where and how it is run."""
    if isinstance(error, OSError):
        return bool(getattr(error, "__notes__", ()))  # of a simulated call (sim.sched.runqueue)
    return not isinstance(error, _OF_THE_PLACE)


def _plans(sheet: Sheet, bench: Bench) -> dict[str, Plan]:
    """Return what is run, by task; raise ScenarioError with all that cannot be read."""
    found: dict[str, Plan] = {}
    problems: list[Problem] = []
    for task in sheet.lab.tasks:
        try:
            plan = task.plan(sheet.handed_in(task), bench)
        except ScenarioError as error:
            problems += error.problems
        else:
            if plan is not None:
                found[task.name] = plan
    if problems:
        raise ScenarioError(problems)
    return found
