"""[calibrate]: priors of parameters, and the recorded columns that they are fitted to.

Models: the plan of a calibration: what is not known, what was seen, how far the twin is trusted.
Linux counterpart: none.
Invariants: the records are frozen and picklable; bounds are canonical numbers of the parameter's
 dimension and low < high. A prior is of a numeric parameter that the scenario has and says why it
 is believed; every recorded figure of a state is a column of the fit or left out with a reason, so
 that nothing is dropped in silence.
Left out: correlated priors; what is known together is one parameter of a model. The fit itself
 (calibration.fit).
"""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from sim.param import param
from sim.scenario.cases import DATASET
from sim.toml.errors import Place, unknown
from sim.toml.layers import Leaf, Table
from sim.toml.reading import Parameter, Reading, Values, dotted
from sim.units import UnitError, parse_quantity

# What `low` and `high` of a prior mean: its bounds, or its 5th and 95th percentile.
DISTRIBUTIONS: Final[Mapping[str, str]] = {
    "uniform": "bounds",
    "log-uniform": "bounds",
    "normal": "90 % interval",
    "log-normal": "90 % interval",
}


# How the reason begins for which a recorded figure is left out, where its agreement says nothing.
FOLLOWS: Final = "follows from fitted"
SAYS_NOTHING: Final = ("input", "by construction", FOLLOWS)
_NUMERIC = (
    "time_ns",
    "bytes",
    "bytes_per_s",
    "rate_per_s",
    "rpm",
    "percent",
    "clock_khz",
    "count",
    "number",
)
_TOP = ("parameter", "against")


@dataclass(frozen=True, kw_only=True)
class PriorSpec:
    """What is believed of one parameter before the recording is looked at."""

    path: str
    dim: str
    distribution: str
    low: float
    high: float
    source: str


@dataclass(frozen=True, kw_only=True)
class ColumnSpec:
    """A recorded figure that the fit uses, and how far the twin itself may be off there."""

    metric: str
    discrepancy_percent: float
    source: str


@dataclass(frozen=True, kw_only=True)
class AgainstSpec:
    """One state of the server that was recorded: which variant it is, and its columns."""

    figures: str
    what_if: str | None
    columns: tuple[ColumnSpec, ...]
    left_out: Mapping[str, str]  # metric -> why

    def says_nothing(self, metric: str) -> str:
        """Return which of SAYS_NOTHING a left-out figure is, "" for others."""
        reason = self.left_out.get(metric, "")
        return next((kind for kind in SAYS_NOTHING if reason.startswith(f"{kind}:")), "")


@dataclass(frozen=True, kw_only=True)
class CalibrateSpec:
    """Parameters with priors, and the recorded states to hold the twin against."""

    recording: str  # its name
    folder: Path | None  # where it lies; None of one that is in memory alone
    duration_ns: int | None  # simulated time at most of a run of the fit
    priors: tuple[PriorSpec, ...]
    against: Mapping[str, AgainstSpec]

    @property
    def base(self) -> AgainstSpec:
        """The recorded state of the server as it was, before any what-if."""
        return next(one for one in self.against.values() if one.what_if is None)


# --- reading


@dataclass(frozen=True, kw_only=True)
class _TopKeys:
    recording: str = param(dim="text", source="scenario", doc="the data set that was recorded")
    duration_ns: int | None = param(
        None, dim="time_ns", source="scenario", doc="simulated time at most", minimum=1
    )


@dataclass(frozen=True, kw_only=True)
class _PriorKeys:
    distribution: str = param(
        dim="text", source="scenario", doc="shape of the prior", choices=tuple(DISTRIBUTIONS)
    )
    source: str = param(dim="text", source="scenario", doc="why this is believed")


@dataclass(frozen=True, kw_only=True)
class _AgainstKeys:
    what_if: str | None = param(
        None, dim="text", source="scenario", doc="the what-if that was recorded"
    )


@dataclass(frozen=True, kw_only=True)
class _ColumnKeys:
    discrepancy_percent: float = param(
        dim="percent",
        source="scenario",
        doc="how far the twin itself may be off",
        minimum=0,
        maximum=1000,
    )
    source: str = param(dim="text", source="scenario", doc="why it may be off so far")


def read_calibrate(
    reading: Reading,
    root: Table,
    parameters: Sequence[Parameter],
    what_ifs: Collection[str],
    known: Mapping[str, Path],
) -> CalibrateSpec | None:
    """Return the plan of [calibrate], None if there is none or it is wrong.

    `known` has the folders of the recordings that may be named.
    """
    if "calibrate" not in root.children:
        return None
    inner = Reading(
        reading.kernel, reading.version
    )  # what it notes are no parameters of the server
    table = inner.table(root, (), "calibrate")
    [top] = inner.values(table, ("calibrate",), [_TopKeys], others=_TOP)
    priors = _priors(inner, table, {one.path: one for one in parameters}, bool(reading.problems))
    against = {} if top is None else _against(inner, table, known, what_ifs)
    reading.problems += inner.problems
    if inner.problems or top is None:
        return None
    return CalibrateSpec(
        recording=str(top["recording"]),
        folder=known[str(top["recording"])],
        duration_ns=top["duration_ns"],
        priors=priors,
        against=against,
    )


def _priors(
    reading: Reading, table: Table, parameters: Mapping[str, Parameter], others_lack: bool
) -> tuple[PriorSpec, ...]:
    """Return the priors. `others_lack`: of what is wrong elsewhere there is no parameter here."""
    path = ("calibrate",)
    found = []
    for name, below, below_path in reading.named_tables(table, path, "parameter"):
        numeric = [one.path for one in parameters.values() if one.dim in _NUMERIC]
        if name not in numeric:
            if not others_lack:
                place, known = below.place, sorted(numeric)
                reading.problems.append(unknown(place, "numeric parameter", name, known))
            continue
        prior = _prior(reading, below, below_path, parameters[name])
        found += [prior] if prior else []
    if not found and not reading.problems and not others_lack:
        reading.error(
            table.place,
            "[calibrate] has no parameter to fit",
            allowed='[calibrate.parameter."PATH"]',
        )
    return tuple(found)


def _prior(
    reading: Reading, table: Table, path: tuple[str, ...], parameter: Parameter
) -> PriorSpec | None:
    [keys] = reading.values(table, path, [_PriorKeys], others=("low", "high"))
    low, high = (_bound(reading, table, path, name, parameter.dim) for name in ("low", "high"))
    if keys is None or low is None or high is None:
        return None
    floor = 0 if keys["distribution"].startswith("log-") else None
    if low >= high or (floor is not None and low <= floor):
        leaf = table.leaf("low")
        assert leaf is not None
        rule = "low < high" if floor is None else "0 < low < high"
        reading.error(leaf.at, f"{dotted(path)}: the prior needs {rule}")
        return None
    return PriorSpec(path=parameter.path, dim=parameter.dim, low=low, high=high, **keys)


def _bound(
    reading: Reading, table: Table, path: tuple[str, ...], name: str, dim: str
) -> float | None:
    leaf = table.leaf(name)
    if leaf is None:
        reading.error(table.place, f"[{dotted(path)}] lacks '{name}' (a bound of the prior)")
        return None
    try:
        return float(parse_quantity(leaf.value, dim))
    except UnitError as error:
        message = f"{dotted((*path, name))}: {error.problem}"
        reading.error(leaf.at, message, given=error.given, allowed=error.allowed)
        return None


def _against(
    reading: Reading, table: Table, known: Mapping[str, Path], what_ifs: Collection[str]
) -> dict[str, AgainstSpec]:
    leaf = table.leaf("recording")
    assert leaf is not None
    recording = str(leaf.value)
    if recording not in known:
        reading.problems.append(unknown(leaf.at, "data set", recording, known))
        return {}
    sets = recorded_metrics(known[recording])
    found = {}
    for name, below, path in reading.named_tables(table, ("calibrate",), "against"):
        if name not in sets:
            where = f" of {recording}"
            reading.problems.append(unknown(below.place, "set of figures", name, sets, where))
            continue
        one = _state(reading, below, path, sets[name])
        if one is not None and one.what_if is not None and one.what_if not in what_ifs:
            place = below.leaf("what_if")
            assert place is not None
            reading.problems.append(unknown(place.at, "what-if", one.what_if, what_ifs))
        found.update({name: one} if one else {})
    if not any(one.what_if is None for one in found.values()) and not reading.problems:
        message = "[calibrate.against] has no state without a what-if: what was fitted to?"
        reading.error(table.place, message)
    return found


def _state(
    reading: Reading, table: Table, path: tuple[str, ...], metrics: Sequence[str]
) -> AgainstSpec | None:
    [keys] = reading.values(table, path, [_AgainstKeys], others=("column", "left_out"))
    columns = []
    for name, below, below_path in reading.named_tables(table, path, "column"):
        [values] = reading.values(below, below_path, [_ColumnKeys])
        if name not in metrics:
            reading.problems.append(unknown(below.place, "recorded figure", name, metrics))
        elif values is not None:
            columns.append(ColumnSpec(metric=name, **values))
    left_out = _left_out(reading, table, path, metrics)
    named = {column.metric for column in columns} | set(left_out)
    missing = [name for name in metrics if name not in named]
    if missing and not reading.problems:
        message = f"[{dotted(path)}] says nothing of the recorded {', '.join(missing)}"
        reading.error(table.place, message, allowed="column.NAME, or left_out.NAME with a reason")
    if keys is None:
        return None
    return AgainstSpec(
        figures=path[-1], what_if=keys["what_if"], columns=tuple(columns), left_out=left_out
    )


def _left_out(
    reading: Reading, table: Table, path: tuple[str, ...], metrics: Sequence[str]
) -> dict[str, str]:
    found = {}
    for name, child in reading.table(table, path, "left_out").children.items():
        place: Place = child.at if isinstance(child, Leaf) else child.place
        if name not in metrics:
            reading.problems.append(unknown(place, "recorded figure", name, metrics))
        elif not isinstance(child, Leaf) or not isinstance(child.value, str) or not child.value:
            message = f"{dotted((*path, 'left_out', name))} must be a text: the reason"
            reading.error(place, message)
        else:
            found[name] = child.value
    return found


def recorded_metrics(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the names of the figures of each state in a data set's dataset.toml."""
    try:
        return _metrics_in((folder / DATASET).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # who reads the figures (sim.study.recorded) says what is wrong with it


@cache
def _metrics_in(text: str) -> dict[str, tuple[str, ...]]:
    content = tomllib.loads(text)
    figures: Mapping[str, Values] = content.get("figures", {})
    return {name: tuple(one.get("metrics", {})) for name, one in figures.items()}
