"""Where the time of a transaction goes: all of a run's critical paths in figures.

Models: an engineer with offwaketime, perf sched and iostat at hand, who asks of one run: what does
a transaction wait for, and what for underneath; which resource is the busiest; what are the tasks
that the load average counts.
Linux counterpart: none in one piece.
Invariants: the parts of a kind of transaction sum to its mean response time, the columns of a row
 and the rows of a column to their sums; looking changes nothing that is simulated.
 A transaction that waits for a worker waits for what the worker who takes it does until then.
Left out: transactions that had not ended; more than SAMPLED of one kind (evenly chosen).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sim.engine.rng import Streams
from sim.machine import Machine, simulate
from sim.observation import Observation
from sim.scenario import Scenario
from sim.study import critical_path as cp
from sim.study.timeline import BLOCKED, ON_CPU, PATTERNS, RUNNABLE, Timeline, Transaction
from sim.study.waits import JOURNAL, NETWORK, SERVER, WAITS, WORKER
from sim.units import NS_PER_MS

SAMPLED: Final = 200  # transactions of a kind that are followed
MOMENTS: Final = 200  # at which the load average is taken apart
CALL: Final = "()"  # ends the name of a transaction that is a system call

# Where a chain ends, in the order of the table; "other" is time that only time, another host or
# nobody ended.
ENDS: Final = (
    "CPU",
    "run queue",
    cp.BLOCK_QUEUE,
    cp.DRIVE_QUEUE,
    cp.COMMAND,
    cp.SEEK,
    cp.ROTATION,
    cp.TRANSFER,
    cp.FLUSHING,
    cp.DEVICE,
    "other",
)


@dataclass(frozen=True)
class Part:
    """Mean time of a transaction that went one way, ms."""

    path: cp.Path
    mean_ms: float

    @property
    def waits_for(self) -> str:
        """What the task itself did or waited for."""
        if not self.path:
            return "other"
        found = WAITS.get(self.path[0], self.path[0])
        return SERVER if found == NETWORK and len(self.path) > 1 else found

    @property
    def ends_in(self) -> str:
        """Where the chain ended, one of ENDS."""
        end = WAITS.get(self.path[-1], self.path[-1]) if self.path else "other"
        return end if end in ENDS else "other"

    @property
    def is_journal(self) -> bool:
        """Whether the way led through a journal."""
        return any(WAITS.get(frame) == JOURNAL for frame in self.path)


@dataclass(frozen=True)
class Kind:
    """All transactions of a kind."""

    name: str
    count: int
    sampled: int
    mean_ms: float
    parts: tuple[Part, ...]  # of the sampled ones, longest first

    @property
    def journal_share(self) -> float:
        """Return which share of the response time was spent behind a journal."""
        behind = sum(part.mean_ms for part in self.parts if part.is_journal)
        return behind / self.sampled_ms if self.parts else 0.0

    @property
    def sampled_ms(self) -> float:
        """Return the mean response time of the sampled ones, ms."""
        return sum(part.mean_ms for part in self.parts)


@dataclass(frozen=True)
class Resource:
    """Something that can be busy, and how much of the window it was."""

    name: str
    busy_pct: float


@dataclass(frozen=True)
class Load:
    """Mean numbers of tasks that the load average counts."""

    on_cpu: float
    run_queue: float
    blocked: tuple[tuple[str, float], ...]  # by where they sleep, most first
    journal: float  # of those blocked: behind a journal, directly or through locks

    @property
    def mean(self) -> float:
        """Return the sum: what the load average tends to."""
        return self.on_cpu + self.run_queue + sum(number for _, number in self.blocked)


@dataclass(frozen=True)
class Explanation:
    """What `iotwin explain` tells of one run."""

    scenario: Scenario
    version: str
    start_ns: int  # of the measured part ([measure] of the scenario), in which transactions ended
    end_ns: int
    kinds: tuple[Kind, ...]
    resources: tuple[Resource, ...]  # busiest first
    load: Load


class NothingToExplainError(Exception):
    """No transaction of the wanted kind was seen; the text names those that were."""


def explain(
    scenario: Scenario,
    kinds: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Explanation:
    """Simulate the scenario under its seed, follow its transactions.

    `kinds` are names of a program's probes ("receive") or system calls ("fsync()"); none: all that
    the programs have probes for, or if there are none, all system calls. Raises
    NothingToExplainError.
    """
    timeline = Timeline()
    machines: list[Machine] = []

    def watch(machine: Machine) -> None:
        machines.append(machine)
        machine.tracer.start(*PATTERNS, sink=timeline.take)

    result = simulate(scenario, scenario.seed, progress, watch)
    [machine] = machines
    timeline.finish(machine.calendar.now)
    observation = Observation(result, scenario.measure)
    start_ns, end_ns = observation.begin_ns, observation.end_ns
    chosen = _chosen(
        [one for one in timeline.transactions if start_ns <= one.end_ns <= end_ns], kinds
    )
    return Explanation(
        scenario,
        result.version,
        start_ns,
        end_ns,
        tuple(_kind(timeline, name, several) for name, several in chosen.items()),
        tuple(_resources(timeline, scenario.server.cpus, start_ns, end_ns)),
        _load(timeline, start_ns, end_ns),
    )


def _chosen(
    transactions: Iterable[Transaction], kinds: Sequence[str]
) -> dict[str, list[Transaction]]:
    """Return the transactions asked for, by kind."""
    seen: dict[str, list[Transaction]] = {}
    for one in transactions:
        seen.setdefault(one.kind, []).append(one)
    wanted = list(kinds) or [name for name in seen if not name.endswith(CALL)] or list(seen)
    missing = [name for name in wanted if name not in seen]
    if missing or not wanted:
        known = ", ".join(sorted(seen)) or "none"
        raise NothingToExplainError(
            f"no transaction {' or '.join(map(repr, missing))} was seen (seen: {known})"
            if missing
            else "no program made a transaction or a system call"
        )
    return {name: seen[name] for name in wanted}


def _kind(timeline: Timeline, name: str, transactions: Sequence[Transaction]) -> Kind:
    """Follow some of the transactions, spread evenly."""
    sampled = [transactions[number] for number in spread(len(transactions), SAMPLED)]
    sums: Counter[cp.Path] = Counter()

    def add(path: cp.Path, ns: int) -> None:
        sums[path] += ns

    def add_waited(path: cp.Path, ns: int) -> None:
        sums[(WORKER, *path)] += ns

    for one in sampled:
        taken_ns = one.start_ns - one.since_ns + one.waited_ns
        cp.follow(timeline, one.pid, one.start_ns - one.since_ns, taken_ns, add_waited)
        cp.follow(timeline, one.pid, taken_ns, one.end_ns, add)
    parts = [Part(path, ns / len(sampled) / NS_PER_MS) for path, ns in sums.most_common()]
    mean_ns = sum(one.response_ns for one in transactions) / len(transactions)
    return Kind(name, len(transactions), len(sampled), mean_ns / NS_PER_MS, tuple(parts))


def spread(count: int, most: int) -> Sequence[int]:
    """Return about `most` of the numbers below `count`: one of each stretch, at no fixed step.

    A fixed step would meet what comes in turn, such as the three statements of a message, always
    at the same of them.
    """
    if count <= most:
        return range(count)
    chance = Streams(0).stream("explain.followed").random
    return sorted({int((n + chance()) * count / most) for n in range(most)})


def _resources(timeline: Timeline, cpus: int, start_ns: int, end_ns: int) -> list[Resource]:
    """Return how busy CPUs, disks and journals were."""
    window_ns = end_ns - start_ns
    cpu_ns = sum(
        high - low
        for task in timeline.tasks.values()
        for low, high, span in task.between(start_ns, end_ns)
        if span.doing == ON_CPU
    )
    busy = {f"CPUs ({cpus})" if cpus > 1 else "CPU": cpu_ns / cpus}
    disks: dict[str, list[tuple[int, int]]] = {}
    for io in timeline.ios:
        disks.setdefault(io.device, []).append((io.issued_ns, io.completed_ns))
    for name, times in disks.items():
        busy[f"disk {name}"] = _union_ns(times, start_ns, end_ns)
    for name, times in timeline.commits.items():
        busy[f"journal of {name}"] = _union_ns(times, start_ns, end_ns)
    resources = [Resource(name, 100 * ns / window_ns) for name, ns in busy.items()]
    return sorted(resources, key=lambda resource: -resource.busy_pct)


def _union_ns(times: Sequence[tuple[int, int]], start_ns: int, end_ns: int) -> int:
    """Return how much of a window the times cover, overlaps once."""
    covered = 0
    at = start_ns
    for low, high in sorted(times):
        low, high = max(low, at), min(high, end_ns)
        if low < high:
            covered += high - low
            at = high
    return covered


def _load(timeline: Timeline, start_ns: int, end_ns: int) -> Load:
    """Return what the load average counted, over the window, and at moments what was behind it."""
    sums: Counter[str] = Counter()
    for task in timeline.tasks.values():
        for low, high, span in task.between(start_ns, end_ns):
            if cp.is_load(span):
                sums[span.wchan if span.doing == BLOCKED else span.doing] += high - low
    window_ns = end_ns - start_ns
    on_cpu = sums.pop(ON_CPU, 0) / window_ns
    run_queue = sums.pop(RUNNABLE, 0) / window_ns
    blocked = tuple((wchan, ns / window_ns) for wchan, ns in sums.most_common())
    return Load(on_cpu, run_queue, blocked, _behind_journal(timeline, start_ns, end_ns))


def _behind_journal(timeline: Timeline, start_ns: int, end_ns: int) -> float:
    """Return how many blocked tasks wait for a journal, on average over MOMENTS."""
    step_ns = -(-(end_ns - start_ns) // MOMENTS)
    found = 0
    for task in timeline.tasks.values():
        for low, high, span in task.between(start_ns, end_ns):
            if span.doing != BLOCKED:
                continue
            first = -(-(low - start_ns) // step_ns)
            last = -(-(high - start_ns) // step_ns)
            for number in range(first, last):
                found += _leads_to_journal(timeline, task.pid, start_ns + number * step_ns)
    return found / MOMENTS


def _leads_to_journal(timeline: Timeline, pid: int, moment_ns: int) -> bool:
    """Return whether a sleeper's chain at a moment leads through a journal."""
    paths: list[cp.Path] = []
    cp.follow(timeline, pid, moment_ns, moment_ns + 1, lambda path, _ns: paths.append(path))
    return any(Part(path, 0.0).is_journal for path in paths)
