"""Design: settings that reach a goal, of listed paths alone; it is marked by running it.

Models: an engineer who may change some things of a server, and is judged by what it does then.
Linux counterpart: none.
Invariants: every goal holds in each of three runs, whose seeds are the teacher's where there is a
 key. No code of a student is executed. A design that does not come to an end within the lab's run,
 ends in an error of the model, such as memory that ran out, or has nothing to measure, has no
 points, and is told so.
Left out: marks for a design that reaches some of its goals.

`change` has settings that lie under every design: where seeds draw servers of which one goal does
not fit all. `goals` are such as "transaction_p95_ms < 60 ms", and `allow` has the paths that may be
set: each with a list of values, or with a range "LOW..HIGH". A figure that is `as_healthy` is
within a tenth of that of the server without any fault. `cut_goals` hold after a power cut at each
of the `cuts`.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

from sim.lab.number import with_unit
from sim.lab.task import FAIL, OK, Bench, Lab, Mark, Plan, Task, comment
from sim.mm.page_alloc import OutOfMemory
from sim.param import param
from sim.scenario import Scenario
from sim.scenario.levels import read_option
from sim.study.levels import Level, resolve, resolve_among
from sim.study.metrics import units_of
from sim.study.outcome import Replication
from sim.study.promises import UNITS
from sim.study.trial import trial_of
from sim.toml.errors import Problem, ScenarioError, unknown
from sim.toml.layers import Leaf, Table, quoted
from sim.toml.lines import split_key
from sim.toml.reading import Parameter, Reading
from sim.units import UnitError, Value, format_quantity, given_text, parse_quantity

RUNS: Final = 3
HEALTHY_SHARE: Final = 0.1  # by which a healed server may be worse than a healthy one

_NOTHING: Final = "nothing to measure within the lab's run"

Allowed = tuple[str, ...] | str


@dataclass(frozen=True, kw_only=True)
class _Goal:
    """What is to hold of each run: of its value, and that of the same run without the design."""

    text: str
    unit: str
    values: Sequence[float]  # without the design, then with it
    holds: Callable[[float, float], bool]
    was: str = "as it was"

    def shown(self) -> str:
        """Return what came out; a run in which nothing was measured says so."""
        half = len(self.values) // 2
        before, after = (
            ", ".join(_NOTHING if math.isnan(one) else with_unit(one, self.unit) for one in two)
            for two in (self.values[:half], self.values[half:])
        )
        return f"{after} ({self.was}: {before})"

    def is_met(self) -> bool:
        """Return whether it holds in every run."""
        half = len(self.values) // 2
        return all(map(self.holds, self.values[half:], self.values[:half]))


@dataclass(frozen=True, kw_only=True)
class Design(Task):
    """Settings that are to reach a goal."""

    kind = "design"
    section = "design"
    blank = "nothing is set"
    lists = ("change", "goals", "cuts", "cut_goals")
    tables = ("allow",)
    runs: ClassVar[int] = RUNS

    server: str = param("", dim="text", source="scenario", doc="server of several that it is about")
    as_healthy: str = param(
        "", dim="text", source="scenario", doc="figure that is to be as without any fault"
    )
    most: int = param(
        0, dim="count", source="scenario", minimum=0, doc="values a design may set; 0: any number"
    )
    change: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()
    cut_goals: tuple[str, ...] = ()
    allow: Mapping[str, Allowed]

    @classmethod
    def read_tables(
        cls, reading: Reading, table: Table, path: tuple[str, ...]
    ) -> dict[str, object]:
        """Return the paths that may be set, with their values."""
        allowed = reading.table(table, path, "allow")
        allow: dict[str, Allowed] = {}
        for key, child in allowed.children.items():
            is_range = isinstance(child, Leaf) and isinstance(child.value, str)
            known = reading.texts(allowed, (*path, "allow"), key) or ()
            allow[key] = known[0] if is_range else known
        return {"allow": allow}

    # -- The sheet

    def lines(self, _lab: Lab) -> Iterator[str]:
        """Yield a table's head, the question, the goals, and what may be set."""
        yield f"[{self.section}.{self.name}]"
        yield from self.asked()
        yield from comment("It must hold with each of three seeds:")
        yield from (f"#   {goal}" for goal in self.goals)
        if self.as_healthy:
            yield f"#   {self.as_healthy} within 10 % of that of a healthy server"
        yield from (f"#   {goal}, {self._when()}" for goal in self.cut_goals)
        most = f", at most {self.most}" if self.most else ""
        yield from comment(f"You may set, as PATH = VALUE on lines of their own{most}:")
        for path, values in self.allow.items():
            yield f"#   {path}: {_words(values)}"

    def _when(self) -> str:
        return f"with the power cut at {', '.join(self.cuts)}"

    def wrong(self, child: Leaf | Table) -> list[Problem]:
        """Refuse what may not be set; its values are checked against the server."""
        if isinstance(child, Leaf):
            message = f"[{self.section}.{self.name}] is a table of PATH = VALUE"
            return [Problem(child.key, message)]
        problems = []
        known = {split_key(path): path for path in self.allow}
        set_here = list(_leaves_of(child))
        if self.most and len(set_here) > self.most:
            message = f"{self.name}: too many values: find what is wrong, and set that"
            allowed = f"at most {self.most}"
            problems.append(Problem(child.place, message, str(len(set_here)), allowed))
        for path, leaf in set_here:
            if path not in known:
                given = ".".join(quoted(part) for part in path)
                where = f": {self.name} may not set it"
                problems.append(unknown(leaf.key, "path", given, known.values(), where))
        return problems

    # -- The runs

    def plan(self, child: Leaf | Table | None, bench: Bench) -> Plan | None:
        """Return the runs without and with the design, then those with power cuts."""
        if not isinstance(child, Table) or next(_leaves_of(child), None) is None:
            return None
        base = bench.lab.read(bench.seed, self.change) if self.change else bench.base
        design = self._designed(child, base, bench)
        seeds = bench.design_seeds
        runs = [(one, seed) for one in (base, design) for seed in seeds]
        is_run_whole = bool(self.goals or self.as_healthy)
        whole = [trial_of(*one) for one in runs] if is_run_whole else []
        cuts_ns = tuple(int(parse_quantity(text, "time_ns")) for text in self.cuts)
        cut = [trial_of(*one, cuts_ns=cuts_ns) for one in runs] if cuts_ns else []
        judge = partial(self._judged, base, len(whole))
        return Plan(trials=whole + cut, judge=judge, failed=self._failed)

    def _failed(self, error: Exception) -> Mark:
        """Return the mark of a design whose server does not live to the end of the lab's run."""
        what = "memory ran out" if isinstance(error, OutOfMemory) else type(error).__name__
        return self.mark(FAIL, 0, f"the run ended in an error: {what}: {error}. {self.hint}")

    def _designed(self, table: Table, base: Scenario, bench: Bench) -> Scenario:
        """Return the server with the design laid over it; raise ScenarioError.

        What the server has without it is checked before it is built: then a value that may not be
        set is a mistake of the sheet, and not of what would come of it.
        """
        leaves = list(_leaves_of(table))
        known = {split_key(one.path): one for one in base.parameters}
        self._refuse(
            (leaf, path, replace(known[path], value=_canonical(leaf.value, known[path].dim)))
            for path, leaf in leaves
            if path in known and isinstance(leaf.value, Value)
        )
        scenario = bench.lab.read(bench.seed, self.change, table, self.server)
        made = {split_key(one.path): one for one in scenario.parameters}
        self._refuse((leaf, path, made[path]) for path, leaf in leaves)
        return scenario

    def _refuse(self, found: Iterable[tuple[Leaf, tuple[str, ...], Parameter]]) -> None:
        """Raise ScenarioError if a value is none that may be set."""
        values = {split_key(path): values for path, values in self.allow.items()}
        problems = []
        for leaf, path, parameter in found:
            if not _is_allowed(parameter, values[path]):
                message = f"{parameter.path}: {self.name} may not set it so"
                given, allowed = given_text(leaf.value), _words(values[path])
                problems.append(Problem(leaf.at, message, given, allowed))
        if problems:
            raise ScenarioError(problems)

    def _judged(self, base: Scenario, number: int, outcomes: Sequence[Replication]) -> Mark:
        """Judge the runs; so many of them are whole ones."""
        whole, cut = outcomes[:number], outcomes[number:]
        for run in whole[number // 2 :]:
            if run.seen.missing:
                limit = format_quantity(base.run.duration_ns, "time_ns")
                what = " and ".join(run.seen.missing)
                told = f"stopped at the lab's limit of {limit}, with seed {run.seed}: no {what}"
                return self.mark(FAIL, 0, f"{told} until then. {self.hint}")
        goals = [*self._goals(whole, base), *self._cut_goals(cut)]
        answer = "; ".join(f"{one.text}: {one.shown()}" for one in goals)
        missed = [f"{one.text} does not hold: {one.shown()}." for one in goals if not one.is_met()]
        if missed:
            return self.mark(FAIL, 0, " ".join([*missed, self.hint]))
        return self.mark(OK, self.points, "", answer)

    def _goals(self, whole: Sequence[Replication], base: Scenario) -> Iterator[_Goal]:
        """Yield what is asked of whole runs."""
        for level in resolve([read_option(goal) for goal in self.goals], base.measure):
            yield _goal(level, [run.metrics.get(level.figure, math.nan) for run in whole])
        if self.as_healthy:
            yield _Goal(
                text=f"{self.as_healthy} within 10 % of a healthy server's",
                unit=units_of(base.measure)[self.as_healthy],
                values=[run.metrics.get(self.as_healthy, math.nan) for run in whole],
                holds=lambda after, before: after <= (1 + HEALTHY_SHARE) * before,
                was="healthy",
            )

    def _cut_goals(self, cut: Sequence[Replication]) -> Iterator[_Goal]:
        """Yield what is asked of power cuts: of each run that cut counts which left the worst."""
        for level in resolve_among([read_option(goal) for goal in self.cut_goals], UNITS, {}):
            worst = min if level.relation.startswith(">") else max
            values = [worst(one[level.figure] for one in run.cuts) for run in cut]
            yield _goal(level, values, f", {self._when()}")


def _goal(level: Level, values: Sequence[float], where: str = "") -> _Goal:
    return _Goal(
        text=f"{level.text}{where}",
        unit=level.unit,
        values=values,
        holds=lambda after, _before: level.holds(after),
    )


def _leaves_of(table: Table, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yield every value of a table with its path."""
    for name, child in table.children.items():
        if isinstance(child, Leaf):
            yield (*above, name), child
        else:
            yield from _leaves_of(child, (*above, name))


def _words(values: Allowed) -> str:
    """Return the values that a path may have, as they would be written."""
    if isinstance(values, str):
        low, _dots, high = values.partition("..")
        return f"from {_typed(low)} to {_typed(high)}"
    return ", ".join(map(_typed, values))


def _typed(text: str) -> str:
    """Return a value as it is typed in TOML: yes or no and numbers bare, all others in quotes."""
    is_bare = text in {"true", "false"} or re.fullmatch(r"-?\d+(\.\d+)?", text)
    return text if is_bare else f'"{text}"'


def _is_allowed(parameter: Parameter, values: Allowed) -> bool:
    if isinstance(values, str):
        low, _dots, high = values.partition("..")
        ends = [parse_quantity(text, parameter.dim) for text in (low, high)]
        numbers = [
            one for one in (ends[0], parameter.value, ends[1]) if isinstance(one, int | float)
        ]
        # A text that is no quantity is in no range.
        return len(numbers) == 3 and numbers[0] <= numbers[1] <= numbers[2]
    return parameter.value in [_canonical(text, parameter.dim) for text in values]


def _canonical(given: Value, dim: str) -> Value:
    """Return a value in the unit of its parameter; what is none stays as it is."""
    try:
        return parse_quantity(given, dim)
    except UnitError:
        return given == "true" if dim == "bool" else given
