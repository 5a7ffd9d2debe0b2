"""A prediction beside what was measured: one run, and many at once.

Models: relative errors, signed: (predicted - measured) / measured.
Linux counterpart: none.
Invariants: the rows come in the order of the directories, whatever the number of processes; runs
 that differ in their name, their seeds and their results only have the same prediction; a
 figure that was measured as 0 has no relative error unless it is predicted as 0.
Left out: judging whether an error is due to the recording (other people's work on the machine).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from calibration.validate.conditions import Condition
from calibration.validate.describe import FILE, BadRun, Unsupported, describe
from calibration.validate.limits import told
from calibration.validate.machine import simulated_text
from calibration.validate.measure import predict
from calibration.validate.measured import measured
from sim.scenario import ScenarioError
from sim.study.laboratory import Laboratory, UnfinishedError


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run. `predicted` is None, and `why_not` says why, if it is not supported yet."""

    id: str
    family: str
    predicted: Mapping[str, Any] | None
    measured: Mapping[str, Any] | None
    why_not: str
    condition: str = ""  # the name of what was claimed beyond the description

    def error(self) -> Any:
        """Return relative errors in the shape of the figures, a text, or None if there are none."""
        if self.predicted is None:
            return f"not supported yet: {self.why_not}"
        return None if self.measured is None else _errors(self.predicted, self.measured)

    def to_json(self) -> dict[str, Any]:
        """Return the row as what json can write."""
        row: dict[str, Any] = {"id": self.id, "predicted": self.predicted}
        if self.condition:
            row["condition"] = self.condition
        if self.measured is not None:
            row["measured"] = self.measured
        return row | {"error": self.error()}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a simulation said, or why there was none."""

    predicted: Mapping[str, Any] | None
    why_not: str


def outcome_of(directory: Path, seed: int, condition: Condition | None = None) -> Outcome:
    """Predict one run from its description, and from a condition if one is claimed."""
    try:
        figures = predict(describe(directory), seed, condition)
        return Outcome(predicted=figures.to_json(), why_not="")
    except Unsupported as reason:
        return Outcome(predicted=None, why_not=str(reason))
    except ScenarioError as problem:
        raise BadRun(f"{directory / FILE}: describes no machine: {problem}") from None


def validate_run(directory: Path, seed: int) -> Row:
    """Predict one run, then look at what was measured."""
    return _row(directory, outcome_of(directory, seed), None)


def _row(directory: Path, outcome: Outcome, condition: Condition | None) -> Row:
    description = describe(directory)
    return Row(
        id=description.id,
        family=description.family,
        predicted=outcome.predicted,
        measured=measured(directory),
        why_not=outcome.why_not,
        condition="" if condition is None else condition.name,
    )


def validate(
    directories: Sequence[Path],
    seed: int,
    laboratory: Laboratory,
    condition: Condition | None = None,
) -> list[Row]:
    """Validate runs in a laboratory; repeats of one run are simulated once.

    Raise UnfinishedError with the rows that could be done.
    """
    alike = {directory: _what_is_simulated(directory) for directory in directories}
    first = {alike[directory]: directory for directory in reversed(directories)}
    one = partial(outcome_of, seed=seed, condition=condition)
    names = [f"python -m calibration validate {directory}" for directory in first.values()]

    def rows_of(done: Sequence[Outcome | None]) -> list[Row]:
        outcomes = dict(zip(first, done, strict=True))
        pairs = [(directory, outcomes[alike[directory]]) for directory in directories]
        return [_row(directory, found, condition) for directory, found in pairs if found]

    try:
        return rows_of(laboratory.map(one, list(first.values()), names))
    except UnfinishedError as error:
        raise UnfinishedError(rows_of(error.done), error.shortfall) from None


def _what_is_simulated(directory: Path) -> str:
    """Return a text that is the same for runs which differ in name, seed and result only."""
    description = describe(directory)
    asked = {name: value for name, value in description.workload.items() if name != "seed"}
    asked["job"] = description.job_file
    try:
        return f"{asked}\n{simulated_text(description)}"
    except Unsupported as reason:
        return f"not supported: {reason}"


def _errors(predicted: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _errors(value, measured[name])
        if isinstance(value, Mapping)
        else relative(value, measured[name])
        for name, value in predicted.items()
        if name in measured
    }


def compared(row: Row) -> dict[str, tuple[float, float]]:
    """Return what a program reported and the await that is asked: name -> recorded, simulated."""
    if row.predicted is None or row.measured is None:
        return {}
    simulated = told({**row.predicted, "util": row.measured.get("util", 0.0)})
    pairs = ((name, value, simulated.get(name)) for name, value in told(row.measured).items())
    return {
        name: (recorded, figure)
        for name, recorded, figure in pairs
        if recorded is not None and figure is not None
    }


def relative(predicted: float | None, measured: float | None) -> float | None:
    """Return the signed relative error; None where there is none."""
    if predicted is None or measured is None:
        return None
    if predicted == measured:
        return 0.0
    return (predicted - measured) / measured if measured else None


def flat(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of nested figures: "await_ms r"; those of `result` by their own names."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from flat(value, "" if name == "result" else f"{name} ")
        else:
            yield f"{prefix}{name}", value
