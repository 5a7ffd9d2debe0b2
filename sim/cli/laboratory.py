"""The options --executor, --jobs and --store, and the laboratory that they open.

An option means the same in every command that has it. What opens a laboratory is imported when one
is opened: `--help` does without.
"""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sim.cli.progress import Progress

if TYPE_CHECKING:
    from sim.study.laboratory import Laboratory
    from sim.study.store import Store
    from sim.study.trial import Measure

EXECUTOR: Final = "local"
STORE_VARIABLE: Final = "IOTWIN_STORE"


@dataclass(frozen=True)
class Where:
    """Where runs are done, and where their outcomes are kept, as the options say."""

    executor: str
    jobs: int | None
    store: str | None  # None: the user's cache

    @contextmanager
    def laboratory(self, label: str, measure: "Measure | None" = None) -> "Iterator[Laboratory]":
        """Open a laboratory with progress under a label; say what is in the store.

        Raise click.UsageError for an executor or a store that is none.
        """
        executors = import_module("sim.study.executors")
        try:
            place = executors.place_of(self.executor, self.jobs)
        except executors.BadExecutorError as error:
            raise click.UsageError(str(error)) from None
        made = import_module("sim.study.laboratory").Laboratory
        more = {} if measure is None else {"measure": measure}
        with ExitStack() as stack:
            store = self._store(stack)
            told = "" if store is None else store.told
            laboratory = made(place, store=store, **more)
            is_done = False
            try:
                with Progress(label) as laboratory.progress, laboratory:
                    yield laboratory
                is_done = laboratory.done >= laboratory.planned
            finally:
                if store is not None and store.told != told:
                    click.echo(f"iotwin: {store.told}", err=True)  # damage that was met later
                _tell_stored(laboratory, is_done=is_done)

    def _store(self, stack: ExitStack) -> "Store | None":
        """Return the store; None if there is to be none, or if the user's cache cannot be used."""
        stores = import_module("sim.study.store")
        if self.store == stores.NONE:
            return None
        try:
            found: Store = stack.enter_context(
                stores.Store(Path(self.store) if self.store else stores.default_path())
            )
        except stores.StoreError as error:
            if self.store:
                raise click.UsageError(f"--store {error}") from None
            click.echo(f"iotwin: nothing is kept: {error}", err=True)
            return None
        if found.told:
            click.echo(f"iotwin: {found.told}", err=True)
        return found


def _tell_stored(laboratory: "Laboratory", *, is_done: bool) -> None:
    """Say which runs came out of the store; of a command that did not end, how many are there."""
    store, stored = laboratory.store, laboratory.known + laboratory.kept
    if store is None or not stored:
        return
    if not is_done:
        runs, them = ("1 run is", "it") if stored == 1 else (f"{stored} runs are", "them")
        told = f"{runs} kept in {store.path}: the same command again goes on with {them}"
    elif laboratory.known:
        told = (
            f"{laboratory.known} of {laboratory.done} runs were done before, and are in"
            f" {store.path} (--store none simulates them again)"
        )
    else:
        return
    click.echo(f"iotwin: {told}", err=True)


def laboratory_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --executor, --jobs and --store; it is called with `where`."""

    @click.option(
        "--executor",
        metavar="PLACE",
        default=EXECUTOR,
        show_default=True,
        help="Where to run: here, local[:N], dask://HOST:PORT, MODULE:CALLABLE.",
    )
    @click.option(
        "--jobs", type=click.IntRange(1), help="Runs at the same time (default: one per CPU)."
    )
    @click.option(
        "--store",
        metavar="FILE|none",
        envvar=STORE_VARIABLE,
        help="Keep finished runs in FILE (default: in the user's cache); none: nowhere.",
    )
    @functools.wraps(command)
    def with_where(
        *args: Any, executor: str, jobs: int | None, store: str | None, **more: Any
    ) -> Any:
        store = os.path.expanduser(store) if store else None
        return command(*args, where=Where(executor, jobs, store), **more)

    return with_where
