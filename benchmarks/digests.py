"""Say whether a change of the code changes a result: python -m benchmarks.digests [NAME...].

Every scenario and each of its what-ifs runs until some seconds after its last program has started.
One line each tells the digest of what the run left: all of /proc, and all that programs reported.

    python -m benchmarks.digests > before.txt
    ... edit ...
    python -m benchmarks.digests --against before.txt

prints the lines that differ and ends with 1 if there are any.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

from sim.machine import simulate
from sim.scenario import load
from sim.scenario.load import headlines
from sim.study.executors import processes
from sim.units import NS_PER_S

Trial = tuple[str, str | None, int]  # scenario, what-if, seconds after the last start


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digests", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios; all if none is named")
    parser.add_argument("--seconds", type=int, default=5, help="after the last start (default 5)")
    parser.add_argument("--against", type=Path, metavar="FILE", help="what an earlier run printed")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side (default 2)")
    options = parser.parse_args(arguments)
    known = [one.name for one in headlines()]
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; known: {', '.join(known)}")
    if options.against is not None and not options.against.is_file():
        parser.error(f"no file {options.against}")
    return options


def digest_of(trial: Trial) -> str:
    """Run the beginning of one variant of a scenario; return its line."""
    name, what_if, seconds = trial
    scenario = load(name, what_if=what_if)
    started_ns = max(getattr(one.params, "start_ns", 0) for one in scenario.processes.values())
    duration_ns = min(scenario.run.duration_ns, started_ns + seconds * NS_PER_S)
    interval_ns = min(scenario.measure.interval_ns, duration_ns)
    cut = replace(
        scenario,
        run=replace(scenario.run, duration_ns=duration_ns),
        measure=replace(scenario.measure, interval_ns=interval_ns),
    )
    return f"{name} {what_if or 'base'} {simulate(cut, scenario.seed).digest()}"


def lines(names: Sequence[str], seconds: int, executor: Executor) -> Iterator[str]:
    """Yield the line of every variant of the scenarios, in their order."""
    trials = [
        (one.name, what_if, seconds)
        for one in headlines()
        if one.name in names or not names
        for what_if in (None, *one.what_ifs)
    ]
    yield from executor.map(digest_of, trials)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the digests, or those that differ from an earlier run's; return the exit code."""
    options = parse_options(arguments)
    before = None
    if options.against is not None:
        before = set(options.against.read_text(encoding="utf-8").splitlines())
    differing = 0
    with processes(options.jobs) as executor:
        for line in lines(options.names, options.seconds, executor):
            if before is None or line not in before:
                print(line, flush=True)
                differing += before is not None
    if before is not None:
        print(f"{differing} digests differ", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
