"""Simulations of a fit: a design's points in every recorded state, and a journal of what is done.

Models: a laboratory notebook.
Linux counterpart: none.
Invariants: a simulation is known by what determines it (version, scenario text, variant, parameter
 values, seed), so that a journal may be of any part of any fit of any order; a line is written when
 its simulation is done; a line that was cut off is done again.
Left out: sharing a journal between two fits at the same time.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

import sim
from sim.scenario import Scenario, load
from sim.scenario.fitted import fit_layer
from sim.study.laboratory import run_once

Figures = Mapping[str, float]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Trial:
    """One simulation to be done: a variant of the scenario with given parameters and seed."""

    scenario: str
    what_if: str | None
    values: tuple[tuple[str, str], ...]
    seed: int
    sets: tuple[str, ...] = ()
    duration_ns: int | None = None  # at most, if shorter than the scenario's

    def load(self) -> Scenario:
        """Return the scenario to run; raise ScenarioError."""
        layer = fit_layer(dict(self.values), "fit: design")
        scenario = load(
            self.scenario, what_if=self.what_if, sets=self.sets, seed=self.seed, fit=layer
        )
        if self.duration_ns is None or self.duration_ns >= scenario.run.duration_ns:
            return scenario
        return replace(scenario, run=replace(scenario.run, duration_ns=self.duration_ns))

    def key(self, text: str) -> str:
        """Return what identifies the simulation, given the scenario's text."""
        parts = (sim.__version__, text, self.what_if, self.values, self.sets, self.duration_ns)
        return hashlib.sha256(repr((parts, self.seed)).encode()).hexdigest()[:32]


class Journal:
    """Figures of simulations by key, in a file of JSON lines; None keeps them in memory only."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._known: dict[str, Figures] = {}

    def resume(self) -> int:
        """Read what an interrupted fit left; return how many simulations that is."""
        if self.path is not None and self.path.exists():
            self._known.update(_entries(self.path.read_text(encoding="utf-8", errors="replace")))
        return len(self._known)

    def __len__(self) -> int:
        """Return how many simulations are done."""
        return len(self._known)

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self.remove()

    def remove(self) -> None:
        """Remove the file: what it was for is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def get(self, key: str) -> Figures | None:
        """Return the figures of a simulation that is done."""
        return self._known.get(key)

    def add(self, key: str, figures: Figures) -> None:
        """Keep the figures of a simulation, on disk before anything else happens."""
        self._known[key] = figures
        if self.path is None:
            return
        with self.path.open("a", encoding="utf-8") as file:
            # A line of its own even behind one that was cut off.
            file.write("\n" + json.dumps({"key": key, "figures": dict(figures)}))
            file.flush()
            os.fsync(file.fileno())


def _entries(text: str) -> Iterator[tuple[str, Figures]]:
    """Yield the whole lines of a journal."""
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # empty, or cut off by the interrupt: that simulation is done again
        if isinstance(entry, dict) and isinstance(entry.get("figures"), dict):
            yield str(entry.get("key")), entry["figures"]


class Laboratory:
    """Runs trials in an executor's processes, those that the journal has not."""

    def __init__(
        self,
        text: str,
        journal: Journal,
        executor: Executor | None,
        progress: Progress | None,
        simulate: "Callable[[Trial], Figures] | None" = None,
    ) -> None:
        self.simulate = simulate or simulate_trial
        self.text = text
        self.journal = journal
        self.executor = executor
        self.progress = progress
        self.done = 0
        self.planned = 0  # in all, as the caller announces it: what progress is a part of

    def figures(self, trials: Sequence[Trial]) -> list[Figures]:
        """Return the figures of trials, in their order."""
        keys = [trial.key(self.text) for trial in trials]
        missing = {
            key: trial
            for key, trial in zip(keys, trials, strict=True)
            if self.journal.get(key) is None
        }
        self._count(len(trials) - len(missing))
        if self.executor is None:
            for key, trial in missing.items():
                self._finish(key, self.simulate(trial))
        else:
            self._run_elsewhere(self.executor, missing)
        return [dict(self.journal.get(key) or {}) for key in keys]

    def _run_elsewhere(self, executor: Executor, missing: Mapping[str, Trial]) -> None:
        futures = {executor.submit(self.simulate, one): key for key, one in missing.items()}
        for future in as_completed(futures):
            self._finish(futures[future], future.result())

    def _finish(self, key: str, figures: Figures) -> None:
        self.journal.add(key, figures)
        self._count(1)

    def _count(self, number: int) -> None:
        self.done += number
        if self.progress is not None:
            self.progress(self.done, max(self.planned, self.done))


def simulate_trial(trial: Trial) -> Figures:
    """Simulate; return the figures by metric."""
    return run_once(trial.load(), trial.seed, False, None).metrics
