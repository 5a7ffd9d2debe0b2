"""Fit a draft to its recording: the chain of calibration.fit over the twin's own columns.

Models: calibration, with an ensemble at its end.
Linux counterpart: none.
Invariants: the same recording, seed and number of simulations give the same twin; the values
written are the nearest to the recorded means inside the ensemble's 90 % intervals, which stand
beside them; residuals, loss and verdict are of a simulation of the written values, not of the
emulator.
Left out: fitting whether arrivals are open: a prior over numbers cannot. Where nothing tells which
class there is, each is fitted, and the nearer one taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from scipy.optimize import least_squares
from threadpoolctl import threadpool_limits

from calibration.dataset import sha256_of
from calibration.fit.chain import FitResult, Plan, Simulator, calibrate
from calibration.fit.columns import RecordedColumn
from calibration.fit.fitfile import sealed_text
from calibration.fit.report import ParameterRow, parameter_rows
from calibration.fit.space import Array
from calibration.look import Look, steady
from calibration.twin.cache import cache_of, unknown
from calibration.twin.columns import LEFT_OUT, PART, column_specs, recorded_columns
from calibration.twin.commits import OVERWRITE
from calibration.twin.cpu_time import draw_cpu
from calibration.twin.demands import READ, Load, hardly_busy, loads_of
from calibration.twin.draft import Draft, draw_classes, draw_others, draw_run
from calibration.twin.load_average import draw_load
from calibration.twin.server import draw_server
from calibration.twin.sheet import Sheet
from calibration.twin.verdict import Verdict, verdict_of
from calibration.twin.what_ifs import what_ifs_of
from sim.scenario import load
from sim.scenario.calibrate import AgainstSpec, CalibrateSpec
from sim.study.trial import Figures, trial_of

MEMBERS: Final = 64
OVERWRITES: Final = "fdatasyncs over what is there"
TITLE: Final = "Twin of"
_EDGE: Final = 1e-6  # between a point and its bounds, which least_squares needs


@dataclass(frozen=True, kw_only=True)
class Twin:
    """A fitted draft: the scenario's text, the fit, and the columns of a run of that text."""

    draft: Draft
    text: str
    columns: tuple[RecordedColumn, ...]
    fit: FitResult
    simulated: Figures
    verdict: Verdict

    @property
    def rows(self) -> list[ParameterRow]:
        """The fitted parameters with their intervals."""
        return parameter_rows(self.fit)


def draw_draft(seen: Look, seed: int) -> Draft:
    """Return the likeliest draft of a recording; raise NothingToTwin."""
    return draw_drafts(seen, seed)[0]


def draw_drafts(seen: Look, seed: int) -> list[Draft]:
    """Return the drafts of a recording, the likeliest first; raise NothingToTwin.

    There are two if the busiest of the devices about whose writers nothing is known may be taken
    either way: fit_best() tells.
    """
    left_out, seen = list(seen.outliers.values()), steady(seen)
    loads = loads_of(seen)
    found = [_draw(seen, loads, left_out, seed)]
    doubtful = next((one for one in loads if one.doubt), None)
    if doubtful is not None:
        other = replace(doubtful, classes=doubtful.doubt)
        loads = [other if one is doubtful else one for one in loads]
        found.append(_draw(seen, loads, left_out, seed))
        found[-1].is_last_resort = doubtful.doubts_only_misfits
    return found


def _draw(seen: Look, loads: list[Load], left_out: Sequence[str], seed: int) -> Draft:
    """Return the draft of these loads."""
    sheet = Sheet()
    name = seen.source.name
    sheet.put((), "title", f"{TITLE} {name}")
    sheet.put((), "doc", "Fitted to a recording of counters; what does each part of it change?")
    sheet.put((), "seed", seed)
    draft = Draft(sheet=sheet, loads=loads, server=draw_server(sheet, seen, loads))
    draft.notes.extend(f"an interval is left out: {told}: unlike the others" for told in left_out)
    draw_classes(draft)
    draw_cpu(draft, seen)
    draw_load(draft, seen)
    told = seen.system.tasks
    draw_others(draft, 0 if told is None else told.most_asleep)
    draft.cache, draft.memory_unknown = cache_of(seen, loads), unknown(seen, loads)
    if draft.memory_unknown:
        draft.notes.append(f"other memory: {draft.memory_unknown}")
    draw_run(draft)
    return draft


def fit_best(
    drafts: Sequence[Draft],
    seen: Look,
    folder: Path,
    *,
    comment: str,
    seed: int,
    simulations: int,
    laboratory: Simulator,
) -> Twin:
    """Return the twin of the draft that comes nearest to the recording: the likeliest.

    A loss is a mean square of distances, in what each column is trusted to. A last resort is fitted
    only if the likelier draft makes no fair twin. The draft says what else was tried. `folder`
    holds the drafts while they are fitted.
    """
    twins: list[Twin] = []
    for number, draft in enumerate(drafts):
        if draft.is_last_resort and twins[0].verdict.is_fair:
            continue
        twins.append(
            fit_draft(
                draft,
                seen,
                folder / f"twin{number}.toml",
                comment=comment,
                seed=seed,
                simulations=simulations,
                laboratory=laboratory,
            )
        )
    best = min(twins, key=lambda one: one.verdict.loss)
    for other in twins:
        if other is not best:
            best.draft.choice = _why_not(best, other)
            best.draft.notes.append(best.draft.choice)
    return best


def _why_not(best: Twin, other: Twin) -> str:
    """Say which classes were tried as well, and how much further off they are."""
    for ours, theirs in zip(best.draft.loads, other.draft.loads, strict=True):
        if ours.classes != theirs.classes:
            tried, taken = _writes_told(theirs), _writes_told(ours)
            return (
                f"{ours.name}: its writes are taken for {taken}; taken for {tried}, the twin is"
                f" further off: a loss of {other.verdict.loss:.3g} instead of"
                f" {best.verdict.loss:.3g}"
            )
    raise AssertionError("two drafts are alike")


def _writes_told(taken: Load) -> str:
    """Return what a device's writes are taken for."""
    told = [
        OVERWRITES if one.promise is OVERWRITE else one.kind
        for one in taken.classes
        if one.kind != READ
    ]
    return ", ".join(told)


def fit_draft(
    draft: Draft,
    seen: Look,
    beside: Path,
    *,
    comment: str,
    seed: int,
    simulations: int,
    laboratory: Simulator,
) -> Twin:
    """Return the fitted twin; `beside` is a file that the draft may use while it is fitted.

    The laboratory measures the columns_of_run().
    """
    seen = steady(seen)
    columns = recorded_columns(seen, draft.loads, draft.server)
    beside.write_text(draft.sheet.text("A draft, while it is fitted."), encoding="utf-8")
    plan = _plan(draft, seen, columns, str(beside), seed, simulations)
    fit = calibrate(plan, columns, laboratory)
    enter_fit(draft, fit, seen.source.name)
    draft.sheet.what_ifs += what_ifs_of(draft)
    beside.write_text(draft.sheet.text(comment), encoding="utf-8")
    # Read anew, and as a user will: a mistake in it is one of this package.
    [simulated] = laboratory.figures([trial_of(load(str(beside)), seed)])
    verdict = verdict_of(columns, simulated, hardly_busy(draft.loads), measured_s=draft.measured_s)
    text = draft.sheet.text(f"{comment}Its run against the recording: {verdict.text}\n")
    return Twin(
        draft=draft, text=text, columns=columns, fit=fit, simulated=simulated, verdict=verdict
    )


def _plan(
    draft: Draft,
    seen: Look,
    columns: tuple[RecordedColumn, ...],
    scenario: str,
    seed: int,
    simulations: int,
) -> Plan:
    against = AgainstSpec(
        figures=PART,
        what_if=None,
        columns=column_specs(columns),
        left_out={**LEFT_OUT, **draft.server.left_out},
    )
    spec = CalibrateSpec(
        recording=seen.source.name,
        folder=None,
        duration_ns=None,
        priors=tuple(draft.priors),
        against={PART: against},
    )
    return Plan(
        scenario=scenario,
        spec=spec,
        states=(PART,),
        seed=seed,
        simulations=simulations,
        members=MEMBERS,
    )


def enter_fit(draft: Draft, fit: FitResult, name: str) -> None:
    """Put the best member into the sheet, with intervals in the sources."""
    best = fit.space.texts(nearest_point(fit))
    for row, prior in zip(parameter_rows(fit), fit.space.priors, strict=True):
        value: str | int = best[row.path]
        if prior.dim == "count":
            value = int(value)
        known = f"90 % interval {row.low} .. {row.high}"
        if row.is_identified:
            source = f"fit: recording {name}, {known}"
        else:
            source = f"assumed: recording {name} does not tell, {known}"
        draft.sheet.put_path(row.path, value, source)


def nearest_point(fit: FitResult) -> Array:
    """Return the parameters under which the emulated columns are nearest to the recorded means.

    Distances are in declared discrepancies alone: how much the intervals of the recording scatter
    widens the ensemble, but the twin is of the time that was recorded. What the columns do not tell
    stays at the ensemble's median, from which a distance counts in its standard deviations; and
    nothing leaves its 90 % interval.
    """
    targets = np.array([one.target for one in fit.columns])
    scales = np.array([one.discrepancy * one.value * one.slope for one in fit.columns])
    points = fit.posterior.points
    low, median, high = np.quantile(points, (0.05, 0.5, 0.95), axis=0)
    spreads = np.maximum(points.std(axis=0), _EDGE)

    def distances(points: Array) -> Array:
        means, _deviations = fit.emulator.predict(points)
        return np.hstack([(means - targets) / scales, (points - median) / spreads])

    start = points[int((distances(points) ** 2).sum(axis=1).argmin())]
    with threadpool_limits(1):
        found = least_squares(
            lambda point: distances(point[None])[0],
            np.clip(start, low, high),
            bounds=(low - _EDGE, high + _EDGE),
            diff_step=1e-3,
        )
    nearest: Array = fit.space.snap(np.clip(found.x, low, high)[None])[0]
    return nearest


def ensemble_text(twin: Twin, place: Path, command: str, files: Sequence[Path]) -> str:
    """Return the fit as a file for `iotwin predict`, of the scenario that is written to `place`."""
    plan = replace(twin.fit.plan, scenario=str(place))
    hashes = {path.name: sha256_of(path) for path in files}
    return sealed_text(replace(twin.fit, plan=plan), command, hashes)
