"""A sensitivity study as tables, as one sentence for each figure, and as the result of its JSON.

Models: the answer to "what decides this figure?".
Linux counterpart: none.
Invariants: the parameter that decides stands first. It is said to decide only if its interval lies
 above zero and above that of the next; else it is said what keeps one from knowing.
Left out: the figures of every run: the JSON has them.
"""

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any, Final

from sim.observation import Metric
from sim.report.study_file import split_setting
from sim.report.study_tables import INTERVAL, TOO_FEW, WIDTH
from sim.report.tables import Column, Table, figure, interval
from sim.study.sensitivity import MORRIS, Analysis, Effect, Estimate, Factor, Plan, Sensitivity
from sim.toml.layers import set_value

MAIN: Final = {MORRIS: "mu*", "sobol": "ST"}
BESIDE: Final = {MORRIS: "sigma", "sobol": "S1"}
CHANCE: Final = "chance"


def plan_text(plan: Plan) -> str:
    """Return how many runs a plan has, and of what."""
    kind = "trajectories" if plan.method == MORRIS else "rows of the base sample"
    parameters = "1 parameter" if plan.parameters == 1 else f"{plan.parameters} parameters"
    return f"{plan.runs:,} runs: {plan.blocks} {kind}, each of {parameters} and the seed"


def sensitivity_table(study: Sensitivity, metric: Metric) -> Table | None:
    """Return a row for each parameter, and for Sobol's indices one for chance; None: no indices."""
    method, analysis = study.plan.method, study.analyses[metric.name]
    if analysis.chance is None:
        return None
    unit = f", {metric.unit}" if method == MORRIS and metric.unit else ""
    columns = [Column("parameter"), Column("from", is_number=True), Column("to", is_number=True)]
    columns += [Column(f"{MAIN[method]}{unit}", is_number=True), Column(INTERVAL, is_number=True)]
    columns.append(Column(f"{BESIDE[method]}{unit}", is_number=True))
    if method != MORRIS:
        columns.append(Column(INTERVAL, is_number=True))
    rows = [_row(study, one) for one in analysis.ordered]
    if method != MORRIS:
        rows.append((CHANCE, "", "", *_cells(analysis.chance), "", ""))
    return Table(tuple(columns), tuple(rows))


def _row(study: Sensitivity, effect: Effect) -> tuple[str, ...]:
    range_ = study.factors[effect.number].range
    beside = _cells(effect.beside)[: 1 if study.plan.method == MORRIS else 2]
    ends = (range_.text(range_.low), range_.text(range_.high))
    return (range_.path, *ends, *_cells(effect.main), *beside)


def _cells(found: Estimate) -> tuple[str, str]:
    between = TOO_FEW if found.interval is None else interval(*found.interval)
    return figure(found.value), between


def sentence(study: Sensitivity, metric: Metric) -> str:
    """Say which parameter decides a figure, or why that is not known."""
    name, analysis = metric.name, study.analyses[metric.name]
    return _filled([_answer(study, metric), *_lacking(study.plan, name, analysis)])


def _filled(lines: Sequence[str]) -> str:
    """Return lines wrapped, but never between a number and its percent sign."""
    bound = (line.replace(" %", "\N{NO-BREAK SPACE}%") for line in lines)
    text = "".join(fill(line, WIDTH, subsequent_indent="  ") + "\n" for line in bound)
    return text.replace("\N{NO-BREAK SPACE}", " ")


def _answer(study: Sensitivity, metric: Metric) -> str:
    name, analysis = metric.name, study.analyses[metric.name]
    if analysis.least is None:
        return f"{name}: no run has this figure"
    if analysis.chance is None:
        assert analysis.greatest is not None
        if analysis.lacking:
            return f"{name}: no indices: too many runs lack this figure"
        return f"{name}: {figure(analysis.least, metric.unit)} in all runs: nothing decides it"
    first, *others = analysis.ordered
    chance = f"chance has {_percent(analysis.chance)} of the variance"
    top = f"{_path(study, first)}: {_size(study, metric, first.main)}"
    if not any(map(_is_shown, analysis.effects)):
        return f"{name}: no parameter is shown to change it, first is {top}; {chance}"
    if study.plan.method != MORRIS and analysis.chance.value > first.main.value:
        return f"chance decides {name}: {_percent(analysis.chance)} of the variance; then {top}"
    if not _is_shown(first) or (others and _overlap(first.main, others[0].main)):
        second = f", not told from {_path(study, others[0])}: " if others else ""
        second += _size(study, metric, others[0].main) if others else ""
        return f"{name}: first is {top}{second}; {chance}"
    return f"{_path(study, first)} decides {name}: {_size(study, metric, first.main)}; {chance}"


def _is_shown(effect: Effect) -> bool:
    """Whether an effect is more than none."""
    return effect.main.interval is not None and effect.main.interval[0] > 0


def _overlap(greater: Estimate, less: Estimate) -> bool:
    if greater.interval is None or less.interval is None:
        return True
    return less.interval[1] >= greater.interval[0]


def _path(study: Sensitivity, effect: Effect) -> str:
    return study.factors[effect.number].path


def _size(study: Sensitivity, metric: Metric, found: Estimate) -> str:
    """Return a main index in words: a share of the variance, or how far the figure is moved."""
    if study.plan.method != MORRIS:
        return f"{_percent(found)} of the variance"
    unit = f" {metric.unit}" if metric.unit else ""
    between = "" if found.interval is None else f" [{_pair(found, metric.unit)}]"
    return f"{figure(found.value, metric.unit)}{between}{unit} over its range"


def _pair(found: Estimate, unit: str) -> str:
    assert found.interval is not None
    return ", ".join(figure(end, unit) for end in found.interval)


def _percent(found: Estimate) -> str:
    """Return a share, with its interval if there is one, such as 71 % [63, 80]."""
    if found.interval is None:
        return f"{100 * found.value:.0f} %"
    low, high = (f"{100 * end:.0f}" for end in found.interval)
    return f"{100 * found.value:.0f} % [{low}, {high}]"


def _lacking(plan: Plan, name: str, analysis: Analysis) -> Iterator[str]:
    if not analysis.lacking or analysis.least is None:
        return
    of = "trajectories" if plan.method == MORRIS else "rows of the base sample"
    told = f"{name}: {analysis.lacking} of {plan.runs} runs lack it"
    if analysis.chance is None:
        yield f"{told}, so that {analysis.blocks} of {plan.blocks} {of} are whole"
    else:
        yield f"{told}: the indices are of {analysis.blocks} of {plan.blocks} {of}, those without"


def notes(study: Sensitivity) -> str:
    """Return what did not finish, and how to read the indices."""
    lines = list(_unfinished(study))
    if any(one.chance is not None for one in study.analyses.values()):
        lines += _reading(study.plan)
    return _filled(lines)


def _unfinished(study: Sensitivity) -> Iterator[str]:
    if study.unfinished is not None:
        yield f"no indices: these need all {study.plan.runs} runs of the design"
    short = [one for one in study.points if one.missing]
    if short:
        marks = dict.fromkeys(mark for one in short for mark in one.missing)
        yield (
            f"{len(short)} runs ended without {' or '.join(marks)}: their figures are of what there"
            f" was until then; run.duration may be too short, as with"
            f" {', '.join(short[0].point.settings)}"
        )


def _reading(plan: Plan) -> list[str]:
    if plan.method == MORRIS:
        return [
            "mu*: how far a parameter moves the figure over its whole range, on average; sigma: how"
            " much that differs from place to place (it bends, or depends on other parameters)",
            "chance: mean variance between two seeds at a point over the variance of all runs",
            f"{INTERVAL}: bootstrap over the trajectories",
        ]
    return [
        "ST: share of the variance that a parameter has, alone and together with others (shares"
        " that are had together count more than once); S1: alone",
        "chance: mean variance between two seeds at a point over the variance of all runs, which is"
        " ST of the seed",
        f"{INTERVAL}: bootstrap over the rows of the base sample",
    ]


# -- JSON


def sensitivity_result(study: Sensitivity, figures: Sequence[Metric]) -> dict[str, Any]:
    """Return what the JSON of a sensitivity study has as its result."""
    return {
        "method": study.plan.method,
        "points": study.plan.blocks,
        "runs": study.plan.runs,
        "over": [_factor_json(one) for one in study.factors],
        "indices": [
            _indices_json(study, one, study.analyses[one.name])
            for one in figures
            if one.name in study.analyses
        ],
    }


def _factor_json(factor: Factor) -> dict[str, Any]:
    ends = (factor.range.setting(end) for end in (factor.range.low, factor.range.high))
    low, high = (set_value(split_setting(end)[1]) for end in ends)
    return {
        "path": factor.path,
        "low": low,
        "high": high,
        "scale": factor.scale,
        "source": factor.source,
    }


def _indices_json(study: Sensitivity, metric: Metric, analysis: Analysis) -> dict[str, Any]:
    main, beside = ("mu_star", "sigma") if study.plan.method == MORRIS else ("st", "s1")
    return {
        "of": metric.name,
        "unit": metric.unit,
        "lacking": analysis.lacking,
        "points": analysis.blocks,
        "min": analysis.least,
        "max": analysis.greatest,
        "parameters": [
            {
                "path": _path(study, one),
                **_estimate_json(main, one.main),
                **(
                    {beside: one.beside.value}
                    if study.plan.method == MORRIS
                    else _estimate_json(beside, one.beside)
                ),
            }
            for one in analysis.ordered
        ],
        "chance": None if analysis.chance is None else _estimate_json("share", analysis.chance),
        "answer": _answer(study, metric),
    }


def _estimate_json(name: str, found: Estimate) -> dict[str, float | None]:
    low, high = found.interval or (None, None)
    return {name: found.value, f"{name}_lo": low, f"{name}_hi": high}
