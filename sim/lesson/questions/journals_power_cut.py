"""Lesson 5, journals, group commit, power cut."""

from sim.lesson.marking import Question, Trap
from sim.lesson.runs import NOTHING, Changes, run

TURN_MS = 60_000 / 7200
FSYNC = {"process.database.method": "fsync", "process.database.group": False}
COMMITS = {"process.database.commits": 400}


def commits_per_s(writers: int = 1, more: Changes = NOTHING) -> float:
    """Return commits a second of so many writers, each with its own fsync."""
    changes = {**FSYNC, **COMMITS, "process.database.committers": writers, **more}
    return run("fsync-where", set=changes)["commits_per_s"]


def fdatasync_per_s() -> float:
    """Return commits a second of one writer with fdatasync."""
    return commits_per_s(more={"process.database.method": "fdatasync"})


QUESTIONS = {
    "5.0": Question(
        asked="Eight writers, each with its own fsync: commits a second together?",
        answer=lambda: commits_per_s(8),
        unit="/s",
        within=0.15,  # T is by hand a few per cent off, and writers do not come in step
        hint="A writer waits for the rest of the commit that runs, and then for the next one.",
        is_prediction=True,
    ),
    "5.1": Question(
        asked="Five writers: commits a second together?",
        answer=lambda: commits_per_s(5),
        unit="/s",
        within=0.15,
        hint="Of two commits each writer is in one.",
        traps=(
            Trap(
                value=lambda: 5 * commits_per_s(),
                told="That would be five disks. A writer cannot join the commit that runs.",
            ),
            Trap(value=commits_per_s, told="That is one writer. Others share its commits."),
        ),
    ),
    "5.2": Question(
        asked="One writer with fdatasync: commits a second?",
        answer=fdatasync_per_s,
        unit="/s",
        within=0.1,
        hint="No journal, no seek: the next block has just passed under the head.",
        traps=(
            Trap(value=commits_per_s, told="That is with fsync, which needs the journal."),
            Trap(
                value=lambda: 2000 / TURN_MS,
                told="Half a turn, on average? The next block has just passed: a whole one.",
            ),
        ),
    ),
    "5.3": Question(
        asked="A disk of 15,000 rpm, one writer with fsync: commits a second?",
        answer=lambda: commits_per_s(more={"machine.disk.sda.profile": "sas-15k"}),
        unit="/s",
        within=0.15,
        hint="The same sum with other times: two seeks with half a turn each, and one whole turn.",
        traps=(
            Trap(
                value=lambda: 1000 / 4,
                told="That is a turn for a commit. fsync goes to the journal and back as well.",
            ),
            Trap(value=commits_per_s, told="That is the disk of 7200 rpm."),
        ),
    ),
}
