"""The pause before a synchronous commit: n in T + p, alone in T (sim/fs/jbd2.py)."""

import pytest

from sim.fs.jbd2 import journal_start, let_others_join, stop_handle
from sim.fs.super import O_CREAT, O_WRONLY
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task, sleep_ns
from tests.fs.machine import MS, Machine, S

LATENCY_MS = 5  # of any request; one at a time
COMMIT_MS = 2 * LATENCY_MS  # log, commit block


def creates_per_s(tasks: int, kernel: str = "6.1", **options: object) -> float:
    """Return at which rate so many tasks, a directory each, make files that are durable at once."""
    machine = Machine(kernel, latency_ns=LATENCY_MS * MS, cpus=4)
    machine.mount_ext4(dirsync=True, barrier=False, **options)
    done = [0]

    def maker(task: Task) -> Blocking[None]:
        yield from machine.vfs.mkdir(task, f"/{task.pid}")
        number = 0
        while True:
            number += 1
            path = f"/{task.pid}/{number}"
            file = yield from machine.vfs.open(task, path, O_WRONLY | O_CREAT)
            yield from machine.vfs.close(task, file)
            done[0] += 1

    for _ in range(tasks):
        machine.spawn(maker)
    machine.idle(1 * S)
    before = done[0]
    machine.idle(4 * S)
    return (done[0] - before) / 4


@pytest.mark.parametrize("min_batch_ms", [0, 40])
def test_who_is_alone_does_not_wait_for_others(min_batch_ms):
    rate = creates_per_s(1, min_batch_ns=min_batch_ms * MS, max_batch_ns=50 * MS)
    assert rate == pytest.approx(1000 / COMMIT_MS, rel=0.05)


@pytest.mark.parametrize("tasks", [2, 6])
def test_all_join_within_the_shortest_pause(tasks):
    pause_ms = 40
    rate = creates_per_s(tasks, min_batch_ns=pause_ms * MS, max_batch_ns=50 * MS)
    assert rate == pytest.approx(1000 * tasks / (COMMIT_MS + pause_ms), rel=0.1)


def test_the_longest_pause_is_stronger_than_the_shortest():
    bounded = creates_per_s(6, min_batch_ns=40 * MS, max_batch_ns=10 * MS)
    assert bounded == pytest.approx(6 * 1000 / (COMMIT_MS + 10), rel=0.1)


def test_without_a_pause_two_groups_take_turns():
    """As fsyncs without data: everybody is in every second commit, or in each."""
    rate = creates_per_s(6, max_batch_ns=0)
    assert 0.95 * 6 * 1000 / (2 * COMMIT_MS) <= rate <= 1.05 * 6 * 1000 / COMMIT_MS


def test_the_pause_is_that_of_a_commit_where_nothing_is_set():
    rate = creates_per_s(6)
    assert rate == pytest.approx(6 * 1000 / (2 * COMMIT_MS), rel=0.1)


def test_jbd_pauses_for_a_tick_at_most_whatever_a_commit_takes():
    """2.6.28, 2.6.32's ext3: 1 / (T + 4 ms) commits a second at 250 ticks."""
    machine = Machine("2.6.32", latency_ns=20 * MS)
    journal = machine.mount_ext3().info.journal
    assert (journal.params.min_batch_ns, journal.params.max_batch_ns) == (0, machine.sched.tick_ns)


def held_ms(kernel: str, *, joins_every_ms: int, joins_until_ms: int) -> float:
    """Return how long a synchronous handle's stop paused, begun 1 ms after a tick (250 a second).

    Until some moment, another task starts and stops a handle again and again.
    """
    machine = Machine(kernel)
    journal = machine.mount_ext3().info.journal
    begun_ns = 101 * MS
    ended_ns: list[int] = []

    def committer(task: Task) -> Blocking[None]:
        yield from sleep_ns(task, begun_ns - machine.calendar.now, TASK_INTERRUPTIBLE)
        handle = yield from journal_start(task, journal, 1)
        yield from let_others_join(task, journal, handle.transaction)
        ended_ns.append(machine.calendar.now)
        stop_handle(journal, handle)

    def joiner(task: Task) -> Blocking[None]:
        yield from sleep_ns(task, begun_ns - machine.calendar.now, TASK_INTERRUPTIBLE)
        while machine.calendar.now < begun_ns + joins_until_ms * MS:
            yield from sleep_ns(task, joins_every_ms * MS, TASK_INTERRUPTIBLE)
            handle = yield from journal_start(task, journal, 1)
            stop_handle(journal, handle)

    machine.run(committer, joiner, for_ns=S)
    return (ended_ns[0] - begun_ns) / MS


@pytest.mark.parametrize(
    ("kernel", "until_ms", "held"),
    [
        ("2.6.16", 1, 7),  # at 2 ms, in the first tick (to 3 ms); none in the second
        ("2.6.16", 15, 23),  # the last at 16 ms, in the tick that ends at 19 ms
        ("2.6.27", 15, 23),
    ],
)
def test_jbd_waits_for_another_tick_as_long_as_handles_keep_coming(
    kernel: str, until_ms: int, held: float
) -> None:
    paused_ms = held_ms(kernel, joins_every_ms=2, joins_until_ms=until_ms)
    assert paused_ms == pytest.approx(held, abs=0.1)


def test_jbd_waits_for_one_tick_where_nobody_comes() -> None:
    assert held_ms("2.6.16", joins_every_ms=50, joins_until_ms=1) == pytest.approx(3, abs=0.1)


def test_the_mean_time_of_a_commit_is_three_quarters_of_the_old_and_a_quarter_of_the_new() -> None:
    machine = Machine("6.1", latency_ns=LATENCY_MS * MS)
    journal = machine.mount_ext4(barrier=False).info.journal
    took_ns: list[int] = []

    def committer(task: Task) -> Blocking[None]:
        for size in (4096, 4096, 300 * 4096):
            yield from machine.write_file(task, "/a", size)
            took_ns.append(journal.average_commit_ns)
            journal.average_commit_ns = 80 * MS

    machine.run(committer, for_ns=S)
    assert took_ns[0] == pytest.approx(COMMIT_MS * MS, rel=0.05)  # the first is the mean
    assert took_ns[1:] == pytest.approx([(COMMIT_MS + 3 * 80) / 4 * MS] * 2, rel=0.01)
