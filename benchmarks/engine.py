"""Events per second: SimPy's own loop against the twin's calendar.

Every case keeps ``pending`` happenings in the future and lets each one cause the next, which is
what a server does; only the kind differs.
"""

from collections.abc import Callable, Generator
from typing import Any

import simpy

from benchmarks.measure import Row, measure
from sim.engine.calendar import Calendar
from sim.engine.environment import Environment

PENDING = 50
EVENTS = 200_000
PERIOD_NS = 1_000
RUN_NS = EVENTS // PENDING * PERIOD_NS


def engine(rounds: int) -> list[Row]:
    """Measure all kinds of happenings."""
    cases: dict[str, Callable[[], float]] = {
        "SimPy, timeouts of processes": lambda: simpy_processes(simpy.Environment()),
        "ours, timeouts of processes, run()": lambda: simpy_processes(Environment()),
        "ours, timeouts of processes, run_until()": calendar_processes,
        "ours, bare timers": bare_timers,
        "ours, timers that can be cancelled": timers,
        "ours, timers, each second one cancelled": cancelled_timers,
    }
    return measure("engine", "events/s", cases, rounds)


def _start_processes(env: simpy.Environment) -> None:
    def process(offset: int) -> Generator[Any, Any, None]:
        yield env.timeout(offset)
        while True:
            yield env.timeout(PERIOD_NS)

    for offset in range(PENDING):
        env.process(process(offset))


def simpy_processes(env: simpy.Environment) -> float:
    """Run processes by the environment's run()."""
    _start_processes(env)
    env.run(until=RUN_NS)
    return EVENTS


def calendar_processes() -> float:
    """Run the same processes by the calendar's loop."""
    env = Environment()
    _start_processes(env)
    env.calendar.run_until(RUN_NS)
    return EVENTS


def bare_timers() -> float:
    """Run handlers that post themselves again."""
    calendar = Calendar()

    def expire(arg: int) -> None:
        calendar.post(PERIOD_NS, expire, arg)

    for offset in range(PENDING):
        calendar.post(offset, expire, offset)
    calendar.run_until(RUN_NS)
    return calendar.entries_run()


def timers() -> float:
    """Run handlers that set a new timer."""
    calendar = Calendar()

    def expire(arg: int) -> None:
        calendar.call_after(PERIOD_NS, expire, arg)

    for offset in range(PENDING):
        calendar.post(offset, expire, offset)
    calendar.run_until(RUN_NS)
    return calendar.entries_run()


def cancelled_timers() -> float:
    """Set a time-out with each handler that the next one cancels, as waits with a limit do."""
    calendar = Calendar()
    time_outs = [calendar.call_after(10 * PERIOD_NS, _fail, None) for _ in range(PENDING)]

    def expire(number: int) -> None:
        time_outs[number].cancel()
        time_outs[number] = calendar.call_after(10 * PERIOD_NS, _fail, None)
        calendar.post(PERIOD_NS, expire, number)

    for offset in range(PENDING):
        calendar.post(offset, expire, offset)
    calendar.run_until(RUN_NS)
    return calendar.entries_posted()


def _fail(_: Any) -> None:
    raise AssertionError("a cancelled timer ran")
