"""The load average in a twin: who is in it, when it is fitted, and how a run counts it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.look import Look
from calibration.look.tasks import LOAD_AVERAGE, SAMPLES, UNKNOWN, Active
from calibration.twin.columns import recorded_columns
from calibration.twin.fitting import draw_draft
from calibration.twin.load_average import COLUMN, error_of, share_seen, tasks_of_run
from calibration.twin.verdict import verdict_of
from sim.machine import simulate
from sim.observation import Observation
from sim.scenario.load import load_text
from tests.calibration.test_twin_draft import old_row, seen_of, text

FULL_DISK = old_row("sda", r=100, w=0, size_kib=8, await_ms=80, util=99)  # 8 requests in queue
QUICK_DISK = old_row("sda", r=100, w=0, size_kib=8, await_ms=2, util=20)
SERVER = """\
title = "Readers on a disk that serves one at a time"
seed = 1
[machine]
kernel = "6.1"
cpus = 2
memory = "1 GiB"
[machine.disk.sda]
device = "multiserver"
capacity = "20 GiB"
servers = 1
read = "4 ms"
write = "4 ms"
read_rate = "0 B/s"
scheduler = "none"
[machine.mount."/"]
type = "ext4"
device = "sda"
[process.readers]
program = "transactions"
arrivals = "closed"
concurrency = {readers}
think_time = "{pause}"
reads = 1
read_size = "8 KiB"
read_file = "/table"
working_set = "1 GiB"
direct = true
user = "1 ms"
[run]
duration = "21 s"
[measure]
interval = "{interval}"
"""


def with_tasks(row: str, mean: float, *, source: str = LOAD_AVERAGE, **shares: float) -> Look:
    """Return a recording of a row of iostat and so many active tasks."""
    seen = seen_of(text(row, reports=20, **shares))  # type: ignore[arg-type]
    told = Active(mean=mean, error=0.1, source=source, readings=24)
    return replace(seen, system=replace(seen.system, tasks=told))


@pytest.mark.parametrize(
    ("mean", "share"),
    [
        (9.0, 1.0),  # 30 % of 4 CPUs, 8 who wait
        (7.7, 1.0),  # a fifth less: the average is of instants
        (1.3, 0.0125),  # libaio: 0.1 of 8
        (5.2, 0.5),
    ],
)
def test_who_waits_is_in_the_average_or_a_share_is(mean: float, share: float) -> None:
    assert share_seen(with_tasks(FULL_DISK, mean)) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(
    ("mean", "waited_for", "share"),
    [
        (2.2, 1.0, 0.125),  # 1 of 8
        (2.2, 0.5, 0.25),  # 4 of the 8 are a flusher's
        (2.2, 0.125, 1.0),
        (1.3, 0.5, 0.025),
    ],
)
def test_of_what_nobody_waits_for_in_the_twin_no_owner_is_missed(
    mean: float, waited_for: float, share: float
) -> None:
    found = share_seen(with_tasks(FULL_DISK, mean), waited_for)
    assert found == pytest.approx(share, abs=0.01)


def test_a_journals_thread_is_no_sign_of_requests_that_nobody_waits_for() -> None:
    assert share_seen(with_tasks(QUICK_DISK, 1.0)) == 1.0


@pytest.mark.parametrize(
    ("mean", "source", "why"),
    [
        (9.0, SAMPLES, "was not recorded"),
        (1.3, LOAD_AVERAGE, "8.0 requests are under way, and 1.3 tasks are active"),
        (9.0, LOAD_AVERAGE, None),
    ],
)
def test_the_column_is_in_the_fit_or_says_why_not(
    mean: float, source: str, why: str | None
) -> None:
    seen = with_tasks(FULL_DISK, mean, source=source)
    draft = draw_draft(seen, 1)
    names = [one.metric for one in recorded_columns(seen, draft.loads, draft.server)]
    assert (COLUMN in names) == (why is None)
    assert (why or "") in draft.server.left_out.get(COLUMN, "")


def test_as_many_tasks_compute_as_wait_for_full_cpus() -> None:
    """14.5 are active, 0.2 of them at the disk: 14 run or wait for one of four CPUs."""
    seen = with_tasks(QUICK_DISK, 14.5, user=85, system=12, iowait=0)
    computing = draw_draft(seen, 1).sheet.sections["process", "computing"]
    assert computing["concurrency"].value == 14
    few = with_tasks(QUICK_DISK, 1.0, user=85, system=12, iowait=0)
    assert draw_draft(few, 1).sheet.sections["process", "computing"]["concurrency"].value == 4


def test_a_verdict_on_the_average_allows_for_how_exactly_it_could_be_read() -> None:
    """Two tasks to 0.8: 1.2 of a run are no miss; to 0.01 they are."""
    verdicts = []
    for error in (0.8, 0.01):
        seen = with_tasks(QUICK_DISK, 2.0)
        assert seen.system.tasks is not None
        told = replace(seen.system.tasks, error=error)
        seen = replace(seen, system=replace(seen.system, tasks=told))
        draft = draw_draft(seen, 1)
        columns = recorded_columns(seen, draft.loads, draft.server)
        run = {one.metric: one.value for one in columns} | {COLUMN: 1.2}
        verdicts.append(verdict_of(columns, run))
    assert verdicts[0].is_fair
    assert not verdicts[1].is_fair
    assert "load average" in verdicts[1].advice


@given(error=st.floats(0, 5), lookers=st.floats(0, 1))
def test_who_looks_may_be_among_the_tasks(error: float, lookers: float) -> None:
    """vmstat and iostat wake up together, and see each other; one sample has no scatter."""
    alone = Active(mean=4, error=error, source=LOAD_AVERAGE, readings=24)
    assert error_of(alone) == error
    assert error_of(replace(alone, lookers=lookers)) == pytest.approx(math.hypot(error, lookers))
    assert error_of(replace(alone, error=None)) == UNKNOWN


def observed(readers: int, pause: str, interval: str, does: str = "reads = 1") -> Observation:
    """Run programs that read or do something else, read so often."""
    written = SERVER.format(readers=readers, pause=pause, interval=interval)
    written = written.replace("reads = 1", does)
    scenario = load_text(written, Path("readers.toml"))
    return Observation(simulate(scenario, 1), scenario.measure)


def test_readers_who_never_pause_are_all_in_it() -> None:
    """Five readers are on a CPU, or asleep for their read, at any time."""
    tasks = tasks_of_run(observed(5, "0 s", "1 s"))
    assert tasks.active == pytest.approx(5.0, abs=0.05)
    assert tasks.running == pytest.approx(0.25, abs=0.05)  # a CPU of 1 ms in every 4 ms


def test_who_waits_for_a_commit_is_in_the_average_and_not_in_io() -> None:
    """One commit at a time: its thread sleeps in I/O, and so does who waits for own data."""
    commits = "writes = 1\nfsyncs = 1\nwrite_files = 5"
    tasks = tasks_of_run(observed(5, "0 s", "1 s", commits))
    readers = tasks_of_run(observed(5, "0 s", "1 s"))
    assert tasks.asleep == pytest.approx(5.5, abs=0.7)
    assert tasks.in_io < 0.7 * tasks.asleep
    assert readers.in_io == pytest.approx(readers.asleep, rel=0.01)


def test_few_readings_tell_what_many_do() -> None:
    """Four readings in 20 s, each of a number between 0 and 6, know the mean to a tenth."""
    few, many = (tasks_of_run(observed(6, "30 ms", interval)) for interval in ("5 s", "100 ms"))
    assert few.asleep == pytest.approx(many.asleep, rel=0.1)
    assert few.running == pytest.approx(many.running, rel=0.1)
