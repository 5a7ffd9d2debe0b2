"""Lesson 8, RAID and snapshots."""

from functools import cache

from sim.lesson.marking import Question, Trap
from sim.lesson.rows import table
from sim.lesson.runs import NOTHING, Changes, run

WRITE_MB_PER_S = 151.0  # of one SSD
IN_ORDER = {"machine.volume.snap.in_order": True}
MUCH_MEMORY = {"machine.memory": "6 GiB"}


@cache
def _raid5(disks: int, column: str) -> float:
    """Return a cell of an array's row; it depends on no file that a student edits."""
    cell = table("raid", level=["raid5"], devices=[disks])[1][column]
    assert isinstance(cell, int | float)
    return float(cell)


def _dd_s(what_if: str | None = None, changes: Changes = NOTHING) -> float:
    return run("lvm-snapshot", what_if, set=changes)["dd_real_s"]


QUESTIONS = {
    "8.0": Question(
        asked="RAID 5 of four SSDs: how many small random writes a second?",
        answer=lambda: _raid5(4, "random_writes_per_s"),
        unit="/s",
        within=0.1,
        hint="Which pages are written for one page? And are the reads short?",
        is_prediction=True,
    ),
    "8.1": Question(
        asked="RAID 5 of five SSDs, written in order: MB/s?",
        answer=lambda: _raid5(5, "write_mb_per_s"),
        unit="MB/s",
        within=0.1,
        hint="Which part of each stripe is data?",
        traps=(
            Trap(
                value=lambda: 5 * WRITE_MB_PER_S,
                told="That is RAID 0. One chunk of each stripe is parity.",
            ),
            Trap(
                value=lambda: 5 * WRITE_MB_PER_S / 2,
                told="So it is with small writes. Large pieces fill whole stripes.",
            ),
            Trap(
                value=lambda: 3 * WRITE_MB_PER_S,
                told="Parity takes one disk's worth of an array, not two.",
            ),
        ),
    ),
    "8.2": Question(
        asked="Copies in their order, the snapshot on a second disk: how long does dd take?",
        answer=lambda: _dd_s("second_disk", IN_ORDER),
        unit="s",
        within=0.15,  # the same count was a tenth off with one disk
        hint="Which of the three ways has the second disk, and what does the first do meanwhile?",
        traps=(
            Trap(
                value=lambda: _dd_s("in_order"),
                told="That is with one disk. Which way has left it?",
            ),
            Trap(value=_dd_s, told="That is without a snapshot. The old chunks are still read."),
            Trap(
                value=lambda: _dd_s("in_order") / 3,
                told="One of three ways is left then. The first disk reads and writes.",
            ),
        ),
    ),
    "8.3": Question(
        asked="6 GiB of memory, a snapshot on the same disk: how long does dd take?",
        answer=lambda: _dd_s("same_disk", MUCH_MEMORY),
        unit="s",
        within=0.1,
        hint="How much may be dirty now, and how large is the file?",
        traps=(
            Trap(
                value=lambda: _dd_s("same_disk") / 2,
                told="Twice the memory is not half of the time. What must dd wait for?",
            ),
            Trap(value=_dd_s, told="Even without a snapshot dd waited for the disk there."),
        ),
    ),
}
