"""Lesson 2, reading iostat."""

from sim.lesson.marking import Question, Trap
from sim.lesson.runs import Run, run
from sim.lesson.servers import ARM, FLASH

SLOWLY = {
    **FLASH,
    "process.server.arrivals": "open",
    "process.server.warm_up": "1 s",
    "run.duration": "11 s",
    "measure.interval": "5 s",
}


def _busy_server() -> Run:
    return run("generic", set={"process.server.rate": "60 /s"})


def _arm() -> Run:
    return run("generic", set={**ARM, "process.server.concurrency": 16})


def _reads_by_chance() -> Run:
    return run("generic", set={**SLOWLY, "process.server.rate": "250 /s"})


QUESTIONS = {
    "2.0": Question(
        asked="Four readers on the flash drive: how many reads a second?",
        answer=lambda: run("generic", set={**FLASH, "process.server.concurrency": 4})[
            "disk.sda.r_per_s"
        ],
        unit="/s",
        within=0.2,
        hint="%util says how often the drive has anything to do, not how much it can do at a time.",
        is_prediction=True,
    ),
    "2.1": Question(
        asked="How many of the server's sixteen threads have a transaction, on average?",
        answer=lambda: (
            _busy_server()["transactions_per_s"] * _busy_server()["transaction_ms"] / 1000
        ),
        within=0.05,
        hint="Little's law holds for the whole server too: arrivals a second, and the time in it.",
        traps=(
            Trap(
                value=lambda: _busy_server()["disk.sda.avgqu_sz"],
                told="Those are at the disk. A transaction is also on a CPU, or waits for one.",
            ),
        ),
    ),
    "2.2": Question(
        asked="250 reads a second on Linux 5.15: what does iostat show as %util?",
        answer=lambda: _reads_by_chance()["disk.sda.util_pct"],
        unit="%",
        within=0.08,
        hint="In which share of the clock's ticks does any read begin? Not all come alone.",
        traps=(
            Trap(
                value=lambda: 100.0,
                told="That many ticks would be hit if no two reads fell into the same one.",
            ),
            Trap(
                value=lambda: 250 * _reads_by_chance()["disk.sda.await_ms"] / 10,
                told="That is how busy the drive is. What does this kernel count?",
            ),
        ),
    ),
    "2.3": Question(
        asked="Sixteen readers without a pause on a 15K disk: what is await?",
        answer=lambda: _arm()["disk.sda.await_ms"],
        unit="ms",
        within=0.08,
        hint="Sixteen requests are at the disk at all times. You know how many leave each second.",
        traps=(
            Trap(
                value=lambda: _arm()["disk.sda.svctm_ms"],
                told="That is the time between two completions. How many wait at a time?",
            ),
        ),
    ),
}
