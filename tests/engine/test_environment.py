"""SimPy processes and bare timers on one calendar."""

from collections.abc import Generator
from typing import Any

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from sim.engine.environment import Environment, call_when

Process = Generator[Any, Any, Any]


def test_processes_and_bare_timers_share_clock_and_order() -> None:
    env, log = Environment(), []

    def process() -> Process:
        for _ in range(2):
            yield env.timeout(10)
            log.append((env.now, "process"))

    env.process(process())
    env.calendar.post(5, lambda arg: log.append((env.now, arg)), "timer 5")
    env.calendar.post(10, lambda arg: log.append((env.now, arg)), "timer 10")
    env.calendar.run_until(20)
    assert log == [(5, "timer 5"), (10, "timer 10"), (10, "process"), (20, "process")]


def test_run_stops_before_ordinary_events_of_its_end_as_in_simpy() -> None:
    env, log = Environment(), []
    env.calendar.post(10, log.append, "timer")
    env.run(until=10)
    assert (env.now, log) == (10, [])
    env.run()
    assert log == ["timer"]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_both_loops_and_simpys_own_environment_give_the_same_log(
    plan: list[tuple[int, int]],
) -> None:
    def play(env: simpy.Environment) -> list[tuple[Any, ...]]:
        log: list[tuple[Any, ...]] = []
        resource = simpy.Resource(env, capacity=2)

        def customer(number: int, arrival: int, service: int) -> Process:
            yield env.timeout(arrival)
            with resource.request() as request:
                yield request | env.timeout(3)
                log.append((env.now, number, request.triggered))
                yield env.timeout(service)
            log.append((env.now, number, "left"))

        for number, (arrival, service) in enumerate(plan):
            env.process(customer(number, arrival, service))
        if isinstance(env, Environment) and fast:
            env.calendar.run_until(1000)
        else:
            env.run(until=1000)
        return log

    fast = False
    expected = play(simpy.Environment())
    assert play(Environment()) == expected
    fast = True
    assert play(Environment()) == expected


@given(st.lists(st.floats(0, 3), max_size=12))
def test_fractions_of_a_nanosecond_happen_in_order_at_their_exact_time(
    delays: list[float],
) -> None:
    env, log = Environment(), []

    def process(delay: float) -> Process:
        yield env.timeout(delay)
        log.append(env.now)

    for delay in delays:
        env.process(process(delay))
    for when in range(4):
        env.calendar.post(when, lambda arg: log.append(env.calendar.now), None)
    env.run()
    assert log == sorted([*delays, 0, 1, 2, 3])


def test_the_calendar_shows_the_whole_nanosecond_that_a_fraction_belongs_to() -> None:
    env = Environment(initial_time=0.25)
    assert (env.now, env.calendar.now) == (0.25, 1)
    env.run(until=1.5)
    assert (env.now, env.calendar.now) == (1.5, 2)


def test_an_event_at_infinity_comes_last_and_nan_is_no_time() -> None:
    env = Environment()
    env.timeout(float("inf"))
    env.timeout(5)
    assert env.peek() == 5
    env.run()
    assert env.now == float("inf")
    with pytest.raises(ValueError, match="not a time"):
        env.timeout(float("nan"))


def test_step_runs_one_event_and_the_bare_timers_before_it() -> None:
    env, log = Environment(), []
    for delay in (1, 2, 4):
        env.calendar.post(delay, log.append, delay)
    env.timeout(3)
    env.timeout(5)
    env.step()
    assert (env.now, log, env.peek()) == (3, [1, 2], 4)


@pytest.mark.parametrize("loop", ["run", "run_until"])
def test_a_failure_that_nobody_takes_ends_either_loop(loop: str) -> None:
    env = Environment()
    env.event().fail(KeyError("lost"))
    with pytest.raises(KeyError, match="lost"):
        env.run() if loop == "run" else env.calendar.run_until(1)


def test_an_index_error_of_a_bare_timer_is_not_taken_for_the_end_of_the_run() -> None:
    env = Environment()
    env.calendar.post(5, lambda _: [].pop(), None)
    with pytest.raises(RuntimeError, match="failed at 5 ns"):
        env.run()


def test_stopping_the_calendar_ends_run() -> None:
    env = Environment()
    env.calendar.post(5, lambda _: env.calendar.stop(), None)
    env.timeout(10)
    env.run()
    assert env.now == 5


def test_a_process_waits_for_the_kernel_and_the_kernel_for_a_process() -> None:
    env, log = Environment(), []
    kernel_done = env.event()

    def process() -> Process:
        value = yield kernel_done
        log.append((env.now, value))
        yield env.timeout(5)

    call_when(env.process(process()), lambda arg: log.append((env.now, arg)), "process ended")
    env.calendar.post(7, kernel_done.succeed, "irq")
    env.run()
    assert log == [(7, "irq"), (12, "process ended")]


def test_call_when_calls_at_once_for_what_has_happened() -> None:
    env, log = Environment(), []
    event = env.timeout(1)
    env.run()
    call_when(event, log.append, "late")
    assert log == ["late"]


def test_two_environments_may_share_a_calendar() -> None:
    first = Environment()
    second = Environment(calendar=first.calendar)
    log: list[Any] = []
    for env in (first, second):
        env.timeout(3).callbacks.append(log.append)
    first.calendar.run_until(3)
    assert (len(log), second.now) == (2, 3)
