"""Processes that runs are done in: none is forgotten, and none outlives its parent.

Models: nothing.
Linux counterpart: prctl(2) PR_SET_PDEATHSIG.
Invariants: a worker starts clean, ignores Ctrl-C, which its parent answers, and ends when its
 parent does, however that ended.
Left out: other machines.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Workers(ProcessPoolExecutor):
    """Processes none of which is forgotten because Ctrl-C came while it was started."""

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs, mp_context=clean_context(), initializer=begin)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start processes as they are needed, and interrupt afterwards."""
        with _interrupt_afterwards():
            return super().submit(fn, *args, **kwargs)


def clean_context() -> ForkServerContext | SpawnContext:
    """Return the quickest way to start a process that inherits nothing of this one."""
    # A server that forks clean processes is quicker than one interpreter after the other.
    if "forkserver" in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("forkserver")
    return multiprocessing.get_context("spawn")


@contextmanager
def _interrupt_afterwards() -> Iterator[None]:
    """Put a Ctrl-C off until the end; only the main thread is interrupted at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    usual = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        signal.raise_signal(signal.SIGINT)


def begin() -> None:
    """Leave Ctrl-C, which the terminal sends to all, to the parent; watch whether it lives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for the parent's end, and end at once.

    A worker would wait for work for ever: it holds both ends of the pipe that work comes by.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
