"""All that is known while a server is followed: what is usual, what parted, what the twin says.

Models: the log book beside the two screens.
Linux counterpart: none.
Invariants: no clock and no process of its own: samples and results of jobs come in, events go out,
and job() says what the twin is to do next. Response times are judged a reading after the load, so
that a change of the load is never taken for one of the device. They are not judged while the twin
of a new load is being made, and then by how much the twin says that they change.
Left out: alarms of the load average: it says a minute later what the devices say now.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any, Final

from calibration.follow.detector import Channel, Parting, threshold_for
from calibration.follow.jobs import Job, Minute, Result, Standing
from calibration.follow.readings import Reading, Readings
from calibration.host import Host
from calibration.look.devices import STACKED
from calibration.look.intervals import mean_row, queue_of
from calibration.look.tasks import mean_with_queue, tasks_of
from calibration.record_text import TextSample

WINDOW_S: Final = 60.0  # of which the twin is
RENEW_S: Final = 30.0  # between two twins
AFTER_S: Final = 25.0  # of a new load, until there is a twin of it
SETTLED_S: Final = 120.0  # and until its response times are usual, if there is none
RETRY_S: Final = 60.0
LOAD_S: Final = 300.0  # of which the mean load is: few tasks come and go
LOADS: Final = 10  # of so many twins
NOTHING: Final = 10.0  # times less than what matters
FAIR: Final = 2.0  # times the trust, as a twin is judged
CPUS: Final = "CPUs"
NO_DISKS: Final = ("ram", "sr", "fd", "zram")
ENOUGH: Final = 5  # requests of a reading whose response time says something
TICKS_PER_S: Final = 100


@dataclass(frozen=True)
class Figure:
    """A column that is followed: as one says it, and what is too little to matter.

    `trust` is how far a twin is trusted there, relative: that of calibration/twin/columns.py, a
    tenth at least, as its verdict has it. A test compares them: their modules load a second's
    worth of libraries that a follower does without.
    """

    column: str
    words: str
    trust: float
    least: float
    is_demand: bool = False

    @property
    def matters(self) -> float:
        """Return the change of the logarithm that is told: twice what the column is trusted to."""
        return FAIR * math.log1p(self.trust)

    def log(self, value: float) -> float:
        """Return the logarithm that is followed; what is next to nothing is one value."""
        return math.log(max(value, self.least / NOTHING))


DEVICE: Final = (
    Figure("r_per_s", "reads/s", 0.10, 1.0, True),
    Figure("w_per_s", "writes/s", 0.10, 1.0, True),
    Figure("f_per_s", "flushes/s", 0.15, 1.0, True),
    Figure("r_await_ms", "ms a read", 0.10, 0.01),
    Figure("w_await_ms", "ms a write", 0.15, 0.01),
    Figure("util_pct", "% busy", 0.15, 10.0),
)
BUSY: Final = Figure("busy_pct", "% busy", 0.10, 10.0, True)
FIGURES: Final[Mapping[str, Figure]] = {one.column: one for one in (*DEVICE, BUSY)}
Key = tuple[str, str]  # resource, column


@dataclass(frozen=True, kw_only=True)
class Parted:
    """A figure of a resource that parted: what it was or should be, and what it is."""

    resource: str
    column: str
    since_s: float
    before: float
    now: float

    @property
    def text(self) -> str:
        """Return it as one says it."""
        words = FIGURES[self.column].words
        return (
            f"{self.resource} {short(self.now)} {words} instead of {short(self.before)}"
            f" ({self.now / self.before:.2g} times)"
        )


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something to tell; `kind` is note, alarm, twin or answer, and `content` what JSON has."""

    kind: str
    at: datetime
    text: str
    content: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Loads:
    """The load average, where it settles and to how much that is known, where the twin's settles.

    All are tasks. `known_to` is a standard error; None where nobody was counted.
    """

    average: float | None = None
    settles: float | None = None
    known_to: float | None = None
    twin: float | None = None


@dataclass
class Follower:
    """Follows one server; see the package's opening."""

    name: str
    reading_s: float
    baseline_s: float = WINDOW_S
    host: Host | None = None
    with_twin: bool = True
    asked: tuple[str, ...] = ()  # at the end
    given: tuple[str, str | None, Mapping[str, float]] | None = None  # a twin made before
    is_replaceable: bool = False  # that twin, if it does not fit: it was kept, nobody named it
    readings: Readings = field(init=False)
    channels: dict[Key, Channel] = field(default_factory=dict)
    standing: Standing | None = None
    is_known: bool = False  # whether what is usual is known from before
    epoch: int = 0  # changes of the load
    standing_epoch: int = -1
    is_fitted: bool = False
    twin_text: str = ""
    twin_fit: str | None = None
    questions: deque[str] = field(default_factory=deque)
    twin_loads: deque[float] = field(default_factory=lambda: deque(maxlen=LOADS))
    last: deque[Reading] = field(default_factory=lambda: deque(maxlen=720))
    _from_s: float | None = None  # since when the load is what it is
    _before: Reading | None = None  # whose response times are still to be judged
    _waits: dict[str, float] = field(default_factory=dict)  # resource -> since when, its answers
    _next_s: float = 0.0  # when the twin is due
    _restarts: int = 0
    _at: datetime = datetime.min  # of the last sample
    _usual: Standing | None = None  # the twin of the load at which response times are usual
    _is_refused: bool = False  # whether it was told that there is no twin

    def __post_init__(self) -> None:
        """Begin with no reading."""
        self.readings = Readings(least_s=self.reading_s)

    def take(self, sample: TextSample) -> list[Event]:
        """Take a sample; return what is to be told."""
        self._at = sample.at
        reading = self.readings.take(sample)
        events = [self._note(sample.at, one) for one in self.readings.notes]
        self.readings.notes.clear()
        if self.readings.restarts > self._restarts:
            self._restarts = self.readings.restarts
            self._forget()
        if reading is None:
            return events
        if self._from_s is None:
            self._from_s = reading.begin_s
        self.last.append(reading)
        return [*events, *self._judge(reading)]

    @property
    def usual_s(self) -> float:
        """Return how long readings are."""
        return self.readings.reading_s or self.reading_s

    def job(self) -> Job | None:
        """Return what the twin is to do now; None: nothing."""
        if not self.with_twin or not self.last or not self.has_lasted():
            return None
        now_s = self.last[-1].end_s
        if self.standing is None:
            if now_s < self._next_s:
                return None
            self._next_s = now_s + RETRY_S
            if self.given is not None:
                text, fit_text, values = self.given
                more = {"text": text, "fit_text": fit_text, "values": values}
                return self._job("given", later=self.asked, **more)
            return self._job("sketch", later=self.asked)
        if not self.is_fitted and self._lasts_s() >= WINDOW_S - self.usual_s:
            return self._job("fit")
        is_of_today = self.standing_epoch == self.epoch
        if self.questions and is_of_today:
            return self._job("ask", question=self.questions.popleft())
        if now_s >= self._next_s or not is_of_today:
            self._next_s = now_s + RENEW_S
            return self._job("renew")
        return None

    def has_lasted(self) -> bool:
        """Whether there is enough of today's load for a twin of it."""
        is_new = self.standing is None and not self.is_known
        return self._lasts_s() >= (self.baseline_s if is_new else AFTER_S)

    def done(self, result: Result) -> list[Event]:
        """Take what came of a job; return what is to be told."""
        at = self._at
        if result.answer is not None:
            told = result.answer
            content = {"question": told.question, "metrics": told.metrics}
            return [Event(kind="answer", at=at, text=told.sentence, content=content)]
        if result.standing is None:
            if result.kind != "ask" and "begins anew" in result.refusal:
                self.standing, self.is_fitted = None, False
            elif result.kind == "fit":
                self.is_fitted = True
                return [self._note(at, f"not fitted, the sketch stays: {result.refusal}")]
            if result.kind == "ask":
                return [self._note(at, f"no answer: {result.refusal}")]
            if result.kind == "given" and self.is_replaceable:
                self.given, self._next_s = None, 0.0
                return [self._note(at, f"a new twin is made: {result.refusal}")]
            was_told, self._is_refused = self._is_refused, True
            return [] if was_told else [self._note(at, f"no twin: {result.refusal}")]
        self._is_refused = False
        if result.text:
            self.twin_text, self.twin_fit = result.text, result.fit_text
        is_first = self.standing is None
        self.standing = result.standing
        fresh = result.standing.is_fitted and not self.is_fitted
        self.is_fitted = self.is_fitted or result.standing.is_fitted
        events = [self._note(at, f"cannot be asked: {one}") for one in result.doubts]
        if is_first or fresh:
            made = "fitted to the last minute" if result.standing.is_fitted else "a first sketch"
            events.append(self._note(at, f"there is a twin: {made}"))
        if result.epoch > self.standing_epoch or fresh:
            self.twin_loads.clear()
        self.twin_loads.append(result.standing.load)
        self.standing_epoch = max(self.standing_epoch, result.epoch)
        if result.epoch == self.epoch:
            events += self._resume(self._usual, result.standing) if self._waits else []
            self._usual = result.standing
        return [*events, Event(kind="twin", at=at, text="", content=self._content())]

    # -- What is shown

    def rows(self, length_s: float) -> list[tuple[str, str, float, float | None]]:
        """Return resource, column, the server's figure of the last seconds, the twin's if any."""
        end_s = self.last[-1].end_s
        recent = [one for one in self.last if one.begin_s >= end_s - length_s - 0.5]
        found = []
        for name in self._devices(recent):
            row = mean_row(
                one.interval.devices[name] for one in recent if name in one.interval.devices
            )
            for figure in DEVICE:
                twin = self._twin(f"disk.{name}.{figure.column}")
                found.append((name, figure.column, row.get(figure.column, 0.0), twin))
        busy = [one.interval.busy for one in recent if one.interval.busy is not None]
        if busy:
            twin = self._twin("cpu.busy_pct")
            found.append((CPUS, "busy_pct", 100 * sum(busy) / len(busy), twin))
        return found

    def loads(self) -> Loads:
        """Return the load average, where it settles, and where the twin's does.

        The last two are means since the load is what it is, of five minutes at most: a load average
        counts tasks every 5 s, so that of a mean of 0.5 a minute knows half. A census with the
        disks' queues knows more, and leaves out what this follower computes
        (calibration/look/tasks.py).
        """
        since_s = max(self.last[-1].end_s - LOAD_S, self._from_s or 0.0)
        series: list[tuple[float | None, float]] = [
            (one.end_s, one.load1)
            for one in self.last
            if one.end_s >= since_s and one.load1 is not None
        ]
        if not series:
            return Loads()
        twin = fmean(self.twin_loads) if self.twin_loads else None
        found = _counted([one for one in self.last if one.end_s >= since_s])
        settles, known_to = (tasks_of(series), None) if found is None else found
        return Loads(average=series[-1][1], settles=settles, known_to=known_to, twin=twin)

    def _twin(self, name: str) -> float | None:
        return self.standing.twin.get(name) if self.standing is not None else None

    def _devices(self, recent: Sequence[Reading]) -> list[str]:
        """Return the devices that had requests, busiest first."""
        utils: dict[str, float] = {}
        for reading in recent:
            for name, row in reading.interval.devices.items():
                if followed(name) and (row["r_per_s"] or row["w_per_s"]):
                    utils[name] = utils.get(name, 0.0) + row["util_pct"]
        return sorted(utils, key=lambda name: -utils[name])

    def _content(self) -> dict[str, Any]:
        assert self.standing is not None
        return {
            "fitted": self.standing.is_fitted,
            "server": dict(self.standing.server),
            "twin": dict(self.standing.twin),
            "values": dict(self.standing.values),
        }

    # -- Judging

    def _judge(self, reading: Reading) -> list[Event]:
        """Judge a reading's load, then the response times of the one before."""
        parted = self._take(reading, _demands(reading), is_demand=True)
        events = [self._load_alarm(reading, parted)] if parted else []
        before, self._before = self._before, reading
        if before is not None:
            events += self._answers(before)
        return events + self._settle(reading)

    def _take(
        self, reading: Reading, figures: Iterable[tuple[Key, float, float]], *, is_demand: bool
    ) -> dict[Key, Parting]:
        """Take a reading's figures; return those that parted, and those of their kind with them."""
        parted = {}
        for key, value, chance in figures:
            parting = self.channel(key).take(reading.begin_s, value, chance)
            if parting is not None:
                parted[key] = parting
        if parted:
            for key, channel in self.channels.items():
                if FIGURES[key[1]].is_demand == is_demand and key not in parted:
                    also = channel.part_now()
                    parted |= {key: also} if also is not None else {}
        return parted

    def _load_alarm(self, reading: Reading, partings: Mapping[Key, Parting]) -> Event:
        """Tell that the load changed; the response times wait for the twin of it."""
        since_s = min(one.since_s for one in partings.values())
        self.epoch += 1
        self._from_s = since_s + self.usual_s  # the reading of the change is of both loads
        for resource, column in self.channels:
            if not FIGURES[column].is_demand:
                self.channels[resource, column].pause()
                self._waits[resource] = since_s
        return self._alarm(reading, partings, "load", "the load changed")

    def _answers(self, reading: Reading) -> list[Event]:
        parted = self._take(reading, _answers(reading), is_demand=False)
        if not parted:
            return []
        return [self._alarm(reading, parted, "device", self._device_words())]

    def _device_words(self) -> str:
        says = "the twin says otherwise" if self.standing is not None else "it was otherwise"
        return f"at this load {says}: the device changed"

    def _resume(self, before: Standing | None, now: Standing) -> list[Event]:
        """Judge the response times again, by how much the twin says that they change.

        A sketch and a fitted twin differ by more than the load.
        """
        if before is not None and before.is_fitted != now.is_fitted:
            before = None
        parted = {}
        for key, channel in self.channels.items():
            resource, column = key
            if not channel.is_paused or resource not in self._waits:
                continue
            name = f"disk.{resource}.{column}"
            if before is None or not (before.twin.get(name) and now.twin.get(name)):
                channel.settle(self._waits[resource] + self.usual_s)
                continue
            figure = FIGURES[column]
            change = figure.log(now.twin[name]) - figure.log(before.twin[name])
            parting = channel.resume(change, 0.1, self._waits[resource] + self.usual_s)
            if parting is not None:
                parted[key] = parting
        self._waits.clear()
        words = "the twin of the new load says otherwise: the device changed"
        return [self._alarm(self.last[-1], parted, "device", words)] if parted else []

    def _settle(self, reading: Reading) -> list[Event]:
        """Take response times for usual that waited too long for a twin."""
        late = [
            name
            for name, since_s in self._waits.items()
            if reading.end_s - since_s > (SETTLED_S if self.with_twin else AFTER_S)
        ]
        for resource, column in self.channels:
            if resource in late and self.channels[resource, column].is_paused:
                self.channels[resource, column].settle(self._waits[resource] + self.usual_s)
        for name in late:
            del self._waits[name]
        return []

    def _alarm(
        self, reading: Reading, partings: Mapping[Key, Parting], cause: str, words: str
    ) -> Event:
        parted = [
            Parted(
                resource=resource,
                column=column,
                since_s=one.since_s,
                before=math.exp(one.before),
                now=math.exp(one.now),
            )
            for (resource, column), one in partings.items()
        ]
        since = self._time(reading, min(one.since_s for one in parted))
        told = ", ".join(one.text for one in parted)
        content = {
            "cause": cause,
            "since": since.isoformat(timespec="seconds"),
            "parted": [
                {
                    "resource": one.resource,
                    "figure": one.column,
                    "before": one.before,
                    "now": one.now,
                    "factor": one.now / one.before,
                    "since": self._time(reading, one.since_s).isoformat(timespec="seconds"),
                }
                for one in parted
            ],
        }
        text = f"{told}, since {since:%H:%M:%S}: {words}"
        return Event(kind="alarm", at=reading.at, text=text, content=content)

    def channel(self, key: Key) -> Channel:
        """Return a figure's channel; a new one makes all thresholds a little higher."""
        if key not in self.channels:
            least = FIGURES[key[1]].matters
            floor = math.log(FIGURES[key[1]].least)
            self.channels[key] = Channel(least=least, threshold=0.0, floor=floor)
            threshold = threshold_for(len(self.channels), self.usual_s)
            for one in self.channels.values():
                one.threshold = threshold
        return self.channels[key]

    # -- Private

    def _job(self, kind: Any, **more: Any) -> Job:
        since_s = max(self.last[-1].end_s - WINDOW_S - self.usual_s / 2, self._from_s or 0.0)
        minute = Minute(name=self.name, text=self.readings.window(since_s), host=self.host)
        return Job(kind=kind, minute=minute, epoch=self.epoch, **more)

    def _lasts_s(self) -> float:
        """Return for how long the load is what it is."""
        return self.last[-1].end_s - (self._from_s or 0.0)

    def _forget(self) -> None:
        """Begin anew: the server did."""
        self.channels.clear()
        self.last.clear()
        self._from_s = self._before = None
        self._waits.clear()
        self._next_s = 0.0

    def _time(self, reading: Reading, at_s: float) -> datetime:
        """Return the time of day at an uptime."""
        return reading.at - timedelta(seconds=reading.end_s - at_s)

    def _note(self, at: datetime, text: str) -> Event:
        return Event(kind="note", at=at, text=text)


def _counted(readings: Sequence[Reading]) -> tuple[float, float | None] | None:
    """Return the tasks that a load average counts, by censuses, and their standard error.

    None where a reading has no census.
    """
    if not all(one.censuses and one.interval.busy is not None for one in readings):
        return None
    running = fmean((one.interval.busy or 0.0) * one.censuses[-1].cpus for one in readings)
    taken = [(census, _disks(one)) for one in readings for census in one.censuses]
    beside, error = mean_with_queue(
        [census.asleep + census.waiting for census, _disks in taken],
        [sum(census.in_flight.get(name, 0) for name in disks) for census, disks in taken],
        [sum(queue_of(one.interval.devices[name]) for name in _disks(one)) for one in readings],
    )
    return running + beside, error


def _disks(reading: Reading) -> list[str]:
    """Return the disks that had requests: neither volumes on them nor parts of them."""
    return [name for name in reading.interval.devices if followed(name)]


def followed(name: str) -> bool:
    """Return whether a device is looked at: no volume on others, whose requests these have.

    A loop device is, as the twin is of it too: what it asks of its file may reach no other disk.
    """
    return not name.startswith((*STACKED, *NO_DISKS))


def short(value: float) -> str:
    """Return about three digits."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def _demands(reading: Reading) -> Iterator[tuple[Key, float, float]]:
    """Yield key, logarithm and chance of what a reading says of the load."""
    for name, row in reading.interval.devices.items():
        for figure in DEVICE:
            if figure.is_demand and followed(name):
                value = row[figure.column]
                yield (name, figure.column), figure.log(value), _chance(value * reading.length_s)
    busy = reading.interval.busy
    if busy is not None:
        ticks = TICKS_PER_S * reading.length_s * busy
        yield (CPUS, BUSY.column), BUSY.log(100 * busy), _chance(ticks)


def _answers(reading: Reading) -> Iterator[tuple[Key, float, float]]:
    """Yield key, logarithm and chance of how a reading's requests were answered."""
    for name, row in reading.interval.devices.items():
        for figure in DEVICE:
            if figure.is_demand or not followed(name):
                continue
            letters = "rw" if figure.column == "util_pct" else figure.column[0]
            count = reading.length_s * sum(row[f"{x}_per_s"] for x in letters)
            if count >= ENOUGH or figure.column == "util_pct":
                yield (name, figure.column), figure.log(row[figure.column]), _chance(count)


def _chance(count: float) -> float:
    """Return the least that the logarithm of something counted scatters by."""
    return 1 / math.sqrt(max(count, 1.0))
