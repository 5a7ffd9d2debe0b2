"""Optimise: the cheapest combination of priced options with which a server keeps its levels.

Models: the choice between offers. All combinations that can be taken stand in order of price. Each
 is run 10 times, then 20, 40, ... with the same seeds as the others, until its levels are met or
 one is missed. The first that is met is the answer once all cheaper ones are missed.
By hand: four options make 16 combinations, and 2000 runs reach eight looks. The first look at the
 cheapest may be wrong in 5 % / 3.4 / 2.7 = 0.5 % of studies: with ten runs t is 3.2 there, with the
 1.8 of a single question. Means that scatter by 15 % are then known to 15 % instead of 9 %.
Theory. Combination j of K may be judged wrongly in a share e_j of all studies, and at its look i of
 L in e_ij: e_j = e / (j H_K), e_ij = e_j / (i H_L), H_n = 1 + 1/2 + ... + 1/n. The cheap and the
 early have most, and all together have e, what --correct leaves. A combination either meets its
 levels or does not, so that only one of both verdicts is a mistake. If one that misses a level is
 called met, this level was called met. If one that meets all m levels is called missed, one of the
 m was: so each level has e_ij / m. By Bonferroni's inequality all verdicts of a study together are
 right in 1 - e of all studies, whatever common seeds do to their dependence. Then the choice is the
 cheapest that meets, and the next one is the next.
 Guaranteed as far as the intervals of levels are (sim.study.levels): those of means suppose that
 means of ten runs are nearly normal; far out in their tails, where few options leave much to spend
 and many leave little, that is an approximation. *No data* counts as missed at once.
Counterpart: Batur and Kim, Finding feasible systems in the presence of constraints on multiple
 performance measures, ACM TOMACS 20 (2010), 13, and Andradottir and Kim, Fully sequential
 procedures for comparing constrained systems via simulation, Naval Research Logistics 57 (2010),
 403. They need a zone of indifference around each level; here what lies too near to a level stays
 undecided instead. Spending an error over looks: Lan and DeMets, Biometrika 70 (1983), 659.
Invariants: a combination that was not simulated has no verdict. That an option helps is never taken
 for granted: a faster disk may cost the processor what it had left. No run is spent beyond the
 budget. Of combinations of one price that with fewer options comes first.
Left out: several of one option; prices that depend on each other; a best one beyond "it meets".
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sim.scenario.levels import LevelText
from sim.scenario.load import JOINED
from sim.scenario.options import exclude
from sim.scenario.spec import Option, Scenario
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.levels import MET, MISSED, UNDECIDED, Judged, judge, overall, resolve
from sim.study.outcome import Replication, Shortfall
from sim.study.points import Measured, Point, Variants, measured_point
from sim.study.trial import trial_of
from sim.toml.errors import Place, Problem, ScenarioError

CORRECT: Final = 0.95
BUDGET: Final = 2000
FIRST: Final = 10  # runs of the first look; each further one doubles them
COMBINATIONS_MAX: Final = 100_000
_DEPTH: Final = 3  # looks at a combination before the next one has its first
_CENT: Final = 6  # digits of a sum of prices that are no slip of binary fractions

Judge = Callable[[int, int, float], str]


# -- What there is to choose from


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Options that can be taken together, in the order in which they are laid over each other."""

    options: tuple[str, ...]
    price: float

    @property
    def name(self) -> str:
        """The name by which it is asked for; "" for no option."""
        return JOINED.join(self.options)

    def is_more_than(self, other: "Combination") -> bool:
        """Return whether it has all options of another one, and further ones."""
        return set(self.options) > set(other.options)


def combinations(options: Sequence[Option]) -> list[Combination]:
    """Return all that can be taken, none of the options first, in order of price.

    Raise ScenarioError if they are too many.
    """
    taken: list[tuple[Option, ...]] = [()]
    for option in options:
        taken += [
            (*group, option) for group in taken if not any(exclude(option, one) for one in group)
        ]
        if len(taken) > COMBINATIONS_MAX:
            place = Place(f"{len(options)} options", 0, 1, 1, "")
            problem = f"more than {COMBINATIONS_MAX:,} combinations"
            allowed = "fewer options, or `excludes` between those that nobody takes together"
            raise ScenarioError([Problem(place, problem, "", allowed)])
    complete = [group for group in taken if _has_what_it_needs(group)]
    found = [
        Combination(
            options=tuple(one.name for one in group),
            price=round(math.fsum(one.price for one in group), _CENT),
        )
        for group in complete
    ]
    return sorted(found, key=lambda one: (one.price, len(one.options)))


def _has_what_it_needs(group: Sequence[Option]) -> bool:
    names = {one.name for one in group}
    return all(names >= set(one.needs) for one in group)


# -- Choosing


def part(number: int, of: int) -> float:
    """Return the part of the error that the first, second, ... of so many has."""
    return 1 / (number * math.fsum(1 / one for one in range(1, of + 1)))


@dataclass
class Tried:
    """What is known of a combination after so many runs."""

    runs: int = 0
    looks: int = 0
    verdict: str = UNDECIDED


@dataclass
class Search:
    """Candidates in order of price, what was tried of them, and what that says.

    `judge` is called with the number of a candidate, runs in all, and how often the verdict may be
    wrong on one side.
    """

    judge: Judge
    candidates: int
    correct: float = CORRECT
    budget: int = BUDGET
    tried: dict[int, Tried] = field(default_factory=dict)
    spent: int = 0
    is_out_of_budget: bool = False
    next: int | None = None

    # -- What is known

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of runs after which to look, as far as the budget could reach."""
        return tuple(FIRST * 2**i for i in range(max(self.budget // FIRST, 1).bit_length()))

    @property
    def reach(self) -> int:
        """How many candidates the budget could reach; the others have no part of the error."""
        return min(self.candidates, max(self.budget // FIRST, 1))

    @property
    def chosen(self) -> int | None:
        """The cheapest candidate that is shown to meet all levels."""
        return min((j for j, one in self.tried.items() if one.verdict == MET), default=None)

    @property
    def undecided(self) -> list[int]:
        """Those of which it is not known whether they meet, and which would be cheaper."""
        end = self.candidates if self.chosen is None else self.chosen
        return [j for j in range(end) if j not in self.tried or self.tried[j].verdict != MISSED]

    @property
    def undecided_tried(self) -> list[int]:
        """Those of them that have had a look."""
        return [number for number in self.undecided if number in self.tried]

    @property
    def verdict(self) -> str:
        """Met: the cheapest is known; missed: none meets; else undecided."""
        if self.undecided:
            return UNDECIDED
        return MISSED if self.chosen is None else MET

    # -- Searching

    def run(self) -> None:
        """Find the cheapest that meets."""
        for depth in range(min(_DEPTH, len(self.looks)), len(self.looks) + 1):
            for number in range(self.reach):
                if self._look(number, depth) == MET or self.is_out_of_budget:
                    break
            if self.verdict != UNDECIDED or self.is_out_of_budget:
                return

    def go_on(self, others: Iterable[int]) -> None:
        """Find the next that is shown to meet, of others that are given in order of price."""
        for number in others:
            if number >= self.reach:
                return
            if self._look(number, min(_DEPTH, len(self.looks))) == MET:
                self.next = number
            if self.next is not None or self.is_out_of_budget:
                return

    def _look(self, number: int, depth: int) -> str:
        """Look at a candidate so many times at the most; return what is known of it."""
        one = self.tried.get(number, Tried())
        while one.verdict == UNDECIDED and one.looks < depth:
            runs = self.looks[one.looks]
            if self.spent + runs - one.runs > self.budget:
                self.is_out_of_budget = True
                break
            error = (1 - self.correct) * part(number + 1, self.reach)
            error *= part(one.looks + 1, len(self.looks))
            one.verdict = self.judge(number, runs, error)
            self.spent += runs - one.runs
            one.runs, one.looks = runs, one.looks + 1
            self.tried[number] = one
        return one.verdict


# -- On the twin


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: which levels a scenario under a what-if shall keep."""

    variants: Variants
    what_if: str | None = None
    slo: tuple[LevelText, ...] = ()
    correct: float = CORRECT
    budget: int = BUDGET

    def named(self, combination: Combination) -> str | None:
        """Return by what name a combination is run."""
        parts = [self.what_if] if self.what_if else []
        return JOINED.join([*parts, *combination.options]) or None

    def point(self, combination: Combination, member: int = 0) -> Point:
        """Return a combination with its levels; raise ScenarioError."""
        name = self.named(combination)
        try:
            scenario = self.variants.read(name, member=member)
        except ScenarioError as error:
            told = f"with options {combination.name}: " if combination.options else ""
            raise ScenarioError(
                replace(one, message=f"{told}{one.message}") for one in error.problems
            ) from None
        levels = resolve((*scenario.slo, *self.slo), scenario.measure)
        return Point(scenario=scenario, what_if=name, values=(), settings=(), levels=levels)


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The answer; `measured` has what was run of a combination, by its number."""

    base: Scenario
    question: Question
    combinations: Sequence[Combination]
    unit: str  # of money
    search: Search
    measured: dict[int, Measured]
    unfinished: Shortfall | None = None

    @property
    def chosen(self) -> Combination | None:
        """The cheapest that is shown to meet; whether a cheaper one may is search.undecided."""
        return None if self.search.chosen is None else self.combinations[self.search.chosen]

    @property
    def next(self) -> Combination | None:
        """The next in order of price that meets, without being the chosen one and more."""
        return None if self.search.next is None else self.combinations[self.search.next]


def optimise(question: Question, laboratory: Laboratory) -> Optimum:
    """Choose; an interrupted study has what it found, and says so."""
    base = question.variants.read(question.what_if)
    offered = combinations(base.options)
    asked = _Asked(question, offered, laboratory)
    search = Search(asked.judge, len(offered), correct=question.correct, budget=question.budget)
    for number in range(search.reach):
        asked.point(number)  # what cannot be together is told before anything runs
    unfinished = None
    try:
        search.run()
        if search.verdict == MET and search.chosen is not None:
            chosen = offered[search.chosen]
            dearer = range(search.chosen + 1, len(offered))
            search.go_on(one for one in dearer if not offered[one].is_more_than(chosen))
    except UnfinishedError as error:
        unfinished = error.shortfall
    return Optimum(
        base=base,
        question=question,
        combinations=offered,
        unit=base.options[0].unit if base.options else "",
        search=search,
        measured=asked.measured(),
        unfinished=unfinished,
    )


@dataclass
class _Asked:
    """The runs of all combinations that were asked for."""

    question: Question
    offered: Sequence[Combination]
    laboratory: Laboratory
    points: dict[tuple[int, int], Point] = field(default_factory=dict)
    done: dict[int, list[Replication]] = field(default_factory=dict)
    judged: dict[int, tuple[Judged, ...]] = field(default_factory=dict)

    def judge(self, number: int, runs: int, error: float) -> str:
        """Return the verdict on a combination after so many runs."""
        done = self.done.setdefault(number, [])
        trials = []
        for run in range(len(done), runs):
            scenario = self.point(number, run).scenario
            trials.append(trial_of(scenario, scenario.seed + run, sets=self.question.variants.sets))
        done += self.laboratory.run(trials)
        figures = [one.metrics for one in done]
        times = [one.histograms for one in done]
        levels = self.point(number).levels
        sure = 1 - error / len(levels)
        self.judged[number] = tuple(judge(level, figures, times, sure) for level in levels)
        return overall(self.judged[number])

    def point(self, number: int, run: int = 0) -> Point:
        """Return a combination for a run: with a fit each run is a member of the ensemble."""
        key = number, run if self.question.variants.fit is not None else 0
        if key not in self.points:
            self.points[key] = self.question.point(self.offered[number], key[1])
        return self.points[key]

    def measured(self) -> dict[int, Measured]:
        """Return what was measured of each combination that has a run, the cheapest first."""
        return {
            number: replace(
                measured_point(self.point(number), runs), levels=self.judged.get(number, ())
            )
            for number, runs in sorted(self.done.items())
            if runs
        }
