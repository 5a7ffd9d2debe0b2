"""Works are done once, in order, by as many workers as sleep within one."""

from sim.engine.calendar import Calendar
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task, sleep_ns
from sim.sched.version import kernel_version
from sim.sched.workqueue import Work, Workqueue

MS = 1_000_000


def queue(limit: int) -> tuple[Calendar, Workqueue]:
    calendar = Calendar()
    return calendar, Workqueue(Sched(calendar, 2, kernel_version("6.18")), "kworker/test", limit)


def sleeper(calendar: Calendar, log: list[tuple[int, str]], name: str) -> Work:
    def work(task: Task) -> Blocking[None]:
        log.append((calendar.now // MS, f"{name} begins"))
        yield from sleep_ns(task, 10 * MS, TASK_UNINTERRUPTIBLE)
        log.append((calendar.now // MS, f"{name} ends"))

    return work


def run(limit: int) -> list[tuple[int, str]]:
    calendar, works = queue(limit)
    log: list[tuple[int, str]] = []
    for name in "abc":
        works.queue(sleeper(calendar, log, name))
    calendar.run_until(15 * MS)
    works.queue(sleeper(calendar, log, "d"))
    calendar.run_until(100 * MS)
    return log


def test_works_that_sleep_do_not_hold_others_up() -> None:
    begins = [(ms, text[0]) for ms, text in run(limit=8) if text.endswith("begins")]
    assert begins == [(0, "a"), (0, "b"), (0, "c"), (15, "d")]


def test_with_a_limit_of_one_they_follow_each_other() -> None:
    begins = [(ms, text[0]) for ms, text in run(limit=1) if text.endswith("begins")]
    assert begins == [(0, "a"), (10, "b"), (20, "c"), (30, "d")]
