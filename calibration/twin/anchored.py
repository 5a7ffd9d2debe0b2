"""Answers tied to the recording: what changes is simulated, what it changes from is recorded.

Models: the administrator's "half as much again as today": a twin that shows 20 % too much today
shows 20 % too much tomorrow.
Linux counterpart: none.
Invariants: a figure that was recorded and simulated is the recorded one times the simulated change,
member by member with the same seeds; shares stay below 100 %; a figure that was not recorded, or
that today's run has nothing of, is the run's own. Intervals hold the members, the chance of the
recording, and how far a change is trusted, which is nothing for no change.
Left out: that chances of several figures go together.

With r recorded and s today, s' then, the answer is r s'/s. What is trusted of a change is declared
for twice the load or half of it (CHANGE), and grows with the logarithm of the multiple: four times
the load is trusted to twice as little. What comes seldom is known to the root of how often it came:
6 reads in a recording are 6 +- 2.4. Of what did not come once in T seconds, 3 / T a second may come
(exp(-3) = 0.05).
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import NormalDist, fmean, median, stdev
from typing import Final

import numpy as np

from calibration.fit.space import generator
from calibration.look import Look, steady
from calibration.look.intervals import COUNTED
from calibration.twin.answers import CPU_BUSY, LOAD_MEAN, Answer, Answers
from calibration.twin.questions import Question
from sim.study.trial import Figures

DRAWS: Final = 200  # of which the 5th and 95th percentile are known to 3 % of the width
# Column -> standard deviation of the logarithm of what changes at twice the load; assumed: half of
# what the same columns are trusted to in a fit (calibration/twin/columns.py).
CHANGE: Final[Mapping[str, float]] = {
    "r_per_s": 0.05,
    "w_per_s": 0.12,
    "f_per_s": 0.15,
    "r_await_ms": 0.10,
    "w_await_ms": 0.15,
    "aqu_sz": 0.12,
    "util_pct": 0.03,
    LOAD_MEAN: 0.08,
}
CHANGE_OTHERS: Final = 0.1
LOAD_STEP: Final = 0.07  # tasks: the error of two updates in hundredths (calibration/look/tasks.py)
LOAD_FEW: Final = 2.0  # tasks: of so few, one that comes and goes is half; more are added to them
COUNTING: Final = 0.8  # of the queue: fewer active tasks than that are not those in it
SCATTER_MAX: Final = 1.0  # of a logarithm: beyond, a mean says its order of magnitude
_COUNTS: Final[Mapping[str, str]] = {"r_": "r_per_s", "w_": "w_per_s", "f_": "f_per_s"}
_RATES: Final = (".r_per_s", ".w_per_s", ".f_per_s")
_NORMAL: Final = NormalDist()


def anchored(answers: Answers, seen: Look, seed: int) -> Answers:
    """Return the answers tied to a recording."""
    today, seen = answers.today, steady(seen)
    return replace(
        answers,
        today=_tied(today, today, seen, seed),
        asked=[_tied(one, today, seen, seed) for one in answers.asked],
    )


def recorded_figures(seen: Look) -> Figures:
    """Return what was recorded under the names that answers have."""
    found = {
        f"disk.{one.name}.{column}": value
        for one in seen.devices
        for column, value in one.row.items()
    }
    # As the tool printed it: the twin's tools print what such a kernel counts.
    found |= {
        f"disk.{one.name}.util_pct": one.row[COUNTED] for one in seen.devices if COUNTED in one.row
    }
    found |= {f"cpu.{column}": value for column, value in seen.cpu.shares_pct.items()}
    if seen.cpu.busy is not None:
        found[CPU_BUSY] = 100 * seen.cpu.busy
    if seen.system.active is not None:
        found[LOAD_MEAN] = seen.system.active
    return found


def _tied(answer: Answer, today: Answer, seen: Look, seed: int) -> Answer:
    recorded = recorded_figures(seen)
    chance = generator(seed, "twin.anchored")
    names = list(dict.fromkeys(name for one in answer.runs for name in one))
    drawn: list[dict[str, float]] = [{} for _ in range(DRAWS)]
    for name in names:
        normal = _normals(chance)
        spread = _spread(name, answer.question, seen)
        for i in range(DRAWS):
            then, now = (one.runs[i % len(one.runs)].get(name, 0.0) for one in (answer, today))
            factor = math.exp(spread * normal[i])
            if name == LOAD_MEAN and i % 2 and not _waiters_count(seen):
                then = now  # Whoever waits is not in the average: as many more as none.
            value = _changed(name, recorded, then, now, factor)
            if name == LOAD_MEAN and name in recorded:
                value = max(0.0, value + LOAD_STEP * normal[i])
            if not value and name in recorded and name.endswith(_RATES):
                value = _unseen(normal[i], seen)
            drawn[i][name] = min(value, 100.0) if name.endswith("_pct") else value
    return replace(answer, runs=drawn)


def _changed(
    name: str, recorded: Mapping[str, float], then: float, now: float, factor: float
) -> float:
    """Return a figure of a member: what was recorded, changed as its runs say."""
    if name not in recorded:
        return then
    if now <= 0:
        return recorded[name] * factor
    if name == LOAD_MEAN and recorded[name] < LOAD_FEW:
        return max(0.0, recorded[name] + then - now) * factor
    return recorded[name] * then / now * factor


def _waiters_count(seen: Look) -> bool:
    """Return whether those who wait for a full device are in the load average.

    They are not if they sleep in a lock of their own program (a database's group commit), or if
    nobody waits (writeback): then more requests are in the queue than tasks are active.
    """
    queue = sum(one.row.get("aqu_sz", 0.0) for one in seen.devices if not one.is_stacked)
    active = seen.system.active
    return active is None or active >= COUNTING * queue


def _normals(chance: np.random.Generator) -> list[float]:
    """Return standard normal numbers, one of each share of the distribution, in any order."""
    return [_NORMAL.inv_cdf((i + 0.5) / DRAWS) for i in chance.permutation(DRAWS)]


def _spread(name: str, question: Question | None, seen: Look) -> float:
    """Return the standard deviation of the logarithm of a figure, beside that of the members."""
    sampling = _sampling(name, seen)
    if question is None:
        return sampling
    column = name.rpartition(".")[2]
    trust = CHANGE.get(column, CHANGE_OTHERS)
    # What comes then has as much chance as what was recorded.
    doublings = abs(math.log2(question.load)) if question.load != 1 else 1.0
    return math.hypot(trust * doublings, math.sqrt(2) * sampling)


def _sampling(name: str, seen: Look) -> float:
    """Return how surely a mean was recorded, relative: its intervals scatter, or few came."""
    kind, _dot, rest = name.partition(".")
    if kind != "disk":
        return 0.0
    device, _dot, column = rest.rpartition(".")
    rows = [one.devices[device] for one in seen.used if device in one.devices]
    values = [row[column] for row in rows if column in row]
    mean = fmean(values) if values else 0.0
    if len(values) < 2 or not mean:
        return 0.0
    scatter = stdev(values) / mean / math.sqrt(len(values))
    came = sum(row.get(_COUNTS.get(column[:2], column), 0.0) for row in rows) * _length_s(seen)
    few = 1 / math.sqrt(came) if column.startswith(tuple(_COUNTS)) and came else 0.0
    return min(SCATTER_MAX, max(scatter, few))


def _unseen(normal: float, seen: Look) -> float:
    """Return a rate of what did not come once: exponential, 3 / T at its 95th percentile."""
    return -math.log(1 - _NORMAL.cdf(normal)) / (len(seen.used) * _length_s(seen))


def _length_s(seen: Look) -> float:
    """Return the length of an interval, seconds."""
    lengths = [one.length_s for one in seen.used if one.length_s]
    return median(lengths) if lengths else 1.0
