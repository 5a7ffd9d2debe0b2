"""One position of the sliders as a study: seed after seed, until a figure's mean is known.

Models: a sequential study of one variant (sim.study.precision): after 10, 20, 40, ... runs one
 looks whether the 90 % interval of the mean of the chosen figure reaches no further than 5 % of it
 to either side.
Linux counterpart: none.
Invariants: a study is a sequence of events, each a dictionary that JSON can write: `begin`, a
 `reading` for each interval of the first run, `figures` after each run, one `end`. Where a look
 finds the figure precise, its interval is the one that was asked for, not the narrower one that
 was seen. A figure that fewer than three of the runs of a look have is not waited for. When there
 are no more events, the process has been killed.
Left out: the store. A page that is moved often would fill it with runs that nobody asks for again.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sim.report.levels_table import levels_json
from sim.report.tables import figure, interval
from sim.scenario.spec import Scenario
from sim.serve.desk import Desk
from sim.serve.worker import Failure, Reading
from sim.study.intervals import CONFIDENCE
from sim.study.levels import judge, resolve
from sim.study.metrics import units_of
from sim.study.outcome import Replication
from sim.study.precision import RUNS_MAX, Precise, look, looks
from sim.study.summary import Summary, summarise_all
from sim.units import NS_PER_S

Event = Mapping[str, Any]

SHARE: Final = 0.05  # of the mean, to either side
_HOW_WELL: Final = f"known to ±{100 * SHARE:g} % ({100 * CONFIDENCE:g} % interval)"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A variant under settings, and the figure that decides how many runs it takes."""

    scenario: Scenario
    figure: str
    command: str  # that does the first run alone


async def events(asked: Asked, desk: Desk) -> AsyncGenerator[Event, None]:
    """Yield what happens until the figure is known, or somebody else takes the desk."""
    worker = desk.begin(asked.scenario)
    done: list[Replication] = []
    stop = set(looks(RUNS_MAX))
    try:
        yield begin_event(asked)
        async for message in worker.messages():
            if isinstance(message, Reading):
                yield reading_event(message, asked.scenario.measure.devices)
                continue
            if isinstance(message, Failure):
                yield _end("failed", f"the run with seed {message.seed} failed: {message.message}")
                return
            done.append(message)
            found = _look(done, asked.figure) if len(done) in stop else None
            is_precise = found is not None and found.reached
            yield figures_event(asked, done, found if is_precise else None)
            if len(done) in stop and (is_precise or found is None or len(done) == RUNS_MAX):
                yield _end(*_why(asked.figure, len(done), found))
                return
        if worker.was_sent_away:
            yield _end("sent away", "another page asked, or the server ended")
        else:
            yield _end("failed", f"the worker died at this run (out of memory?): {asked.command}")
    finally:
        worker.kill()


def begin_event(asked: Asked) -> Event:
    """Return what a page is told first: what runs, until when, and what it leaves out."""
    scenario = asked.scenario
    return {
        "event": "begin",
        "label": scenario.label,
        "command": asked.command,
        "seed": scenario.seed,
        "figure": asked.figure,
        "wanted": f"the mean of {asked.figure} is {_HOW_WELL}",
        "runs_max": RUNS_MAX,
        "interval_s": scenario.measure.interval_ns / NS_PER_S,
        "devices": list(scenario.measure.devices),
        "omissions": list(scenario.omissions),
    }


def reading_event(reading: Reading, devices: Sequence[str]) -> Event:
    """Return what was read after an interval: times in s and ms, shares of time in percent."""
    cpu = reading.report.cpu
    return {
        "event": "reading",
        "t_s": reading.report.t_ns / NS_PER_S,
        "share": reading.share,
        "load1": reading.load1,
        "cpu": {
            "user": cpu.user_pct + cpu.nice_pct,
            "system": cpu.system_pct,
            "iowait": cpu.iowait_pct,
            "steal": cpu.steal_pct,
        },
        "disks": {
            one.name: {"util_pct": one.util_pct, "await_ms": one.await_ms, "tps": one.tps}
            for one in reading.report.devices
            if one.name in devices
        },
    }


def _look(done: Sequence[Replication], name: str) -> Precise | None:
    return look([run.metrics[name] for run in done if name in run.metrics], SHARE)


def figures_event(asked: Asked, done: Sequence[Replication], found: Precise | None) -> Event:
    """Return all figures of the runs so far; `found` is the stated interval of the chosen one."""
    measure = asked.scenario.measure
    metrics = [run.metrics for run in done]
    times = [run.histograms for run in done]
    rows = {name: _row(one) for name, one in summarise_all(metrics, units_of(measure)).items()}
    if found is not None:
        rows[asked.figure]["interval"] = interval(*found.interval, rows[asked.figure]["unit"])
    seen = done[0].seen
    return {
        "event": "figures",
        "runs": len(done),
        "part": seen.unsteady or seen.until or seen.part,
        "figures": rows,
        "levels": levels_json(
            [judge(one, metrics, times) for one in resolve(asked.scenario.slo, measure)]
        ),
    }


def _row(one: Summary) -> dict[str, str]:
    """Return a figure as people read it."""
    return {
        "unit": one.unit,
        "runs": str(one.runs),
        "mean": figure(one.mean, one.unit),
        "interval": interval(*one.mean_interval, one.unit) if one.mean_interval else "",
        "range": interval(one.least, one.greatest, one.unit) if one.runs > 1 else "",
    }


def _why(name: str, runs: int, found: Precise | None) -> tuple[str, str]:
    """Return why a study stops at a look."""
    if found is None:
        return "no data", f"{name} has no data in {runs} runs: choose another figure"
    if found.reached:
        return "precise", f"the mean of {name} is {_HOW_WELL} after {runs} runs"
    return "not reached", f"the mean of {name} is not {_HOW_WELL} after {runs} runs"


def _end(why: str, text: str) -> Event:
    return {"event": "end", "why": why, "text": text}
