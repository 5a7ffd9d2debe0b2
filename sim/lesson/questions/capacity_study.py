"""Lesson 11, a capacity study."""

from math import log

from sim.lesson.marking import Question, Trap
from sim.lesson.runs import Run, run
from sim.lesson.servers import READING
from sim.lesson.terminal import printed
from sim.lesson.twins import twin

RECORDED, AT = "iostat -t -c -m -x 5 9", "15 s"
LOAD = "process.sda-reads.load_scale"
BUSY_PCT = 70  # the service level: at most so much of the CPUs' time is used
GROWTH = 0.04  # a month


def study(what_if: str | None = None, *, times: float = 1.0) -> Run:
    """Return a run of the lesson's twin, under so many times its load."""
    made = twin(printed(RECORDED, run("generic", set=READING), at=AT))
    return run(made.scenario, what_if, set={LOAD: times})


def busy_pct(of: Run) -> float:
    """Return how much of the CPUs' time is used."""
    return of["cpu.user_pct"] + of["cpu.system_pct"]


def times_at_most() -> float:
    """Return at how many times the load the CPUs reach the service level: they do so in line."""
    return BUSY_PCT / busy_pct(study())


def months() -> float:
    """Return in how many months the load has grown that far."""
    return log(times_at_most()) / log(1 + GROWTH)


QUESTIONS = {
    "11.0": Question(
        asked="Three times the load, and the disk is an SSD: how busy are the two CPUs, %?",
        answer=lambda: busy_pct(study("ssd", times=3)),
        unit="%",
        within=0.08,  # the recording's own share scatters by some per cent
        hint="Does a request compute less because its read is faster? Three times the requests.",
        is_prediction=True,
    ),
    "11.1": Question(
        asked="At how many times today's load are the CPUs 70 % busy?",
        answer=times_at_most,
        within=0.08,
        hint="Busy time is load times demand, and the demand of a request stays the same.",
        traps=(
            Trap(
                value=lambda: 100 / busy_pct(study()),
                told="There the CPUs are full. The service level says 70 %.",
            ),
            Trap(
                value=lambda: BUSY_PCT / study()["cpu.user_pct"],
                told="The kernel's time is CPU time too: %user and %system.",
            ),
        ),
    ),
    "11.2": Question(
        asked="The load grows by 4 % a month: in how many months is the service level reached?",
        answer=months,
        within=0.1,
        hint="Each month it is 1.04 times that of the month before. How often, until 11.1?",
        traps=(
            Trap(
                value=lambda: (times_at_most() - 1) / GROWTH,
                told="That adds 4 % of today's load each month. It grows on what has grown.",
            ),
        ),
    ),
    "11.3": Question(
        asked="For three times the load, one thing may be bought: ssd or cpus?",
        answer="cpus",
        hint="Which of the two rows keeps the service level at three times the load?",
        traps=(
            Trap(
                value="ssd",
                told="Reads are fast then, and the CPUs are full: nobody gets more done.",
            ),
            Trap(value="both", told="That keeps it. Is one of the two enough?"),
        ),
    ),
}
