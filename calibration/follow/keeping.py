"""A twin that is kept current: made of one minute, corrected by every later one, asked at any time.

Models: the administrator who turns two knobs until both screens show the same.
Linux counterpart: none.
Invariants: the twin is that of `iotwin mine` (calibration/twin), so are its answers; only values
that the file has are corrected, each by what drives it (the package's opening has the theory); a
device's service times are corrected only after it has run at the server's load, within NEAR; its
figures are those of runs, of a minute together, never corrected themselves.
Left out: a disk with an arm, whose times are its data sheet's: its load alone is followed.
"""

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Final

from calibration.dataset import Source
from calibration.fit.budget import SIMULATIONS_MIN
from calibration.follow.jobs import Minute, NoTwin, Standing, Told
from calibration.look import Look, look, steady
from calibration.look.devices import DeviceLook, busy_pct
from calibration.look.intervals import COUNTED
from calibration.look.summary import NothingToLookAt
from calibration.readers import read_text
from calibration.twin.anchored import ask, recorded_figures, relative_error, sampling_of
from calibration.twin.answers import (
    CPU_BUSY,
    UNITS,
    metrics_json,
    row_in,
    sentence,
    server_figures,
    tasks_counted,
    waited_for,
)
from calibration.twin.columns import columns_of_run
from calibration.twin.commits import CacheSign, beside, commit_s, write_alone_ms
from calibration.twin.demands import LOG_IDLE, READ, SYNC, Load, NothingToTwin
from calibration.twin.draft import ASKED_INTERVAL, BOUNDS, Draft, process_name
from calibration.twin.fitting import draw_drafts, ensemble_text, fit_best
from calibration.twin.load_average import share_seen
from calibration.twin.questions import QuestionError, read_question
from calibration.twin.server import disk_section
from calibration.twin.sheet import dotted
from sim.observation import Observation
from sim.scenario.fitted import Fit, read_fit
from sim.study.executors import HERE
from sim.study.laboratory import Laboratory, Progress
from sim.study.trial import Figures, Trial
from sim.toml.lines import split_key
from sim.units import UnitError, parse_quantity

NEAR: Final = 0.1  # of the server's load
STEP_MAX: Final = 8.0  # of a value, at once
REST_STEP_MAX: Final = 3.0  # of writes that are a difference of others
SERVICE_STEP_MAX: Final = 2.0
SHARED_MAX: Final = 3.0  # transactions for each sync of a log, which then is 0.98 of the time busy
GAIN_MIN: Final = 0.1
RATE_MIN: Final = 0.2  # requests a second, as a class must have (calibration/twin/demands.py)
SIMULATED_S: Final = 60  # of all runs of a minute's twin together
RUNS_MAX: Final = 5
REQUESTS_MAX: Final = 20_000  # of all runs, warm-up and all: a few seconds of CPU time
FOLLOWED: Final = (*UNITS, "f_await_ms")  # of a disk
ALONE: Final = "w_alone_ms"  # of a disk: what a write takes beside its flush
BESIDE_FLUSHES_MIN: Final = 0.05  # of a write's time; less is an error of either column
MEMBERS: Final = 10  # of the ensemble, asked a question
SEED: Final = 1
# Key of a device's service time -> direction of its requests, and the power that it goes with.
SERVICE: Final[Mapping[str, tuple[str, int]]] = {
    "read": ("r", 1),
    "write": ("w", 1),
    "read_rate": ("r", -1),
    "write_rate": ("w", -1),
}
FLUSHES_MIN: Final = 10.0  # a second, two of a commit: a minute's are known to 6 %
DIMENSIONS: Final[Mapping[str, str]] = {
    "rate": "rate_per_s",
    "concurrency": "count",
    "user": "time_ns",
    "system": "time_ns",
    "read": "time_ns",
    "write": "time_ns",
    "read_rate": "bytes_per_s",
    "write_rate": "bytes_per_s",
    "flush": "time_ns",
    "cache_write": "time_ns",
}
_UNITS: Final = {"rate_per_s": "/s", "bytes_per_s": "B/s", "time_ns": "ns"}


@dataclass(kw_only=True)
class Kept:
    """A twin's file and ensemble, and the values that differ from them by now."""

    place: Path
    draft: Draft
    fit: Fit | None  # None: a draft that was not fitted yet
    text: str
    values: dict[str, float] = field(default_factory=dict)
    figures: Figures = field(default_factory=dict)  # of the last runs
    runs: int = 0  # so far: each has a seed of its own
    rest: Progress | None = None

    def renew(self, minute: Minute) -> Standing:
        """Bring the twin to a minute and run it; raise NoTwin."""
        seen = steady(look_at(minute))
        server = recorded_figures(seen)
        if not self.figures:
            self.figures = self._run()
        self._correct(server, cache(partial(_error, seen=seen)))
        self.figures = self._run()
        return Standing(
            server=server,
            twin=self._as_counted(),
            load=tasks_counted(self.figures, share_seen(seen, waited_for(self.figures))),
            values=dict(self.values),
            is_fitted=self.fit is not None,
        )

    def ask(self, text: str, minute: Minute) -> Told:
        """Answer a question of the server as it was in a minute; raise NoTwin."""
        seen = look_at(minute)
        try:
            question = read_question(text, self.draft)
        except QuestionError as error:
            raise NoTwin(str(error)) from None
        fit = self._fit_now()
        with Laboratory(HERE, measure=server_figures, progress=self.rest) as laboratory:
            answers = ask(
                [question],
                self.draft,
                seen,
                fit,
                str(self.place),
                laboratory,
                members=MEMBERS,
                seed=SEED,
            )
        [one] = answers.asked
        told = sentence(one, answers.today, seen, self.draft)
        return Told(question=text, sentence=told, metrics=metrics_json(one))

    def be_its_own_ensemble(self) -> None:
        """Answer questions as the file is, without members that differ."""
        self.fit = _fit_of(self.place, None)

    def doubts(self, questions: Sequence[str]) -> Iterator[str]:
        """Yield why a question cannot be asked, for each that cannot."""
        for one in questions:
            try:
                read_question(one, self.draft)
            except QuestionError as error:
                yield str(error)

    def _run(self) -> Figures:
        """Return the figures of runs of a minute together, read as often as an answer's run.

        By hand: three tasks on two CPUs are one who waits, 3 % of the time. 60 readings, one a
        second, know these 0.03 to 0.02, 600 of them to 0.007.
        """
        often = ("measure.interval", ASKED_INTERVAL)
        values = (often, *((path, _text(path, value)) for path, value in self.values.items()))
        runs = self._runs_of_a_minute()
        trials = [Trial(str(self.place), None, values, SEED + self.runs + n) for n in range(runs)]
        self.runs += runs
        with Laboratory(HERE, measure=followed_figures, progress=self.rest) as laboratory:
            laboratory.planned = runs
            found = laboratory.figures(trials)
        names = dict.fromkeys(name for one in found for name in one)
        return {name: sum(one.get(name, 0.0) for one in found) / runs for name in names}

    def _runs_of_a_minute(self) -> int:
        """Return how many runs are a minute together, fewer if many requests are in each."""
        length_s = self.draft.settle_s + self.draft.measured_s
        requests = length_s * sum(load.device.rate_per_s for load in self.draft.loads)
        wanted = math.ceil(SIMULATED_S / self.draft.measured_s)
        return max(1, min(RUNS_MAX, wanted, int(REQUESTS_MAX / requests)))

    # -- Corrections

    def _correct(self, server: Figures, error: Callable[[str], float]) -> None:
        """Correct every value by the ratio of what it drives.

        `error` tells how surely a figure of the server is known, relative.
        """
        for load in self.draft.loads:
            asked = self._asked(load, server)
            for one in load.classes:
                letter = "r" if one.kind == READ else "w"
                section = ("process", process_name(load.name, one.kind))
                self._demand(section, server, asked[one.kind], f"disk.{load.name}.{letter}")
            if self._is_near(load, server):
                self._service(load, server, error)
        self._cpu_times(server)

    def _asked(self, load: Load, server: Figures) -> dict[str, float]:
        """Return of each class how many times as much the server has of it as the twin.

        Where flushes tell what was waited for, the other writes are those which they leave.
        """
        name = f"disk.{load.name}"
        ratios = {x: _ratio(server, self.figures, f"{name}.{x}_per_s") for x in "rwf"}
        asked = {one.kind: ratios["r" if one.kind == READ else "w"] for one in load.classes}
        rest = self._rest(load, server)
        if rest is not None:
            asked = {kind: rest if kind != READ else ratio for kind, ratio in asked.items()}
            asked[SYNC] = ratios["f"]
        if SYNC in asked and self._is_shared_by_most(load):
            asked[SYNC] = min(1.0, asked[SYNC])
        return asked

    def _is_shared_by_most(self, load: Load) -> bool:
        """Return whether so many share a sync of a log that more of them make hardly more syncs."""
        section = ("process", process_name(load.name, SYNC))
        flushes = self.figures.get(f"disk.{load.name}.f_per_s", 0.0)
        rate = self._number((*section, "rate"), "rate_per_s") or 0.0
        return bool(self.value((*section, "group_commit"))) and rate >= SHARED_MAX * flushes > 0

    def _rest(self, load: Load, server: Figures) -> float | None:
        """Return how many times as many writes nobody waits for; None where flushes do not tell.

        They do if a minute has enough of them, if each is of as many fsyncs at another load, and if
        what they leave of the writes is more than the error of that.
        """
        synced = next((one for one in load.classes if one.kind == SYNC), None)
        recorded = load.device.row.get("f_per_s", 0.0)
        if synced is None or synced.promise is None or not self._flushes_alike(load.name):
            return None
        promise, name = synced.promise, f"disk.{load.name}"
        commits = recorded / promise.flushes
        if promise.is_shared and commits * commit_s(load.device.row) >= LOG_IDLE:
            return None
        both = (server, self.figures)
        if min(recorded, *(one.get(f"{name}.f_per_s", 0.0) for one in both)) < FLUSHES_MIN:
            return None
        (writes, flushes), (of_twin, twin_flushes) = (
            (one[f"{name}.w_per_s"], one[f"{name}.f_per_s"]) for one in both
        )
        bursts = self._burst_writes(load)
        if bursts:  # what its runs have beside them is of fsyncs
            each = max(0.0, of_twin - bursts) / twin_flushes
            left, of_twin = max(RATE_MIN, writes - each * flushes), max(RATE_MIN, bursts)
        else:
            each = synced.rate_per_s / recorded + promise.requests / promise.flushes
            left, of_twin = beside(writes, each * flushes), of_twin - each * twin_flushes
            if not left:
                return None
        return max(1 / REST_STEP_MAX, left / max(of_twin, left / REST_STEP_MAX))

    def _burst_writes(self, load: Load) -> float:
        """Return the twin's writes/s that come many at a time, none of which is merged; 0: none."""
        for one in load.classes:
            section = ("process", process_name(load.name, one.kind))
            at_once = _number(self.value((*section, "writes")), "number") or 0.0
            if at_once > 1 and self.value((*section, "writeback")):
                return at_once * (self._number((*section, "rate"), "rate_per_s") or 0.0)
        return 0.0

    def _is_near(self, load: Load, server: Figures) -> bool:
        """Return whether the twin's device has run at the load of the server's.

        A request counts as long as it takes: so a few more reads hardly count beside writes.
        """
        off = whole = 0.0
        for direction in "rw":
            name = f"disk.{load.name}.{direction}"
            await_ms = server.get(f"{name}_await_ms") or self.figures.get(f"{name}_await_ms", 0.0)
            here, there = (one.get(f"{name}_per_s", 0.0) for one in (server, self.figures))
            off += abs(here - there) * await_ms
            whole += here * await_ms
        return off <= NEAR * whole

    def _flushes_alike(self, device: str) -> bool:
        """Return whether the twin's device is asked for the flushes that the server's is."""
        return f"{device} f_per_s" not in self.draft.server.left_out

    def _as_counted(self) -> Figures:
        """Return the last runs' figures without what the twin counts otherwise."""
        otherwise = {
            f"disk.{load.name}.f_per_s"
            for load in self.draft.loads
            if not self._flushes_alike(load.name)
        }
        return {name: value for name, value in self.figures.items() if name not in otherwise}

    def _demand(
        self, section: tuple[str, ...], server: Figures, rate: float, requests: str
    ) -> None:
        """Correct a class's rate, or its customers by Little's law, of such a device's requests."""
        if self.value((*section, "arrivals")) == "closed":
            rate *= _ratio(server, self.figures, f"{requests}_await_ms")
            self._multiply((*section, "concurrency"), rate, STEP_MAX)
        else:
            self._multiply((*section, "rate"), rate, STEP_MAX)

    def _service(self, load: Load, server: Figures, error: Callable[[str], float]) -> None:
        """Correct a device's service times by Newton's step, less its chance.

        How busy it is tells them as well as what requests take in all: the mean of both is
        corrected by, so that neither is far off where the twin's requests come more together than
        the server's. Not where util counts jiffies that it was not busy for. A disk that answers
        writes from its cache is kept busy by its flushes, which take as long as what they write: so
        U and a flush's time tell what that takes, and the mean of both is corrected by.
        Where a flusher writes as well, a flush has a time of its own. How soon a write is answered
        is told by the time of writes less that of their flushes.
        """
        device = load.device
        name = f"disk.{device.name}"

        def off(column: str) -> float:
            ratio = _ratio(server, self.figures, f"{name}.{column}")
            return _likely(ratio, error(f"{name}.{column}"))

        gain = max(GAIN_MIN, 1 - _busy(server, device))
        busier = 1.0
        if load.cache_sign is None and COUNTED not in device.row:
            busier, gain = off("util_pct"), gain / (1 + gain)
        steps = {
            key: ((off(f"{letter}_await_ms") * busier) ** gain) ** power
            for key, (letter, power) in SERVICE.items()
        }
        if load.cache_sign is not None:
            steps |= {"write": 1.0, "write_rate": 1.0}
        elif not (load.is_closed or load.flushes_wait):
            steps["flush"] = off("f_await_ms")
        if load.cache_sign is CacheSign.BY_FLUSHES:
            of_waits = _likely(_waits(server, self.figures, device.name), error(f"{name}.{ALONE}"))
            of_flush = off("f_await_ms")
            if not load.flushes_others:
                steps |= {"cache_write": of_waits, "write": math.sqrt(off("util_pct") * of_flush)}
            elif load.writes.is_large:
                steps |= {"write_rate": 1 / of_waits, "flush": of_flush}
            else:
                steps |= {"write": of_waits, "flush": of_flush}
        for key, step in steps.items():
            self._multiply((*disk_section(device.name), key), step, SERVICE_STEP_MAX)

    def _cpu_times(self, server: Figures) -> None:
        """Correct the CPU time of a transaction: busy time by requests, of both."""
        ratio = _ratio(server, self.figures, CPU_BUSY) / self._requests(server)
        for name in self.draft.streams:
            for key in ("user", "system"):
                self._multiply(("process", name, key), ratio, STEP_MAX)

    def _requests(self, server: Figures) -> float:
        """Return the ratio of all requests, server to twin."""
        names = [f"disk.{load.name}.{x}_per_s" for load in self.draft.loads for x in "rw"]
        of_server, of_twin = (sum(one.get(x, 0.0) for x in names) for one in (server, self.figures))
        return of_server / of_twin if of_server and of_twin else 1.0

    def _multiply(self, path: tuple[str, ...], ratio: float, most: float) -> None:
        """Correct a value that the file has, inside what its component takes; a count is whole."""
        dim = DIMENSIONS[path[-1]]
        now = self._number(path, dim)
        if not now:
            return
        low, high = BOUNDS.get(path[-1], (0.0, math.inf))
        changed = min(high, max(low, now * min(most, max(1 / most, ratio))))
        self.values[dotted(*path)] = max(1.0, round(changed)) if dim == "count" else changed

    def _number(self, path: tuple[str, ...], dim: str) -> float | None:
        """Return a value as it is now; None if the file has none."""
        known = self.values.get(dotted(*path))
        return known if known is not None else _number(self.value(path), dim)

    @cached_property
    def _content(self) -> dict[str, Any]:
        """What the file says."""
        return tomllib.loads(self.text)

    def value(self, path: tuple[str, ...]) -> Any:
        """Return what the file says; None if it does not."""
        return value_in(self._content, path)

    def _fit_now(self) -> Fit:
        """Return the ensemble with every value as much larger as the twin's is by now."""
        fit = self.fit
        if fit is None:
            raise NoTwin("the twin is not fitted yet: ask in half a minute")
        content = self._content
        ratios: dict[str, float] = {}
        added: dict[str, str] = {}
        for path, now in self.values.items():
            base = _number(value_in(content, split_key(path)), DIMENSIONS[split_key(path)[-1]])
            if path in fit.parameters and base:
                ratios[path] = now / base
            else:
                added[path] = _text(path, now)
        members = [
            (
                *(
                    _scaled(path, text, ratios.get(path, 1.0))
                    for path, text in zip(fit.parameters, row, strict=True)
                ),
                *added.values(),
            )
            for row in fit.members
        ]
        return replace(fit, parameters=(*fit.parameters, *added), members=tuple(members), best={})


def followed_figures(seen: Observation) -> Figures:
    """Return the figures of a run that an answer has, and how long flushes take."""
    return server_figures(seen, FOLLOWED)


def first(minute: Minute, folder: Path, rest: Progress | None = None) -> Kept:
    """Return the twin's first sketch: operational estimates alone; raise NoTwin."""
    draft = _drafts(look_at(minute))[0]
    text = draft.sheet.text("A sketch of a server that is followed.")
    place = folder / "sketch.toml"
    place.write_text(text, encoding="utf-8")
    return Kept(place=place, draft=draft, fit=None, text=text, rest=rest)


def fitted(minute: Minute, folder: Path, rest: Progress | None = None) -> Kept:
    """Return a twin that is fitted to a minute, as `iotwin mine` does it; raise NoTwin."""
    seen = look_at(minute)
    drafts = _drafts(seen)
    place = folder / "twin.toml"
    with Laboratory(HERE, measure=columns_of_run, progress=rest) as laboratory:
        twin = fit_best(
            drafts,
            seen,
            folder,
            comment="A server that is followed.",
            seed=SEED,
            simulations=SIMULATIONS_MIN,
            laboratory=laboratory,
        )
    place.write_text(twin.text, encoding="utf-8")
    fit_place = place.with_suffix(".fit.toml")
    fit_place.write_text(ensemble_text(twin, place, "iotwin follow", []), encoding="utf-8")
    return Kept(place=place, draft=twin.draft, fit=read_fit(fit_place), text=twin.text, rest=rest)


def given(
    minute: Minute,
    text: str,
    fit_text: str | None,
    values: Mapping[str, float],
    folder: Path,
    rest: Progress | None = None,
) -> Kept:
    """Return a twin that was made before, of which `values` differ by now; raise NoTwin.

    Without the ensemble's text all members are the file itself.
    """
    drafts = _drafts(look_at(minute))
    place = folder / "twin.toml"
    place.write_text(text, encoding="utf-8")
    content = tomllib.loads(text)
    lacking = [_missing(draft, content) for draft in drafts]
    if all(lacking):
        known = ", ".join(content.get("process", {})) or "none"
        raise NoTwin(
            f"the twin is of another server, or of another load: it has no process"
            f" {', '.join(lacking[0])} (it has: {known})"
        )
    return Kept(
        place=place,
        draft=drafts[lacking.index([])],
        fit=_fit_of(place, fit_text),
        text=text,
        values=dict(values),
        rest=rest,
    )


def _fit_of(place: Path, fit_text: str | None) -> Fit:
    if fit_text is None:
        return Fit(
            file=place.name,
            scenario=place.stem,
            kind="prediction",
            against="nothing",
            variants=(),
            parameters=(),
            best={},
            members=((),) * MEMBERS,
            header={},
        )
    fit_place = place.with_suffix(".fit.toml")
    fit_place.write_text(fit_text, encoding="utf-8")
    return read_fit(fit_place)


def _missing(draft: Draft, content: Mapping[str, Any]) -> list[str]:
    """Return the processes of a draft that a scenario's text has not."""
    return [name for name in draft.streams if value_in(content, ("process", name)) is None]


def _drafts(seen: Look) -> list[Draft]:
    """Return the drafts of a minute, the likeliest first; raise NoTwin."""
    try:
        return draw_drafts(seen, SEED)
    except NothingToTwin as error:
        raise NoTwin(str(error)) from None


def value_in(content: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return what a scenario's text has at a path, with or without its source; None: nothing."""
    found: Any = content
    for part in path:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found.get("value", found) if isinstance(found, Mapping) else found


def _number(value: Any, dim: str) -> float | None:
    try:
        return float(parse_quantity(value, dim)) if value is not None else None
    except (UnitError, ValueError, TypeError):
        return None


def _error(name: str, seen: Look) -> float:
    """Return how surely a figure of a minute is known, relative; ALONE: by its own scatter."""
    if not name.endswith(ALONE):
        return sampling_of(name, seen)
    disk = name.removeprefix("disk.").removesuffix(f".{ALONE}")
    rows = [one.devices[disk] for one in seen.used if disk in one.devices]
    return relative_error([write_alone_ms(row) for row in rows if row.get("w_per_s")])


def _waits(server: Figures, twin: Figures, disk: str) -> float:
    """Return how many times as long as the twin's a server's writes take beside their flushes.

    Where hardly anything of either's time is left beside flushes, nothing is told: 1.
    """
    found, least = [], []
    for figures in (server, twin):
        row = row_in(figures, disk)
        found.append(write_alone_ms(row))
        least.append(BESIDE_FLUSHES_MIN * row.get("w_await_ms", 0.0))
    if not all(least) or all(one <= floor for one, floor in zip(found, least, strict=True)):
        return 1.0
    return max(found[0], least[0]) / max(found[1], least[1])


def _busy(figures: Figures, device: DeviceLook) -> float:
    """Return the share of the time that a device is busy by its figures, as far as util tells."""
    row = row_in(figures, device.name)
    if COUNTED in device.row:
        row[COUNTED] = row.get("util_pct", 0.0)
    return min(busy_pct(row, device.guess), 100.0) / 100


def _likely(ratio: float, error: float) -> float:
    """Return the part of a ratio that is no chance; each side is known to such a relative error."""
    off = math.log(ratio)
    return math.exp(off**3 / (off**2 + 2 * error**2)) if off else 1.0


def _ratio(server: Figures, twin: Figures, name: str) -> float:
    """Return server to twin; 1 where either does not have it, or hardly anything.

    Of a rate both have a little: so what the server no longer does, the twin leaves in some steps.
    """
    if name not in server or name not in twin:
        return 1.0
    least = RATE_MIN if name.endswith("_per_s") else 0.0
    of_server, of_twin = max(server[name], least), max(twin[name], least)
    return of_server / of_twin if of_server and of_twin else 1.0


def _text(path: str, value: float) -> str:
    """Return a value as a scenario has it."""
    dim = DIMENSIONS[split_key(path)[-1]]
    if dim == "count":
        return f"{round(value)}"
    return f"{round(value) if dim == 'time_ns' else float(f'{value:.6g}')} {_UNITS[dim]}"


def _scaled(path: str, text: str, ratio: float) -> str:
    """Return a member's value so many times as large."""
    if ratio == 1:
        return text
    key = split_key(path)[-1]
    dim, (low, high) = DIMENSIONS[key], BOUNDS.get(key, (0.0, math.inf))
    value = float(parse_quantity(text if dim != "count" else int(float(text)), dim)) * ratio
    return _text(path, max(1.0 if dim == "count" else low, min(high, value)))


def look_at(minute: Minute) -> Look:
    """Return what a minute's recording says; raise NoTwin."""
    recording = read_text(minute.text, minute.name)
    try:
        return look(Source(name=minute.name, recordings=(recording,), host=minute.host))
    except NothingToLookAt as error:
        raise NoTwin(str(error)) from None
