"""A sweep as text and as the result of its JSON: a table for each what-if, knees and bounds.

Models: the table in a report on scaling.
Linux counterpart: none.
Invariants: a row a point, in the order of the plan; each figure with the 90 % interval of its mean.
Left out: median and range of the runs, which the JSON has.
"""

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

from sim.observation import Metric
from sim.report.study_file import split_setting
from sim.report.study_tables import INTERVAL, TOO_FEW, WIDTH, unsteady
from sim.report.tables import Column, Table, figure, interval
from sim.study.bounds import CLOSED, Bounds
from sim.study.intervals import RUNS_MIN
from sim.study.levels import overall
from sim.study.points import NOT_REACHED, PRECISE, Measured
from sim.study.summary import Summary
from sim.study.sweep import GRID, Series, Sweep
from sim.toml.layers import set_value

ABSENT = "-"


def sweep_table(sweep: Sweep, what_if: str | None, figures: Sequence[Metric]) -> Table:
    """Return a row for each point of a what-if, with the figures that are asked for."""
    points = [one for one in sweep.points if one.point.what_if == what_if]
    several = any(len(one.replications) > 1 for one in points)
    columns = [Column(path.path, is_number=True) for path in sweep.paths]
    counts = {len(one.replications) for one in points}
    if len(counts) > 1:
        columns.append(Column("runs", is_number=True))
    for one in figures:
        columns.append(Column(_heading(one), is_number=True))
        columns += [Column(INTERVAL, is_number=True)] if several else []
    if any(one.levels for one in points):
        columns.append(Column("levels"))
    rows = []
    for point in points:
        cells = [path.text(value) for path, value in _given(sweep, point)]
        cells += [str(len(point.replications))] if len(counts) > 1 else []
        for one in figures:
            cells += _cells(point.metrics.get(one.name), several)
        cells += [overall(point.levels)] if point.levels else []
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows))


def _given(sweep: Sweep, point: Measured) -> Iterator[tuple[Any, Any]]:
    return zip(sweep.paths, point.point.values, strict=True)


def _heading(metric: Metric) -> str:
    """Return a figure's name, and its unit where the name does not end with it."""
    spelled = metric.unit.replace("B/s", "bytes_per_s").replace("/s", "per_s").replace("%", "pct")
    is_told = metric.name.endswith(spelled)
    return metric.name if is_told else f"{metric.name}, {metric.unit}"


def _cells(summary: Summary | None, several: bool) -> list[str]:
    if summary is None:
        return [ABSENT, ABSENT] if several else [ABSENT]
    mean = figure(summary.mean, summary.unit)
    if not several:
        return [mean]
    found = summary.mean_interval
    return [mean, TOO_FEW if found is None else interval(*found, summary.unit)]


def notes(sweep: Sweep) -> str:
    """Return knees, bounds, what did not finish, and what the intervals are."""
    lines = [line for one in sweep.series for line in _of_series(sweep, one)]
    if sweep.along is None and sweep.design.kind == GRID:
        lines.append("knee: no parameter that is varied is a number")
    lines += list(_unfinished(sweep))
    if any(len(one.replications) >= RUNS_MIN for one in sweep.points):
        lines.append(
            f"figures: mean of the replications; {INTERVAL}: where the mean of all such runs lies,"
            " nine times in ten"
        )
    if any(one.stopped == PRECISE for one in sweep.points):
        lines.append(
            f"{INTERVAL} of the figure that was to be precise: as wide as was asked for; who stops"
            " where runs happen to lie near each other must not claim more"
        )
    return "".join(fill(line, WIDTH, subsequent_indent="  ") + "\n" for line in lines)


def _of_series(sweep: Sweep, series: Series) -> Iterator[str]:
    assert sweep.along is not None
    path = sweep.along
    if not series.of:
        yield f"{series.name}: no knee is looked for, since no program reports a throughput"
    elif series.knee is None:
        yield f"{series.name}: no knee of {series.of} inside the range (Kneedle)"
    else:
        at = path.text(series.knee)
        yield f"{series.name}: knee of {series.of} at {path.path} = {at} (Kneedle)"
    if series.bounds is not None:
        yield f"{series.name}: {_bounds_text(series.bounds)}"
        crossed = _crossed(sweep, series, series.bounds)
        if crossed:
            yield (
                f"{series.name}: more than the bound at {', '.join(crossed)}: there a transaction"
                " demands less than at the lightest load, or the device serves several at a time"
            )


def _bounds_text(bounds: Bounds) -> str:
    full = f"{bounds.busiest} is full at {figure(bounds.saturation_per_s)} a second"
    demand = f"D = {figure(1000 * bounds.demand_s)} ms"
    fullest = f"{figure(1000 * bounds.demand_s_max)} ms of it at {bounds.busiest}"
    lightest = f"measured at {bounds.lightest:g}"
    if bounds.load.kind == CLOSED:
        think = f"Z = {figure(1000 * bounds.load.think_s)} ms"
        crossing = f"the bounds cross at {figure(bounds.crossing)}"
        beside = f", others bring {figure(bounds.beside_per_s)} a second"
        others = beside if bounds.beside_per_s > 0.01 * bounds.saturation_per_s else ""
        return f"bounds: {full}, {crossing} ({demand}, {fullest}, {think}{others}; {lightest})"
    return f"bounds: {full} ({demand}, {fullest}; {lightest})"


def _crossed(sweep: Sweep, series: Series, bounds: Bounds) -> list[str]:
    """Return the loads at which the throughput is surely above its bound."""
    assert sweep.along is not None
    number = sweep.paths.index(sweep.along)
    lightest = series.points[0].metrics[series.of]
    measured = lightest.mean_interval or (lightest.mean, lightest.mean)
    sure = measured[1] / lightest.mean  # demands are as uncertain as the throughput there
    found = []
    for one in series.points:
        value, summary = one.point.values[number], one.metrics.get(series.of)
        if summary is None or summary.mean_interval is None:
            continue
        if summary.mean_interval[0] > sure * bounds.throughput_max(float(value)):
            found.append(sweep.along.text(value))
    return found


def _unfinished(sweep: Sweep) -> Iterator[str]:
    for one in sweep.points:
        where = ", ".join([one.point.what_if or "base", *one.point.settings])
        yield from unsteady(where, one.replications)
        if one.missing:
            yield (
                f"{where}: a run ended without {' and '.join(one.missing)}: its figures are of what"
                " there was until then; run.duration may be too short"
            )
        if one.stopped == NOT_REACHED:
            yield f"{where}: the wanted precision was not reached in {len(one.replications)} runs"


def sweep_result(sweep: Sweep) -> dict[str, Any]:
    """Return what the JSON of a sweep has as its result."""
    return {
        "design": str(sweep.design),
        "over": [path.path for path in sweep.paths],
        "knee": [_knee_json(sweep, one) for one in sweep.series],
    }


def _knee_json(sweep: Sweep, series: Series) -> dict[str, Any]:
    assert sweep.along is not None
    at = None
    if series.knee is not None:
        at = set_value(split_setting(sweep.along.setting(series.knee))[1])
    return {
        "what_if": series.what_if,
        "set": {path: set_value(value) for path, value in map(split_setting, series.others)},
        "of": series.of or None,
        "path": sweep.along.path,
        "at": at,
        "bounds": _bounds_json(series.bounds) if series.bounds is not None else None,
    }


def _bounds_json(bounds: Bounds) -> dict[str, Any]:
    return {
        "kind": bounds.load.kind,
        "lightest": bounds.lightest,
        "demand_s": bounds.demand_s,
        "demand_s_max": bounds.demand_s_max,
        "busiest": bounds.busiest,
        "beside_per_s": bounds.beside_per_s,
        "think_s": bounds.load.think_s,
        "saturation_per_s": bounds.saturation_per_s,
        "crossing": bounds.crossing,
    }
