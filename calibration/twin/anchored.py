"""Answers tied to the recording: what changes is simulated, what it changes from is recorded.

Models: the administrator's "half as much again as today": a twin that shows 20 % too much today
shows 20 % too much tomorrow.
Linux counterpart: none.
Invariants: a figure that was recorded and simulated is the recorded one times the simulated change,
member by member with the same seeds; of the load average, today's is who else is there and who of
the twin's own tasks, as many as CPU time and queues tell, and what changes is added; shares stay
below 100 %; a figure that was not recorded, or that today's run has nothing of, is the run's own,
whose change is trusted no further than that of a recorded one.
Intervals hold the members, the chance of the recording, how far a change is trusted, which is
nothing for no change, how much of its CPUs the host may give to others then, and where other files
lie on an arm's disk.
Left out: that chances of several figures go together.

With r recorded and s today, s' then, the answer is r s'/s. Of the load average it is who
else was there, and the twin's own tasks then (load_average.py). Of util, which ends at 100 %,
it is so many times as much in flight: util = 1 - exp(-a). By hand: 60 % are a = 0.92; where a twin
goes from 66 % to 82 %, a grows by 1.59, to 1.46, which is 77 %. Programs that always wait leave a
device idle for their own CPU time alone, and its busy time changes as the twin's does: from 99.9 %
to 98.4 % there, from 97.7 % to 96.2 here. What is trusted of a change is declared for twice the
load or half of it (CHANGE), and grows with the logarithm of the multiple: four times the load is
trusted to twice as little. What comes seldom is known to the root of how often it came: 6 reads in
a recording are 6 +- 2.4. Of what did not come once in T seconds, 3 / T a second may come (exp(-3) =
0.05).

Where an interval is wide, one of three parts makes it, each a standard deviation of the logarithm:
 - recording: the intervals of the recording scatter, or parts of 15 s do, of which each is a mean
   (Law, Simulation Modeling and Analysis, 2015, section 9.5: batch means), for intervals side by
   side are alike; few requests came; the host gave now more of its CPUs to others and now less
   (look/steal.py);
 - twin: members of the fit change differently, as the recording does not tell their parameters, or
   as each is a run of some seconds only;
 - change: what is trusted of a change (CHANGE); of an arm's time, what other places may make of it
   (PLACE), if that is more: it is one of the reasons for which a change is not trusted.
By hand: 0.05, 0.12 and 0.15 together are 0.20: an interval from 1 / 1.39 to 1.39 times the median.
An arm's time goes with where files lie, and other programs' files lie elsewhere. Assumed: to those
of one program it travels for any time from that from track to track to the average, 1 to 8.5 ms at
7200 rpm, 4.8 +- 2.2 ms. With half a turn, 4.2 ms, its requests take 9 ms +- 24 %. The mean of N
programs was recorded. Of k N a share (k - 1) / k is new, whose mean differs from today's by 0.24
sqrt(1 / N + 1 / ((k - 1) N)): so the mean of all is known to 0.24 sqrt((1 - 1 / k) / N). Of fewer,
k below 1, some of the N are left, whose mean is known to 0.24 sqrt((1 / k - 1) / N). By hand, N =
4: of twice as many to 8 %, of four times as many to 10 %, of half to 12 %. Of programs that always
wait it is the rates that go with it, of a stream the time that the device is busy.
By hand: of two minutes the writes of the first took 0.07 ms, those of the second 0.21. The seconds
say 0.14 to 0.5 / sqrt(120) = 5 %, eight parts to 0.53 / sqrt(8) = 19 %.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import NormalDist, fmean, median, pstdev, stdev
from typing import Final

import numpy as np

from calibration.fit.space import generator
from calibration.look import Look, steady
from calibration.look.devices import queues_of
from calibration.look.intervals import COUNTED, RESPONSES, mean_row, parts_of
from calibration.look.steal import Stretch, stretch_of
from calibration.twin.answers import (
    ASLEEP,
    CPU_BUSY,
    DONE,
    IN_IO,
    LOAD_MEAN,
    RUNNING,
    WIDTHS,
    Answer,
    Answers,
    Widths,
    answers_of,
    devices_of,
    is_replaced,
    queue_in,
    tasks_counted,
    waited_for,
)
from calibration.twin.draft import Draft
from calibration.twin.load_average import (
    TRUSTED,
    Exactly,
    error_of,
    exactly_known,
    known_better,
    recorded_tasks,
    share_seen,
)
from calibration.twin.questions import Question
from sim.scenario.fitted import Fit
from sim.study.laboratory import Laboratory
from sim.study.trial import Figures

DRAWS: Final = 200  # of which the 5th and 95th percentile are known to 3 % of the width
QUEUE: Final = "aqu_sz"
# Column -> standard deviation of the logarithm of what changes at twice the load. Assumed: about
# what the column is trusted to in a fit (calibration/twin/columns.py); half of that or less for the
# load average and util, of which what is wrong today (who else is there, what overlaps) stays so.
CHANGE: Final[Mapping[str, float]] = {
    "r_per_s": 0.05,
    "w_per_s": 0.12,
    "f_per_s": 0.15,
    "r_await_ms": 0.10,
    "w_await_ms": 0.15,
    QUEUE: 0.12,
    "util_pct": 0.03,
    LOAD_MEAN: 0.08,
}
CHANGE_OTHERS: Final = 0.1
PLACE: Final = 0.24  # standard deviation of an arm's time with the files of one program
PROGRAMS: Final = 4  # today; assumed
FULLEST: Final = 0.9999  # of the time: the hundredths that are printed
LOAD_SHOWN: Final = 0.1  # tasks: of fewer no width is told
PARTS_MIN: Final = 6  # of a recording: the scatter of fewer is chance
SCATTER_MAX: Final = 1.0  # of a logarithm: beyond, a mean says its order of magnitude
_COUNTS: Final[Mapping[str, str]] = {"r_": "r_per_s", "w_": "w_per_s", "f_": "f_per_s"}
_RATES: Final = (".r_per_s", ".w_per_s", ".f_per_s")
# What goes with an arm's time, of requests that come by themselves and of programs that wait.
_OF_STREAMS: Final = (*RESPONSES, QUEUE, "util_pct")
_OF_PROGRAMS: Final = (*RESPONSES, "r_per_s", "w_per_s", "f_per_s")
_NORMAL: Final = NormalDist()


def ask(
    questions: Sequence[Question],
    draft: Draft,
    seen: Look,
    fit: Fit,
    scenario: str,
    laboratory: Laboratory,
    *,
    members: int,
    seed: int,
) -> Answers:
    """Ask a draft's twin, in all the ways that its recording leaves open; tie what it answers."""
    simulated = answers_of(
        questions,
        fit,
        scenario,
        laboratory,
        members=min(members, len(fit.members)),
        seed=seed,
        run=draft.asked_run,
        left_open=draft.left_open,
    )
    closed = [one.name for one in draft.loads if one.is_closed]
    return anchored(simulated, seen, seed, closed=closed)


def anchored(answers: Answers, seen: Look, seed: int, *, closed: Collection[str] = ()) -> Answers:
    """Return the answers tied to a recording.

    `closed` are the devices for which programs always wait, whose number is known.
    """
    today, seen = answers.today, steady(seen)
    known = exactly_known(seen, closed)
    stretch = stretch_of(seen.used)
    explained = _explained(stretch) if known.queues else set()
    # The same of all answers.
    sampling = cache(partial(sampling_of, seen=seen, explained=explained))

    def tied(one: Answer) -> Answer:
        return _tied(one, today, seen, known, stretch, sampling, seed)

    return replace(answers, today=tied(today), asked=[tied(one) for one in answers.asked])


def recorded_figures(seen: Look) -> Figures:
    """Return what was recorded under the names that answers have.

    What vmstat tells of a load average is only a part of it, and is no figure here.
    """
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


@dataclass(frozen=True, kw_only=True)
class Beside:
    """How much longer work takes then, in each draw, for what the host gives to others.

    `powers` says of a figure with which power of it it goes; one that lacks does not. In the
    median it is as it was.
    """

    stretches: Sequence[float]
    powers: Mapping[str, float]

    def times(self, name: str) -> list[float]:
        """Return how many times as much a figure is in each draw: once in the median."""
        found = [one ** self.powers.get(name, 0.0) for one in self.stretches]
        usual = median(found)
        return [one / usual for one in found]


def _beside(
    answer: Answer,
    seen: Look,
    known: Exactly,
    found: Stretch | None,
    chance: np.random.Generator,
) -> Beside:
    """Return what the host gives to others then: as in any part of the recording (look/steal.py).

    Programs that always wait are as many then, and ask for less: they are left out.
    """
    if answer.question is None or found is None or not known.queues:
        return Beside(stretches=[1.0] * DRAWS, powers={})
    parts = [found.parts[i % len(found.parts)] for i in chance.permutation(DRAWS)]
    powers = {CPU_BUSY: 1.0, RUNNING: 1.0}
    queues = {} if is_replaced(answer.question) else dict(known.queues)
    for one in (one for one in seen.devices if one.name in queues):
        each = {x: one.row.get(x, 0.0) * one.row.get(rate, 0.0) for x, rate in RESPONSES.items()}
        own = {x: found.powers.get((one.name, x), 0.0) for x in RESPONSES}
        power = sum(own[x] * each[x] for x in RESPONSES) / (sum(each.values()) or 1.0)
        powers |= {f"disk.{one.name}.{x}": own[x] for x in RESPONSES}
        powers |= {f"disk.{one.name}.{x}": power for x in (QUEUE, "util_pct")}
    asleep = sum(powers[f"disk.{name}.{QUEUE}"] * queue for name, queue in queues.items())
    powers[ASLEEP] = asleep / (sum(queues.values()) or 1.0)
    return Beside(stretches=parts, powers=powers)


def _tied(
    answer: Answer,
    today: Answer,
    seen: Look,
    known: Exactly,
    stretch: Stretch | None,
    sampling: Callable[[str], float],
    seed: int,
) -> Answer:
    before = answer.before or today.runs
    recorded = recorded_figures(seen)
    chance = generator(seed, "twin.anchored")
    beside = _beside(answer, seen, known, stretch, chance)
    names = dict.fromkeys(name for one in answer.runs for name in one)
    drawn: list[dict[str, float]] = [{} for _ in range(DRAWS)]
    widths = {}
    for name in names:
        if name in (DONE, RUNNING, ASLEEP, IN_IO) or _is_of_another(name, answer):
            continue
        if name == LOAD_MEAN and seen.system.tasks is not None:
            queues = _sampling_of_queues(seen, sampling)
            values, widths[name] = _load(answer, before, seen, known, beside, queues, chance)
        else:
            normal = _normals(chance)
            longer = beside.times(name)
            spreads = _spreads(name, answer.question, sampling, seen, known)
            values, widths[name] = _figure(
                name, answer, before, recorded, spreads, seen, normal, longer, known
            )
        for run, value in zip(drawn, values, strict=True):
            run[name] = value
    waits = [answer.waits[i % len(answer.waits)] for i in range(DRAWS)] if answer.waits else ()
    return replace(answer, runs=drawn, waits=waits, widths=widths)


def _is_of_another(name: str, answer: Answer) -> bool:
    """Return whether a figure is how today's device answers what the twin does not ask of another.

    Of a few reads that are no class the recorded time says nothing of an SSD in its place.
    """
    if answer.question is None or not name.endswith(tuple(RESPONSES)):
        return False
    return is_replaced(answer.question) and not any(one.get(name) for one in answer.runs)


def _figure(
    name: str,
    answer: Answer,
    before: Sequence[Figures],
    recorded: Mapping[str, float],
    spreads: tuple[float, float],
    seen: Look,
    normal: Sequence[float],
    longer: Sequence[float],
    known: Exactly,
) -> tuple[list[float], Widths]:
    """Return the draws of a figure: what was recorded, changed as each member changes.

    `spreads` are those of the recording and of a change, `longer` is how much longer work takes in
    each draw for what the host gives to others.
    """
    sampling, trust = spreads
    spread = math.hypot(sampling, trust)
    values, changes = [], []
    for i in range(DRAWS):
        then, now = (one[i % len(one)].get(name, 0.0) for one in (answer.runs, before))
        value = _changed(name, recorded, then, now, known)
        if value > 0:
            changes.append(math.log(value))
        if name.endswith("util_pct"):
            value = _share(_flight(value) * longer[i])
        else:
            value *= longer[i]
        value *= math.exp(spread * normal[i])
        if not value and name in recorded and name.endswith(_RATES):
            value = _unseen(normal[i], seen)
        values.append(min(value, 100.0) if name.endswith("_pct") else value)
    of_twin = pstdev(changes) if changes else 0.0
    of_recording = math.hypot(sampling, pstdev([math.log(one) for one in longer]))
    return values, Widths(recording=of_recording, twin=of_twin, change=trust)


def _changed(
    name: str, recorded: Mapping[str, float], then: float, now: float, known: Exactly
) -> float:
    """Return a figure of a member: what was recorded, changed as its runs say."""
    if name not in recorded:
        return then
    if now <= 0:
        return recorded[name]
    if name.endswith("util_pct") and _device(name) not in known.closed:
        return _share(_flight(recorded[name]) * _flight(then) / _flight(now))
    return recorded[name] * then / now


def _flight(util_pct: float) -> float:
    """Return how much must be in flight for a device to be so busy: -ln(1 - util)."""
    return -math.log1p(-min(util_pct / 100, FULLEST))


def _share(flight: float) -> float:
    """Return the share of the time that a device is busy with so much in flight, %."""
    return -100 * math.expm1(-flight)


def _load(
    answer: Answer,
    before: Sequence[Figures],
    seen: Look,
    known: Exactly,
    beside: Beside,
    queues: float,
    chance: np.random.Generator,
) -> tuple[list[float], Widths]:
    """Return the draws of the load average: who else is there, and the twin's own tasks then.

    `queues` is how surely the mean of all queues is known.
    """
    told = seen.system.tasks
    assert told is not None
    error = error_of(told)
    counted, luck = _normals(chance), _normals(chance)
    who_sleeps, trusted = ASLEEP, [0.0] * DRAWS
    if told.in_io_alone:
        who_sleeps, trusted = IN_IO, [TRUSTED * one for one in _normals(chance)]
    owned = fmean(waited_for(one, who_sleeps) for one in before)
    part = None if share_seen(seen, owned) == 1 else recorded_tasks(seen)  # who is seen, or all are
    powers = [1.0] * DRAWS if part is None else [_NORMAL.cdf(one) for one in _normals(chance)]
    runs_longer, waits_longer = beside.times(RUNNING), beside.times(ASLEEP)
    others, own, added, waiting = [], [], [], []
    for i in range(DRAWS):
        then, now = (one[i % len(one)] for one in (answer.runs, before))
        then, now = (_known(one, now, known) for one in (then, now))
        share = 1.0 if part is None else min(1.0, part.asleep / (now[who_sleeps] or 1.0))
        as_counted, today = tasks_counted(now, share, who_sleeps), tasks_counted(now, share)
        found = max(0.0, told.mean + error * counted[i])
        others.append(max(0.0, found - as_counted))
        there = known_better(found, as_counted, told) if found < as_counted else as_counted
        there += (today - as_counted) * (1 + trusted[i])  # who wait for a commit: the twin's alone
        waiting.append(share * _grown(then, now, powers[i]) * waits_longer[i])
        more = then[RUNNING] * runs_longer[i] + waiting[-1] - today
        # What goes is a part of those who are there, also if the twin has more of them today.
        added.append(there * more / today if more < 0 else more)
        own.append(there + added[-1])
    if answer.question is None:
        values = [a + b for a, b in zip(others, own, strict=True)]
        shown = max(median(values), error, LOAD_SHOWN)
        return values, Widths(recording=pstdev(values) / shown, twin=0.0, change=0.0)
    # What comes then has the chance that the queues have in as long a time.
    usual = median(others) + median(own)
    scatter = queues * median(waiting)
    # A relative error of the twin's own tasks then; of a change that is smaller, of that. But who
    # sleeps is as many as the queue says, and no better known than that.
    off = math.expm1(_trust(LOAD_MEAN, answer.question)) * min(median(own), abs(median(added)))
    if known.queues:
        off = max(off, math.expm1(_trust_of_queues(answer.question, seen, known)) * median(waiting))
    values = [
        max(0.0, a + b + math.hypot(scatter, off) * one)
        for a, b, one in zip(others, own, luck, strict=True)
    ]
    parts = (math.hypot(scatter, pstdev(others)), pstdev(own), off)
    shown = max(usual, error, LOAD_SHOWN)
    return values, Widths(**dict(zip(WIDTHS, (one / shown for one in parts), strict=True)))


def _known(run: Figures, now: Figures, known: Exactly) -> Figures:
    """Return a run's tasks, tied to what counters told of today's: CPU time, and the queues."""
    there = [name for name in devices_of(now) if name in known.queues]
    of_cpus = _times(known.running, now.get(RUNNING, 0.0))
    of_queues = _times(
        sum(known.queues[name] for name in there), sum(queue_in(now, name) for name in there)
    )
    asleep = {name: of_queues * run.get(name, 0.0) for name in (ASLEEP, IN_IO)}
    return {RUNNING: of_cpus * run.get(RUNNING, 0.0)} | asleep


def _times(recorded: float | None, simulated: float) -> float:
    """Return how many times as much was recorded; once, if either is nothing."""
    return recorded / simulated if recorded and simulated else 1.0


def _grown(then: Figures, now: Figures, power: float) -> float:
    """Return who sleeps then, if they grow as a power of how the twin's do."""
    return float(now[ASLEEP] ** (1 - power) * then[ASLEEP] ** power)


def _normals(chance: np.random.Generator) -> list[float]:
    """Return standard normal numbers, one of each share of the distribution, in any order."""
    return [_NORMAL.inv_cdf((i + 0.5) / DRAWS) for i in chance.permutation(DRAWS)]


def _spreads(
    name: str,
    question: Question | None,
    sampling: Callable[[str], float],
    seen: Look,
    known: Exactly,
) -> tuple[float, float]:
    """Return the standard deviations of a figure's logarithm: of the recording, of a change."""
    if question is None:
        return sampling(name), 0.0
    # What comes then has as much chance as what was recorded.
    return math.sqrt(2) * sampling(name), _trusted(name, question, seen, known)


def _trusted(name: str, question: Question, seen: Look, known: Exactly) -> float:
    """Return how far a change is trusted; an arm's time may be that of other places: see above."""
    own = _trust(name, question)
    device, column = _device(name), name.rpartition(".")[2]
    moved = _OF_PROGRAMS if device in known.closed else _OF_STREAMS
    is_arm = any(one.name == device and one.serves_singly for one in seen.devices)
    if not is_arm or column not in moved or is_replaced(question):
        return own
    return max(own, _places(question.load))


def _device(name: str) -> str:
    """Return the device of a figure; nothing, if it is of none."""
    kind, _dot, rest = name.partition(".")
    return rest.rpartition(".")[0] if kind == "disk" else ""


def _places(times: float) -> float:
    """Return how far an arm's time at so many times the load is known, relative; see above."""
    share = 1 - 1 / times if times > 1 else 1 / times - 1
    return PLACE * math.sqrt(share / PROGRAMS)


def _trust_of_queues(question: Question, seen: Look, known: Exactly) -> float:
    """Return how far the change of all queues together is trusted: each by its share."""
    total = sum(known.queues.values()) or 1.0
    trusted = {x: _trusted(f"disk.{x}.{QUEUE}", question, seen, known) for x in known.queues}
    return sum(trusted[name] * queue / total for name, queue in known.queues.items())


def _trust(name: str, question: Question) -> float:
    """Return how far a change is trusted: the standard deviation of its logarithm."""
    doublings = abs(math.log2(question.load)) if question.load != 1 else 1.0
    return CHANGE.get(name.rpartition(".")[2], CHANGE_OTHERS) * doublings


def _sampling_of_queues(seen: Look, sampling: Callable[[str], float]) -> float:
    """Return how surely the mean of all queues is known, relative: now's and then's together."""
    queues = queues_of(seen.devices)
    total = sum(queues.values())
    if not total:
        return 0.0
    shares = {name: queue / total for name, queue in queues.items()}
    parts = (sampling(f"disk.{name}.{QUEUE}") * one for name, one in shares.items())
    return math.hypot(*parts) * math.sqrt(2)


def _explained(stretch: Stretch | None) -> set[str]:
    """Return the figures whose parts differ as the host gives its CPUs to others.

    Of another time that is drawn (_beside), today it is as it was recorded.
    """
    if stretch is None:
        return set()
    return {
        f"disk.{device}.{one}"
        for device, column in stretch.powers
        for one in (column, QUEUE, "util_pct")
    }


def sampling_of(name: str, seen: Look, explained: Collection[str] = ()) -> float:
    """Return how surely a mean was recorded, relative: intervals or parts scatter, or few came.

    Parts that differ for a known reason (`explained`) are not taken for chance.
    """
    kind, _dot, rest = name.partition(".")
    if kind != "disk":
        return 0.0
    device, _dot, column = rest.rpartition(".")
    rows = [one.devices[device] for one in seen.used if device in one.devices]
    values = [row[column] for row in rows if column in row]
    mean = fmean(values) if values else 0.0
    if len(values) < 2 or not mean:
        return 0.0
    scatter = relative_error(values)
    if name not in explained:
        parts = parts_of([one for one in seen.used if device in one.devices])
        means = [mean_row(one.devices[device] for one in part).get(column, 0.0) for part in parts]
        if column in RESPONSES:
            means = [one for one in means if one]  # of parts in which something was answered
        scatter = max(scatter, relative_error(means) if len(means) >= PARTS_MIN else 0.0)
    came = sum(row.get(_COUNTS.get(column[:2], column), 0.0) for row in rows) * _length_s(seen)
    few = 1 / math.sqrt(came) if column.startswith(tuple(_COUNTS)) and came else 0.0
    return min(SCATTER_MAX, max(scatter, few))


def relative_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean, relative; 0 of less than two, or of nothing."""
    mean = fmean(values) if len(values) > 1 else 0.0
    return stdev(values) / mean / math.sqrt(len(values)) if mean else 0.0


def _unseen(normal: float, seen: Look) -> float:
    """Return a rate of what did not come once: exponential, 3 / T at its 95th percentile."""
    return -math.log(1 - _NORMAL.cdf(normal)) / (len(seen.used) * _length_s(seen))


def _length_s(seen: Look) -> float:
    """Return the length of an interval, seconds."""
    lengths = [one.length_s for one in seen.used if one.length_s]
    return median(lengths) if lengths else 1.0
