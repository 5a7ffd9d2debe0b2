"""What a data set recorded of the columns of a fit.

Models: looking the figures up: in the tool's text where it has them, else in the account.
Linux counterpart: none.
Invariants: values come from the data set's files only, never from a simulation; reports of its
 warm-up and cool-down are not taken.
Left out: weights in time; every report covers the same interval.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from calibration.dataset import DATASET, DataSet, load_data_set, sha256_of
from calibration.fit.columns import RecordedColumn, recorded_columns
from calibration.samples import COLUMNS, Recording
from sim.scenario import RecordedSpec, Scenario
from sim.scenario.calibrate_spec import AgainstSpec, CalibrateSpec
from sim.scenario.fitted import FitError
from sim.scenario.recordings import RECORDINGS
from sim.study.metrics import units_of
from sim.study.recorded import load_figures

# A device's figure -> (column of the samples table, units of the figure in one of the column's).
_DEVICE_COLUMNS: Final[Mapping[str, tuple[str, float]]] = {
    "avgrq_sectors": ("areq_bytes", 1 / 512),
    "avgqu_sz": ("aqu_sz", 1.0),
}


def columns_of(
    scenario: Scenario, spec: CalibrateSpec, states: Sequence[str]
) -> tuple[RecordedColumn, ...]:
    """Return the recorded columns of some states of a data set; raise DatasetError, FitError."""
    units = units_of(scenario.measure)
    data_set = load_data_set(RECORDINGS / spec.recording)
    recordings = data_set.recordings()
    found: list[RecordedColumn] = []
    for name in states:
        against = spec.against[name]
        figures = load_figures(RecordedSpec(figures=name, data_set=spec.recording))
        # The text is of the server as it was: of a state after a change there is an account only.
        texts = recordings if against.what_if is None else []
        for one in against.columns:
            _check(against, one.metric, units, figures.figures[one.metric].low)
        reports = _reports(texts, data_set, [one.metric for one in against.columns])
        found += recorded_columns(against, figures, reports, units)
    return tuple(found)


def _check(against: AgainstSpec, metric: str, units: Mapping[str, str], low: float | None) -> None:
    where = f"calibrate.against.{against.figures}.column"
    if metric not in units:
        taken = ", ".join(units)
        raise FitError(f"{where}: [measure] does not take '{metric}' (it takes: {taken})")
    if low is None:
        raise FitError(f"{where}: '{metric}' was recorded in words only: list it under left_out")


def _reports(
    recordings: Iterable[Recording], data_set: DataSet, metrics: Sequence[str]
) -> dict[str, list[float]]:
    """Return the values of each metric in the reports between warm-up and cool-down."""
    interval_s = data_set.interval_s or math.inf
    first = math.ceil(data_set.warm_up_s / interval_s)
    last = math.ceil(data_set.cool_down_s / interval_s)
    found: dict[str, list[float]] = {}
    for recording in recordings:
        for metric in metrics:
            values = _values(recording, metric)
            if values:
                found[metric] = values[first : len(values) - last]
    return found


def _values(recording: Recording, metric: str) -> list[float]:
    """Return a figure of every report, [] where the recording has no such column."""
    head, _dot, rest = metric.partition(".")
    if head == "cpu":
        return [one.value for one in recording.select(rest, "all")] if rest in COLUMNS else []
    if head != "disk":
        return []
    device, _dot, column = rest.rpartition(".")
    name, factor = _DEVICE_COLUMNS.get(column, (column, 1.0))
    return [one.value * factor for one in recording.select(name, device)]


def fingerprints(data_set: str) -> dict[str, str]:
    """Return SHA-256 of every file that a fit to the data set depends on, by name."""
    found = load_data_set(RECORDINGS / data_set)
    paths = [found.folder / name for name in (DATASET, *found.files)]
    return {path.name: sha256_of(path) for path in paths}
