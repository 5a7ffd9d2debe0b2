"""The follower's own CPU time is not the server's: counters stay counters, sums stay sums."""

import os
import time

from hypothesis import given
from hypothesis import strategies as st

from calibration.follow.own_time import BOOKED, OwnTime, Ticks, taken_by_own
from sim.tools.parse import CPU_FIELDS, parse_stat

STEP = st.fixed_dictionaries({name: st.integers(0, 500) for name in CPU_FIELDS[:8]})
OWN = st.fixed_dictionaries({name: st.integers(0, 400) for name in BOOKED})


def stat_of(counters: dict[str, int]) -> str:
    line = " ".join(str(counters.get(name, 0)) for name in CPU_FIELDS)
    others = "intr 1\nctxt 5\nbtime 1\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"
    return f"cpu  {line}\ncpu0 {line}\n{others}"


@given(steps=st.lists(st.tuples(STEP, OWN), min_size=1, max_size=8))
def test_what_is_taken_away_is_idle_and_no_counter_goes_back(
    steps: list[tuple[dict[str, int], dict[str, int]]],
) -> None:
    taken = dict.fromkeys(BOOKED, 7)
    own = OwnTime(taken=lambda: {1: dict(taken)})
    counters = dict.fromkeys(CPU_FIELDS, 1000)
    before = parse_stat(own.without(stat_of(counters))).cpu
    assert before == parse_stat(stat_of(counters)).cpu
    owed = dict.fromkeys(BOOKED, 0)
    for step, more in steps:
        for name, value in step.items():
            counters[name] += value
        for name, value in more.items():
            taken[name] += value
            owed[name] += value
        kernel = parse_stat(stat_of(counters)).cpu
        text = own.without(stat_of(counters))
        now = parse_stat(text).cpu
        assert text.splitlines()[1:] == stat_of(counters).splitlines()[1:]
        for name in CPU_FIELDS:
            assert getattr(now, name) >= getattr(before, name)
        moved = {name: getattr(kernel, name) - getattr(now, name) for name in BOOKED}
        assert now.idle - kernel.idle == sum(moved.values())
        assert all(0 <= moved[name] <= owed[name] for name in BOOKED)
        before = now


def test_a_server_that_others_leave_idle_is_idle() -> None:
    """By hand: 2 CPUs for 10 s, of which the twin took 5 s: 500 of 2000 ticks, all of them ours."""
    taken: dict[int, Ticks] = {1: {"user": 0, "nice": 0, "system": 0}}
    own = OwnTime(taken=lambda: taken)
    counters = {"user": 100, "nice": 50, "system": 100, "idle": 10_000}
    before = parse_stat(own.without(stat_of(counters))).cpu
    taken = {1: {"user": 0, "nice": 480, "system": 20}}
    counters = {"user": 110, "nice": 530, "system": 120, "idle": 11_490}
    passed = parse_stat(own.without(stat_of(counters))).cpu - before
    assert (passed.user, passed.nice, passed.system, passed.idle) == (10, 0, 0, 1990)


def test_a_process_that_came_or_ended_takes_nothing_from_others() -> None:
    shown: list[dict[int, Ticks]] = [
        {1: {"user": 900, "nice": 0, "system": 0}},
        {1: {"user": 900, "nice": 0, "system": 0}, 2: {"user": 0, "nice": 30, "system": 0}},
        {1: {"user": 900, "nice": 0, "system": 0}},
    ]
    turns = iter(shown)
    own = OwnTime(taken=lambda: next(turns))
    counters = dict.fromkeys(("user", "nice", "system", "idle"), 1000)
    before = parse_stat(own.without(stat_of(counters))).cpu
    for left in (70, 100):
        counters = {name: value + 100 for name, value in counters.items()}
        now = parse_stat(own.without(stat_of(counters))).cpu
        passed, before = now - before, now
        assert (passed.user, passed.nice, passed.system) == (100, left, 100)


def test_this_process_is_found_with_the_time_it_took() -> None:
    before = taken_by_own()[os.getpid()]
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    now = taken_by_own()[os.getpid()]
    assert sum(now[name] - before[name] for name in BOOKED) >= 25  # ticks of 10 ms
