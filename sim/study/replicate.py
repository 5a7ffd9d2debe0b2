"""Run a scenario several times, with common random numbers, here or in other processes.

Models: an experiment that is repeated under other chances.
Linux counterpart: none.
Invariants: replication i has seed base + i, for every variant alike, so that variants meet the same
 arrivals and differ only by what was changed; results come in the order of variants and seeds,
 whatever the number of processes.
Left out: deciding the number of replications from a wanted precision.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager
from importlib import import_module
from typing import ParamSpec, TypeVar

from sim.machine import simulate
from sim.scenario.spec import Scenario
from sim.study.block_dump import BLOCKS, BlockDump
from sim.study.metrics import compute_histograms, compute_metrics
from sim.study.outcome import Replication

P = ParamSpec("P")
T = TypeVar("T")
Progress = Callable[[int, int], None]


def run_once(scenario: Scenario, seed: int, keep: bool, progress: Progress | None) -> Replication:
    """Simulate and compute the figures."""
    if BLOCKS in scenario.measure.families:
        dump = BlockDump(keep_lines=False)
        result = dump.in_result(simulate(scenario, seed, progress, dump.attach))
    else:
        result = simulate(scenario, seed, progress)
    return Replication(
        seed=seed,
        metrics=compute_metrics(result, scenario.measure),
        histograms=compute_histograms(result, scenario.measure),
        digest=result.digest(),
        result=result if keep else None,
    )


def replicate(
    scenarios: Sequence[Scenario],
    replications: int,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> list[list[Replication]]:
    """Return for each scenario its replications, seeds from its own on.

    Without an executor all runs follow each other here. `progress` is told work done and in all,
    in units that only their ratio gives a meaning to.
    """
    tasks = [(one, one.seed + i, i == 0) for one in scenarios for i in range(replications)]
    if executor is None:
        done = _run_here(tasks, progress)
    else:
        done = _run_elsewhere(tasks, executor, progress)
    return [done[i : i + replications] for i in range(0, len(done), replications)]


Task = tuple[Scenario, int, bool]


def _run_here(tasks: Sequence[Task], progress: Progress | None) -> list[Replication]:
    done = []
    for number, (scenario, seed, keep) in enumerate(tasks):
        share = None if progress is None else ShareOfProgress(progress, number, len(tasks))
        done.append(run_once(scenario, seed, keep, share))
    return done


def _run_elsewhere(
    tasks: Sequence[Task], executor: Executor, progress: Progress | None
) -> list[Replication]:
    futures: list[Future[Replication]] = [
        executor.submit(run_once, scenario, seed, keep, None) for scenario, seed, keep in tasks
    ]
    for number, _done in enumerate(as_completed(futures), start=1):
        if progress is not None:
            progress(number, len(futures))
    return [future.result() for future in futures]


class ShareOfProgress:
    """The progress of one run as a part of the progress of all."""

    def __init__(self, progress: Progress, number: int, total: int) -> None:
        self.progress = progress
        self.number = number
        self.total = total

    def __call__(self, done: int, total: int) -> None:
        # A run that ends between two readings is asked for a little more than its whole.
        self.progress(self.number * total + min(done, total), self.total * total)


def cores() -> int:
    """Return how many CPUs this process may use, as far as the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Here(Executor):
    """An executor without processes: what is submitted is done at once."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Do the work; its error is the future's."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def processes(jobs: int) -> Iterator[Executor]:
    """Yield an executor of `jobs` processes that start clean, whatever the parent has loaded.

    They go when it is left; at once, with the work they are at, if that is by an error or Ctrl-C.
    Where there are no processes, as in a browser, the work is done in this one.
    """
    others = set(multiprocessing.active_children())
    executor = _workers(jobs)
    try:
        yield executor
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _workers(jobs: int) -> Executor:
    try:
        # By name: where there are no processes, it cannot be imported.
        executor = import_module("sim.study.workers").Workers(jobs)
    except (ImportError, NotImplementedError, OSError):
        return Here()
    assert isinstance(executor, Executor)
    return executor
