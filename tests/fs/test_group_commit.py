"""The law of group commit: n writers, each in every second commit.

It is derived in docs/explanation/group-commit.md.
"""

import pytest

from sim.fs import read_write, sync
from sim.fs.super import O_CREAT, O_WRONLY
from sim.sched.task import Blocking, Task
from tests.fs.machine import MS, Machine, S

LATENCY_MS = 5  # of any request; one at a time
# Requests of a commit: log and commit block; a record of XFS's log.
COMMIT_REQUESTS = {"ext3": 2, "ext4": 2, "xfs": 1, "fast": 1}
MOUNTS: dict[str, tuple[str, dict[str, object]]] = {
    "ext3": ("ext3", {}),
    "ext4": ("ext4", {}),
    "xfs": ("xfs", {}),
    "fast": ("ext4", {"fast_commit": True, "commit_ns": 60 * S}),
}


def fsyncs_per_s(kind: str, writers: int, pages: int, for_s: int = 6) -> float:
    """Return the rate at which so many tasks make new files of so many pages durable."""
    machine = Machine("6.1", latency_ns=LATENCY_MS * MS, cpus=4)
    name, options = MOUNTS[kind]
    getattr(machine, f"mount_{name}")(**options)
    done = [0]

    def writer(task: Task) -> Blocking[None]:
        while True:
            path = f"/{task.pid}.{done[0]}"
            file = yield from machine.vfs.open(task, path, O_WRONLY | O_CREAT)
            if pages:
                yield from read_write.write(machine.vfs, task, file, 4096 * pages)
            yield from sync.fsync(machine.vfs, task, file)
            done[0] += 1
            yield from machine.vfs.close(task, file)

    for _ in range(writers):
        machine.spawn(writer)
    machine.idle(1 * S)
    before = done[0]
    machine.idle(for_s * S)
    return (done[0] - before) / for_s


def law(kind: str, writers: int, pages: int) -> float:
    commit_ms = COMMIT_REQUESTS[kind] * LATENCY_MS
    data_ms = LATENCY_MS if pages else 0
    if writers == 1:
        return 1000 / (commit_ms + data_ms)
    return 1000 * writers / (2 * commit_ms + writers * data_ms)


@pytest.mark.parametrize("kind", ["ext3", "ext4", "xfs"])
@pytest.mark.parametrize("writers", [1, 2, 3, 8])
def test_without_data_everybody_is_in_every_commit_or_in_every_second(kind, writers):
    """One group, if all are ready before the thread locks the transaction; else two."""
    rate = fsyncs_per_s(kind, writers, 0)
    two_groups = law(kind, writers, 0)
    one_group = 1000 * writers / (COMMIT_REQUESTS[kind] * LATENCY_MS)
    assert 0.95 * two_groups <= rate <= 1.05 * one_group


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.parametrize("writers", [1, 2])
def test_with_data_of_their_own_two_groups_take_turns_on_the_disk(kind, writers):
    """From 5.6 on ext4, as XFS, joins a transaction when its data are there: not all at once."""
    assert fsyncs_per_s(kind, writers, 3) == pytest.approx(law(kind, writers, 3), rel=0.15)


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_data_that_are_merged_let_more_through_than_the_law(kind):
    """Files made together lie side by side: n D is less, down to the data of none."""
    assert 0.85 * law(kind, 8, 3) <= fsyncs_per_s(kind, 8, 3) <= 1.05 * law(kind, 8, 0)


@pytest.mark.parametrize("pages", [0, 3])
@pytest.mark.parametrize("writers", [1, 2, 4])
def test_fast_commits_let_all_go_together_and_wait_for_all_data_under_way(writers, pages):
    """One group, X = n / (T + n D), where each has a CPU to begin with as soon as it may."""
    data_ms = LATENCY_MS * writers if pages else 0
    commit_ms = COMMIT_REQUESTS["fast"] * LATENCY_MS
    law_per_s = 1000 * writers / (commit_ms + data_ms)
    assert fsyncs_per_s("fast", writers, pages) == pytest.approx(law_per_s, rel=0.03)
