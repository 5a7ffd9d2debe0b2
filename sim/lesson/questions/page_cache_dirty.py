"""Lesson 6, the page cache and its dirty pages."""

from sim.lesson.marking import Question, Trap
from sim.lesson.runs import run
from sim.units import NS_PER_S

FILM_MB = 2000 * 1.048576
STICK_MB_PER_S = 8.0
LIMIT_MB = 0.4 * 2 * 1073.7  # of 2 GiB
SETPOINT = 7 / 8  # of the limit, where the background threshold is half of the limit
WHOLE = {"run.duration": "300 s"}
BACKUP = {"process.sshd.rate": "1 /s", "process.backup.start": "5 s", "run.duration": "60 s"}
WAITED_NS = NS_PER_S / 2


def _dd_s(memory: str = "2 GiB", *, fsync: bool = False) -> float:
    """Return how long dd runs on Linux 2.6.18."""
    changes = {**WHOLE, "machine.memory": memory, "process.copy.fsync": fsync}
    [(_, ns)] = run("usb-stick", set=changes).marks("dd_ns")
    return ns / NS_PER_S


def _first_wait_s(memory: str) -> float:
    """Return how long after the dump's beginning the first log-in began that had to wait."""
    server = run("nfs-backup", set={**BACKUP, "machine.memory": memory})
    [(began_s, _)] = server.marks("backup_begin")
    logins = server.marks("login_ns")
    return min(end_s - ns / NS_PER_S for end_s, ns in logins if ns > WAITED_NS) - began_s


QUESTIONS = {
    "6.0": Question(
        asked="4 GiB of memory: how long does dd run?",
        answer=lambda: _dd_s("4 GiB"),
        unit="s",
        within=0.15,  # the seconds at memory's pace are a tenth of so short a run
        hint="How much of the film has to be on the stick when dd ends?",
        is_prediction=True,
    ),
    "6.1": Question(
        asked="2 GiB, dd has ended: how long until the film is on the stick?",
        answer=lambda: _dd_s(fsync=True) - _dd_s(),
        unit="s",
        within=0.1,
        hint="What is in memory when dd ends, and how fast does it leave?",
        traps=(
            Trap(
                value=lambda: LIMIT_MB * _dd_s() / FILM_MB,
                told="That is with the rate that dd printed. The stick is slower.",
            ),
            Trap(
                value=lambda: FILM_MB / STICK_MB_PER_S,
                told="That is the whole film. Most of it is on the stick when dd ends.",
            ),
            Trap(
                value=lambda: LIMIT_MB / 4 / STICK_MB_PER_S,
                told="So much is left at the background threshold. dd is held at the limit.",
            ),
        ),
    ),
    "6.2": Question(
        asked="Linux 3.2, 10 s from dd's end until all is on the stick: which dirty_bytes?",
        answer=lambda: 10 * STICK_MB_PER_S / SETPOINT,
        unit="MB",
        within=0.08,  # half of what lies between the setpoint and the limit, and a little
        hint="How much may be left? Where between its thresholds does the kernel hold dd?",
        traps=(
            Trap(
                value=lambda: 10 * STICK_MB_PER_S,
                told="With that it is quicker: the kernel holds dd somewhat below the limit.",
            ),
            Trap(
                value=lambda: 10 * STICK_MB_PER_S / 0.75,
                told="There dd begins to pause. It goes on dirtying, and the number climbs.",
            ),
            Trap(
                value=lambda: 20 * STICK_MB_PER_S,
                told="The background threshold starts the writing. Who holds dd back?",
            ),
        ),
    ),
    "6.3": Question(
        asked="8 GiB of memory: when does the first log-in wait, after the dump's beginning?",
        answer=lambda: _first_wait_s("8 GiB"),
        unit="s",
        within=0.2,  # a tenth for what is committed, and a tenth as log-ins come by chance
        hint="How much may be dirty now, and how fast does it become more?",
        traps=(
            Trap(
                value=lambda: _first_wait_s("4 GiB"),
                told="That is with 4 GiB. The limit is a share of memory.",
            ),
            Trap(
                value=lambda: 8192 / 102,
                told="That is when all of memory is full. How much of it may be dirty?",
            ),
        ),
    ),
}
