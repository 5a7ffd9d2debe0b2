"""Lesson 10, calibration and honesty."""

from math import comb

from sim.lesson.fits import Member, ensemble
from sim.lesson.marking import Question, Trap
from sim.lesson.runs import run

SENDERS = "process.blast.concurrency"
THINK = "process.blast.think_time"
AFTER_PER_S = 59  # recorded: messages a second with the queue on tmpfs
FEW = {"process.blast.messages": 400}


def patient() -> Member:
    """Return the member that the lesson calls patient: about 22 senders, half a second each."""
    return min(
        ensemble("sendmail.before"),
        key=lambda one: abs(one.number(THINK, "s") - 0.5) + abs(one.number(SENDERS, "") - 22) / 22,
    )


def tmpfs_per_s(senders: int, think_s: float) -> float:
    """Return messages a second of the whole storm on tmpfs, with the patient member's values."""
    changes = {**patient(), SENDERS: senders, THINK: f"{think_s} s"}
    return run("sendmail", "tmpfs", set=changes)["throughput_per_s"]


def _think_ms() -> float:
    """Return the think time with which 22 senders have the recorded throughput on tmpfs."""
    low_s, high_s = 0.1, 1.0
    for _halving in range(6):
        middle_s = (low_s + high_s) / 2
        if tmpfs_per_s(22, middle_s) > AFTER_PER_S:
            low_s = middle_s
        else:
            high_s = middle_s
    return 1000 * (low_s + high_s) / 2


def _at_most(held: int, of: int, chance: float) -> float:
    """Return the chance in per cent that at most so many hold."""
    terms = (comb(of, n) * chance**n * (1 - chance) ** (of - n) for n in range(held + 1))
    return 100 * sum(terms)


QUESTIONS = {
    "10.0": Question(
        asked="The patient member on tmpfs: messages a second?",
        answer=lambda: run("sendmail", "tmpfs", set={**patient(), **FEW})["throughput_per_s"],
        unit="/s",
        within=0.2,  # the time that a sender waits for its answers is a tenth of its think time
        hint="How often does a sender that thinks half a second send, if nothing else takes time?",
        is_prediction=True,
    ),
    "10.1": Question(
        asked="On tmpfs 59 messages a second were recorded: how long do 22 senders think?",
        answer=_think_ms,
        unit="ms",
        within=0.15,  # what a message takes on tmpfs is a tenth of it, and may be left out
        hint="22 senders, 59 messages a second: how long does a sender take from one to the next?",
        traps=(
            Trap(
                value=lambda: 1000 * 22 / 11,
                told="That is with the throughput before the change, when they waited for answers.",
            ),
            Trap(
                value=lambda: 1000 / AFTER_PER_S,
                told="That is the time between two messages of all senders together.",
            ),
        ),
    ),
    "10.2": Question(
        asked="40 honest 90 % intervals: the chance that 32 or fewer hold the truth?",
        answer=lambda: _at_most(32, 40, 0.9),
        unit="%",
        within=0.1,
        hint="Each holds it with a chance of 0.9, whatever the others do: a binomial distribution.",
        traps=(
            Trap(
                value=lambda: _at_most(32, 40, 0.9) - _at_most(31, 40, 0.9),
                told="That is the chance of exactly 32.",
            ),
            Trap(value=lambda: 80.0, told="That is the share that held. How likely is so few?"),
        ),
    ),
    "10.3": Question(
        asked="Which one parameter would you measure next: senders, think, size, or cpu?",
        answer="think",
        hint="Which of them differs most between members that agree with the recording?",
        traps=(
            Trap(value="size", told="The disk has told its size: that interval is narrow."),
            Trap(
                value="senders",
                told="The load average has told most of it. Look at what is left open.",
            ),
            Trap(
                value="cpu",
                told="Its sum is known from %user and %system before the change.",
            ),
        ),
    ),
}
