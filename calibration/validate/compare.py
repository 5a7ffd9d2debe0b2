"""A prediction beside what was measured: one run, and many at once.

Models: relative errors, signed: (predicted - measured) / measured.
Linux counterpart: none.
Invariants: the rows come in the order of the directories, whatever the number of processes; a
 figure that was measured as 0 has no relative error unless it is predicted as 0.
Left out: judging whether an error is due to the recording (other people's work on the machine).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.validate.describe import FILE, BadRun, Unsupported, describe
from calibration.validate.measure import predict
from calibration.validate.measured import measured
from sim.scenario import ScenarioError

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run. `predicted` is None, and `why_not` says why, if it is not supported yet."""

    id: str
    family: str
    predicted: Mapping[str, Any] | None
    measured: Mapping[str, Any] | None
    why_not: str

    def error(self) -> Any:
        """Return relative errors in the shape of the figures, a text, or None if there are none."""
        if self.predicted is None:
            return f"not supported yet: {self.why_not}"
        return None if self.measured is None else _errors(self.predicted, self.measured)

    def to_json(self) -> dict[str, Any]:
        """Return the row as what json can write."""
        row: dict[str, Any] = {"id": self.id, "predicted": self.predicted}
        if self.measured is not None:
            row["measured"] = self.measured
        return row | {"error": self.error()}


def validate_run(directory: Path, seed: int) -> Row:
    """Predict one run from its description, then look at what was measured."""
    description = describe(directory)
    predicted, why_not = None, ""
    try:
        predicted = predict(description, seed).to_json()
    except Unsupported as reason:
        why_not = str(reason)
    except ScenarioError as problem:
        raise BadRun(f"{directory / FILE}: describes no machine: {problem}") from None
    return Row(
        id=description.id, family=description.family, predicted=predicted,
        measured=measured(directory), why_not=why_not,
    )  # fmt: skip


def validate(
    directories: Sequence[Path], seed: int, executor: Executor | None, progress: Progress
) -> list[Row]:
    """Validate runs, here or in other processes."""
    if executor is None:
        rows = []
        for number, directory in enumerate(directories, start=1):
            rows.append(validate_run(directory, seed))
            progress(number, len(directories))
        return rows
    futures: list[Future[Row]] = [executor.submit(validate_run, d, seed) for d in directories]
    for number, _ in enumerate(as_completed(futures), start=1):
        progress(number, len(futures))
    return [future.result() for future in futures]


def _errors(predicted: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _errors(value, measured[name])
        if isinstance(value, Mapping)
        else relative(value, measured[name])
        for name, value in predicted.items()
        if name in measured
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
