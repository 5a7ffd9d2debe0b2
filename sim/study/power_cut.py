"""The power goes at a moment: what was promised and is lost.

Models: somebody who pulls the plug, boots again, and compares the queue with what the senders were
told (`promises`).
Linux counterpart: none.
Invariants: the run up to the cut is that of `run`.
Left out: what the programs do after the next boot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import sim
from sim.machine import simulate
from sim.scenario import Scenario
from sim.study.laboratory import Laboratory, Progress
from sim.study.promises import UNITS, Left, Watcher, ending_at
from sim.study.summary import Summary, summarise_all


class NothingPromisedError(Exception):
    """No program of the scenario promises that anything survives."""


class MomentError(ValueError):
    """The run is over by then, or has not begun."""


@dataclass(frozen=True)
class Cut:
    """One run that ended in the dark."""

    seed: int
    figures: dict[str, float]
    left: Mapping[str, Left]  # by mount point


@dataclass(frozen=True)
class PowerCut:
    """All runs of a study."""

    scenario: Scenario
    at_ns: int
    cuts: tuple[Cut, ...]
    figures: dict[str, Summary]
    version: str


def cut_power(
    scenario: Scenario, at_ns: int, replications: int, laboratory: Laboratory | None = None
) -> PowerCut:
    """Run the scenario up to ``at_ns`` under successive seeds, and look what remains.

    Raises MomentError before anything runs, NothingPromisedError, and UnmodelledError where no
    mechanism tells what remains.
    """
    longest_ns = scenario.run.duration_ns
    if not 0 < at_ns <= longest_ns:
        raise MomentError(
            f"{at_ns / 1e9:g} s is not within the run: more than 0, at most {longest_ns / 1e9:g} s"
        )
    seeds = [scenario.seed + number for number in range(replications)]
    names = [f"{scenario.label}, cut at {at_ns / 1e9:g} s, seed {seed}" for seed in seeds]
    work = partial(_cut, scenario, at_ns)
    cuts = (laboratory or Laboratory()).map(work, seeds, names, tells=True)
    figures = summarise_all([cut.figures for cut in cuts], UNITS)
    return PowerCut(scenario, at_ns, tuple(cuts), figures, sim.__version__)


def _cut(scenario: Scenario, at_ns: int, seed: int, progress: Progress | None = None) -> Cut:
    """Run once; the last reading of /proc comes at the cut."""
    ended = ending_at(scenario, [at_ns])
    watcher = Watcher(ended, [at_ns])
    simulate(ended, seed, watcher.told(progress), watcher.watch)
    if not watcher.has_promises:
        raise NothingPromisedError(
            f"{scenario.name}: until {at_ns / 1e9:g} s no program has promised anything that a"
            " power cut could break (sendmail does, at its answer 250)"
        )
    [figures] = watcher.figures
    return Cut(seed, figures, watcher.left)
