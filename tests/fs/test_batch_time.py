"""The pause before a synchronous commit: n in T + p, alone in T (sim/fs/jbd2/batch.py)."""

import pytest

from sim.fs.file import O_CREAT, O_WRONLY
from sim.sched.task import Blocking, Task
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
    journal = machine.mount_ext3().journal
    assert (journal.min_batch_ns, journal.max_batch_ns) == (0, machine.sched.tick_ns)
