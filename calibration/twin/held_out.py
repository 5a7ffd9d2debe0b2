"""A twin fitted to the first part of a recording, asked for the rest of it.

Models: the trial that an administrator would make before believing it: cover the second half of the
printout, predict it, look.
Linux counterpart: none.
Invariants: nothing of the rest is used for the fit or for the prediction, but how many intervals it
has; parts are of whole reports, the warm-up and the cool-down of a data set in neither.
Left out: a load that changes over the recording: the prediction is "as before", and a column that
is outside may as well say that the server had something else to do.

A column of the rest is predicted as the fit takes one of the first part: what a run of a member of
the ensemble gives, with the chance of a run, times what the twin is trusted to there, times the
scatter of a mean of n intervals. With s the standard deviation of one report, the last is
s / sqrt(n); equal halves of a steady load of 20 reports that scatter by 30 % have means that are 10
% apart by that alone (0.3 sqrt(2 / 20)), 1.6 times that one time in ten. Reports next to each other
are alike, so that s / sqrt(n) is too small rather than too large.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from calibration.dataset import DataSet, Source
from calibration.fit.columns import RecordedColumn
from calibration.fit.report import drawn_columns
from calibration.fit.space import Array, generator
from calibration.look import Look
from calibration.samples import Recording
from calibration.twin.columns import recorded_values
from calibration.twin.demands import NothingToTwin, loads_of
from calibration.twin.fitting import Twin
from sim.report.tables import Column, Table, figure, interval, plain

INTERVALS_MIN: Final = 2  # of either part: one has no scatter
_DRAWS: Final = 4096
_ENDS: Final = (0.05, 0.95)


class TooShort(ValueError):
    """A recording of which a part would have too few reports."""


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """A column: as recorded in both parts (rest: None if the device was idle), and predicted."""

    column: RecordedColumn
    rest: float | None
    low: float
    high: float

    @property
    def is_inside(self) -> bool:
        """Whether the rest is inside the interval."""
        return self.rest is not None and self.low <= self.rest <= self.high


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """All columns, and how many intervals each part has."""

    first: int
    rest: int
    rows: tuple[Predicted, ...]

    @property
    def inside(self) -> int:
        """Return how many columns are inside their interval."""
        return sum(one.is_inside for one in self.rows)


def split(source: Source, rest_share: float) -> tuple[Source, Source]:
    """Return the first part of a recording and the rest, `rest_share` (0 to 1) of it; TooShort."""
    cuts = [_cut(one, source.data_set, rest_share) for one in source.recordings]
    pairs = list(zip(source.recordings, cuts, strict=True))
    first = tuple(_before(one, cut) for one, cut in pairs)
    rest = tuple(_from(one, cut) for one, cut in pairs)
    data = source.data_set
    if data is None:
        return replace(source, recordings=first), replace(source, recordings=rest)
    return (
        replace(source, recordings=first, data_set=replace(data, cool_down_s=0.0)),
        replace(source, recordings=rest, data_set=replace(data, warm_up_s=0.0)),
    )


def _cut(recording: Recording, data: DataSet | None, rest_share: float) -> int:
    """Return the number of the first report of the rest; TooShort."""
    reports = sorted({one.report for one in recording.samples if not one.since_boot})
    warm, cool = _ends(recording, data)
    used = reports[warm : len(reports) - cool]
    count = len(used) - round(rest_share * len(used))
    if min(count, len(used) - count) < INTERVALS_MIN:
        raise TooShort(
            f"{recording.source}: {len(used)} intervals are too few to hold out"
            f" {100 * rest_share:g} % of them: either part needs {INTERVALS_MIN}"
        )
    return used[count]


def _ends(recording: Recording, data: DataSet | None) -> tuple[int, int]:
    """Return how many reports are warm-up and cool-down."""
    interval_s = float(recording.facts.get("interval_s", math.inf))
    if data is None:
        return 0, 0
    return math.ceil(data.warm_up_s / interval_s), math.ceil(data.cool_down_s / interval_s)


def _before(recording: Recording, report: int) -> Recording:
    line = min(one.line for one in recording.samples if one.report == report)
    facts = {name: text for name, text in recording.facts.items() if name != "ends_in_table"}
    return replace(
        recording,
        facts=facts,
        samples=tuple(one for one in recording.samples if one.report < report),
        problems=tuple(one for one in recording.problems if one.line < line),
    )


def _from(recording: Recording, report: int) -> Recording:
    return replace(
        recording, samples=tuple(one for one in recording.samples if one.report >= report)
    )


def predict_rest(twin: Twin, first: Look, rest: Look) -> HeldOut:
    """Predict the columns of the rest from a twin of the first part."""
    try:
        loads = loads_of(rest)
    except NothingToTwin:
        loads = []
    recorded = recorded_values(rest, loads)
    fewer = len(first.used) / len(rest.used)
    ends = np.quantile(_drawn(twin, fewer), _ENDS, axis=0)
    rows = [
        Predicted(
            column=one,
            rest=recorded.get(one.metric),
            low=float(one.unscaled(ends[:1, i])[0]),
            high=float(one.unscaled(ends[1:, i])[0]),
        )
        for i, one in enumerate(twin.columns)
    ]
    return HeldOut(first=len(first.used), rest=len(rest.used), rows=tuple(rows))


def _drawn(twin: Twin, fewer: float) -> Array:
    """Return columns as they may be recorded in the rest, on the scale of comparison."""
    chance = generator(twin.fit.plan.seed, "twin.held_out")
    runs = drawn_columns(twin.fit)
    chosen = runs[chance.integers(0, len(runs), _DRAWS)]
    spreads = np.array([_spread(one, fewer) for one in twin.columns])
    drawn: Array = chosen + spreads * chance.standard_normal(chosen.shape)
    return drawn


def _spread(column: RecordedColumn, fewer: float) -> float:
    """Return trust and scatter of a mean of the rest, which has so many times fewer intervals."""
    trusted = column.discrepancy * column.value
    return math.hypot(trusted, column.sampling * math.sqrt(fewer)) * column.slope


def held_out_text(held: HeldOut) -> str:
    """Return the table of what was predicted and what came."""
    columns = (
        Column("column"),
        Column("first part", True),
        Column("predicted, 90 %", True),
        Column("the rest", True),
        Column("unit"),
        Column("inside"),
    )
    rows = tuple(
        (
            one.column.name,
            figure(one.column.value, one.column.unit),
            interval(one.low, one.high, one.column.unit),
            "-" if one.rest is None else figure(one.rest, one.column.unit),
            one.column.unit,
            "yes" if one.is_inside else "NO",
        )
        for one in held.rows
    )
    return (
        f"Held out: the last {held.rest} intervals, predicted from the first {held.first}\n"
        f"{plain(Table(columns, rows))}inside: {held.inside} of {len(held.rows)} columns\n"
    )


def held_out_json(held: HeldOut) -> dict[str, Any]:
    """Return the same as what json can write."""
    return {
        "first": held.first,
        "rest": held.rest,
        "inside": held.inside,
        "columns": {
            one.column.metric: {
                "first": one.column.value,
                "lo": one.low,
                "hi": one.high,
                "recorded": one.rest,
                "inside": one.is_inside,
                "unit": one.column.unit,
            }
            for one in held.rows
        },
    }
