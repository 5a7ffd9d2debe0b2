"""Answers of a twin: for every question a sentence, and the figures that it is made of.

Models: what an administrator repeats in the meeting.
Linux counterpart: none.
Invariants: all questions meet the same members of the ensemble with the same seeds, so that a
change is one member by member. Figures here are the twin's own; anchored.py ties them to what was
recorded. An interval holds 90 % of the members, both what the recording leaves open and the chance
of a run. The sentence names the device that is busiest then, how long the requests take that wait
there longest in all, and whether the load is borne. "It holds" is not said where the CPUs, or a
device that serves one request at a time, may be full, by the twin or by the utilisation law, nor
where only %util could tell. `load_mean` is where the load average settles: the mean number of
tasks that run or sleep uninterruptibly (load_average.py).
Left out: how many times today's load a device bears that serves many requests at a time: %util says
how often it is not idle, not how full it is; the area of a disk with a profile, whose files stay as
large as they are.

Twice as many programs may have twice as much on a disk, and its arm travels over twice the area; or
twice as many requests are for what is there. A recording does not tell, so each member has its own
power of the load, from 0 to 1. (Files that come and go take what others left free, and no more.)
Half a turn of a request's time stays, and the travel goes with the root of the distance, as that of
short seeks does: the arm speeds up and slows down (C. Ruemmler and J. Wilkes, An Introduction to
Disk Drive Modeling, IEEE Computer 27(3), 1994). By hand: of 8.5 ms
half a turn is 3.3; over twice the area the other 5.2 are 7.3 ms, over half of it 3.7. So a request
takes 8.5 to 10.6 ms at twice the load, 7.0 to 8.5 at half of it.
"""

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from calibration.look import Look, steady
from calibration.look.bottleneck import FULL
from calibration.look.devices import VIRTUAL
from calibration.look.intervals import PART_S, queue_of
from calibration.look.steal import stretch_of
from calibration.twin.columns import figures_of
from calibration.twin.commits import CacheSign, cache_sign
from calibration.twin.demands import WRITE
from calibration.twin.draft import EXPIRE_S, TURN_MIDDLE_NS, Draft, LeftOpen
from calibration.twin.load_average import tasks_of_run
from calibration.twin.questions import MACHINE_CPUS, Question, multiple
from calibration.twin.what_ifs import DEVICES, NO_FSYNC, OF_CPUS, device_of
from sim.observation import Observation, percentile, rate_within
from sim.report.tables import Column, Table, figure
from sim.scenario.fitted import Fit
from sim.scenario.load import JOINED
from sim.study.laboratory import Laboratory
from sim.study.summary import Summary, summarise
from sim.study.trial import Figures, Trial
from sim.units import parse_quantity, two_digits
from sim.user.transactions import Transactions

MEMBERS: Final = 20  # whose 5th and 95th percentile lie inside what came
LOAD_MEAN: Final = "load_mean"
RUNNING: Final = "tasks.running"  # parts of load_mean, of which the anchored one is made
ASLEEP: Final = "tasks.uninterruptible"
IN_IO: Final = "tasks.in_io"  # those of them whom procs_blocked has
DONE: Final = "transactions.per_s"  # of all classes: what is asked for, and what is served of it
CPU_BUSY: Final = "cpu.busy_pct"
SHOWN_MIN: Final = 0.1  # of a column: less is a journal's occasional write
MISSED_SHOWN: Final = 1.1  # times what readings found: from there on a sentence says it
AQU: Final = ".aqu_sz"
UTIL: Final = ".util_pct"
CPUS: Final = "the CPUs"
HDD: Final = "hdd"  # the device that serves one request at a time
SOON: Final = 1.05  # times today's load: what a recording does not tell from today's
HOLDS: Final = "It holds."
WRITTEN_LATER: Final = (
    "What nobody waits for is written half a minute later, in fewer and larger requests: these"
    " figures are of the time before, and have none of it."
)
GOLDEN: Final = (5**0.5 - 1) / 2
SILVER: Final = 2**0.5 - 1
WIDE: Final = 2.0  # the ends' ratio of an interval
DEVIATION_MAX: Final = math.log(WIDE) / 2 / 1.645  # of a logarithm, if 90 % are within that
SELDOM: Final = 0.05  # of the requests, as columns of the fit have it (columns.py)
LONGER_MIN: Final = 1.25  # times as long a recording; less is not worth a word
LONGEST_S: Final = 7200.0  # of a recording that is advised
BORNE: Final = 0.95  # of what so many times the load asks for
UNITS: Final[Mapping[str, str]] = {
    "r_per_s": "/s",
    "w_per_s": "/s",
    "f_per_s": "/s",
    "read_bytes_per_s": "B/s",
    "write_bytes_per_s": "B/s",
    "rareq_bytes": "bytes",
    "wareq_bytes": "bytes",
    "r_await_ms": "ms",
    "w_await_ms": "ms",
    "aqu_sz": "requests",
    "util_pct": "%",
}


def tasks_counted(figures: Figures, share: float, asleep: str = ASLEEP) -> float:
    """Return a run's tasks that are counted: those who run, and a share of those who sleep.

    A load average counts all who are ASLEEP, vmstat those who are IN_IO.
    """
    return figures.get(RUNNING, 0.0) + share * figures.get(asleep, 0.0)


def devices_of(figures: Figures) -> list[str]:
    """Return the disks of a run."""
    return [name.removeprefix("disk.").removesuffix(AQU) for name in figures if name.endswith(AQU)]


def queue_in(figures: Figures, device: str) -> float:
    """Return the requests in the queue and in service of a run's disk, on average."""
    return queue_of(row_in(figures, device))


def row_in(figures: Figures, device: str) -> dict[str, float]:
    """Return the figures of a disk under the names of iostat's columns."""
    start = f"disk.{device}."
    return {k.removeprefix(start): v for k, v in figures.items() if k.startswith(start)}


def waited_for(figures: Figures, asleep: str = ASLEEP) -> float:
    """Return the tasks asleep for each request of a run, 1 at most: for a flusher's nobody is."""
    queue = sum(queue_in(figures, device) for device in devices_of(figures))
    return min(1.0, figures.get(asleep, 0.0) / queue) if queue else 1.0


def server_figures(seen: Observation, columns: Container[str] = UNITS) -> Figures:
    """Return the figures of a run from the end of its warm-up: disks, CPUs, load average.

    `columns` are those of iostat that are told of a disk.
    """
    found = {}
    for name, value in figures_of(seen.result).items():
        device, column = name.rsplit(" ", 1)
        if device == "cpu":
            found[f"cpu.{column}"] = value
        elif column in columns:
            found[f"disk.{device}.{column}"] = value
    found[CPU_BUSY] = found["cpu.user_pct"] + found["cpu.nice_pct"] + found["cpu.system_pct"]
    tasks = tasks_of_run(seen)
    done = rate_within(Transactions.marks[0])(seen) or 0.0
    return found | {
        DONE: done,
        RUNNING: tasks.running,
        ASLEEP: tasks.asleep,
        IN_IO: tasks.in_io,
        LOAD_MEAN: tasks.active,
    }


def unit_of(name: str) -> str:
    """Return the unit of a figure."""
    if name in (LOAD_MEAN, RUNNING, ASLEEP, IN_IO):
        return "tasks"
    return UNITS.get(name.rsplit(".", 1)[-1], "%")


@dataclass(frozen=True, kw_only=True)
class Widths:
    """Standard deviations of a figure's logarithm: what makes its interval wide (anchored.py)."""

    recording: float
    twin: float
    change: float

    @property
    def most(self) -> str:
        """Return the name of the largest; nothing if all are nothing."""
        name = max(WIDTHS, key=lambda one: float(getattr(self, one)))
        return name if getattr(self, name) else ""


WIDTHS: Final = ("recording", "twin", "change")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A question (None: as the server is today) and the figures of every member, in their order.

    `before` has the same members today, each in the same way; empty: as the answer of today has
    them. `waits` says of each run whether its load is programs that wait, where others are requests
    that come by themselves; empty: all are alike. `served` says how many times today's transactions
    each run gets done. `widths` says of anchored figures what makes their intervals.
    """

    question: Question | None
    runs: Sequence[Figures]
    before: Sequence[Figures] = ()
    waits: Sequence[bool] = ()
    served: Sequence[float] = ()
    widths: Mapping[str, Widths] = field(default_factory=dict)

    def summary(self, name: str) -> Summary:
        """Return median and interval of a figure."""
        return summarise([one.get(name, 0.0) for one in self.runs], unit_of(name))

    @property
    def metrics(self) -> dict[str, Summary]:
        """Return all figures."""
        names = dict.fromkeys(name for one in self.runs for name in one)
        return {name: self.summary(name) for name in names}

    @property
    def busiest(self) -> str:
        """Return the device that is busiest."""
        utils = _utils(self)
        return max(utils, key=lambda name: utils[name].median)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a twin says: today, and an answer for every question."""

    today: Answer
    asked: Sequence[Answer]


def answers_of(
    questions: Sequence[Question],
    fit: Fit,
    scenario: str,
    laboratory: Laboratory,
    *,
    members: int,
    seed: int,
    left_open: LeftOpen,
    run: Sequence[str] = (),
) -> Answers:
    """Simulate the first members of the ensemble, today and in every question.

    The laboratory measures server_figures(). `run` are values that all have: how long.
    """
    variants: list[Question | None] = [None, *questions]
    waiting = [tuple(left_open.others) if one is None or one.load >= 1 else () for one in variants]

    def trials(asked: Question | None, way: tuple[str, ...]) -> list[Trial]:
        found = []
        for member in range(members):
            sets: tuple[str, ...] = (
                *_kept(left_open.kept, asked, member),
                *over_another_area(left_open.arms, asked, fit.member(member), member),
                *run,
            )
            if member % 2:
                sets = (*(way or _more_logs(left_open.logs, asked, fit.member(member))), *sets)
            if way and member % 4 == 3:
                sets = (*sets, *left_open.one_log)
            found.append(_trial(asked, fit, scenario, member, seed, sets))
        return found

    wanted = [
        (trials(asked, way), trials(None, way))
        for asked, way in zip(variants, waiting, strict=True)
    ]
    once = list(dict.fromkeys(trial for two in wanted for part in two for trial in part))
    laboratory.planned = len(once)
    figures = dict(zip(once, laboratory.figures(once), strict=True))
    found = []
    for asked, way, parts in zip(variants, waiting, wanted, strict=True):
        then, now = ([figures[trial] for trial in part] for part in parts)
        found.append(
            Answer(
                question=asked,
                runs=then,
                before=now,
                waits=[m % 2 == 1 for m in range(members)] if way else (),
                served=[
                    a.get(DONE, 0.0) / (b.get(DONE, 0.0) or 1.0)
                    for a, b in zip(then, now, strict=True)
                ],
            )
        )
    return Answers(today=found[0], asked=found[1:])


def power_of(member: int, ratio: float = GOLDEN) -> float:
    """Return the power of the load with which something of a member grows: from 0 to 1.

    Multiples of the golden ratio, or of another one, so that any few members have some of the low
    and of the high; those of two ratios do not go together.
    """
    return (0.5 + member * ratio) % 1


def _kept(names: Sequence[str], question: Question | None, member: int) -> tuple[str, ...]:
    """Return the values that let processes grow less than the load does."""
    if question is None or question.load == 1:
        return ()
    scale = question.load ** power_of(member)
    return tuple(f"process.{name}.load_scale={scale:.4g}" for name in names)


def is_replaced(question: Question) -> bool:
    """Return whether the device is another one then."""
    return any(one in DEVICES for one in question.what_ifs)


def over_another_area(
    arms: Sequence[str], question: Question | None, values: Mapping[str, str], member: int
) -> tuple[str, ...]:
    """Return the times of a member's arms that travel over another area than today's; see above."""
    if question is None or question.load == 1 or is_replaced(question):
        return ()
    farther = math.sqrt(question.load ** power_of(member, SILVER))
    found = []
    for arm in arms:
        turn = values.get(f"{arm}.turn")
        half_ns = (parse_quantity(turn, "time_ns") if turn else TURN_MIDDLE_NS) / 2
        for path in (f"{arm}.{key}" for key in ("read", "write") if f"{arm}.{key}" in values):
            time_ns = parse_quantity(values[path], "time_ns")
            travel_ns = max(0.0, time_ns - half_ns)
            found.append(f"{path}={round(time_ns - travel_ns + farther * travel_ns)} ns")
    return tuple(found)


def _more_logs(
    names: Sequence[str], question: Question | None, values: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the values that give processes so many times their files as the load is, to the next.

    Of half a file more or less is taken the one more; there is one at least.
    """
    if question is None or question.load == 1:
        return ()
    paths = [f"process.{name}.write_files" for name in names]
    files = {path: values[path] for path in paths if path in values}
    return tuple(
        f"{path}={max(1, int(int(count) * question.load + 0.5))}" for path, count in files.items()
    )


def _trial(
    question: Question | None,
    fit: Fit,
    scenario: str,
    member: int,
    seed: int,
    others: tuple[str, ...],
) -> Trial:
    values = tuple(fit.member(member).items())
    if question is None:
        return Trial(scenario, None, values, seed + member, others)
    sets = (*question.sets, *others)
    return Trial(scenario, question.what_if, values, seed + member, sets)


def sentence(answer: Answer, today: Answer, seen: Look, draft: Draft) -> str:
    """Return the answer as one says it."""
    assert answer.question is not None
    question = answer.question
    device = answer.busiest
    util = f"disk.{device}.util_pct"
    said = [
        *_cpus(answer, today, seen),
        f"{device} is {_with(answer, util, ' % busy')} instead of {_plain(today, util, ' %')}",
        *_response(answer, today, device),
        _load(answer, today, seen),
    ]
    words = question.words
    if words[1:2] in {" ", "n"}:  # an article within a sentence
        words = words[0].lower() + words[1:]
    lead = f"With {words}," if question.load != 1 else f"{question.words}:"
    text = f"{lead} {', '.join(said[:-1])}, and {said[-1]}."
    if question.load > 1:
        text += " " + " ".join(_borne(answer, today, device, seen, draft))
    if question.load != 1:
        text += f" {load_words(draft, question.load)}"
    if NO_FSYNC in question.what_ifs and draft.settle_s < EXPIRE_S:
        text += f" {WRITTEN_LATER}"
    return text


def _cpus(answer: Answer, today: Answer, seen: Look) -> Iterator[str]:
    """Say of other CPUs how busy they are."""
    assert answer.question is not None
    parts = answer.question.what_ifs
    is_asked = any(one.startswith(f"{MACHINE_CPUS}=") for one in answer.question.sets)
    if seen.cpu.busy is not None and (is_asked or any(one in OF_CPUS for one in parts)):
        then, now = _with(answer, CPU_BUSY, " % busy"), _plain(today, CPU_BUSY, " %")
        yield f"{CPUS} are {then} instead of {now}"


def _load(answer: Answer, today: Answer, seen: Look) -> str:
    """Say where the load average settles, and that it is the twin's alone if none was recorded."""
    then, now = _with(answer, LOAD_MEAN), _plain(today, LOAD_MEAN)
    told = seen.system.tasks
    if told is None:
        return f"the twin's load average (none was recorded) settles at {then} instead of {now}"
    if told.in_io_alone:
        return (
            "the load average (none was recorded: vmstat's r and b, and who else waits in the twin)"
            f" settles at {then} instead of {now}"
        )
    said = f"the load average settles at {then} instead of {now}"
    if today.summary(LOAD_MEAN).median > MISSED_SHOWN * told.mean:
        said += f", where the readings found {two_digits(told.mean)}"
    return said


def _with(answer: Answer, name: str, unit: str = "") -> str:
    """Return a figure with its interval."""
    one = answer.summary(name)
    return f"{two_digits(one.median)}{unit} ({two_digits(one.lo)} .. {two_digits(one.hi)})"


def _plain(answer: Answer, name: str, unit: str = "") -> str:
    return f"{two_digits(answer.summary(name).median)}{unit}"


def _response(answer: Answer, today: Answer, device: str) -> Iterator[str]:
    """Say how long the requests take of which more are under way at a time."""
    directions = {"read": "r", "write": "w"}

    def under_way(word: str) -> float:
        rate, wait = (f"disk.{device}.{directions[word]}_{name}" for name in ("per_s", "await_ms"))
        return answer.summary(rate).median * answer.summary(wait).median

    word = max(directions, key=under_way)
    if under_way(word):
        name = f"disk.{device}.{directions[word]}_await_ms"
        yield f"a {word} takes {_with(answer, name, ' ms')} instead of {_plain(today, name, ' ms')}"


def _borne(answer: Answer, today: Answer, device: str, seen: Look, draft: Draft) -> Iterator[str]:
    """Say whether the load is served, and what fills up next.

    Programs that wait ask for less when they are served later. So that is no sign of too high a
    load where requests may come by themselves: then only runs of these are asked.
    """
    assert answer.question is not None
    question = answer.question
    times = question.load
    room = _room(answer, question, seen)
    served = _served(answer, today, draft, may_be_full=room != HOLDS)
    limits = sorted(limits_of(seen).items(), key=lambda pair: pair[1])
    is_same_server = question.what_if is None and JOINED not in question.name
    if not is_same_server or draft.closed:
        limits = []
    if draft.closed:
        yield (
            f"The programs wait for {device}: {multiple(times)} as many get"
            f" {two_digits(served)} times as much done."
        )
    elif served < BORNE * times:
        yield f"It does not hold: {two_digits(served)} times today's load is served."
    else:
        is_beyond = bool(limits) and times > limits[0][1]
        yield "All of it is served." if room == HOLDS and is_beyond else room
    if limits:
        name, most = limits[0]
        verb = "are" if name == CPUS else "is"
        subject = "The CPUs" if name == CPUS else name
        makes_room = name == CPUS and seen.cpu.shares_pct.get("nice_pct", 0.0) >= 1
        beside = ", if niced programs make room" if makes_room else ""
        if most < SOON:
            yield f"{subject} {verb} full today."
        elif times > most:
            yield f"{subject} {verb} full from {two_digits(most)} times today's load on{beside}."
        else:
            yield f"{subject} {verb} full first, at {two_digits(most)} times today's load{beside}."


def _served(answer: Answer, today: Answer, draft: Draft, *, may_be_full: bool) -> float:
    """Return how many times today's work is done.

    Of those who wait for the device their transactions tell: twice as many share commits, and are
    not twice the bytes. Of writes into the page cache only the bytes tell what a full device takes.
    While nothing is full all are taken, and fewer bytes are a checkpoint's, which may stay as large
    as today's.
    """
    ratios = list(answer.served)
    if may_be_full and any(one.kind == WRITE for load in draft.loads for one in load.classes):
        written = [_bytes(new) / max(_bytes(old), 1.0) for new, old in _pairs(answer, today)]
        ratios = [min(two) for two in zip(ratios, written, strict=False)]
    come = [one for one, waits in zip(ratios, answer.waits, strict=False) if not waits]
    return percentile(sorted(come or ratios), 0.5)


def _room(answer: Answer, question: Question, seen: Look) -> str:
    """Say of a load that is all served whether more would be: whether anything is full then.

    A device that serves several requests at a time may be busy all the time and have room.
    """
    full = 100 * FULL
    found = _busy(answer, question, seen)
    name = max(found, key=lambda one: found[one].median)
    verb, whose = ("are", "their") if name == CPUS else ("is", "its")
    if found[name].median >= full:
        told = f"{two_digits(found[name].median)} % busy"
        return f"All of it is served, but {name} {verb} at {whose} limit, {told}."
    if found[name].hi >= full:
        told = f"up to {two_digits(found[name].hi)} % busy"
        return f"All of it is served, but {name} may be at {whose} limit, {told}."
    beside = [one for one in _utils(answer) if one not in found and _utils(answer)[one].hi >= full]
    if beside:
        return (
            f"All of it is served; how much more {beside[0]} can do, its %util does not tell, for"
            " it serves requests side by side."
        )
    return HOLDS


def _busy(answer: Answer, question: Question, seen: Look) -> dict[str, Summary]:
    """Return how busy the CPUs are, and each device that then serves one request at a time, %."""
    # Each is tied to its recorded value alone: together they may come to more than there is.
    found = {CPUS: summarise([min(100.0, _taken(run)) for run in answer.runs], "%")}
    parts = question.what_ifs
    replaced = [device_of(DEVICES[part][0]) for part in parts if part in DEVICES]
    single = {one.name for one in seen.devices if one.serves_singly}
    for name, summary in _utils(answer).items():
        if replaced[-1] == HDD if replaced else name in single:
            found[name] = summary
    return found


def _taken(figures: Figures) -> float:
    """Return the share of the CPUs' time that work takes which makes no room for other, %.

    Of what the host gave to others meanwhile it has its part: a virtual CPU that waits for the
    host's runs nobody else.
    """
    own, niced = (
        sum(figures.get(f"cpu.{one}_pct", 0.0) for one in names)
        for names in (("user", "system"), ("nice",))
    )
    ran = own + niced
    return figures.get(CPU_BUSY, ran) * own / ran if ran else 0.0


def _utils(answer: Answer) -> dict[str, Summary]:
    """Return %util of each device."""
    names = [name for name in answer.runs[0] if name.endswith(UTIL)]
    return {name.removeprefix("disk.").removesuffix(UTIL): answer.summary(name) for name in names}


def _pairs(answer: Answer, today: Answer) -> Iterator[tuple[Figures, Figures]]:
    return zip(answer.runs, today.runs, strict=True)


def _bytes(run: Figures) -> float:
    return sum(value for name, value in run.items() if name.endswith("bytes_per_s"))


def load_words(draft: Draft, times: float) -> str:
    """Return what so many times the load means for this server, as a sentence."""
    closed = sum(
        one.customers or 0 for load in draft.loads for one in load.classes if one.customers
    )
    if closed:
        now = f"{closed} programs that always wait" if closed > 1 else "1 program that always waits"
        then = f"{max(1, closed * times):.3g}"
        more = f"{multiple(times)} the load is {then}, who queue"
        return f"Here the load is {now} for the device: {more}."
    as_many = f"{multiple(times)} as many"
    if draft.left_open.others and times > 1:
        as_programs = "programs wait for theirs"
    elif draft.left_open.logs:
        as_programs = "programs run, each with a log of its own"
    else:
        return f"{as_many.capitalize()} requests are asked for."
    return (
        f"Whether {as_many} requests are asked for, or {as_many} {as_programs}, the recording does"
        " not tell: the interval holds both."
    )


def steal_words(seen: Look) -> str:
    """Say that the answers have what the host gives to others; "" if they have nothing of it."""
    found = stretch_of(steady(seen).used)
    if found is None or len(found.parts) == 1:
        return ""
    return (
        " How much of its CPUs the host gives to others may change: the intervals are made of what"
        f" it was in each {PART_S:.0f} s of the recording."
    )


def width_words(answers: Answers, seen: Look) -> str:
    """Say how long to record for intervals that are wide for a short recording; "" if none are.

    A direction that hardly has a request is not asked about, nor what no recording would narrow.
    The recording's part of a width shrinks with the root of its length, if what happened in it goes
    on happening; the others stay. By hand: deviations of 0.40 by the recording and 0.15 by the rest
    are an interval of a factor of 4.1; for one of 2, 0.21, the first must be 0.15: 7.3 times as
    long.
    """
    recorded_s = sum(one.length_s or 0.0 for one in steady(seen).used)
    if not recorded_s or steal_words(seen):
        return ""
    longer: dict[str, float] = {}
    for title, name in _shown(answers, seen).items():
        if _is_seldom(name, answers.today):
            continue
        for one in answers.asked:
            width, ends = one.widths.get(name), one.summary(name)
            if width is None or width.most != "recording" or ends.hi <= WIDE * ends.lo:
                continue
            room = DEVIATION_MAX**2 - width.twin**2 - width.change**2
            times = width.recording**2 / room if room > 0 else math.inf
            if times > LONGER_MIN and times * recorded_s <= LONGEST_S:
                longer[title] = max(times, longer.get(title, 0.0))
    if not longer:
        return ""
    minutes = math.ceil(max(longer.values()) * recorded_s / 60)
    return (
        f" Some intervals are wider than a factor of {WIDE:g} because the recording is short"
        f" ({', '.join(longer)}): about {minutes} {'minute' if minutes == 1 else 'minutes'} would"
        f" do, instead of {two_digits(recorded_s / 60)}."
    )


def _is_seldom(name: str, today: Answer) -> bool:
    """Return whether a figure is of reads, or of writes, that hardly come."""
    device, _dot, column = name.rpartition(".")
    if column[:2] not in {"r_", "w_"}:
        return False
    rates = {x: today.summary(f"{device}.{x}_per_s").median for x in "rw"}
    return rates[column[0]] < SELDOM * sum(rates.values())


def outside_limits(asked: Iterable[Answer], draft: Draft) -> str:
    """Say of virtual disks that are asked for more that a limit of theirs was not recorded."""
    names = [load.name for load in draft.loads if load.name.startswith(VIRTUAL)]
    if not names or not any(one.question and one.question.load > 1 for one in asked):
        return ""
    return (
        f" A limit that {' or '.join(names)} may have from outside, as a volume's IOPS and MB/s, is"
        " in no recording below it, and in no answer."
    )


def limits_of(seen: Look) -> dict[str, float]:
    """Return at how many times the recorded load what serves one at a time is 90 % busy.

    By the utilisation law, U = X D. Background work (nice) makes room; what the host gives to
    others does not. A device without an arm serves several requests at a time, and is not among
    them; nor is a disk of which nobody knows how long it writes what is in its cache.
    """
    found = {}
    figures = {f"cpu.{name}": value for name, value in seen.cpu.shares_pct.items()}
    if seen.cpu.busy is not None:
        figures[CPU_BUSY] = 100 * seen.cpu.busy
    if taken := _taken(figures):
        found[CPUS] = FULL / (taken / 100)
    for one in seen.devices:
        if one.serves_singly and one.util_pct and cache_sign(one) is not CacheSign.BY_READS:
            found[one.name] = FULL / (one.util_pct / 100)
    return found


def answers_table(answers: Answers, seen: Look) -> Table:
    """Return one table of all answers: the device that is busiest today, CPUs and load."""
    shown = _shown(answers, seen)
    rows = [
        (
            "today" if one.question is None else one.question.name,
            *(_with(one, name) if name in one.metrics else "-" for name in shown.values()),
        )
        for one in (answers.today, *answers.asked)
    ]
    heads = (Column(title, is_number=True) for title in shown)
    return Table((Column("what if"), *heads), tuple(rows))


def _shown(answers: Answers, seen: Look) -> dict[str, str]:
    """Return the columns of that table: titles, and the figures below them."""
    device = answers.today.busiest
    load = "load" if seen.system.tasks is not None else "twin's load"
    columns = {
        f"{device} busy %": f"disk.{device}.util_pct",
        "reads/s": f"disk.{device}.r_per_s",
        "a read ms": f"disk.{device}.r_await_ms",
        "writes/s": f"disk.{device}.w_per_s",
        "a write ms": f"disk.{device}.w_await_ms",
        "CPUs busy %": CPU_BUSY,
        load: LOAD_MEAN,
    }
    return {
        title: name
        for title, name in columns.items()
        if any(one.summary(name).hi >= SHOWN_MIN for one in (answers.today, *answers.asked))
    }


def figures_table(answer: Answer, today: Answer) -> Table:
    """Return every figure of an answer, beside today's."""
    columns = (
        Column("figure"),
        Column("median", True),
        Column("90 % interval", True),
        Column("today", True),
        Column("unit"),
        Column("wide by the"),
    )
    before = today.metrics
    rows = [
        (
            name,
            figure(one.median),
            f"{figure(one.lo)} .. {figure(one.hi)}",
            figure(before[name].median) if name in before else "-",
            one.unit,
            answer.widths[name].most if name in answer.widths else "",
        )
        for name, one in answer.metrics.items()
        if one.hi
    ]
    return Table(columns, tuple(rows))


def metrics_json(answer: Answer) -> dict[str, Any]:
    """Return the figures of an answer with median and interval, as `iotwin predict --json` has.

    `width_from` has the parts of an interval's width: standard deviations of a logarithm.
    """
    return {
        name: {"median": one.median, "lo": one.lo, "hi": one.hi, "unit": one.unit}
        | ({"width_from": asdict(answer.widths[name])} if name in answer.widths else {})
        for name, one in answer.metrics.items()
    }
