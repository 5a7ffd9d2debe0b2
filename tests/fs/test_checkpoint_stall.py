"""The law of a log that is full: from then on every commit pays for an old one.

A log of L blocks, one is its superblock. A handle starts if 7/8 of what is free, but for 32 blocks,
is at least L/4. So nobody waits until all but 32 + (8/7) L/4 blocks are used; then each commit of b
blocks (and two of its own) needs the oldest transaction's blocks at home, which had as many.
"""

from itertools import pairwise

from sim.fs.ext4.super import Ext4
from sim.fs.jbd2 import Journal, journal_start, journal_stop, modify_block
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


# --- the log's tail at commits


def commit_the_same_blocks(kernel: str, write_cache: bool = False) -> tuple[Machine, Ext4, int]:
    """Commit the same blocks again and again for 8 s; return what a handle waited for at most.

    Each transaction takes over the blocks of the one before, so the log need keep only the newest.
    """
    machine = Machine(kernel, latency_ns=MS, write_cache=write_cache)
    fs = machine.mount_ext4(journal_bytes=LOG_BLOCKS * 4096, fast_commit=False)
    journal = fs.info.journal
    waited_ns = 0

    def writer(task: Task) -> Blocking[None]:
        nonlocal waited_ns
        while True:
            begun = machine.calendar.now
            handle = yield from journal_start(task, journal, BLOCKS)
            waited_ns = max(waited_ns, machine.calendar.now - begun)
            for number in range(BLOCKS):
                yield from modify_block(task, journal, handle, 2000 + number * FAR_APART)
            handle.sync = True
            yield from journal_stop(task, journal, handle)

    machine.spawn(writer)
    machine.idle(8 * S)
    return machine, fs, waited_ns


def commits_of_a_quarter(journal: Journal) -> int:
    return -(-journal.max_transaction_buffers // (BLOCKS + 2))


def test_a_commit_of_jbd2_moves_the_tail_when_a_quarter_comes_free() -> None:
    """fs/jbd2/commit.c, from 3.4 on: nobody who starts a handle has to make room."""
    _, fs, waited_ns = commit_the_same_blocks("3.10")
    journal = fs.info.journal
    assert journal.nr_checkpoints == 0
    assert waited_ns < MS
    # A handle would have to wait when all but 32 + (8/7) L/4 blocks were used, see above.
    assert journal.space_left() >= journal.space_needed()
    assert journal.nr_commits * (BLOCKS + 2) > 4 * LOG_BLOCKS  # The ring went round often.


def test_before_whoever_starts_a_handle_moves_it() -> None:
    _, fs, waited_ns = commit_the_same_blocks("3.2")
    assert fs.info.journal.nr_checkpoints >= 4
    assert waited_ns >= MS


def test_the_tail_is_moved_once_for_each_quarter_of_the_log() -> None:
    """b blocks a commit: a quarter comes free at every ceil(L/4 / b)-th commit, not before."""
    machine, fs, _ = commit_the_same_blocks("3.10")
    journal = fs.info.journal
    superblock = journal.log.runs[0][0] * 8  # sectors
    written = [record for record in machine.tracer.records() if record.args[2] == superblock]
    assert abs(len(written) - journal.nr_commits // commits_of_a_quarter(journal)) <= 1


def test_a_new_tail_costs_a_flush_where_the_drive_has_a_volatile_cache() -> None:
    """The superblock is written with FUA; what went home was flushed by the commit itself."""
    flushes: dict[bool, float] = {}
    for moves in (False, True):
        machine, fs, _ = commit_the_same_blocks("3.10" if moves else "3.2", write_cache=True)
        journal = fs.info.journal
        stats = machine.disk.stats
        flushes[moves] = stats.flushes - 2 * journal.nr_commits
    # Before: no flush at all, so that a power cut could bring an old tail back (a78bb11d7acd).
    assert flushes[False] <= 2
    moves_of_tail = journal.nr_commits // commits_of_a_quarter(journal)
    assert abs(flushes[True] - moves_of_tail) <= 2
