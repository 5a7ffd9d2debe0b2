"""Lesson 3, load average and iowait."""

from sim.lesson.marking import Question, Trap
from sim.lesson.runs import Run, run
from sim.tools.parse import parse_loadavg
from sim.units import NS_PER_S

SHORT = {"process.blast.messages": 600}
BUSY = {"process.server.user": "30 ms"}
LATER_S = 145  # a minute after the load average is highest


def _storm() -> Run:
    return run("sendmail", set=SHORT)


def _load_at(at_s: int) -> float:
    """Return the load average that the server showed at a time."""
    texts = [s.text("loadavg") for s in _storm().result.samples if s.t_ns >= at_s * NS_PER_S]
    return parse_loadavg(texts[0]).load1


QUESTIONS = {
    "3.0": Question(
        asked="A storm of one minute: how high does the load average climb?",
        answer=lambda: _storm()["load1_peak"],
        unit="tasks",
        within=0.15,
        hint="The load average forgets slowly, and it learns as slowly.",
        is_prediction=True,
    ),
    "3.1": Question(
        asked="A minute after its peak: what is the 1-minute load average?",
        answer=lambda: _load_at(LATER_S),
        unit="tasks",
        within=0.15,
        hint="Nobody waits any more. What is left of an average after its own time constant?",
        traps=(
            Trap(
                value=lambda: _storm()["load1_peak"] / 2,
                told="A minute is no half-life. The average is multiplied by exp(-t / 60 s).",
            ),
            Trap(
                value=lambda: 1.0,
                told="The tasks are gone at once, but the average remembers them.",
            ),
        ),
    ),
    "3.2": Question(
        asked="The same storm on a server with one CPU: what is %iowait?",
        answer=lambda: run("sendmail", set={**SHORT, "machine.cpus": 1})["cpu.iowait_pct"],
        unit="%",
        within=0.15,
        hint="One task waits. Take the share of the time in which the only CPU has no work.",
        traps=(
            Trap(
                value=lambda: 100.0,
                told="A CPU that works shows no iowait. How much does it work?",
            ),
            Trap(
                value=lambda: _storm()["cpu.iowait_pct"],
                told="That is a share of four CPUs.",
            ),
        ),
    ),
    "3.3": Question(
        asked="Transactions that compute three times as long, on the same disk: what is %iowait?",
        answer=lambda: run("generic", set=BUSY)["cpu.iowait_pct"],
        unit="%",
        within=0.25,
        hint="iowait is a part of the idle time. How much idle time is left?",
        traps=(
            Trap(
                value=lambda: run("generic")["cpu.iowait_pct"],
                told="The disk is as busy as before, but the CPUs are not as idle.",
            ),
        ),
    ),
}
