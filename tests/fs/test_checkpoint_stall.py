"""The law of a log that is full: from then on every commit pays for an old one.

A log of L blocks, one is its superblock. A handle starts if 7/8 of what is free, but for 32 blocks,
is at least L/4. So nobody waits until all but 32 + (8/7) L/4 blocks are used; then each commit of b
blocks (and two of its own) needs the oldest transaction's blocks at home, which had as many.
"""

from itertools import pairwise

from sim.fs.jbd2 import journal_start, journal_stop, modify_block
from sim.sched.task import Blocking, Task
from tests.fs.machine import MS, Machine, S

LATENCY_MS = 2  # of any request; one at a time
BLOCKS = 8  # of a transaction
FAR_APART = 1000  # no two are merged
LOG_BLOCKS = 1024
COMMIT_REQUESTS = 2  # log, commit block
HOME_REQUESTS = BLOCKS + 1  # and the journal's superblock


def commits_at_ms() -> tuple[Machine, list[int]]:
    """Return when each of many commits of blocks that nobody had before was done."""
    machine = Machine(latency_ns=LATENCY_MS * MS)
    fs = machine.mount_ext3(journal_bytes=LOG_BLOCKS * 4096)
    ends: list[int] = []

    def writer(task: Task) -> Blocking[None]:
        while True:
            handle = yield from journal_start(task, fs.info.journal, BLOCKS)
            for number in range(BLOCKS):
                block = 2000 + (len(ends) * BLOCKS + number) % 400 * FAR_APART
                yield from modify_block(task, fs.info.journal, handle, block + len(ends) // 50)
            handle.sync = True
            yield from journal_stop(task, fs.info.journal, handle)
            ends.append(machine.calendar.now // MS)

    machine.spawn(writer)
    machine.idle(3 * S)
    return machine, ends


def first_stall() -> int:
    """Return after how many commits the log is full, by the rule above."""
    needed = LOG_BLOCKS // 4
    used = LOG_BLOCKS - 1 - 32 - needed * 8 // 7
    return used // (BLOCKS + 2)


def test_nobody_waits_for_the_log_until_it_has_no_room_for_a_quarter_of_itself() -> None:
    _, ends = commits_at_ms()
    full = first_stall()
    took = [after - before for before, after in pairwise(ends)]
    stalled = [number for number, ms in enumerate(took, 1) if ms > COMMIT_REQUESTS * LATENCY_MS + 1]
    assert abs(stalled[0] - full) <= 2


def test_when_the_log_is_full_each_commit_takes_also_the_oldest_ones_way_home() -> None:
    _, ends = commits_at_ms()
    full = first_stall() + 5
    took_ms = (ends[-1] - ends[full]) / (len(ends) - 1 - full)
    law_ms = (COMMIT_REQUESTS + HOME_REQUESTS) * LATENCY_MS
    assert 0.9 * law_ms <= took_ms <= 1.1 * law_ms
    assert len(ends) > full + 20


def test_while_one_makes_room_all_who_start_a_handle_wait_with_him() -> None:
    machine = Machine(latency_ns=LATENCY_MS * MS)
    fs = machine.mount_ext3(journal_bytes=LOG_BLOCKS * 4096)
    waits_ms: dict[int, int] = {}

    def writer(first: int):  # type: ignore[no-untyped-def]
        def body(task: Task) -> Blocking[None]:
            number = 0
            while True:
                begun = machine.calendar.now
                handle = yield from journal_start(task, fs.info.journal, BLOCKS)
                waited_ms = (machine.calendar.now - begun) // MS
                waits_ms[first] = max(waits_ms.get(first, 0), waited_ms)
                for _ in range(BLOCKS):
                    number += 1
                    yield from modify_block(task, fs.info.journal, handle, first + number * 1000)
                handle.sync = True
                yield from journal_stop(task, fs.info.journal, handle)

        return body

    for first in range(2000, 2004):
        machine.spawn(writer(first))
    machine.idle(3 * S)
    assert fs.info.journal.nr_checkpoints > 0
    assert min(waits_ms.values()) >= BLOCKS * LATENCY_MS
