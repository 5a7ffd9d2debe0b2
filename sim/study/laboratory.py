"""The laboratory: trials in, outcomes out, in the order of the trials, wherever they are done.

Models: an assistant who carries out a plan, looks up what was done before, and tells what failed.
Linux counterpart: none.
Invariants: outcomes do not depend on the place or on the number of processes; a trial whose outcome
 is stored is not done again, one that is asked for twice is done once; an outcome is stored when
 its trial is done, before the next is looked at. A piece of work whose worker died is done again,
 alone, twice at most; the others go on.
Left out: retrying what raised an error: it would raise it again.

Theory. A pool of processes breaks as a whole when one of them is killed, and does not say at which
piece of work. So all pieces that were at a worker are suspects; each is done again with a process
of its own, and only its own end counts against it. At most as many pieces are under way as there
are workers and one more, so that the pieces of a study need not be in memory at once.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import cache, partial
from time import process_time
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from sim.histogram import from_plain
from sim.machine import Machine, simulate
from sim.observation import Observation
from sim.scenario.load import open_scenario
from sim.scenario.spec import Scenario
from sim.study.block_dump import BLOCKS, BlockDump
from sim.study.executors import HERE, Place, check_sources, ending
from sim.study.metrics import histograms_seen, metrics_seen
from sim.study.outcome import Replication, Seen, Shortfall
from sim.study.promises import Watcher
from sim.study.store import Row, Store
from sim.study.trial import Keys, Measure, Trial, model

A = TypeVar("A")
B = TypeVar("B")
Progress = Callable[[int, int], None]

TRIES: Final = 3  # of a piece of work whose worker dies
SHARES: Final = 1000  # of one run, in progress
EXIT_FAILED: Final = 1
EXIT_INTERRUPTED: Final = 130


class UnfinishedError(Exception, Generic[B]):
    """Not all work was done; `done` has None where an outcome lacks."""

    def __init__(self, done: Sequence[B | None], shortfall: Shortfall) -> None:
        super().__init__(shortfall.message)
        self.done = list(done)
        self.shortfall = shortfall


class Laboratory:
    """Does trials at a place, those whose outcome the store has not.

    A context manager for studies of several calls: inside, workers stay from one call to the next,
    which spares a second for each.
    """

    def __init__(
        self,
        place: Place = HERE,
        *,
        store: Store | None = None,
        progress: Progress | None = None,
        measure: Measure = metrics_seen,
    ) -> None:
        """Open a laboratory; `measure` makes the figures of a run."""
        self.place = place
        self.store = store
        self.progress = progress
        self.measure = measure
        self.planned = 0  # pieces of work in all, as the caller announces: for progress
        self.done = 0
        self.known = 0  # of those that are done, what the store had
        self.kept = 0  # and what was put into it
        self._keys = Keys(measure)
        self._opened = cache(open_scenario)  # a file is read once for all trials of it
        self._is_entered = False
        self._workers: Executor | None = None  # that stay, and what ends them
        self._end = ExitStack()

    def __enter__(self) -> "Laboratory":
        self._is_entered = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_entered, self._workers = False, None
        self._end.__exit__(kind, error, trace)

    # -- Trials

    def run(self, trials: Sequence[Trial]) -> list[Replication]:
        """Return the outcomes of trials, in their order.

        Raise ScenarioError before anything runs; UnfinishedError if some could not be done.
        """
        scenarios = [trial.resolve(self._opened) for trial in trials]
        keys = [self._keys.of(*one) for one in zip(scenarios, trials, strict=True)]
        kept = {key for key, trial in zip(keys, trials, strict=True) if trial.keep}
        found: dict[str, Replication] = {}
        chosen: dict[str, int] = {}  # key -> the trial that is done for it
        for number, key in enumerate(keys):
            if key in found or key in chosen:
                continue
            stored = None if key in kept else self._stored(key)
            if stored is None:
                chosen[key] = number
            else:
                found[key] = stored
        times = Counter(keys)
        known = sum(times[key] for key in found)
        if known:
            self.known += known
            self._count(known)
        work = [
            (stripped(scenarios[n]), trials[n].seed, key in kept, trials[n].cuts_ns)
            for key, n in chosen.items()
        ]
        todo = list(chosen.items())

        def finish(number: int, outcome: Replication) -> None:
            key, first = todo[number]
            self._put(key, trials[first], outcome)
            found[key] = outcome
            self._count(times[key])

        names = [trials[number].command for number in chosen.values()]
        try:
            self._map(partial(run_once, measure=self.measure), work, names, finish, tells=True)
        except UnfinishedError as error:
            partly = [found.get(key) for key in keys]
            raise UnfinishedError(partly, error.shortfall) from None
        return [found[key] for key in keys]

    def figures(self, trials: Sequence[Trial]) -> list[dict[str, float]]:
        """Return the figures of trials, in their order; see run()."""
        return [outcome.metrics for outcome in self.run(trials)]

    def _stored(self, key: str) -> Replication | None:
        row = self.store.get(key) if self.store is not None else None
        if row is None:
            return None
        seen = row.outcome["seen"]
        return Replication(
            seed=row.seed,
            metrics=dict(row.outcome["figures"]),
            digest=row.digest,
            histograms={mark: from_plain(one) for mark, one in row.outcome["histograms"].items()},
            seen=Seen(**(seen | {"missing": tuple(seen["missing"])})),
            cpu_s=row.cpu_s,
            result=None,
            cuts=tuple(row.outcome.get("cuts", ())),
        )

    def _put(self, key: str, trial: Trial, outcome: Replication) -> None:
        if self.store is None:
            return
        self.store.put(
            Row(
                key=key,
                scenario=trial.scenario,
                what_if=trial.what_if,
                sets=(*(f"{path}={value}" for path, value in trial.values), *trial.sets),
                seed=trial.seed,
                model=model(),
                digest=outcome.digest,
                cpu_s=outcome.cpu_s,
                outcome={
                    "figures": outcome.metrics,
                    "histograms": {mark: one.plain() for mark, one in outcome.histograms.items()},
                    "seen": asdict(outcome.seen),
                }
                | ({"cuts": list(outcome.cuts)} if outcome.cuts else {}),
            )
        )
        self.kept += 1

    def _count(self, number: int) -> None:
        self.done += number
        self._tell(0)

    def _tell(self, share: int) -> None:
        """Tell progress; `share` is that of a run that is under way here."""
        if self.progress is not None:
            whole = max(self.planned, self.done + bool(share))
            self.progress(self.done * SHARES + share, whole * SHARES)

    # -- Any work

    def map(
        self,
        function: Callable[..., B],
        items: Sequence[A],
        names: Sequence[str],
        *,
        tells: bool = False,
        each: Callable[[int, B], None] | None = None,
    ) -> list[B]:
        """Return function(item) for each item, in their order; `names` say what each is.

        `tells`: the function takes `progress` as well. `each` is called with the number of an item
        and its value as soon as that is known. Raise what the function raises; UnfinishedError if
        it was interrupted or a worker died.
        """
        found: dict[int, B] = {}

        def finish(number: int, value: B) -> None:
            found[number] = value
            self._count(1)
            if each is not None:
                each(number, value)

        try:
            self._map(function, [(item,) for item in items], names, finish, tells=tells)
        except UnfinishedError as error:
            partly = [found.get(number) for number in range(len(items))]
            raise UnfinishedError(partly, error.shortfall) from None
        return [found[number] for number in range(len(items))]

    def _map(
        self,
        function: Callable[..., B],
        work: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        finish: Callable[[int, B], None],
        *,
        tells: bool,
    ) -> None:
        """Do work at the place; `finish` is told each outcome as it comes."""
        self.planned = max(self.planned, self.done + len(work))
        bench = _Bench(function, work, finish)
        try:
            if self.place.is_here or len(work) == 1:
                bench.do_here(self._share if tells else None)
            else:
                bench.do_elsewhere(self.place, self._executor)
        except KeyboardInterrupt:
            message = f"interrupted after {self.done} of {self.planned} runs"
            raise UnfinishedError((), Shortfall(message, EXIT_INTERRUPTED)) from None
        if bench.failed:
            lines = [f"the worker died at each of {TRIES} tries (out of memory?):"]
            lines += [f"  {names[number]}" for number in sorted(bench.failed)]
            raise UnfinishedError((), Shortfall("\n".join(lines), EXIT_FAILED))

    @contextmanager
    def _executor(self, jobs: int) -> Iterator[Executor]:
        """Yield an executor; after an error it is gone, else it stays while this is entered."""
        if not self._is_entered:
            with ending(partial(self.place.start, jobs)) as executor:
                yield executor
            return
        workers, self._workers = self._workers, None
        with self._end.pop_all() as end:
            if workers is None:
                workers = end.enter_context(ending(partial(self.place.start, self.place.jobs)))
            yield workers
            self._workers, self._end = workers, end.pop_all()

    def _share(self, done: int, total: int) -> None:
        """Tell the progress of a run here; one that ends between two readings is asked for more."""
        self._tell(min(SHARES * done // max(total, 1), SHARES - 1))


class _BrokenError(Exception):
    """A worker died; `suspects` are the numbers of what was under way."""

    def __init__(self, suspects: list[int]) -> None:
        super().__init__("a worker died")
        self.suspects = suspects


class _Bench(Generic[B]):
    """One list of work, done somewhere."""

    def __init__(
        self,
        function: Callable[..., B],
        work: Sequence[tuple[Any, ...]],
        finish: Callable[[int, B], None],
    ) -> None:
        self.function = function
        self.work = work
        self.finish = finish
        self.failed: set[int] = set()

    def do_here(self, share: Progress | None) -> None:
        """Do all work in this process; a function that can tell how far it is does so."""
        more = {} if share is None else {"progress": share}
        for number, arguments in enumerate(self.work):
            self.finish(number, self.function(*arguments, **more))

    def do_elsewhere(
        self, place: Place, executor_of: Callable[[int], AbstractContextManager[Executor]]
    ) -> None:
        """Do all work at a place; again, and alone, what was under way when a worker died."""
        waiting = deque(range(len(self.work)))
        while waiting:
            jobs = min(place.jobs, len(waiting))
            try:
                with executor_of(jobs) as executor:
                    self._until_broken(place, executor, waiting, jobs + 1)
            except _BrokenError as error:
                for suspect in error.suspects:
                    self._alone(place, suspect)

    def _until_broken(
        self, place: Place, executor: Executor, waiting: deque[int], most: int
    ) -> None:
        """Do what waits, so many pieces at a time; raise _BrokenError if a worker dies."""
        running: dict[Future[B], int] = {}
        while waiting or running:
            broken = not self._submit(place, executor, waiting, running, most)
            ready = wait(running, return_when=FIRST_COMPLETED).done if running else set()
            broken |= self._collect(place, ready, running)
            if broken:
                self._collect(place, set(running), running)
                raise _BrokenError(sorted(running.values()))

    def _submit(
        self,
        place: Place,
        executor: Executor,
        waiting: deque[int],
        running: dict[Future[B], int],
        most: int,
    ) -> bool:
        """Submit as much as may be under way; False if the executor takes nothing any more."""
        while waiting and len(running) < most:
            try:
                future = executor.submit(_do, place.model, self.function, self.work[waiting[0]])
            except BrokenExecutor:
                return False
            running[future] = waiting.popleft()
        return True

    def _collect(self, place: Place, ready: set[Future[B]], running: dict[Future[B], int]) -> bool:
        """Take the values of what is ready; return whether a worker has died."""
        broken = False
        for future in sorted(ready, key=running.__getitem__):
            error = future.exception()
            if isinstance(error, BrokenExecutor):
                broken = True
                continue
            number = running.pop(future)
            if isinstance(error, place.lost):
                self.failed.add(number)
            else:
                self.finish(number, future.result())
        return broken

    def _alone(self, place: Place, number: int) -> None:
        """Do a piece of work again that may have killed its worker."""
        for _try in range(TRIES - 1):
            with ending(partial(place.start, 1)) as executor:
                future = executor.submit(_do, place.model, self.function, self.work[number])
                if not self._collect(place, {future}, {future: number}):
                    return
        self.failed.add(number)


def _do(expected: str, function: Callable[..., B], arguments: tuple[Any, ...]) -> B:
    """Do a piece of work in a worker; `expected` is the client's model, "" if it is known."""
    if expected:
        check_sources(expected)
    return function(*arguments)


def run_once(
    scenario: Scenario,
    seed: int,
    keep: bool = False,
    cuts_ns: Sequence[int] = (),
    progress: Progress | None = None,
    measure: Measure = metrics_seen,
    watch: Callable[[Machine], None] | None = None,
) -> Replication:
    """Simulate and compute the figures; keep the readings if asked to.

    `watch` gets the booted machine, to look at it whenever `progress` is told. With `cuts_ns` the
    scenario is one that ends at the last of them (promises.ending_at).
    """
    begin_s = process_time()
    dump = BlockDump(keep_lines=False) if BLOCKS in scenario.measure.families else None
    watcher = Watcher(scenario, cuts_ns) if cuts_ns else None

    def attach(machine: Machine) -> None:
        if dump is not None:
            dump.attach(machine)
        if watcher is not None:
            watcher.watch(machine)
        if watch is not None:
            watch(machine)

    tell = progress if watcher is None else watcher.told(progress)
    result = simulate(scenario, seed, tell, attach)
    result = result if dump is None else dump.in_result(result)
    seen = Observation(result, scenario.measure)
    return Replication(
        seed=seed,
        metrics=dict(measure(seen)),
        histograms=histograms_seen(seen),
        digest=result.digest(),
        seen=Seen.of(seen),
        cpu_s=round(process_time() - begin_s, 3),
        result=result if keep else None,
        cuts=() if watcher is None else watcher.figures,
    )


def stripped(scenario: Scenario) -> Scenario:
    """Return what a simulation needs of a scenario: less to send to a worker."""
    guests = {name: stripped(guest) for name, guest in scenario.neighbours.items()}
    return replace(
        scenario,
        doc="",
        what_ifs=(),
        options=(),
        recorded=(),
        parameters=(),
        calibrate=None,
        plan=None,
        neighbours=guests,
        omissions=(),
    )
