"""Runs for lessons: a scenario, simulated, as figures by name.

Models: a student who tries a server, and the same server with one thing changed.
Linux counterpart: none.
Invariants: the same question in the same session is simulated once; a file that was edited is
 another question. Variants that are compared have the same seeds.
Left out: saying whether a change of a single run is more than chance. compare(runs=...) does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from types import MappingProxyType
from typing import Final

from sim.registry import did_you_mean
from sim.report.study_tables import changes_text, notes, run_table
from sim.report.tables import Column, Table, figure, plain
from sim.results import RunResult
from sim.scenario import Scenario, find, load
from sim.study.intervals import RUNS_MIN
from sim.study.laboratory import Laboratory
from sim.study.outcome import Replication, Study, VariantOutcome, assemble
from sim.study.recorded import load_figures
from sim.study.summary import Summary
from sim.study.trial import trial_of
from sim.toml.layers import Table as Layer
from sim.units import DIMS, NS_PER_S, UnitError, parse_quantity

Changes = Mapping[str, object]  # path of a parameter -> its value
MEASURED: Final = tuple(dim for dim in DIMS if dim not in ("text", "bool"))
NOTHING: Final[Changes] = MappingProxyType({})


class Quantity(float):
    """A number that knows its unit; arithmetic makes plain numbers of it."""

    unit: str

    def __new__(cls, value: float, unit: str = "") -> "Quantity":
        """Return a number with a unit."""
        made = super().__new__(cls, value)
        made.unit = unit
        return made

    def __repr__(self) -> str:
        return f"{figure(self, self.unit)} {self.unit}".rstrip()

    __str__ = __repr__


def alike(one: str, other: str) -> tuple[float, float] | None:
    """Return two quantities in one unit, None if they measure different things."""
    for dim in MEASURED:
        try:
            return float(parse_quantity(one, dim)), float(parse_quantity(other, dim))
        except UnitError:
            continue
    return None


class UnknownFigureError(KeyError):
    """A run has no such figure; the message names the nearest and all that there are."""

    def __init__(self, owner: str, name: str, known: Sequence[str]) -> None:
        hint = did_you_mean(name, known)
        self.message = f"{owner} has no '{name}'{hint} (known: {', '.join(known)})"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Asked:
    """A variant as a lesson asks for it."""

    name: str
    what_if: str | None = None
    changes: tuple[str, ...] = ()
    seed: int | None = None

    def scenario(self, fit: Layer | None = None) -> Scenario:
        """Return the variant as it is simulated; `fit` lies under the what-if."""
        return load(self.name, what_if=self.what_if, sets=self.changes, seed=self.seed, fit=fit)

    def digest(self) -> str:
        """Return the digest of the scenario's file, which a student may edit."""
        return sha256(find(self.name).read_bytes()).hexdigest()


class Figures(Mapping[str, Quantity]):
    """Figures by name: the median of each over its runs, with its unit."""

    def __init__(self, owner: str, found: Mapping[str, Summary]) -> None:
        self._owner = owner  # for messages
        self._found = found

    def __getitem__(self, name: str) -> Quantity:
        found = self._found.get(name)
        if found is None:
            raise UnknownFigureError(self._owner, name, list(self))
        return Quantity(found.median, found.unit)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class Run(Figures):
    """One variant, simulated: figures by name, medians if there are several replications."""

    def __init__(self, asked: Asked, study: Study, outcome: VariantOutcome) -> None:
        super().__init__(outcome.scenario.label, outcome.metrics)
        self.asked = asked
        self.study = study
        self.outcome = outcome

    @property
    def result(self) -> RunResult:
        """The readings and the log of the first run."""
        result = self.outcome.replications[0].result
        assert result is not None
        return result

    @property
    def scenario(self) -> Scenario:
        """What was simulated."""
        return self.outcome.scenario

    @property
    def recorded(self) -> Mapping[str, Quantity]:
        """The figures that were recorded of the real server, where numbers are known."""
        units = {name: one.unit for name, one in self.outcome.metrics.items()}
        return {
            name: Quantity(one.value, units.get(name, ""))
            for found in self.outcome.recorded
            for name, one in found.figures.items()
            if one.value is not None
        }

    def marks(self, name: str) -> list[tuple[float, float]]:
        """Return what programs noted under a name in the first run: (time in s, value)."""
        found = [(one.t_ns / NS_PER_S, float(one.value)) for one in self.result.marks(name)]
        if not found:
            known = sorted({one.name for one in self.result.records})
            raise UnknownFigureError(f"the log of {self.scenario.label}", name, known)
        return found

    def per_s(self, name: str, since: str) -> Quantity:
        """Return what programs counted under a name, a second, from a time such as "5 s" on.

        From the first note after that time to the last one; ValueError if there are not two.
        """
        since_s = parse_quantity(since, "time_ns") / NS_PER_S
        found = [one for one in self.marks(name) if one[0] >= since_s]
        if len(found) < 2:
            raise ValueError(f"{name} was noted {len(found)} times from {since} on; 2 make a rate")
        (begin_s, _), (end_s, _) = found[0], found[-1]
        return Quantity(sum(value for _, value in found[1:]) / (end_s - begin_s), "/s")

    def __repr__(self) -> str:
        seed = self.outcome.replications[0].seed
        head = f"{self.scenario.label}, seed {seed}: {self.outcome.title}\n\n"
        return f"{head}{plain(run_table(self.outcome))}\n{notes([self.outcome])}"


class Comparison(Mapping[str, Run]):
    """The base and its what-ifs: runs by name; the base is "base"."""

    def __init__(self, asked: Sequence[Asked], study: Study) -> None:
        self.study = study
        self._runs = {
            outcome.name: Run(one, study, outcome)
            for one, outcome in zip(asked, study.variants, strict=True)
        }

    def __getitem__(self, name: str) -> Run:
        found = self._runs.get(name)
        if found is None:
            raise UnknownFigureError("the comparison", name, list(self))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        names = dict.fromkeys(name for run in self.values() for name in run)
        columns = (Column("figure"), *(Column(name, True) for name in self), Column("unit"))
        rows = []
        for name in names:
            cells = [
                figure(run[name], run[name].unit) if name in run else "-" for run in self.values()
            ]
            unit = next(run[name].unit for run in self.values() if name in run)
            rows.append((name, *cells, unit))
        variants = self.study.variants
        titles = "".join(f"{one.name}: {one.title}\n" for one in variants)
        chance = ""
        if len(variants[0].replications) >= RUNS_MIN:
            chance = "\n" + "".join(f"{one.name}: {changes_text(one)}" for one in variants[1:])
        return f"{titles}\n{plain(Table(columns, tuple(rows)))}{chance}"


def run(
    scenario: str, what_if: str | None = None, *, set: Changes = NOTHING, seed: int | None = None
) -> Run:
    """Simulate a scenario, or a what-if of it, and return its figures.

    `set` changes parameters: {"machine.cpus": 8}. `iotwin params SCENARIO` lists them.
    """
    asked = Asked(scenario, what_if, changes_of(set), seed)
    study = _study([asked], 1)
    return Run(asked, study, study.variants[0])


def compare(
    scenario: str, *what_ifs: str, set: Changes = NOTHING, seed: int | None = None, runs: int = 1
) -> Comparison:
    """Simulate a scenario and what-ifs of it with the same seeds; return the runs by name."""
    asked = [Asked(scenario, one, changes_of(set), seed) for one in (None, *what_ifs)]
    return Comparison(asked, _study(asked, runs))


def changes_of(given: Changes) -> tuple[str, ...]:
    """Return changes as --set takes them."""
    return tuple(f"{path}={_text(value)}" for path, value in given.items())


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _study(asked: Sequence[Asked], runs: int) -> Study:
    """Return the variants with so many replications each."""
    scenarios = [one.scenario() for one in asked]
    done = [
        [_simulated(replace(one, seed=variant.seed + i), one.digest()) for i in range(runs)]
        for one, variant in zip(asked, scenarios, strict=True)
    ]
    recorded = [tuple(load_figures(spec) for spec in one.recorded) for one in scenarios]
    return assemble(scenarios, done, recorded, [()] * len(scenarios))


@cache
def _simulated(asked: Asked, _digest: str) -> Replication:
    """Simulate once, and keep the readings; `_digest` is that of the scenario's file."""
    scenario = asked.scenario()
    trial = trial_of(scenario, scenario.seed, sets=asked.changes, keep=True)
    [done] = Laboratory().run([trial])
    return done
