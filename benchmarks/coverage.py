"""Count how often the fit's 90 % intervals hold the truth: python -m benchmarks.coverage.

Synthetic recordings of the sendmail storm, from parameters drawn from the priors, each fitted by
the whole chain (calibration/fit/sbc.py). The storm is shortened (--messages) to take minutes. With
--keep each fitted recording is a line of a file, and the next run goes on from there: forty fits of
48 simulations are some 45 minutes of CPU.
"""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from calibration.fit.chain import Plan, first_wave
from calibration.fit.recorded import columns_of
from calibration.fit.sbc import (
    Outcome,
    coverage,
    fit_one,
    fit_shared,
    halves_of,
    shared_wave,
    synthesise,
)
from calibration.fit.space import Space
from sim.scenario import load
from sim.study.executors import place_of
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.trial import model

BINS = 5  # of the histogram of ranks


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--recordings", type=int, default=48, help="synthetic recordings")
    parser.add_argument("--messages", type=int, default=400, help="messages of the storm")
    parser.add_argument("--simulations", type=int, default=96, help="points of each fit")
    parser.add_argument(
        "--shared", action="store_true", help="all points in one wave, which all recordings share"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the ranks to FILE as well")
    parser.add_argument(
        "--keep", metavar="FILE", type=Path, help="keep each fit in FILE, and go on from there"
    )
    return parser.parse_args()


def tell(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)


class Kept:
    """The file of what is fitted: the run that it is of, then a line for each recording."""

    def __init__(self, path: Path | None, run: Sequence[object]) -> None:
        """Read what is there; SystemExit if it is of another run."""
        self._path = path
        self.outcomes: dict[int, Outcome] = {}
        head, *lines = self._lines() or [json.dumps(run)]
        if json.loads(head) != list(run):
            sys.exit(f"{path}: kept by another run, {head}; this one is {json.dumps(run)}")
        for line in lines:
            number, ranks, second, narrowed = json.loads(line)
            self.outcomes[number] = Outcome(
                ranks=tuple(ranks), second=second, narrowed=tuple(narrowed)
            )
        self._write("w", "\n".join([head, *lines]))

    def add(self, number: int, outcome: Outcome) -> None:
        """Keep the outcome of a recording."""
        self.outcomes[number] = outcome
        row = number, outcome.ranks, dict(outcome.second), outcome.narrowed
        self._write("a", json.dumps(row))

    def _lines(self) -> list[str]:
        """Return the whole lines: the last one of a run that was killed may be cut."""
        if self._path is None or not self._path.exists():
            return []
        whole, _line_feed, _cut = self._path.read_text(encoding="utf-8").rpartition("\n")
        return whole.splitlines()

    def _write(self, mode: str, line: str) -> None:
        if self._path is not None:
            with self._path.open(mode, encoding="utf-8") as file:
                file.write(line + "\n")


def fit_all(plan: Plan, number: int, jobs: int, kept: Kept, *, shared: bool) -> list[Outcome]:
    """Synthesise and fit what is not kept; the outcomes in order of the recordings."""
    if len(kept.outcomes) == number:
        return [kept.outcomes[i] for i in range(number)]
    columns = columns_of(load(plan.scenario), plan.spec, plan.states)
    fit = fit_shared if shared else fit_one
    laboratory = Laboratory(place_of("local", jobs), measure=halves_of)
    tell(f"simulating the first wave and {number} recordings")
    space = Space(plan.spec.priors)
    wave = shared_wave(plan, laboratory) if shared else first_wave(plan, space, laboratory)
    recordings = synthesise(plan, number, laboratory)
    left = [one for one in recordings if one.number not in kept.outcomes]

    def keep(i: int, outcome: Outcome) -> None:
        kept.add(left[i].number, outcome)
        tell(f"fitted {len(kept.outcomes)} of {number}")

    names = [f"the fit of recording {one.number}" for one in left]
    laboratory.map(partial(fit, plan, wave, columns), left, names, each=keep)
    return [kept.outcomes[i] for i in range(number)]


def histogram(ranks: Sequence[float]) -> str:
    """Return the counts of ranks in equal bins: level, if all is well."""
    counts = [sum(int(rank * BINS) == i for rank in ranks) for i in range(BINS - 1)]
    return " ".join(f"{count:3d}" for count in [*counts, len(ranks) - sum(counts)])


def print_table(plan: Plan, outcomes: Sequence[Outcome]) -> None:
    """Print coverage and histogram of ranks, of parameters and of second halves."""
    print(f"{'parameter':<40} {'coverage':>8} {'narrowed':>8}   ranks, in fifths")
    for i, prior in enumerate(plan.spec.priors):
        ranks = [one.ranks[i] for one in outcomes]
        narrowed = sum(one.narrowed[i] for one in outcomes) / len(outcomes)
        shown = f"{100 * coverage(ranks):6.0f} % {100 * narrowed:6.0f} %"
        print(f"{prior.path:<40} {shown}   {histogram(ranks)}")
    names = dict.fromkeys(name for one in outcomes for name in one.second)
    if not names:
        return
    print(f"\n{'second half, predicted from the first':<40} {'coverage':>8}")
    for name in names:
        ranks = [one.second[name] for one in outcomes if name in one.second]
        print(f"{name:<40} {100 * coverage(ranks):6.0f} %            {histogram(ranks)}")


def main() -> None:
    """Fit all, print the table, write the JSON."""
    options = parse_options()
    warnings.simplefilter("ignore")
    spec = load("sendmail").calibrate
    assert spec is not None
    plan = Plan(
        scenario="sendmail",
        spec=spec,
        states=(spec.base.figures,),
        seed=options.seed,
        simulations=options.simulations,
        sets=(f"process.blast.messages={options.messages}",),
    )
    run = [
        options.seed,
        options.recordings,
        options.messages,
        options.simulations,
        options.shared,
        model(),
    ]
    kept = Kept(options.keep, run)
    try:
        outcomes = fit_all(plan, options.recordings, options.jobs, kept, shared=options.shared)
    except UnfinishedError as error:
        tell(str(error))
        sys.exit(error.shortfall.exit_code)
    print_table(plan, outcomes)
    if options.json:
        rows = [{"ranks": one.ranks, "second": dict(one.second)} for one in outcomes]
        options.json.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
