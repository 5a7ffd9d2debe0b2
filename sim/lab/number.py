"""A task that asks for a number: a figure of a run, or of a power cut.

Models: what reading a figure and predicting one have in common.
Linux counterpart: none.
Invariants: an answer is right or wrong in any unit that measures the same. One that is wrong is
 told its likeliest cause: a known mistake, a unit, else the task's hint.
Left out: how near is right; that is each kind's own.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Final, Self

from sim.lab.task import Bench, Fill, Mark, Plan, Task, text_of
from sim.param import param
from sim.report.tables import figure as shown
from sim.scenario import Scenario
from sim.study.levels import in_unit
from sim.study.metrics import units_of
from sim.study.outcome import Replication
from sim.study.promises import UNITS
from sim.study.trial import trial_of
from sim.toml.errors import Problem, ScenarioError
from sim.toml.layers import Leaf, Table
from sim.toml.reading import Reading
from sim.units import UnitError, given_text, parse_quantity

Figures = Mapping[str, float]
# By which answers in a wrong unit are off, or with a share for a percentage.
_SLIPS: Final = (1e3, 1e6, 1e9, 1024.0, 1024.0**2, 100.0, 60.0, 8.0)


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A wrong way that leads to a number of its own: a figure of the base's run, times a factor."""

    figure: str = param(dim="text", source="scenario", doc="figure that is taken by mistake")
    factor: float = param(1.0, dim="number", source="scenario", doc="what it is multiplied by")
    hint: str


@dataclass(frozen=True, kw_only=True)
class Number(Task):
    """A question for a figure of the server, changed by `change`, or of a cut of its power."""

    runs: ClassVar[int]  # seeds, from the sheet's on, that say what is right
    lists = ("change", "cuts")
    tables = ("mistake",)

    figure: str = param(dim="text", source="scenario", doc="figure that is asked for")
    change: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = field(default=(), repr=False)

    @classmethod
    def read_tables(
        cls, reading: Reading, table: Table, path: tuple[str, ...]
    ) -> dict[str, object]:
        """Return the known mistakes."""
        found = [_mistake(reading, *one) for one in reading.named_tables(table, path, "mistake")]
        return {"mistakes": tuple(one for one in found if one is not None)}

    def filled(self, fill: Fill) -> Self:
        """Return the task with its texts filled in, those of its mistakes too."""
        mistakes = tuple(replace(one, hint=fill(one.hint)) for one in self.mistakes)
        return replace(super().filled(fill), mistakes=mistakes)

    def lines(self, _lab: object) -> Iterator[str]:
        """Yield the question, and a blank for one number."""
        yield from self.asked()
        yield f'{self.name} = ""'

    def wrong(self, child: Leaf | Table) -> list[Problem]:
        """Refuse what is no number with a unit."""
        if isinstance(child, Table):
            return [Problem(child.place, f"{self.name}: one number, with its unit", "a table")]
        if isinstance(child.value, list | bool):
            given = given_text(child.value)
            return [Problem(child.at, f"{self.name}: one number, with its unit", given)]
        return []

    def plan(self, child: Leaf | Table | None, bench: Bench) -> Plan | None:
        """Return the base's run, for the mistakes, and those that say what is right."""
        unit = self.units(bench.base)[self.figure]
        given = self._value(child, unit) if isinstance(child, Leaf) else None
        if given is None and not bench.shows:
            return None
        changed = bench.lab.read(bench.seed, self.change) if self.change else bench.base
        asked = [(changed, bench.seed + number) for number in range(self.runs)]
        cuts_ns = tuple(int(parse_quantity(text, "time_ns")) for text in self.cuts)
        trials = [trial_of(*one, cuts_ns=cuts_ns) for one in [(bench.base, bench.seed), *asked]]
        return Plan(trials=trials, judge=partial(self._judged, given, unit))

    def units(self, base: Scenario) -> Mapping[str, str]:
        """Return the units of the figures that it may ask for."""
        return UNITS if self.cuts else units_of(base.measure)

    def figures(self, outcome: Replication) -> Figures:
        """Return the figures of a run among which it asks for one."""
        return outcome.cuts[0] if self.cuts else outcome.metrics

    def _value(self, leaf: Leaf, unit: str) -> float:
        """Return an answer in the unit of its figure; raise ScenarioError."""
        text = str(leaf.value).strip()
        try:
            return in_unit(text, unit)
        except UnitError as error:
            wanted = f"a number of {unit}" if unit else "a bare number"
            message = f"{self.name} is {wanted}: {error.problem}"
            if "," in text:
                message += " (a decimal point, no comma)"
            problem = Problem(leaf.at, message, given_text(leaf.value), error.allowed)
            raise ScenarioError([problem]) from None

    def _judged(self, given: float | None, unit: str, outcomes: Sequence[Replication]) -> Mark:
        before, *after = map(self.figures, outcomes)
        return self.judged(given, [one[self.figure] for one in after], unit, before)

    @abstractmethod
    def judged(
        self, given: float | None, values: Sequence[float], unit: str, before: Figures
    ) -> Mark:
        """Return the mark of a number; `values` are the figure of each run, `before` the base's."""

    def why(self, given: float, right: float, before: Figures, share: float) -> str:
        """Return the likeliest cause: a known mistake, a unit, else what the task's hint says."""
        for one in self.mistakes:
            if is_near(given, one.factor * before[one.figure], share):
                return one.hint
        off = slip(given, right, share, _SLIPS)
        if off is not None:
            times = f"{off:g} times too large" if off > 1 else f"{1 / off:g} times too small"
            return f"{times}: look at the unit"
        return f"too {'high' if given > right else 'low'}. {self.hint}"


def is_near(given: float, right: float, share: float) -> bool:
    """Return whether a number is right but for a share of what is right."""
    return abs(given - right) <= share * abs(right)


def slip(given: float, right: float, share: float, factors: Sequence[float]) -> float | None:
    """Return by which of the factors, or one over it, a number is off; None if by none."""
    either_way = (one for factor in factors for one in (factor, 1 / factor))
    return next((one for one in either_way if is_near(given, one * right, share)), None)


def with_unit(value: float, unit: str) -> str:
    """Return a figure as it is shown, with its unit."""
    return f"{shown(value, unit)} {unit}".rstrip()


def _mistake(reading: Reading, _name: str, table: Table, path: tuple[str, ...]) -> Mistake | None:
    [values] = reading.values(table, path, (Mistake,), others=("hint",))
    hint = text_of(reading, table, "hint", path)
    return None if values is None else Mistake(hint=hint, **values)
