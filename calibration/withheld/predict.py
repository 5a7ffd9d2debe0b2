"""Answers: ensembles simulated, mixed by what is believed of their mechanisms, and widened.

Models: a predictive distribution. Each member of an ensemble is one value; a figure's values are
those of its ensembles by weight, each spread by a log-normal factor: how far the twin itself may be
off. Median and 90 % interval are quantiles of that mixture.
Linux counterpart: none.
Invariants: member m has seed `seed + m` in every ensemble, so that variants meet the same chance; a
trial that two figures need is simulated once; the same numbers whatever the number of processes.
Left out: correlations between figures.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from calibration.drive.bad_input import BadInput
from calibration.fit.chain import Simulator
from calibration.fit.space import Space
from calibration.withheld.table import Ensemble, Question, Questions
from sim.scenario import load
from sim.scenario.cases import shipped_fit
from sim.scenario.fitted import FitError, read_fit
from sim.study.trial import Figures, Trial

Values = dict[str, list[Figures]]  # figures of each member, by ensemble

_HALF_90: Final = NormalDist().inv_cdf(0.95)
_SPREAD: Final = tuple(NormalDist().inv_cdf((i + 0.5) / 201) for i in range(201))
_DIGITS: Final = 3  # of what is printed


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is predicted of a figure."""

    figure: str
    unit: str
    median: float
    lo: float
    hi: float
    why: str
    outcome: float | None

    @property
    def is_inside(self) -> bool | None:
        """Whether the outcome lies in the interval, None while it is not known."""
        return None if self.outcome is None else self.lo <= self.outcome <= self.hi

    def to_json(self) -> dict[str, object]:
        """Return the row of calibration/predictions/withheld.json."""
        return {
            "figure": self.figure,
            "unit": self.unit,
            "median": self.median,
            "lo": self.lo,
            "hi": self.hi,
            "why": self.why,
        }


def trials_of(ensemble: Ensemble, seed: int) -> list[Trial]:
    """Return the simulations of an ensemble; raise FitError, ScenarioError, BadInput."""
    return [
        Trial(
            ensemble.scenario,
            ensemble.what_if,
            tuple((member | _same(ensemble, member)).items()),
            seed + number,
            ensemble.sets,
        )
        for number, member in enumerate(_members(ensemble, seed))
    ]


def _members(ensemble: Ensemble, seed: int) -> list[dict[str, str]]:
    """Return parameter values of members: of the fit, or drawn from the priors."""
    if ensemble.fit is not None:
        fit = read_fit(shipped_fit(ensemble.fit), ensemble.scenario)
        if len(fit.members) < ensemble.members:
            raise FitError(f"{fit.file} has {len(fit.members)} members, not {ensemble.members}")
        return [fit.member(number) for number in range(ensemble.members)]
    spec = load(ensemble.scenario).calibrate
    if spec is None:
        place = f"[ensemble.{ensemble.name}]"
        raise BadInput(place, f"no fit, and '{ensemble.scenario}' has no [calibrate] with priors")
    space = Space(spec.priors)
    return [space.texts(one) for one in space.sobol(ensemble.members, seed, "withheld.priors")]


def _same(ensemble: Ensemble, member: Mapping[str, str]) -> dict[str, str]:
    for source in ensemble.same.values():
        if source not in member:
            place, known = f"[ensemble.{ensemble.name}.same]", ", ".join(member)
            raise BadInput(place, f"no parameter '{source}' in a member", allowed=known)
    return {path: member[source] for path, source in ensemble.same.items()}


def simulate(questions: Questions, wanted: Sequence[Question], laboratory: Simulator) -> Values:
    """Simulate the ensembles that the wanted figures need."""
    names = dict.fromkeys(
        name for question in wanted for name in (*question.of, *question.gain_over.values())
    )
    plans = {name: trials_of(questions.ensembles[name], questions.seed) for name in names}
    figures = iter(laboratory.figures([one for trials in plans.values() for one in trials]))
    return {name: [next(figures) for _trial in trials] for name, trials in plans.items()}


def first_members(
    questions: Questions, wanted: Sequence[Question], laboratory: Simulator
) -> dict[str, dict[str, float]]:
    """Simulate the first member of each ensemble that the wanted figures need, by ensemble.

    What is shipped of them is a check that costs a run each: a tree that gives other figures would
    give other predictions.
    """
    metrics: dict[str, list[str]] = {}
    for question in wanted:
        for name in (*question.of, *question.gain_over.values()):
            metrics.setdefault(name, []).append(question.metric)
    firsts = [trials_of(questions.ensembles[name], questions.seed)[0] for name in metrics]
    return {
        name: {metric: figures[metric] for metric in asked}
        for (name, asked), figures in zip(metrics.items(), laboratory.figures(firsts), strict=True)
    }


def answer(questions: Questions, question: Question, values: Values) -> Answer:
    """Return median and 90 % interval of a figure; raise BadInput if no run has its metric."""
    points: list[tuple[float, float]] = []  # (value, weight)
    sigma = math.log(question.within) / _HALF_90
    for name, weight in question.of.items():
        own = _figures(question, name, values)
        if not own:
            place = f'[figure."{question.figure}"]'
            known = ", ".join(values[name][0])
            raise BadInput(place, f"no '{question.metric}' in the runs of {name}", allowed=known)
        for value in own:
            for z in _SPREAD:
                spread = value * question.factor * math.exp(sigma * z)
                points.append((spread, weight / (len(own) * len(_SPREAD))))
    points.sort()
    low, median, high = (_rounded(_quantile(points, share)) for share in (0.05, 0.5, 0.95))
    return Answer(
        figure=question.figure,
        unit=question.unit,
        median=median,
        lo=low,
        hi=high,
        why=f"{question.why}; {_pedigree(questions, question)}",
        outcome=question.outcome,
    )


def _figures(question: Question, name: str, values: Values) -> list[float]:
    """Return the members' figures; those of a gain are differences of the same member."""
    metric = question.metric
    if name not in question.gain_over:
        return [one[metric] for one in values[name] if metric in one]
    others = values[question.gain_over[name]]
    pairs = zip(others, values[name], strict=True)
    return [before[metric] - after[metric] for before, after in pairs if metric in after]


def _quantile(points: Sequence[tuple[float, float]], share: float) -> float:
    """Return a weighted quantile, between the middles of the points' weights."""
    total = sum(weight for _value, weight in points)
    passed = 0.0
    before_value, before_share = points[0][0], 0.0
    for value, weight in points:
        middle = (passed + weight / 2) / total
        if middle >= share:
            part = (share - before_share) / (middle - before_share) if middle > before_share else 1
            return before_value + part * (value - before_value)
        before_value, before_share = value, middle
        passed += weight
    return points[-1][0]


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _pedigree(questions: Questions, question: Question) -> str:
    """Return where the numbers come from."""
    weights = sum(question.of.values())
    parts = []
    for name, weight in question.of.items():
        one = questions.ensembles[name]
        share = f"{weight / weights:.2g} x " if len(question.of) > 1 else ""
        source = f"fit {one.fit}" if one.fit else "the priors"
        variant = f" {one.what_if}" if one.what_if else ""
        if name in question.gain_over:
            variant += f" against {questions.ensembles[question.gain_over[name]].what_if}"
        parts.append(f"{share}{one.scenario}{variant}, {one.members} members of {source}")
    return f"{' + '.join(parts)}; within a factor {question.within:g}: {question.because}"
