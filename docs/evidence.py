"""The overview of the validation page: all that the twin is compared with, a row each.

Models: the first page of a test report: how many figures, how far off, the worst by its name.
Invariants: an error is |simulated - recorded| / recorded; the simulated figure is the median of the
 stored runs. Nothing is simulated here. What has no data has a row that says so, and the command
 that would make it.
Left out: figures of which only words were recorded, that are withheld, or that were zero.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from calibration.evidence.stored import Compared
from calibration.validate.limits import WITHIN
from calibration.validate.page import families, named_errors
from calibration.validate.stored import Stored as ValidatedRun
from docs.declared import TOP, Block, Run, Table
from docs.render import markdown_table
from docs.runs import Store, Stored, scenario_of
from sim.report.study_tables import standing_of
from sim.report.tables import figure as figure_text
from sim.study.metrics import units_of
from sim.study.recorded import AGREES, KINDS, load_figures
from sim.study.summary import summarise
from tests.tiers import tier_of

FITTED: Final = "fitted"
NOT_FITTED: Final = "not fitted"
REPRODUCTION: Final = KINDS[0]
_FIGURES: Final = ("figures", "median error %", "worst %", "the worst")
_MADE: Final = ("simulated", "sources", "command")
_NO_DATE: Final = "not kept"


@dataclass(frozen=True, kw_only=True)
class Error:
    """How far one figure is off, and what its row says of where it comes from."""

    name: str
    error: float  # absolute, relative
    date: str
    sources: str
    command: str
    agrees: bool = False  # it lies within the bounds of what was recorded


# case -> whether fitted -> the errors
Cases = dict[str, dict[str, list[Error]]]


# -- Recorded cases.


def plain_runs(declared: Mapping[str, Block]) -> list[Run]:
    """Return the runs of tables that are the scenario, or a what-if of it, as it stands."""
    runs = [
        variant.run
        for table in declared.values()
        if isinstance(table, Table)
        for variant in table.variants
    ]
    plain = [run for run in runs if not run.sets and run.fit is None and run.crash_at is None]
    return list(dict.fromkeys(plain))


def case_errors(run: Run, stored: Stored) -> dict[str, list[Error]]:
    """Return the errors of what was recorded of a run: of what was fitted, and of the rest."""
    scenario = scenario_of(run, 0)
    recorded = [load_figures(spec) for spec in scenario.recorded]
    kinds = standing_of(scenario, recorded)
    if scenario.plan is None:  # nothing says what was fitted by hand: all that may have been
        kinds |= {
            name: FITTED for one in recorded if one.kind == REPRODUCTION for name in one.figures
        }
    units = units_of(scenario.measure)
    found: dict[str, list[Error]] = {FITTED: [], NOT_FITTED: []}
    for name, one in ((name, one) for each in recorded for name, one in each.figures.items()):
        values = [float(s.figures[name]) for s in stored.samples if name in s.figures]
        kind = kinds.get(name, "")
        if not values or not one.value or kind not in (FITTED, ""):
            continue
        unit = units.get(name, "")
        simulated = summarise(values, unit).median
        variant = f"{run.what_if}: " if run.what_if else ""
        found[kind or NOT_FITTED].append(
            Error(
                name=f"{variant}{name}",
                error=abs(simulated / one.value - 1),
                date=stored.date or _NO_DATE,
                sources=stored.sources,
                command=run.command,
                agrees=one.verdict(simulated, unit) == AGREES,
            )
        )
    return found


def cases(declared: Mapping[str, Block], store: Store) -> Cases:
    """Return every recorded case with the errors of its stored runs."""
    found: Cases = {}
    for run in plain_runs(declared):
        stored = store.get(run)
        if stored is None:
            continue
        for kind, errors in case_errors(run, stored).items():
            found.setdefault(run.scenario, {FITTED: [], NOT_FITTED: []})[kind] += errors
    return {name: found[name] for name in sorted(found) if any(found[name].values())}


def cases_table(found: Cases) -> str:
    """Return a row for each case and for what was fitted and what was not."""
    rows: list[Sequence[str]] = []
    for name, kinds in found.items():
        for kind, errors in kinds.items():
            if errors:
                agree = sum(one.agrees for one in errors)
                rows.append([f"`{name}`", kind, str(agree), *_cells(errors)])
    return markdown_table(["case", "", "agree", *_FIGURES, *_MADE], rows, 2)


# -- All of it.


def overview_table(
    found: Cases, validated: Sequence[ValidatedRun], compared: Sequence[Compared]
) -> str:
    """Return a row for each kind of evidence."""
    rows: list[Sequence[str]] = []
    for kind in (FITTED, NOT_FITTED):
        errors = [
            Error(**{**vars(one), "name": f"{name}: {one.name}"})
            for name, kinds in found.items()
            for one in kinds[kind]
        ]
        rows.append([f"[recorded cases](#recorded-cases), figures {kind}", *_cells(errors)])
    for what in WITHIN:
        rows.append([f"[real kernels](#family-by-family): {what}", *_cells(_runs(validated, what))])
    for area, errors in _by_area(compared).items():
        rows.append([area, *_cells(errors)])
    for what, (number, said, command) in _without_figures().items():
        rows.append([what, number, said, "", "", "", "", command])
    return markdown_table(["compared", *_FIGURES, *_MADE], rows)


def _runs(validated: Sequence[ValidatedRun], what: str) -> list[Error]:
    described = [one for members in families(validated).values() for one in members]
    made = {one.row.id: one for one in described}
    return [
        Error(
            name=name,
            error=error,
            date=made[name].date,
            sources=made[name].sources,
            command=f"python -m calibration validate GROUNDTRUTH/{name}",
        )
        for name, error in named_errors(described, what).items()
    ]


def _by_area(compared: Sequence[Compared]) -> dict[str, list[Error]]:
    found: dict[str, list[Error]] = {}
    for one in compared:
        found.setdefault(one.area, []).append(_error_of(one))
    return found


def _error_of(one: Compared) -> Error:
    return Error(
        name=one.name,
        error=abs(one.error),
        date=one.date,
        sources=one.sources,
        command=one.command,
    )


def laws(top: Path = TOP) -> list[str]:
    """Return the tests of tier `laws`, by name."""
    paths = [path for path in sorted((top / "tests").rglob("test_*.py")) if tier_of(path) == "laws"]
    return [
        node.name
        for path in paths
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def _without_figures() -> dict[str, tuple[str, str, str]]:
    """Return what is compared and has no stored errors: how many, what is said, the command."""
    return {
        "laws (queueing, conservation, group commit)": (
            str(len(laws())),
            "no data: each is within its test's bound, or the tests fail",
            "`python3 bootstrap.py test --tier laws`",
        ),
        "[coverage of the fit's intervals](explanation/calibration.md#is-the-method-right)": (
            "",
            "no data of these sources: it takes hours",
            "`python -m benchmarks.coverage`",
        ),
        "[speed, as ratios](../benchmarks/README.md)": (
            "",
            "no data of these sources: a time is of one machine",
            "`python -m benchmarks`",
        ),
    }


def _cells(errors: Sequence[Error]) -> list[str]:
    """Return number, median, worst and its name, and when and by what that one was made."""
    if not errors:
        return ["0", "no data", "", "", "", "", ""]
    worst = max(errors, key=lambda one: one.error)
    return [
        str(len(errors)),
        figure_text(100 * median(one.error for one in errors)),
        figure_text(100 * worst.error),
        f"`{worst.name}`",
        worst.date,
        worst.sources,
        f"`{worst.command}`",
    ]
