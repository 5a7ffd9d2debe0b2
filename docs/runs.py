"""The runs behind the tables: simulate them, and keep their figures in docs/runs/scenarios.

Models: a laboratory notebook: what was run, with which seed, and what came out.
Invariants: figures are stored in full, by run and sample; the same sample gives the same figures
 on every machine, which `python -m docs check` tries. A run whose stored digest of sources is the
 present one is not run again. A file is replaced as a whole or not at all.

Sample i of a run has the seed of its scenario plus i; where there is a fit, it is the i-th member
of its ensemble as well (as in `iotwin predict`).
"""

import datetime
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from docs.declared import TOP, Exercise, Run
from sim.cli.main import cli
from sim.cli.table import TABLES
from sim.cli.table import command as table_command
from sim.scenario import Scenario, load
from sim.scenario.cases import HOME, SCENARIO, shipped_fit
from sim.scenario.fitted import Fit, read_fit
from sim.study.exercise import SEED, fill
from sim.study.exercise import Exercise as Subject
from sim.study.laboratory import Laboratory, run_once
from sim.study.power_cut import cut_power
from sim.units import parse_quantity

FOLDER: Final = TOP / "docs" / "runs" / "scenarios"
# Folders of sim that no figure of a run depends on.
_NOT_SIMULATED: Final = ("cli", "report")

Figures = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One simulation: its figures, the digest of all that it left, and the CPU time it took."""

    seed: int
    figures: dict[str, Any]
    digest: str
    cpu_s: float

    def is_same(self, other: "Sample") -> bool:
        """Return whether the same was simulated, whatever time it took."""
        mine, others = ((one.seed, one.figures, one.digest) for one in (self, other))
        return mine == others


@dataclass(kw_only=True)
class Stored:
    """What is known of one run."""

    command: str
    sources: str
    date: str = ""  # of the simulation; "" of what was stored without
    samples: list[Sample] = field(default_factory=list)

    @property
    def cheapest(self) -> int:
        """Return the number of the sample that takes the least CPU time."""
        return min(range(len(self.samples)), key=lambda i: self.samples[i].cpu_s)


def scenario_of(run: Run, number: int) -> Scenario:
    """Return the scenario of a sample; raise ScenarioError."""
    fit = fit_of(run)
    layer = fit.layer(fit.member(number)) if fit is not None else None
    base = load(run.scenario, what_if=run.what_if, sets=run.sets, fit=layer)
    return load(
        run.scenario, what_if=run.what_if, sets=run.sets, fit=layer, seed=base.seed + number
    )


def fit_of(run: Run) -> Fit | None:
    """Return the fit whose members a run is made with."""
    return None if run.fit is None else read_fit(shipped_fit(run.fit), run.scenario)


def simulate(what: Run | Exercise, number: int) -> Sample:
    """Simulate one sample."""
    begin_s = time.process_time()
    seed, figures, digest = (
        _fill(what) if isinstance(what, Exercise) else _simulate_run(what, number)
    )
    took_s = round(time.process_time() - begin_s, 1)
    return Sample(seed=seed, figures=figures, digest=digest, cpu_s=took_s)


def _simulate_run(run: Run, number: int) -> tuple[int, dict[str, Any], str]:
    scenario = scenario_of(run, number)
    if run.crash_at is None:
        done = run_once(scenario, scenario.seed)
        return scenario.seed, dict(done.metrics), done.digest
    [cut] = cut_power(scenario, int(parse_quantity(run.crash_at, "time_ns")), 1).cuts
    return scenario.seed, dict(cut.figures), ""


def _fill(exercise: Exercise) -> tuple[int, dict[str, Any], str]:
    """Fill an exercise table; its rows are the figures."""
    return SEED, {"rows": fill(subject_of(exercise), SEED)}, ""


def subject_of(exercise: Exercise) -> Subject:
    """Return the table that the arguments of `iotwin table` ask for."""
    given = table_command.make_context(
        "table", list(exercise.arguments), **cli.context_settings
    ).params
    offer = TABLES[given["name"]]
    return offer.make(**{choice: given[choice] for choice in offer.choices})


# -- What a run is made of.


class Sources:
    """Digests of what decides the figures of a run."""

    def __init__(self, top: Path = TOP) -> None:
        self.top = top
        self._kernel = _digest(_simulated(top / "sim"), top)

    def of(self, what: Run | Exercise) -> str:
        """Return the digest of all that decides the figures of a run."""
        files: list[Path] = []
        if isinstance(what, Run):
            files = self._scenario_files(what.scenario)
            files += [shipped_fit(what.fit)] if what.fit else []
        return _digest(files, self.top, self._kernel)

    def _scenario_files(self, name: str) -> list[Path]:
        """Return the files of a scenario, and those of the neighbours that it names."""
        text = self._own_files(name)[0].read_text(encoding="utf-8")
        others = set(re.findall(r'^scenario = "([\w-]+)"', text, re.M)) - {name}
        return [path for one in (name, *sorted(others)) for path in self._own_files(one)]

    def _own_files(self, name: str) -> list[Path]:
        """Return the file of a scenario; of a case, its programs as well."""
        folder = self.top / HOME.name
        case = folder / name.replace("-", "_") / SCENARIO
        if not case.is_file():
            return [folder / f"{name}.toml"]
        programs = sorted(case.parent.glob("*.py"))
        return [case, *(path for path in programs if not path.name.startswith("test_"))]


def _simulated(folder: Path) -> list[Path]:
    return sorted(
        path
        for suffix in ("*.py", "*.toml")
        for path in folder.rglob(suffix)
        if path.relative_to(folder).parts[0] not in _NOT_SIMULATED
    )


def _digest(paths: Iterable[Path], top: Path, begin: str = "") -> str:
    total = hashlib.sha256(begin.encode())
    for path in paths:
        if path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{path.relative_to(top).as_posix()} {content}\n".encode())
    return total.hexdigest()[:16]


# -- The files.


class Store:
    """Stored runs, one file for each scenario (and one for the exercise tables)."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.files: dict[str, dict[str, Stored]] = {
            path.stem: _read(path) for path in sorted(folder.glob("*.json"))
        }

    def get(self, what: Run | Exercise) -> Stored | None:
        """Return what is stored of a run."""
        return self.files.get(_file_of(what), {}).get(what.command)

    def put(self, what: Run | Exercise, stored: Stored) -> None:
        """Keep a run, in its file at once."""
        name = _file_of(what)
        runs = self.files.setdefault(name, {})
        runs[what.command] = stored
        self._write(name)

    def keep_only(self, commands: set[str]) -> None:
        """Forget the runs that no table asks for."""
        for name, runs in self.files.items():
            if not runs.keys() <= commands:
                self.files[name] = {key: one for key, one in runs.items() if key in commands}
                self._write(name)

    def _write(self, name: str) -> None:
        path = self.folder / f"{name}.json"
        runs = self.files[name]
        if not runs:
            path.unlink(missing_ok=True)
            return
        text = ",\n".join(_to_text(runs[key]) for key in sorted(runs))
        self.folder.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".new")
        beside.write_text(f"[\n{text}\n]\n", encoding="utf-8")
        os.replace(beside, path)


def _file_of(what: Run | Exercise) -> str:
    return what.scenario if isinstance(what, Run) else "exercises"


def _to_text(stored: Stored) -> str:
    """Return one run, a sample a line."""
    samples = ",\n  ".join(
        json.dumps(
            {
                "seed": one.seed,
                "cpu_s": one.cpu_s,
                "digest": one.digest,
                "figures": one.figures,
            }
        )
        for one in stored.samples
    )
    known = {"command": stored.command, "sources": stored.sources, "date": stored.date}
    head = json.dumps(known).strip("{}")
    return f' {{{head}, "samples": [\n  {samples}\n ]}}'


def _read(path: Path) -> dict[str, Stored]:
    found = {}
    for run in json.loads(path.read_text(encoding="utf-8")):
        samples = [Sample(**one) for one in run["samples"]]
        stored = Stored(
            command=run["command"],
            sources=run["sources"],
            date=run.get("date", ""),
            samples=samples,
        )
        found[stored.command] = stored
    return found


# -- Work for several processes.


class RunFailed(Exception):
    """Some runs ended with an error; the others are stored."""


class Tell(Protocol):
    """Is told a line about what was done."""

    def __call__(self, line: str) -> None:
        """Take the line."""


def make(
    wanted: Mapping[Run | Exercise, int], store: Store, laboratory: Laboratory, tell: Tell
) -> None:
    """Simulate the samples that are not stored, or of other sources; store each run when done."""
    sources = Sources()
    left: dict[Run | Exercise, dict[int, Sample | None]] = {}
    for what, number in wanted.items():
        stored = store.get(what)
        known = stored.samples if stored and stored.sources == sources.of(what) else []
        left[what] = {i: known[i] if i < len(known) else None for i in range(number)}
    todo = [(what, i) for what, found in left.items() for i, one in found.items() if one is None]
    total = len(todo)
    failed: list[str] = []
    tell(f"{total} simulations to do, of {sum(wanted.values())}")

    def finish(number: int, sample: Sample | str) -> None:
        what, i = todo[number]
        if isinstance(sample, str):
            failed.append(f"{_named(what, i)}: {sample}")
            return
        left[what][i] = sample
        samples = [one for one in left[what].values() if one is not None]
        if len(samples) == len(left[what]):
            stored = Stored(
                command=what.command,
                sources=sources.of(what),
                date=datetime.date.today().isoformat(),
                samples=samples,
            )
            store.put(what, stored)
            cpu_s = sum(one.cpu_s for one in samples)
            done = f"[{laboratory.done}/{total}]"
            tell(f"{done} {what.command}: {len(samples)} samples, {cpu_s:.0f} s of CPU")

    laboratory.map(_tried, todo, [_named(*one) for one in todo], each=finish)
    if failed:
        raise RunFailed("\n".join(failed))


def _named(what: Run | Exercise, number: int) -> str:
    return f"{what.command}, sample {number}"


def _tried(one: tuple[Run | Exercise, int]) -> Sample | str:
    """Simulate one sample; return what went wrong as a text, so that the others go on."""
    try:
        return simulate(*one)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
