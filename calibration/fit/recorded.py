"""What a data set recorded of the columns of a fit.

Models: looking the figures up: in the tool's text where it has them, else in the account.
Linux counterpart: none.
Invariants: values come from the data set's files only, never from a simulation; reports of its
 warm-up and cool-down are not taken; a figure is of one file: where several have it (iostat's
 reports and top's one moment have the CPUs' shares), of the one that has the disks' columns of the
 same state, so that all are of the same reports, whatever the files' order. Where that does not
 tell them apart nothing is chosen: FitError.
Left out: weights in time; every report covers the same interval.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from calibration.dataset import DataSet, load_data_set, sha256_of
from calibration.fit.columns import RecordedColumn, recorded_columns
from calibration.samples import COLUMNS, Recording
from sim.scenario import RecordedSpec, Scenario
from sim.scenario.calibrate import AgainstSpec, CalibrateSpec
from sim.scenario.cases import DATASET
from sim.scenario.fitted import FitError
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
    assert spec.folder is not None
    data_set = load_data_set(spec.folder)
    recordings = data_set.recordings()
    found: list[RecordedColumn] = []
    for name in states:
        against = spec.against[name]
        figures = load_figures(RecordedSpec(figures=name, folder=spec.folder))
        # The text is of the server as it was: of a state after a change there is an account only.
        texts = recordings if against.what_if is None else ()
        for one in against.columns:
            _check(against, one.metric, units, figures.figures[one.metric].low)
        reports = reports_of(texts, data_set, [one.metric for one in against.columns])
        found += recorded_columns(against, figures, reports, units)
    return tuple(found)


def _check(against: AgainstSpec, metric: str, units: Mapping[str, str], low: float | None) -> None:
    where = f"calibrate.against.{against.figures}.column"
    if metric not in units:
        taken = ", ".join(units)
        raise FitError(f"{where}: [measure] does not take '{metric}' (it takes: {taken})")
    if low is None:
        raise FitError(f"{where}: '{metric}' was recorded in words only: list it under left_out")


def reports_of(
    recordings: Sequence[Recording], data_set: DataSet, metrics: Sequence[str]
) -> dict[str, list[float]]:
    """Return the values of each metric in the reports between warm-up and cool-down; FitError."""
    interval_s = data_set.interval_s or math.inf
    first = math.ceil(data_set.warm_up_s / interval_s)
    last = math.ceil(data_set.cool_down_s / interval_s)
    values = {metric: _by_file(recordings, metric) for metric in metrics}
    of_disks = {name for metric, files in values.items() if _is_of_disk(metric) for name in files}
    found: dict[str, list[float]] = {}
    for metric, files in values.items():
        if files:
            taken = files[_file(data_set.name, metric, files, of_disks)]
            found[metric] = taken[first : len(taken) - last]
    return found


def _by_file(recordings: Sequence[Recording], metric: str) -> dict[str, list[float]]:
    """Return a figure's values in every file that has it."""
    found = {Path(one.source).name: _values(one, metric) for one in recordings}
    return {name: values for name, values in found.items() if values}


def _file(name: str, metric: str, files: Collection[str], of_disks: Collection[str]) -> str:
    """Return the file whose reports a figure is taken from; FitError where two are as good."""
    taken = [file for file in files if len(files) == 1 or file in of_disks]
    if len(taken) == 1:
        return taken[0]
    seen = "several of these have" if taken else "none of these has"
    raise FitError(
        f"calibrate.recording '{name}': '{metric}' is in {', '.join(sorted(files))}, and {seen} the"
        f" disks' columns of the fit: list all but one under attachments in its {DATASET}"
    )


def _is_of_disk(metric: str) -> bool:
    return metric.startswith("disk.")


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


def fingerprints(folder: Path) -> dict[str, str]:
    """Return SHA-256 of every file that a fit to the data set depends on, by name."""
    found = load_data_set(folder)
    paths = [found.folder / name for name in (DATASET, *found.files)]
    return {path.name: sha256_of(path) for path in paths}
