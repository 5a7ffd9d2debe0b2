"""Lesson 4, queueing laws and where they break."""

from sim.lesson.marking import Question, Trap
from sim.lesson.runs import Run, run
from sim.scenario import load
from sim.units import NS_PER_MS

FAST = {"process.server.rate": "80 /s"}
SHORT = {"run.duration": "40 s"}


def _cpu_ms() -> float:
    """Return the CPU time of a transaction, user and system, as the scenario says."""
    given = {one.path: one.value for one in load("generic").parameters}
    times = (given[f"process.server.{name}"] for name in ("user", "system"))
    return sum(one for one in times if isinstance(one, int | float)) / NS_PER_MS


def _full() -> Run:
    return run("generic", "closed+ssd", set=SHORT)


QUESTIONS = {
    "4.0": Question(
        asked="At 80 transactions a second: what is %util of the disk?",
        answer=lambda: run("generic", set=FAST)["disk.sda.util_pct"],
        unit="%",
        within=0.1,
        hint="The law is right, but the demand of a transaction need not stay what it was.",
        is_prediction=True,
    ),
    "4.1": Question(
        asked="A flash drive, and 80 transactions a second: how long does a transaction take?",
        answer=lambda: run("generic", "ssd", set=FAST)["transaction_ms"],
        unit="ms",
        within=0.22,  # what the law leaves out, commits and switches, is a fifth
        hint="The disk hardly counts any more. How busy are the two CPUs, and who waits for them?",
        traps=(
            Trap(value=_cpu_ms, told="That is its CPU time. It also waits for a CPU."),
            Trap(
                value=lambda: _cpu_ms() / (1 - 80 * _cpu_ms() / 2000),
                told="That is the law of one server of this load. Two CPUs share one queue.",
            ),
        ),
    ),
    "4.2": Question(
        asked="The flash drive, and sixteen customers who do not pause: transactions a second?",
        answer=lambda: _full()["transactions_per_s"],
        unit="/s",
        within=0.1,
        hint="Which resource is full now, and how much of it does a transaction take?",
        traps=(
            Trap(value=lambda: 1000 / _cpu_ms(), told="There are two CPUs."),
            Trap(
                value=lambda: 16_000 / _cpu_ms(),
                told="Sixteen customers, but not sixteen CPUs.",
            ),
        ),
    ),
    "4.3": Question(
        asked="One customer, who waits for each answer and does not pause: transactions a second?",
        answer=lambda: run("generic", "closed", set={**SHORT, "process.server.concurrency": 1})[
            "transactions_per_s"
        ],
        unit="/s",
        within=0.1,
        hint="Nobody waits for anybody. How long does a transaction take that is alone?",
        traps=(
            Trap(value=lambda: 1000 / _cpu_ms(), told="A transaction reads from the disk as well."),
            Trap(
                value=lambda: 2000 / _cpu_ms(),
                told="A single customer uses one thing at a time: one CPU, or the disk.",
            ),
        ),
    ),
}
