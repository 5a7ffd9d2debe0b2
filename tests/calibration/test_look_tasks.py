"""Tasks from a load average: its smoothing undone, also of real kernels."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.dataset import open_source
from calibration.look.brief import brief
from calibration.look.intervals import queue_of
from calibration.look.processes import ProcessLook
from calibration.look.tasks import (
    CENSUS,
    LOAD_AVERAGE,
    PERIOD_S,
    SAMPLES,
    UPDATE_S,
    Active,
    active_of,
    tasks_at_updates,
    tasks_of,
)
from calibration.readers import read_text
from calibration.samples import Kind, Recording, Sample
from tests.calibration.test_twin_draft import old_row, seen_of
from tests.calibration.test_twin_draft import text as iostat_text

GROUND_TRUTH = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "groundtruth"
# run -> tasks that its programs are, a journal's among them: fio's jobs, mailq's processes
PROGRAMS = {
    "a_randread/randread-jobs4-hdd7200.r1": 4,
    "a_randread/randread-jobs16-hdd7200.r1": 16,
    "c_mailq/ext4-p8-hdd7200.r1": 9,
    "c_mailq/ext4-p32-hdd7200.r1": 33,
    "c_mailq/xfs-p8-hdd7200.r1": 8,
}


def averages(tasks: float, first: float, seconds: int) -> list[tuple[float | None, float]]:
    """Return what a kernel shows each second, in hundredths, from an average on."""
    left = math.exp(-UPDATE_S / PERIOD_S)
    found: list[tuple[float | None, float]] = []
    average = first
    for second in range(seconds):
        if second % UPDATE_S == 3:
            average = average * left + tasks * (1 - left)
        found.append((float(second), round(average, 2)))
    return found


@given(tasks=st.integers(0, 60), first=st.floats(0, 60), seconds=st.integers(30, 300))
def test_the_tasks_behind_an_average_are_found_whatever_it_was_before(
    tasks: int, first: float, seconds: int
) -> None:
    """Two ends in hundredths over five updates or more: 0.01 / (1 - e^(-25/60)) = 0.03."""
    assert tasks_of(averages(tasks, first, seconds)) == pytest.approx(tasks, abs=0.1)


@given(numbers=st.lists(st.integers(0, 30), min_size=3, max_size=20), first=st.floats(0, 30))
def test_each_update_tells_its_own_number(numbers: list[int], first: float) -> None:
    """Two roundings of half a hundredth over 1 - e^(-1/12): 0.13. An update may show no step."""
    average, found = first, [(0.0, round(first, 2))]
    for number, tasks in enumerate(numbers):
        left = math.exp(-UPDATE_S / PERIOD_S)
        average = average * left + tasks * (1 - left)
        found.append((5.0 * number + 3.0, round(average, 2)))
    told = tasks_at_updates([(time_s, y) for time_s, y in found])
    shown = [b for a, b in pairwise(found) if a[1] != b[1]]
    if not shown:
        assert told == []
        return
    first_seen = round((shown[0][0] - 3.0) / 5.0)
    assert told == pytest.approx(numbers[first_seen : first_seen + len(told)], abs=0.14)


def test_the_error_of_a_mean_has_the_scatter_of_the_tasks() -> None:
    """By hand: 1, 5, 3, 3 in turn have s = 1.6; sixteen updates know the mean to 0.36."""
    steady = _load_text([3] * 16)
    varying = _load_text([1, 5, 3, 3] * 4)
    for text, error in ((steady, 0.0), (varying, 0.36)):
        told = active_of([read_text(text, "sar.txt")])
        assert told is not None
        assert told.error == pytest.approx(error, abs=0.07)
        assert told.mean == pytest.approx(3.0, abs=0.3)


def test_nobody_may_be_seen_by_chance() -> None:
    """By hand: nobody in 24 updates is 2 / 28 = 0.07 tasks to sqrt(0.07 * 0.93 / 28) = 0.05."""
    told = active_of([read_text(_load_text([0] * 24), "sar.txt")])
    assert told is not None
    assert told.mean == pytest.approx(0, abs=0.02)
    assert told.error == pytest.approx(0.05, abs=0.01)


def census(
    asleep: Sequence[float],
    in_flight: Sequence[float],
    queue: Sequence[float],
    *,
    load1: float = 9.0,
) -> Recording:
    """Return a recording of a sample a second, on two CPUs that do nothing."""
    samples = []
    for second, values in enumerate(zip(asleep, in_flight, queue, strict=True)):
        told: list[tuple[Kind, str, str, float]] = [
            ("system", "", "tasks_uninterruptible", values[0]),
            ("system", "", "procs_running", 1.0 if second % 7 else 0.0),
            ("system", "", "procs_blocked", 0.0),
            ("system", "", "load1", load1),
            ("device", "sda", "in_flight", values[1]),
            ("device", "dm-0", "in_flight", 50.0),  # what it hands down is in sda's
        ]
        if second:
            told.append(("device", "sda", "aqu_sz", values[2]))
        samples += [
            Sample(
                time_s=float(second),
                kind=kind,
                name=name,
                column=column,
                value=value,
                since_boot=False,
                report=second,
                line=1,
            )
            for kind, name, column, value in told
        ]
    return Recording(source="proc.txt", formats=("iotwin record",), samples=tuple(samples))


def taken(recording: Recording) -> Active:
    """Return its tasks; 0.1 of two CPUs are busy."""
    found = active_of([recording], 0.1, 2, {"sda"})
    assert found is not None
    return found


def test_who_waits_for_a_request_is_known_from_the_queue() -> None:
    """Of 121 samples 12 more than usual saw a read: the queue's mean was 0.45 all the same."""
    lucky = [1.0, 1.0, 0.0] * 10 + [0.0, 1.0] * 45 + [1.0]
    found = taken(census(lucky, lucky, [0.45] * 121))
    assert (found.source, found.readings) == (CENSUS, 121)
    assert fmean(lucky) == pytest.approx(0.545, abs=0.001)
    assert found.mean == pytest.approx(0.1 + 0.45)
    # By hand: no sample had another number: 2 in 125 may have.
    assert found.error == pytest.approx(math.sqrt(2 / 125 * 123 / 125 / 125))


def test_a_flush_is_in_the_writes_that_wait_for_it() -> None:
    """By hand: 57 writes/s of 4.2 ms are 0.24 in flight, also where aqu-sz is 0.43."""
    flushed = {"w_per_s": 57, "w_await_ms": 4.2, "f_per_s": 17, "f_await_ms": 11, "aqu_sz": 0.426}
    assert queue_of(flushed) == pytest.approx(0.239, abs=0.001)
    beside = flushed | {"r_per_s": 10, "r_await_ms": 5, "d_per_s": 100, "d_await_ms": 1}
    assert queue_of(beside) == pytest.approx(0.239 + 0.05 + 0.1, abs=0.001)
    assert queue_of(flushed | {"f_per_s": 0}) == 0.426  # as the kernel counted it
    of_sar = {"io_per_s": 57, "await_ms": 4.2, "aqu_sz": 0.426}  # sar -d prints no flushes
    assert queue_of(of_sar) == pytest.approx(0.239, abs=0.001)


def test_requests_that_wait_for_a_flush_may_be_missing_in_what_is_in_flight() -> None:
    """0.4 in the queue, of which Linux 5.10 to 6.9 finds a half: the counts stand alone."""
    there = [1.0, 0.0, 0.0, 1.0, 0.0] * 24
    found = [one if number % 2 else 0.0 for number, one in enumerate(there)]
    assert fmean(there) == 0.4
    assert fmean(found) == pytest.approx(0.2)
    counted = taken(census(there, found, [0.4] * len(there)))
    assert counted.mean == pytest.approx(0.1 + 0.4)


@given(flushes=st.floats(0.1, 100), flush_ms=st.floats(0.01, 50))
def test_flushes_add_nobody_to_the_tasks(flushes: float, flush_ms: float) -> None:
    """Whoever waits for one waits for its write: samples and queue agree, whatever aqu-sz has."""
    there = [1.0, 0.0, 0.0, 1.0, 0.0] * 24
    bare = census(there, there, [0.4] * len(there))
    columns = {
        "w_per_s": 100.0,
        "w_await_ms": 4.0,
        "f_per_s": flushes,
        "f_await_ms": flush_ms,
        "aqu_sz": 0.4 + flushes * flush_ms / 1000,
    }
    more = [
        replace(one, column=column, value=value)
        for one in bare.samples
        if one.column == "aqu_sz"
        for column, value in columns.items()
    ]
    rest = [one for one in bare.samples if one.column != "aqu_sz"]
    counted = taken(replace(bare, samples=tuple(sorted([*rest, *more], key=lambda x: x.report))))
    assert counted.mean == pytest.approx(taken(bare).mean)
    assert counted.mean == pytest.approx(0.1 + 0.4)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=40, max_size=60))
def test_a_queue_that_nobody_waits_for_tells_nothing(pairs: list[tuple[int, int]]) -> None:
    """Each number of sleepers meets each queue alike: what varies is no sign of the other."""
    asleep, in_flight = [float(a) for a, _b in pairs], [float(b) for _a, b in pairs]
    both = (asleep + asleep, in_flight + [9.0 - one for one in in_flight])
    found = taken(census(*both, [4.5] * len(both[0])))
    assert found.mean == pytest.approx(0.1 + fmean(asleep))


def test_others_who_sleep_are_added_and_make_it_uncertain() -> None:
    """A thread that waits for commits, half of the time, beside 0.4 reads: 0.9."""
    reads, commits = [1.0, 0.0, 0.0, 1.0, 0.0] * 24, [1.0, 0.0] * 60
    asleep = [a + b for a, b in zip(reads, commits, strict=True)]
    found = taken(census(asleep, reads, [0.4] * 120))
    assert found.mean == pytest.approx(0.1 + 0.9, abs=0.01)
    assert found.error == pytest.approx(0.5 / math.sqrt(120), rel=0.02)


def test_tasks_that_sleep_for_long_are_known_as_by_fewer_samples() -> None:
    """Half a minute asleep, half a minute not: 121 samples are some four."""
    asleep = ([1.0] * 30 + [0.0] * 30) * 2
    found = taken(census(asleep, [0.0] * 120, [0.0] * 120))
    assert found.mean == pytest.approx(0.1 + 0.5)
    assert 0.15 < found.known_to < 0.35
    always = taken(census([3.0] * 120, [0.0] * 120, [0.0] * 120))
    assert 0 < always.known_to < 0.03


def test_of_few_samples_no_slope_is_made() -> None:
    found = taken(census([0.0, 1.0, 2.0], [0.0, 1.0, 5.0], [1.0] * 3))
    assert found.mean == pytest.approx(0.1 + 1.0)


def test_a_census_that_is_rarer_than_the_kernels_looks_gives_way_to_the_average() -> None:
    often = census([3.0] * 121, [0.0] * 121, [0.0] * 121)
    seldom = replace(
        often, samples=tuple(one for one in often.samples if (one.time_s or 0.0) % 60 == 0)
    )
    assert (taken(often).source, taken(often).mean) == (CENSUS, pytest.approx(3.1))
    assert (taken(seldom).source, taken(seldom).mean) == (LOAD_AVERAGE, 9.0)


def test_without_an_average_the_samples_count_who_runs_and_waits() -> None:
    text = (
        "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"
        " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
        + " 1  3      0 100000  10000  90000    0    0     8     8  100  100 10  5 80  5  0\n"
        * 4
    )
    told = active_of([read_text(text, "vmstat.txt")])
    assert told is not None
    assert (told.mean, told.source) == (4.0, SAMPLES)
    # By hand: three samples found no other number; two in seven may have.
    assert told.error == pytest.approx(math.sqrt(2 / 7 * 5 / 7 / 7))
    assert told.in_io_alone


@pytest.mark.parametrize(
    ("running", "busy_cpus", "expected"),
    [
        ([1] * 10, 0.06, 0.0),  # vmstat of procps-ng 4.0 counts itself
        ([1, 2, 1, 1], 0.06, 0.25),
        ([1, 0, 1, 1], 0.06, 0.75),  # this one does not
        ([1] * 10, 1.2, 1.0),  # a task may run all the time
        ([1] * 10, None, 1.0),
        ([1], 0.06, 1.0),  # chance
        ([1, 1], 0.06, 0.0),
    ],
)
def test_whoever_counts_is_not_counted(
    running: list[int], busy_cpus: float | None, expected: float
) -> None:
    text = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"
    text += " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
    rest = "0      0 100000  10000  90000    0    0     8     8  100  100  2  1 95  2  0\n"
    text += "".join(f" {one}  {rest}" for one in [9, *running])  # the first is since boot
    told = active_of([read_text(text, "vmstat.txt")], busy_cpus)
    assert told is not None
    assert told.mean == pytest.approx(expected)


@pytest.mark.parametrize(
    ("running", "cpus", "waiting"),
    [
        ([1, 2, 1, 2], 2, 0.0),  # whoever counts, and a tool that looks at the same instant
        ([1, 2, 1, 2], 1, 0.0),
        ([3, 4, 3, 4], 2, 0.5),
    ],
)
def test_who_runs_is_told_by_cpu_time_and_the_samples_add_who_waits(
    running: list[int], cpus: int, waiting: float
) -> None:
    text = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"
    text += " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
    rest = "1      0 100000  10000  90000    0    0     8     8  100  100  2  1 95  2  0\n"
    text += "".join(f" {one}  {rest}" for one in [9, *running])  # the first is since boot
    told = active_of([read_text(text, "vmstat.txt")], 0.2, cpus)
    assert told is not None
    assert told.mean == pytest.approx(0.2 + 1 + waiting)  # one is blocked
    assert told.lookers == pytest.approx(0.2 / cpus)


@given(mean=st.floats(0, 30), then=st.floats(0, 60), readings=st.integers(5, 500))
def test_tasks_of_chance_are_counted_to_the_root_of_their_number(
    mean: float, then: float, readings: int
) -> None:
    """A Poisson number, whose variance is its mean."""
    error = math.sqrt(mean / readings)
    told = Active(mean=mean, error=error, source=LOAD_AVERAGE, readings=readings)
    assert told.error_at(then) == pytest.approx(math.sqrt(then / readings))


def test_an_average_that_never_moved_is_known_well() -> None:
    """Three tasks at each of sixteen updates: twice as many are known to a quarter of a task."""
    told = active_of([read_text(_load_text([3] * 16), "sar.txt")])
    assert told is not None
    assert told.readings == 15
    assert told.error_at(6.0) < 0.25


def test_programs_that_always_wait_are_counted_exactly() -> None:
    """By hand: two tasks of chance beside 192 that were seen: sqrt(8 x 2 / 194 / 24) = 0.059."""
    steady = Active(mean=8.0, error=0.001, source=LOAD_AVERAGE, readings=24)
    assert steady.error_at(8.0) == pytest.approx(0.059, abs=0.001)
    varying = replace(steady, mean=4.0, error=0.8)
    assert varying.error_at(4.0) == pytest.approx(0.8, rel=0.02)


def test_without_a_clock_the_error_grows_with_the_root_of_the_tasks() -> None:
    told = Active(mean=4.0, error=0.1, source=LOAD_AVERAGE, readings=0)
    assert told.error_at(4.0) == pytest.approx(0.1)
    assert told.error_at(16.0) == pytest.approx(0.2)


def _load_text(numbers: list[int]) -> str:
    """Return what `sar -q 5` prints of a load average made by so many tasks at each update."""
    lines = ["Linux 6.1.0 (web1) \t03/01/24 \t_x86_64_\t(4 CPU)\n"]
    lines.append("00:00:00      runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked")
    average = 3.0
    for number, tasks in enumerate(numbers, start=1):
        average = settled_next(average, tasks)
        at = f"00:{5 * number // 60:02d}:{5 * number % 60:02d}"
        lines.append(
            f"{at}            1       100      {average:.2f}      1.00      1.00         0"
        )
    return "\n".join(lines) + "\n"


def settled_next(average: float, tasks: float) -> float:
    """Return the average after one more update."""
    left = math.exp(-UPDATE_S / PERIOD_S)
    return average * left + tasks * (1 - left)


def test_an_average_that_stays_is_the_number_of_tasks() -> None:
    assert tasks_of([(0.0, 3.0), (1.0, 3.0), (2.0, 3.0)]) == 3.0


@pytest.mark.skipif(not GROUND_TRUTH.is_dir(), reason=f"no {GROUND_TRUTH}: set IOTWIN_SHARED")
@pytest.mark.parametrize("run", PROGRAMS)
def test_the_programs_of_a_real_kernel_are_counted(run: str) -> None:
    source = open_source([str(GROUND_TRUTH / run / "sar.txt.gz")])
    told = active_of(source.recordings)
    assert told is not None
    assert told.source == LOAD_AVERAGE
    assert told.mean == pytest.approx(PROGRAMS[run], abs=0.2)


@pytest.mark.parametrize(("average", "differs"), [(0.82, True), (0.6, False)])
def test_in_brief_it_is_said_how_many_tasks_were_active_if_the_average_has_others(
    average: float, *, differs: bool
) -> None:
    seen = seen_of(iostat_text(old_row("sda", r=100, w=0, size_kib=8, await_ms=5, util=40)))
    told = Active(mean=0.55, error=0.05, source=CENSUS, readings=121)
    lines = brief(replace(seen, system=replace(seen.system, load=average, tasks=told)))
    [line] = [one for one in lines if one.startswith("The load average")]
    assert line.startswith(f"The load average is {average:.2f}")
    assert ("0.55 tasks were active on average" in line) == differs


def test_in_brief_it_is_said_whose_tasks_slept() -> None:
    seen = seen_of(iostat_text(old_row("sda", r=100, w=0, size_kib=8, await_ms=5, util=40)))
    slept = {"cron": 0.001, "[jbd2/sda1-8]": 0.03, "postgres": 0.224, "fio": 0.002}
    processes = tuple(ProcessLook(name=name, asleep=asleep) for name, asleep in slept.items())
    system = replace(seen.system, load=0.3)
    lines = brief(replace(seen, system=system, processes=processes))
    assert (
        "The load average is 0.30; tasks in uninterruptible sleep (D, as for a disk), on average:"
        " postgres 0.22, [jbd2/sda1-8] 0.03."
    ) in lines
    assert not any("sleep" in one for one in brief(seen))
