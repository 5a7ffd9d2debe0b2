"""The work of `iotwin follow`: read, judge, show, let the twin run, ask it, and end cleanly.

What is known of the server is in calibration/follow; here are the clock, the screen and the files.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

import click

from calibration.follow.bench import Bench
from calibration.follow.feeds import Feed, FeedError, feed_of
from calibration.follow.follower import FIGURES, WINDOW_S, Event, Follower, Loads, short
from calibration.follow.jobs import Job, Result
from calibration.follow.state import StateError, restore, state_of
from calibration.look.files import GAP
from calibration.record_text import TextSample
from sim.cli.options import check_questions
from sim.cli.output import check_apart, check_json, check_replaceable, write_text
from sim.cli.screen import Screen
from sim.scenario import load

SCHEMA: Final = "iotwin.follow/1"
SHOWN_MAX: Final = 3  # devices
FIT_S: Final = 300.0  # a question waits for so long
SILENT_S: Final = 30.0  # without a sample


class Workplace(Protocol):
    """Where the twin's jobs are done."""

    @property
    def is_free(self) -> bool:
        """Whether a job can be begun."""

    def begin(self, job: Job) -> None:
        """Begin a job."""

    def poll(self, wait_s: float = 0.0) -> Result | None:
        """Return what came of the job, if it is done within that time."""


@dataclass
class Session:
    """One command: a feed, a follower, and how what happens is told."""

    feed: Feed
    follower: Follower
    bench: Workplace | None
    tell: "Teller"
    interval_s: float
    state_path: Path | None = None
    clock: Callable[[], float] = time.monotonic
    _shown_s: float | None = None
    _heard_s: float = 0.0
    _refused: str = ""
    _is_asking: bool = False
    steps: int = 0
    cpu_s: float = 0.0  # of this process, for reading and judging

    def step(self) -> None:
        """Take what is new, let the twin go on, show it."""
        begin_s = time.process_time()
        self.steps += 1
        for sample in self._samples():
            for event in self.follower.take(sample):
                self.tell.event(event)
            self._show()
        self._twin()
        self.cpu_s += time.process_time() - begin_s

    def finish(self, asked: Sequence[str]) -> None:
        """Ask what is to be asked, and keep what is to be kept."""
        self.save()
        self.follower.questions.extend(asked)
        deadline_s = self.clock() + FIT_S
        if self.follower.questions and not self.follower.last:
            self.tell.say("nothing was read: nothing can be asked")
            return
        while self.bench is not None and (self.follower.questions or self._is_asking):
            if self.clock() > deadline_s:
                self.tell.say(f"no answer within {FIT_S:.0f} s")
                return
            self._twin(wait_s=1.0)
            if self.bench.is_free:
                break  # and nothing could be begun
        if self.follower.questions:
            self.tell.say("no answer: there is no twin (it needs a minute of readings)")

    def save(self) -> None:
        """Write the state, if one is asked for."""
        if self.state_path is not None and self.follower.last:
            write_text(json.dumps(state_of(self.follower), indent=1) + "\n", self.state_path)

    def _show(self) -> None:
        """Show server and twin, if it is time."""
        last = self.follower.last
        if not last:
            return
        due_s = self.interval_s - self.follower.usual_s / 2
        if self._shown_s is None or not 0 <= last[-1].end_s - self._shown_s < due_s:
            self._shown_s = last[-1].end_s
            self.tell.row(self.follower, self.interval_s)

    def _samples(self) -> Sequence[TextSample]:
        """Return what is new; tell of a source that does not answer, or has nothing."""
        now_s = self.clock()
        try:
            samples = self.feed.poll()
        except FeedError as error:
            if str(error) != self._refused:
                self.tell.say(str(error))
            self._refused = str(error)
            return ()
        self._refused = ""
        if samples:
            self._heard_s = now_s
        elif self._heard_s and now_s - self._heard_s > max(SILENT_S, GAP * self.follower.usual_s):
            self.tell.say(f"nothing new for {now_s - self._heard_s:.0f} s")
            self._heard_s = now_s
        return samples

    def _twin(self, wait_s: float = 0.0) -> None:
        if self.bench is None:
            return
        result = self.bench.poll(wait_s)
        if result is not None:
            self._is_asking = False
            for event in self.follower.done(result):
                self.tell.event(event)
            if result.standing is not None:
                self.save()
        if self.bench.is_free:
            job = self.follower.job()
            if job is not None:
                self._is_asking = job.kind == "ask"
                self.bench.begin(job)


@dataclass
class Teller:
    """Tells in lines, and in JSON if that is asked for; on a terminal on a screen."""

    out: TextIO | None  # for people; None: standard output has the JSON
    json_out: TextIO | None = None
    screen: Screen | None = None
    _has_head: bool = False

    def event(self, event: Event) -> None:
        """Tell an event."""
        at = event.at
        self._json(
            event.kind, at=at.isoformat(timespec="seconds"), text=event.text, **event.content
        )
        if event.kind == "twin":
            return
        begin = {"alarm": "ALARM ", "answer": ""}.get(event.kind, "")
        self.say(f"{at:%H:%M:%S} {begin}{event.text}", is_alarm=event.kind == "alarm")

    def say(self, text: str, *, is_alarm: bool = False) -> None:
        """Print a line."""
        if self.screen is not None:
            self.screen.say(text, is_alarm=is_alarm)
        elif self.out is not None:
            print(text, file=self.out, flush=True)
        else:
            click.echo(f"iotwin: {text}", err=True)

    def row(self, follower: Follower, length_s: float) -> None:
        """Show server and twin side by side."""
        rows = follower.rows(length_s)
        at = follower.last[-1].at
        loads = follower.loads()
        self._json("reading", at=at.isoformat(timespec="seconds"), **_row_content(rows, loads))
        if self.screen is not None:
            self.screen.show(at, rows, loads)
        elif self.out is not None:
            if not self._has_head:
                print(
                    "server|twin of the last minute; load: where the load average settles",
                    file=self.out,
                )
                self._has_head = True
            print(f"{at:%H:%M:%S} {line_of(rows, loads)}", file=self.out, flush=True)

    def _json(self, kind: str, **content: Any) -> None:
        if self.json_out is not None:
            row = {"schema": SCHEMA, "kind": kind, **content}
            print(json.dumps(row, ensure_ascii=False), file=self.json_out, flush=True)


Rows = Sequence[tuple[str, str, float, float | None]]


def line_of(rows: Rows, loads: Loads) -> str:
    """Return server and twin as one line."""
    parts = []
    if loads.settles is not None:
        parts.append(f"load {_pair(loads.settles, loads.twin)}")
    resources = list(dict.fromkeys(resource for resource, *_rest in rows))
    devices = [one for one in resources if any(x[:2] == (one, "util_pct") for x in rows)]
    chosen = {*(one for one in resources if one not in devices), *devices[:SHOWN_MAX]}
    for resource in [*(x for x in resources if x not in devices), *devices]:
        if resource in chosen:
            told = ", ".join(
                f"{_pair(server, twin)} {FIGURES[column].words}"
                for name, column, server, twin in rows
                if name == resource and (server or twin)
            )
            parts.append(f"{resource} {told}")
    return "; ".join(parts)


def _pair(server: float, twin: float | None) -> str:
    return f"{short(server)}|{short(twin) if twin is not None else '-'}"


def _row_content(rows: Rows, loads: Loads) -> dict[str, Any]:
    figures: dict[str, dict[str, dict[str, float | None]]] = {}
    for resource, column, server, twin in rows:
        figures.setdefault(resource, {})[column] = {"server": server, "twin": twin}
    return {
        "resources": figures,
        "load1": loads.average,
        "load_settles": loads.settles,
        "load_known_to": loads.known_to,
        "twin_load": loads.twin,
    }


def follow(
    source: str | None,
    *,
    interval_s: float,
    duration_s: float | None,
    twin_path: str | None,
    with_twin: bool,
    asked: Sequence[str],
    state_path: str | None,
    instance: str | None,
    from_start: bool,
    json_path: str | None,
) -> None:
    """Follow a server until the time is over, or Ctrl-C; raise click.UsageError."""
    check_questions(asked)
    check_json(json_path)
    check_replaceable(state_path)
    check_apart(state_path, json_path, read=(twin_path,))
    reading_s = interval_s / 2
    try:
        feed = feed_of(source, instance=instance, history_s=WINDOW_S + 15, reading_s=reading_s)
        if from_start and hasattr(feed, "history_s"):
            feed.history_s = None
        host = feed.host()
    except FeedError as error:
        raise click.UsageError(str(error)) from None
    follower = Follower(
        name=feed.name,
        reading_s=reading_s,
        host=host,
        with_twin=with_twin,
        asked=tuple(asked),
        given=_given(twin_path),
    )
    told = _restored(follower, state_path)
    with ExitStack() as stack, _ended_by(signal.SIGTERM):
        json_out: TextIO | None = None
        if json_path is not None and json_path != "-":
            json_out = stack.enter_context(open(json_path, "w", encoding="utf-8"))
        elif json_path == "-":
            json_out = sys.stdout
        bench = stack.enter_context(Bench()) if with_twin else None
        screen = None
        if json_path != "-" and sys.stdout.isatty() and sys.stdin.isatty():
            screen = stack.enter_context(Screen(feed.name))
        tell = Teller(None if json_path == "-" else sys.stdout, json_out, screen)
        session = Session(
            feed, follower, bench, tell, interval_s, Path(state_path) if state_path else None
        )
        if told:
            tell.say(told)
        begin_s = time.monotonic()
        step_s = reading_s / looks_in(reading_s, feed)
        _loop(session, screen, step_s, duration_s, lambda text: _ask(session, text))
        passed_s = time.monotonic() - begin_s
        session.finish(asked)
    core_pct = 100 * session.cpu_s / max(passed_s, step_s * session.steps)
    kept = f"; kept in {state_path}" if state_path and follower.last else ""
    cost = f"reading it took {core_pct:.2f} % of one core"
    click.echo(f"iotwin: followed {feed.name} for {passed_s:.0f} s; {cost}{kept}", err=True)


def _given(twin_path: str | None) -> tuple[str, str | None, dict[str, float]] | None:
    if twin_path is None:
        return None
    place = Path(twin_path)
    load(twin_path)  # for its mistakes
    fit_place = place.with_suffix(".fit.toml")
    fit_text = fit_place.read_text(encoding="utf-8") if fit_place.is_file() else None
    return place.read_text(encoding="utf-8"), fit_text, {}


def _restored(follower: Follower, state_path: str | None) -> str:
    if state_path is None or not Path(state_path).exists():
        return ""
    try:
        at = restore(follower, Path(state_path))
    except StateError as error:
        raise click.UsageError(str(error)) from None
    return f"goes on with what {state_path} knew at {at}"


def _ask(session: Session, text: str) -> None:
    session.follower.questions.append(text)


def looks_in(reading_s: float, feed: Feed) -> int:
    """Return how often a feed is asked in the time of a reading."""
    return max(1, int(reading_s / feed.reading_s)) if feed.reading_s else 1


def _loop(
    session: Session,
    screen: Screen | None,
    step_s: float,
    duration_s: float | None,
    ask: Callable[[str], None],
) -> None:
    """Step at each multiple of a time until it is over."""
    begin_s = time.monotonic()
    tick = 0
    with _stops() as stop:
        while not stop.came:
            session.step()
            tick = max(tick + 1, int((time.monotonic() - begin_s) / step_s))
            until_s = begin_s + tick * step_s
            if duration_s is not None and until_s > begin_s + duration_s + 1e-3:
                return
            while not stop.came and (left_s := until_s - time.monotonic()) > 0:
                typed = screen.wait(left_s) if screen is not None else stop.wait(left_s)
                if typed:
                    ask(typed)


@contextmanager
def _ended_by(number: int) -> Iterator[None]:
    """Let a signal end what is within as Ctrl-C does: what was begun is cleaned up."""

    def came(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    usual = signal.signal(number, came)
    try:
        yield
    finally:
        signal.signal(number, usual)


@dataclass
class Stop:
    """Whether Ctrl-C or SIGTERM came; the pipe wakes who waits."""

    came: bool = False
    pipe: tuple[int, int] = field(default_factory=os.pipe)

    def wait(self, left_s: float) -> str:
        """Sleep, or until a stop; return nothing that was typed."""
        select.select([self.pipe[0]], [], [], left_s)
        return ""


@contextmanager
def _stops() -> Iterator[Stop]:
    """Let Ctrl-C and SIGTERM end the loop between two readings."""
    stop = Stop()

    def came(_number: int, _frame: object) -> None:
        stop.came = True
        os.write(stop.pipe[1], b"x")

    usual = {number: signal.signal(number, came) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
        for descriptor in stop.pipe:
            os.close(descriptor)
