"""How many tasks made a load average: those that run or sleep uninterruptibly.

Models: counting them at each sample; else undoing the smoothing of a load average.
Linux counterpart: kernel/sched/loadavg.c: calc_global_load, every LOAD_FREQ (5 s and a tick).
Invariants: nothing is assumed of what the tasks are; an average that never changed is where it
would settle, and says how many there are by itself; the error has both what is printed and how the
number of tasks itself scattered.
Left out: the averages over 5 and 15 minutes, which move too little in a recording; tickless CPUs,
whose updates are made up for later.

Every 5 s an average y becomes y e + n (1 - e), e = exp(-5 / 60), with n tasks. Over k updates that
    n = (y_k - y_0 e^k) / (1 - e^k)
were active on average, the later ones counting a little more. y is printed in hundredths: over two
updates n is known to 0.01 / (1 - e^2) = 0.07.
By hand: 2.00 that is 2.79 after 12 updates: e^12 = 0.368, n = (2.79 - 0.74) / 0.632 = 3.25.

Each single update tells its number too, to 0.05 (two roundings of 0.01 / sqrt(12), over 1 - e). So
the numbers' scatter s over k updates is known, and their mean to s / sqrt(k). By hand: numbers 1,
5, 3 and 3 have s = 1.6: their mean is 3 to 0.8.
Without a load average the samples of /proc/stat tell (vmstat's r and b): those that run or wait for
a CPU, and those asleep in I/O. Who sleeps uninterruptibly outside I/O (for a journal's commit) is
not in them: they are the fewest that there can be (`in_io_alone`).
Whoever reads /proc/stat runs, and is counted by the kernel; some tools take themselves away (sar,
vmstat before procps-ng 4.0), others do not, and their text does not say. But a task that runs at
every sample takes a CPU: where each sample has one and the CPUs are busy for less than one of them,
that one is the reader, unless it is chance.
By hand: two CPUs are 3 % busy, 0.06 of one; that somebody else runs at 120 samples has the chance
0.06^120. Of a single sample, 0.06 is too much to say so.
Where /proc/stat tells how busy the CPUs were, those who run need not be sampled: the samples tell
only who waits for a CPU that somebody else has. Two tools that look at the same instant are among
these where no CPU is idle: for a share `busy` of the time at most. By hand: 0.06 run, no sample has
more than two runnable on two CPUs, 0.3 are blocked: 0.36 tasks, to which the tools add 0.03 at
most.

A census counts all who sleep uninterruptibly, threads and the kernel's own too, as often as the
recorder looks, and costs a scan of /proc. Who waits for a request is at the disks' queues, of which
diskstats tells how many were there at that instant, and how many on average (the flushes', whose
time is in the writes' as well, not counted twice: intervals.queue_of). So of the counts c and
what was in flight f only what does not go with f is chance:
    mean c - b f  +  b Q,    b the slope of c over f, from 0 (nobody waits) to 1
where f counts what Q does. From 5.10 to 6.9 it counts requests that a driver has (block/blk-mq.c:
blk_mq_check_inflight), and none that waits in an elevator or for its flush. So where f and Q differ
beyond chance, the counts stand alone.
By hand: 120 samples of random reads, 0.45 in flight, c = f: 0.45 to what the queue itself varies,
0.02, and to 0.01 by chance. The counts alone know it to sqrt(0.45 / 120) = 0.06, 24 updates to
sqrt(0.45 / 24) = 0.14. What is left hangs together where tasks sleep for longer than a sample: with
a correlation r of one with the next, n samples know as much as n (1 - r) / (1 + r).

Another number of tasks is counted as exactly as its scatter lets it be. Tasks that come by chance
(a Poisson number) scatter by the root of their mean; those of a queue more, programs that always
wait hardly at all. What the readings say of that, d = k error^2 / mean, counts as much as they saw
tasks, beside two tasks of chance (d = 1). By hand: 24 readings found 0.07 tasks to 0.064, which is
1.7 tasks: d = 1.2. Of 1.4 tasks 24 readings find a mean to sqrt(1.4 x 1.2 / 24) = 0.26.
"""

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, linear_regression, median, pvariance, stdev, variance
from typing import Final

from calibration.look.intervals import queue_of
from calibration.samples import Recording

UPDATE_S: Final = 5.0  # LOAD_FREQ
PERIOD_S: Final = 60.0  # of the first average
PRINTED: Final = 0.01  # of an average
ROUNDING: Final = PRINTED / 12**0.5  # its standard deviation
LOAD_AVERAGE: Final = "load average"
CENSUS: Final = "tasks that run or sleep uninterruptibly, at the samples"
SAMPLES: Final = "tasks that run or wait for I/O, at the samples"
SEEN_ADDED: Final = 2  # updates that saw somebody, and as many that did not
CHANCE_MAX: Final = 0.05
LOOKERS: Final = 1.0  # tools that look at the same instant, and are awake for it
CERTAIN: Final = 3.0  # standard errors by which two means of the same differ by chance, at most
SLOPE_MIN: Final = 10  # samples; of fewer a slope is chance
TOGETHER_MAX: Final = 0.95  # correlation of a value with the next
HALF_AS_OFTEN: Final = 0.5
UNKNOWN: Final = 1.0  # task: the standard error of one sample, assumed
_ASLEEP: Final = {CENSUS: "tasks_uninterruptible", SAMPLES: "procs_blocked"}  # source -> column


@dataclass(frozen=True, kw_only=True)
class Active:
    """The mean number of active tasks, its standard error (None: of one sample), what told it.

    `lookers` is how far those who look may be among the tasks, beside that. `readings` is 0 where
    no clock tells how many there were. `most_asleep` is how many slept at one sample, at most; 0 if
    nobody was counted.
    """

    mean: float
    error: float | None
    source: str
    readings: int
    lookers: float = 0.0
    most_asleep: int = 0

    @property
    def in_io_alone(self) -> bool:
        """Whether of those who sleep uninterruptibly only who does so in I/O was counted."""
        return self.source == SAMPLES

    @property
    def known_to(self) -> float:
        """Return the standard error of the readings; what is assumed of one sample."""
        return UNKNOWN if self.error is None else self.error

    def error_at(self, mean: float) -> float:
        """Return the standard error of as many readings of another mean; see above."""
        error = self.known_to
        if not self.readings:
            return error * math.sqrt(mean / self.mean) if self.mean else error
        seen = self.readings * self.mean
        scatter = (SEEN_ADDED + (self.readings * error) ** 2) / (SEEN_ADDED + seen)
        return math.sqrt(mean * scatter / self.readings)


def active_of(
    recordings: Sequence[Recording],
    busy_cpus: float | None = None,
    cpus: int | None = None,
    disks: Container[str] = (),
) -> Active | None:
    """Return the active tasks while the recordings lasted; None if nothing tells.

    A census tells if it was taken half as often as the kernel looks, for it knows the queues; else
    a load average, else samples of those in I/O. Of several recordings the one that has most of
    them: they are of the same time. `busy_cpus` is how many of the CPUs were busy on average; both
    if they are known. `disks` are those that no other device is below.
    """
    averages = _averages(recordings)
    sampled = _sampled(recordings, busy_cpus, cpus, disks)
    if not averages:
        return sampled
    readings = _readings(averages)
    enough = max(HALF_AS_OFTEN * readings, 2)
    if sampled is not None and sampled.source == CENSUS and sampled.readings >= enough:
        return sampled
    return Active(
        mean=tasks_of(averages),
        error=_error(averages),
        source=LOAD_AVERAGE,
        readings=readings,
        most_asleep=0 if sampled is None else sampled.most_asleep,
    )


def _averages(recordings: Sequence[Recording]) -> list[tuple[float | None, float]]:
    """Return the longest series of load averages."""
    return max((_series(one, "load1") for one in recordings), key=len, default=[])


def tasks_of(averages: Sequence[tuple[float | None, float]]) -> float:
    """Return the mean number of tasks that led from the first average to the last (time s, y).

    How many updates lie between is counted between the first and the last step that is seen.
    """
    steps = _steps(averages)
    if not steps:
        return averages[-1][1]
    (_before_s, before), (first_s, _first) = steps[0]
    last_s, last = steps[-1][1]
    updates = 1 + round(((last_s or 0.0) - (first_s or 0.0)) / UPDATE_S)
    return settled(before, last, updates * UPDATE_S)


def tasks_at_updates(averages: Sequence[tuple[float | None, float]]) -> list[float]:
    """Return the number of tasks at each update between the first and the last step that is seen.

    An update that changed nothing shows no step: the updates are every 5 s from the first one.
    """
    steps = _steps(averages)
    if not steps:
        return []
    begin_s, end_s = steps[0][1][0] or 0.0, steps[-1][1][0] or 0.0
    values = [steps[0][0][1]]
    for number in range(1 + round((end_s - begin_s) / UPDATE_S)):
        # Half an update later the average has been read, however seldom it is.
        until_s = begin_s + (number + 0.5) * UPDATE_S
        values.append([y for time_s, y in averages if (time_s or 0.0) <= until_s][-1])
    return [settled(before, after, UPDATE_S) for before, after in pairwise(values)]


def settled(first: float, last: float, length_s: float) -> float:
    """Return the mean number of active tasks in the time in which an average went so far."""
    left = math.exp(-length_s / PERIOD_S)
    return max(0.0, (last - first * left) / (1 - left))


def _steps(
    averages: Sequence[tuple[float | None, float]],
) -> list[tuple[tuple[float | None, float], tuple[float | None, float]]]:
    """Return what the average was before and after each step; nothing where times lack."""
    if any(time_s is None for time_s, _y in averages):
        return []
    return [(a, b) for a, b in pairwise(averages) if a[1] != b[1]]


def _error(averages: Sequence[tuple[float | None, float]]) -> float | None:
    """Return the standard error of tasks_of(): what is printed, and the tasks' own scatter."""
    found = tasks_at_updates(averages)
    if not found:
        return None if len(averages) < 2 else 0.0
    left = math.exp(-UPDATE_S / PERIOD_S)
    printed = ROUNDING * 2**0.5
    of_mean = printed / (1 - left ** len(found))
    if len(found) < 2:
        return of_mean
    own = max(0.0, stdev(found) ** 2 - (printed / (1 - left)) ** 2)
    return math.hypot(of_mean, max(math.sqrt(own / len(found)), _chance(found)))


def _readings(averages: Sequence[tuple[float | None, float]]) -> int:
    """Return the updates between the first average and the last, of one that stays as well."""
    begin_s, end_s = averages[0][0], averages[-1][0]
    return 0 if begin_s is None or end_s is None else round((end_s - begin_s) / UPDATE_S)


def _chance(found: Sequence[float]) -> float:
    """Return the least standard error of a mean of updates: by chance they may have seen nobody."""
    number, seen = len(found) + 2 * SEEN_ADDED, sum(found) + SEEN_ADDED
    share = seen / number
    return math.sqrt(share * (1 - share) / number) if share < 1 else 0.0


def running_at_samples(recording: Recording, busy_cpus: float | None) -> list[float]:
    """Return the tasks that run or wait for a CPU, without whoever counted them."""
    running = _values(recording, "procs_running")
    by_chance = 1.0 if busy_cpus is None else min(busy_cpus, 1.0) ** len(running)
    counts_itself = min(running, default=0) >= 1 and by_chance < CHANCE_MAX
    return [one - counts_itself for one in running]


def _sampled(
    recordings: Sequence[Recording],
    busy_cpus: float | None,
    cpus: int | None,
    disks: Container[str],
) -> Active | None:
    """Return the tasks that run and those asleep, of the recording that has most samples.

    A census of those asleep is better than a count of those in I/O alone.
    """
    found = [
        (source, running, asleep, one)
        for one in recordings
        for source, column in _ASLEEP.items()
        for running, asleep in [(running_at_samples(one, busy_cpus), _values(one, column))]
        if running and len(running) == len(asleep)
    ]
    if not found:
        return None
    best = max(found, key=lambda one: (one[0] == CENSUS, len(one[1])))
    source, running, asleep, recording = best
    if busy_cpus is None or cpus is None:
        on_cpus, lookers = 0.0, LOOKERS
    else:
        on_cpus, lookers = busy_cpus, LOOKERS * min(1.0, busy_cpus / cpus)
        running = [max(0.0, one - cpus) for one in running]
    counted = [a + b for a, b in zip(running, asleep, strict=True)]
    mean, error = mean_with_queue(counted, *_queue(recording, disks))
    return Active(
        mean=on_cpus + mean,
        error=error,
        source=source,
        readings=len(counted),
        lookers=lookers,
        most_asleep=round(max(asleep)),
    )


def mean_with_queue(
    counted: Sequence[float], in_flight: Sequence[float], queue: Sequence[float]
) -> tuple[float, float | None]:
    """Return the mean of what samples counted, and its standard error; see above.

    `in_flight` is what they found at the disks, `queue` its means over the intervals that end with
    them; of other numbers of samples, or of one, nothing is made.
    """
    slope, of_slope = 0.0, 0.0
    scatter = pvariance(in_flight) * len(in_flight) if len(in_flight) > 1 else 0.0
    apart = abs(fmean(queue) - fmean(in_flight)) if queue and in_flight else math.inf
    by_chance = CERTAIN * math.hypot(_error_of_mean(in_flight), _error_of_mean(queue))
    if SLOPE_MIN <= len(counted) == len(in_flight) and scatter > 0 and apart <= by_chance:
        slope = min(max(linear_regression(in_flight, counted).slope, 0.0), 1.0)
        left = [a - slope * b for a, b in zip(counted, in_flight, strict=True)]
        of_slope = apart * math.sqrt(variance(left) / scatter)
    else:
        in_flight, queue = [0.0] * len(counted), [0.0]
    beside = [a - slope * b for a, b in zip(counted, in_flight, strict=True)]
    mean = max(0.0, fmean(beside) + slope * fmean(queue))
    if len(counted) < 2:
        return mean, None
    usual = median(beside)
    of_samples = max(_error_of_mean(beside), _chance([abs(one - usual) for one in beside]))
    return mean, math.hypot(of_samples, of_slope, slope * _error_of_mean(queue))


def _error_of_mean(values: Sequence[float]) -> float:
    """Return the standard error of a mean; of values that hang together, as of fewer."""
    if len(values) < 2:
        return 0.0
    off = [one - fmean(values) for one in values]
    squares = sum(one * one for one in off)
    together = sum(a * b for a, b in pairwise(off)) / squares if squares else 0.0
    together = min(max(together, 0.0), TOGETHER_MAX)
    return stdev(values) * math.sqrt((1 + together) / (1 - together) / len(values))


def _queue(recording: Recording, disks: Container[str]) -> tuple[list[float], list[float]]:
    """Return the requests that are at the disks at each sample, and on average before it."""
    in_flight: dict[int, float] = {}
    rows: dict[int, dict[str, dict[str, float]]] = {}
    for one in recording.samples:
        if one.kind != "device" or one.name not in disks:
            continue
        if one.column == "in_flight":
            in_flight[one.report] = in_flight.get(one.report, 0.0) + one.value
        elif not one.since_boot:
            rows.setdefault(one.report, {}).setdefault(one.name, {})[one.column] = one.value
    queues = [sum(map(queue_of, row.values())) for row in rows.values()]
    return list(in_flight.values()), queues


def _values(recording: Recording, column: str) -> list[float]:
    return [value for _time, value in _series(recording, column)]


def _series(recording: Recording, column: str) -> list[tuple[float | None, float]]:
    return [
        (one.time_s, one.value)
        for one in recording.samples
        if one.column == column and not one.since_boot
    ]
