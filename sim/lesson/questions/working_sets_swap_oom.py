"""Lesson 7, working sets, swap, OOM."""

from sim.lesson.marking import Question, Trap
from sim.lesson.runs import Changes, run
from sim.lesson.servers import SWAPPING
from sim.tools.parse import parse_vmstat
from sim.units import NS_PER_S

CROWDED = {**SWAPPING, "process.load.size": "1100 MiB"}
ON_AN_ARM = {**CROWDED, "machine.disk.xvdb.profile": "sas-15k", "run.duration": "45 s"}
HOT = {
    **CROWDED,
    "process.load.hot": "250 MiB",
    "process.load.hot_uses": "19000 /s",
    "process.load.uses": "1000 /s",
    "run.duration": "40 s",
}
LARGER_REPORT = {"process.report.blocks": 1600}
GROWTH_PER_S = 30e6  # bytes
ROOM = 946 / 1100  # of the program: what there is less kernel and reserve


def _uses_per_s(changes: Changes, since: str) -> float:
    return run("r3-swap", set=changes).per_s("work_done", since=since)


def _killed_s(changes: Changes) -> float:
    return run("mysql-oom", set=changes)["oom_kill_s"]


def _faults_per_s() -> float:
    """Return the major faults a second of the last ten seconds, of the program with a hot part."""
    samples = run("r3-swap", set=HOT).result.samples
    last = samples[-1]
    earlier = next(one for one in samples if one.t_ns >= last.t_ns - 10 * NS_PER_S)
    faults = [parse_vmstat(one.text("vmstat"))["pgmajfault"] for one in (earlier, last)]
    return (faults[1] - faults[0]) * NS_PER_S / (last.t_ns - earlier.t_ns)


def _uses_if_a_fault_takes(ms: float) -> float:
    return 2000 / (0.1 + 2000 * (1 - ROOM) * ms / 1000)


QUESTIONS = {
    "7.0": Question(
        asked="A program of 1100 MiB in a room of 946: how many pages does it use in a second?",
        answer=lambda: _uses_per_s(CROWDED, "5 s"),
        unit="/s",
        within=0.15,
        hint="How many of 2000 uses are faults, and how long do these take together?",
        is_prediction=True,
    ),
    "7.1": Question(
        asked="A report of 1600 MiB: after how many seconds is MySQL killed?",
        answer=lambda: _killed_s(LARGER_REPORT),
        unit="s",
        within=0.03,  # the estimate leaves out a tenth of a second, and some MiB
        hint="What is left for MySQL when the kernel and the tmpfs have theirs?",
        traps=(
            Trap(
                value=lambda: _killed_s({}),
                told="That is the time with the smaller report.",
            ),
            Trap(
                value=lambda: (
                    (_killed_s(LARGER_REPORT) * GROWTH_PER_S + 1600 * 2**20) / GROWTH_PER_S
                ),
                told="The pages of the tmpfs cannot be taken, though they are called cached.",
            ),
            Trap(
                value=lambda: _killed_s(LARGER_REPORT) * GROWTH_PER_S / 2**20 / 30,
                told="30 MB are not 30 MiB.",
            ),
        ),
    ),
    "7.2": Question(
        asked="The swap on a disk of 15,000 revolutions a minute: how many uses a second?",
        answer=lambda: _uses_per_s(ON_AN_ARM, "10 s"),
        unit="/s",
        within=0.2,  # a seek of 0.5 ms may as well be 1 ms, of 3 in all
        hint="How long does a fault take: a short seek, and then?",
        traps=(
            Trap(
                value=lambda: _uses_per_s(CROWDED, "5 s"),
                told="That is the SSD, which has no arm.",
            ),
            Trap(
                value=lambda: _uses_if_a_fault_takes(3.5 + 2),
                told="That is a seek across the disk. The swap area is a small part of it.",
            ),
            Trap(
                value=lambda: _uses_if_a_fault_takes(0.5),
                told="When the arm has arrived, the page still has to come round.",
            ),
        ),
    ),
    "7.3": Question(
        asked="A hot part of 250 MiB has 19 of 20 uses: how many major faults a second?",
        answer=_faults_per_s,
        unit="/s",
        within=0.15,  # the hot part is not quite always in memory; 2 % by chance
        hint="If the hot part stays in memory, what room is left, and for how many pages?",
        traps=(
            Trap(
                value=lambda: 20_000 * (1 - ROOM),
                told="Hot pages are used too often to be taken.",
            ),
            Trap(
                value=lambda: 1000 * (1 - (946 - 250) / 1100),
                told="The hot part is no longer among the pages that compete.",
            ),
        ),
    ),
}
