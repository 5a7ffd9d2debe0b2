"""Where trials are done: here, in processes of this machine, on a Dask cluster, or elsewhere.

Models: nothing.
Linux counterpart: none.
Invariants: whatever the place, a piece of work comes back with its value or its error; worker
 processes start clean, whatever the parent has loaded, and go with it. A worker whose sources are
 not the client's does nothing.
Left out: starting a cluster. `iotwin cluster` says how.

What --executor may say:

    here                      in this process, one after the other
    local                     one process for each CPU; local:4, four
    dask://HOST:PORT          a Dask scheduler and its workers (extra `cluster`)
    MODULE:CALLABLE           what CALLABLE() returns, any concurrent.futures.Executor
"""

import multiprocessing
import os
import platform
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Final, ParamSpec, TypeVar

from sim.study.trial import model

P = ParamSpec("P")
T = TypeVar("T")

ALLOWED: Final = "here, local, local:N, dask://HOST:PORT, or MODULE:CALLABLE"
_LOCAL: Final = re.compile(r"local(?::(\d+))?")
_DASK: Final = re.compile(r"dask://([^/\s:]+|\[[^\]\s]+\]):(\d+)")
_CALLABLE: Final = re.compile(r"([\w.]+):(\w+)")
_AHEAD: Final = 2  # pieces of work at a worker or on their way to it, on a cluster


class BadExecutorError(ValueError):
    """What --executor names is nothing, cannot be reached, or is no executor."""


class OtherSourcesError(RuntimeError):
    """A worker simulates by other sources than the client."""


def cores() -> int:
    """Return how many CPUs this process may use, as far as the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Place:
    """Where work is done, and how much of it at a time; `jobs` 0: in this process.

    `start` makes the executor, for so many pieces at a time. `model` is that of the client where a
    worker's must still be compared with it. `lost` are errors that tell of a worker's end.
    """

    jobs: int
    start: Callable[[int], Executor]
    model: str = ""
    lost: tuple[type[BaseException], ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether nothing else than this process is needed."""
        return not self.jobs


def place_of(text: str, jobs: int | None = None) -> Place:
    """Return the place that --executor names; `jobs` is what --jobs says.

    Raise BadExecutorError. A cluster is asked for its workers, and refused if one of them has other
    sources; processes are not started yet.
    """
    if text == "here":
        return HERE
    if found := _LOCAL.fullmatch(text):
        number = int(found[1]) if found[1] else (jobs or cores())
        if not number:
            raise BadExecutorError(f"--executor {text}: no process at all (allowed: {ALLOWED})")
        return Place(number, workers) if number > 1 else HERE
    if found := _DASK.fullmatch(text):
        return _dask(text, f"tcp://{found[1]}:{found[2]}")
    if found := _CALLABLE.fullmatch(text):
        return Place(jobs or cores(), _called(text, found[1], found[2]), model())
    raise BadExecutorError(f"--executor '{text}' (allowed: {ALLOWED})")


def workers(jobs: int) -> Executor:
    """Return an executor of `jobs` processes; of this one where there are no processes."""
    try:
        # By name: where there are no processes, it cannot be imported.
        executor = import_module("sim.study.workers").Workers(jobs)
    except (ImportError, NotImplementedError, OSError):
        return Here()
    assert isinstance(executor, Executor)
    return executor


@contextmanager
def processes(jobs: int) -> Iterator[Executor]:
    """Yield an executor of `jobs` processes that start clean, whatever the parent has loaded.

    They go when it is left; at once, with the work they are at, if that is by an error or Ctrl-C.
    Where there are no processes, as in a browser, the work is done in this one.
    """
    with ending(lambda: workers(jobs)) as executor:
        yield executor


@contextmanager
def ending(start: Callable[[], Executor]) -> Iterator[Executor]:
    """Yield an executor that ends when it is left, and at once if that is by an error or Ctrl-C."""
    others = set(multiprocessing.active_children())
    executor = start()
    try:
        yield executor
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


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


HERE: Final = Place(0, lambda _jobs: Here())


def check_sources(expected: str) -> None:
    """Raise OtherSourcesError if this process simulates by other sources than `expected`."""
    if model() != expected:
        where = f"{platform.node()}, process {os.getpid()}"
        raise OtherSourcesError(
            f"the worker on {where} simulates by other sources ({model()[:8]}) than this"
            f" command ({expected[:8]}): install the same iotwin on both"
        )


# -- Elsewhere


def _called(text: str, module: str, name: str) -> Callable[[int], Executor]:
    """Return what makes the executor of a user's own."""
    try:
        made = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise BadExecutorError(f"--executor {text}: {error} (allowed: {ALLOWED})") from None

    def start(_jobs: int) -> Executor:
        executor = made()
        if not isinstance(executor, Executor):
            kind = type(executor).__name__
            raise BadExecutorError(
                f"--executor {text}: it returned a {kind}, not a concurrent.futures.Executor"
            )
        return executor

    return start


def _dask(text: str, address: str) -> Place:
    """Return a cluster; raise BadExecutorError if nobody answers or nobody works there."""
    distributed = import_module("distributed")
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except OSError as error:
        raise BadExecutorError(f"--executor {text}: no scheduler answers ({error})") from None
    threads = sum(client.nthreads().values())
    if not threads:
        client.close()
        raise BadExecutorError(f"--executor {text}: it has no worker (`iotwin cluster` tells how)")
    own = model()
    others = {worker: told for worker, told in _models(client, text).items() if told != own}
    if others:
        client.close()
        named = ", ".join(f"{worker} ({told[:8]})" for worker, told in sorted(others.items()))
        raise BadExecutorError(
            f"--executor {text}: other sources than here ({own[:8]}) on {named}:"
            " install the same iotwin on all"
        )
    client.close()

    def start(_jobs: int) -> Executor:
        # A connection for each executor: the place may be worked at more than once.
        return _DaskExecutor(distributed.Client(address, timeout=10, set_as_default=False))

    return Place(_AHEAD * threads, start, lost=(distributed.scheduler.KilledWorker,))


def _models(client: object, text: str) -> dict[str, str]:
    run = getattr(client, "run")  # noqa: B009 - a client without types
    try:
        return dict(run(model))
    except Exception as error:  # what a worker without iotwin raises is of any kind
        raise BadExecutorError(
            f"--executor {text}: a worker cannot import iotwin ({error}): install the same iotwin"
        ) from None


class _DaskExecutor(Executor):
    """Dask's own executor, which ends with its client."""

    def __init__(self, client: object) -> None:
        self._client = client
        self._inner: Executor = getattr(client, "get_executor")(pure=False)  # noqa: B009

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Send the work to the scheduler."""
        return self._inner.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the executor, then the connection."""
        self._inner.shutdown(wait=wait and not cancel_futures)
        getattr(self._client, "close")()  # noqa: B009
