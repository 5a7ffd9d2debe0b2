"""What the calendar runs, when, in which order."""

from bisect import bisect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.engine.calendar import NEAR_ENTRIES_MAX, NEAR_NS, NORMAL, URGENT, Calendar, Timer

Log = list[tuple[int, Any]]


class Noting:
    """A handler that notes the time and its argument."""

    def __init__(self, calendar: Calendar) -> None:
        self.calendar = calendar
        self.log: Log = []

    def note(self, arg: Any) -> None:
        self.log.append((self.calendar.now, arg))


@pytest.fixture
def noting() -> Noting:
    return Noting(Calendar())


def test_entries_run_at_their_time(noting: Noting) -> None:
    noting.calendar.post(30, noting.note, "c")
    noting.calendar.post_at(10, noting.note, "a")
    noting.calendar.call_after(20, noting.note, "b")
    noting.calendar.run()
    assert noting.log == [(10, "a"), (20, "b"), (30, "c")]


def test_entries_of_one_time_run_in_the_order_of_posting(noting: Noting) -> None:
    for number in range(5):
        noting.calendar.post(7, noting.note, number)
    noting.calendar.run()
    assert noting.log == [(7, number) for number in range(5)]


def test_urgent_entries_run_before_normal_ones_of_the_same_time(noting: Noting) -> None:
    noting.calendar.post_priority(7, NORMAL, noting.note, "normal")
    noting.calendar.post(7, noting.note, "bare")
    noting.calendar.post_priority(7, URGENT, noting.note, "urgent")
    noting.calendar.post_priority(7, NORMAL + 1, noting.note, "late")
    noting.calendar.run()
    assert [arg for _, arg in noting.log] == ["urgent", "normal", "bare", "late"]


def test_run_until_includes_its_end_and_leaves_now_there(noting: Noting) -> None:
    for delay in (5, 10, 15):
        noting.calendar.post(delay, noting.note, delay)
    noting.calendar.run_until(10)
    assert (noting.log, noting.calendar.now) == ([(5, 5), (10, 10)], 10)
    noting.calendar.run_until(12)
    assert (len(noting.log), noting.calendar.now) == (2, 12)


def test_what_is_posted_at_the_end_of_run_until_still_runs(noting: Noting) -> None:
    calendar = noting.calendar
    calendar.post(10, lambda arg: calendar.post(0, noting.note, arg), "child")
    calendar.run_until(10)
    assert noting.log == [(10, "child")]


def test_stop_ends_the_run_after_the_running_entry(noting: Noting) -> None:
    calendar = noting.calendar
    calendar.post(5, lambda _: calendar.stop(), None)
    calendar.post(5, noting.note, "later")
    calendar.run_until(100)
    assert (noting.log, calendar.now) == ([], 5)
    calendar.run_until(100)
    assert (noting.log, calendar.now) == ([(5, "later")], 100)


def test_a_failing_handler_leaves_no_trace_of_run_until(noting: Noting) -> None:
    calendar = noting.calendar
    calendar.post(5, lambda _: 1 // 0, None)
    calendar.post(50, noting.note, "after")
    with pytest.raises(ZeroDivisionError):
        calendar.run_until(20)
    assert calendar.pending() == 1
    calendar.run_until(60)
    assert noting.log == [(50, "after")]


def test_the_past_is_refused(noting: Noting) -> None:
    calendar = noting.calendar
    calendar.run_until(10)
    for attempt in (
        lambda: calendar.post(-1, noting.note, None),
        lambda: calendar.post_at(9, noting.note, None),
        lambda: calendar.call_after(-1, noting.note, None),
        lambda: calendar.post_priority(9, URGENT, noting.note, None),
        lambda: calendar.run_until(9),
    ):
        with pytest.raises(ValueError):
            attempt()
    assert calendar.pending() == 0


def test_the_loop_cannot_run_inside_itself(noting: Noting) -> None:
    calendar = noting.calendar
    calendar.post(1, lambda _: calendar.run(), None)
    with pytest.raises(RuntimeError, match="already running"):
        calendar.run()


def test_a_cancelled_timer_does_not_run(noting: Noting) -> None:
    timer = noting.calendar.call_after(10, noting.note, "timer")
    assert timer.is_pending()
    assert timer.cancel()
    assert not timer.cancel()
    noting.calendar.run()
    assert noting.log == []


def test_a_timer_that_ran_cannot_be_cancelled(noting: Noting) -> None:
    timer = noting.calendar.call_after(10, noting.note, "timer")
    noting.calendar.run()
    assert not timer.is_pending()
    assert not timer.cancel()


def test_a_timer_may_be_cancelled_by_an_entry_of_its_own_time(noting: Noting) -> None:
    calendar = noting.calendar
    timers: list[Timer] = []
    calendar.post(10, lambda _: timers[0].cancel(), None)
    timers.append(calendar.call_after(10, noting.note, "timer"))
    calendar.run()
    assert noting.log == []


def test_peek_skips_cancelled_timers(noting: Noting) -> None:
    calendar = noting.calendar
    assert calendar.peek() is None
    timer = calendar.call_after(10, noting.note, None)
    calendar.post(20, noting.note, None)
    assert calendar.peek() == 10
    timer.cancel()
    assert calendar.peek() == 20


def test_cancelled_timers_do_not_pile_up(noting: Noting) -> None:
    calendar = noting.calendar
    for _ in range(100_000):
        calendar.call_after(1_000_000, noting.note, None).cancel()
    assert calendar.pending() == 0
    assert len(calendar._near) + len(calendar._far) < 1_000


DELAYS = st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60)


@given(DELAYS)
def test_the_order_is_that_of_a_stable_sort_without_what_was_cancelled(
    plan: list[tuple[int, bool]],
) -> None:
    noting = Noting(Calendar())
    timers = [noting.calendar.call_after(d, noting.note, i) for i, (d, _) in enumerate(plan)]
    for timer, (_, cancelled) in zip(timers, plan, strict=True):
        if cancelled:
            timer.cancel()
    kept = [(delay, number) for number, (delay, cancelled) in enumerate(plan) if not cancelled]
    assert noting.calendar.pending() == len(kept)
    noting.calendar.run()
    assert noting.log == sorted(kept, key=lambda entry: entry[0])
    assert noting.calendar.pending() == 0


@given(DELAYS, st.integers(0, 20))
def test_running_in_two_parts_changes_nothing(plan: list[tuple[int, bool]], cut: int) -> None:
    whole, parts = Noting(Calendar()), Noting(Calendar())
    for noting in (whole, parts):
        for number, (delay, is_timer) in enumerate(plan):
            post = noting.calendar.call_after if is_timer else noting.calendar.post
            post(delay, noting.note, number)
    whole.calendar.run_until(30)
    parts.calendar.run_until(cut)
    parts.calendar.run_until(30)
    assert whole.log == parts.log


@given(DELAYS, st.integers(0, 99))
def test_shuffled_ties_keep_times_and_priorities(plan: list[tuple[int, bool]], seed: int) -> None:
    noting = Noting(Calendar())
    calendar = noting.calendar
    calendar.shuffle_ties(seed)
    for number, (delay, urgent) in enumerate(plan):
        priority = URGENT if urgent else NORMAL
        calendar.post_priority(delay, priority, noting.note, (priority, number))
    calendar.run_until(20)
    order = [(when, priority) for when, (priority, _) in noting.log]
    assert order == sorted(order)
    assert len(order) == len(plan)


def test_shuffled_ties_depend_on_the_seed_only() -> None:
    def order(seed: int) -> Log:
        noting = Noting(Calendar())
        noting.calendar.shuffle_ties(seed)
        for number in range(20):
            noting.calendar.post(5, noting.note, number)
        noting.calendar.run()
        return noting.log

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(1)) == sorted(order(2))


# -- Near, far and advance(): nobody can see them.

FAR_DELAYS = st.lists(st.integers(0, 4 * NEAR_NS), max_size=30)


class Cascade(Noting):
    """Each entry notes itself and posts the next ones of a plan, as a running twin does."""

    def __init__(self, plan: list[int]) -> None:
        super().__init__(Calendar())
        self.plan = list(reversed(plan))
        for _ in range(3):
            self._post_next()

    def _post_next(self) -> None:
        if self.plan:
            delay = self.plan.pop()
            self.calendar.post(delay, self._happen, self.calendar.now + delay)

    def _happen(self, due_ns: int) -> None:
        self.note(due_ns)
        self._post_next()
        self._post_next()


@given(FAR_DELAYS)
def test_what_is_far_away_runs_at_its_time_and_in_order(plan: list[int]) -> None:
    cascade = Cascade(plan)
    cascade.calendar.run()
    whens = [when for when, _ in cascade.log]
    assert whens == [due_ns for _, due_ns in cascade.log]
    assert whens == sorted(whens)
    assert len(whens) == cascade.calendar.entries_run() == len(plan)
    assert cascade.calendar.pending() == 0


@given(FAR_DELAYS)
def test_steps_and_a_run_come_to_the_same(plan: list[int]) -> None:
    run, steps = Cascade(plan), Cascade(plan)
    run.calendar.run()
    while steps.calendar.peek() is not None:
        steps.calendar.step()
    assert steps.log == run.log


@given(FAR_DELAYS, st.integers(0, 5 * NEAR_NS))
def test_ends_of_runs_far_away_are_kept(plan: list[int], end_ns: int) -> None:
    cascade, whole = Cascade(plan), Cascade(plan)
    cascade.calendar.run_until(end_ns)
    assert cascade.calendar.now == end_ns
    whole.calendar.run()
    assert cascade.log == [entry for entry in whole.log if entry[0] <= end_ns]


@pytest.mark.parametrize("spread_ns", [1, 1_000, NEAR_NS])
def test_many_entries_of_one_time_or_of_many_stay_in_order(noting: Noting, spread_ns: int) -> None:
    calendar = noting.calendar
    for number in range(5_000):
        when_ns = number * 7_919 % spread_ns
        calendar.post_priority(when_ns, number % 3, noting.note, (when_ns, number % 3, number))
    calendar.post(0, lambda _: calendar.post_priority(0, URGENT, noting.note, (0, 0, -1)), None)
    assert len(calendar._near) < 2 * NEAR_ENTRIES_MAX
    calendar.run()
    order = [arg for _, arg in noting.log if arg[2] >= 0]
    assert order == sorted(order)
    assert len(order) == 5_000
    at_zero = [arg for when, arg in noting.log if when == 0]
    before = at_zero[: at_zero.index((0, 0, -1))]
    assert all(priority <= NORMAL for _, priority, _ in before)


def test_cancelled_time_outs_do_not_pile_up_far_away(noting: Noting) -> None:
    calendar = noting.calendar
    for _ in range(10_000):
        calendar.call_after(300 * NEAR_NS, noting.note, None).cancel()
    assert calendar.pending() == 0
    assert len(calendar._near) + len(calendar._far) < 1_000


def test_advance_goes_where_nothing_else_is_due_before(noting: Noting) -> None:
    calendar = noting.calendar
    calendar.post(10, noting.note, "next")
    assert not calendar.advance(10)
    assert calendar.advance(9)
    assert (calendar.now, calendar.entries_run()) == (9, 1)
    calendar.run()
    assert noting.log == [(10, "next")]


def test_advance_does_not_pass_the_end_of_a_run(noting: Noting) -> None:
    calendar = noting.calendar
    went: list[bool] = []
    calendar.post(10, lambda _: went.extend([calendar.advance(20), calendar.advance(19)]), None)
    calendar.run_until(20)
    assert went == [False, True]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(NORMAL, NORMAL + 1)), max_size=60),
    st.integers(0, 10),
)
def test_compiled_code_finds_the_place_that_bisect_finds(
    posted: list[tuple[int, int]], when_ns: int
) -> None:
    """Of which build this is, both ways to sort an entry in give one order."""
    calendar = Calendar()
    calendar.post_at(NEAR_NS, len, "")
    calendar.peek()  # Near takes what is due before the horizon from now on.
    for at_ns, priority in posted:
        calendar.post_priority(at_ns, priority, len, "")
    key = len(posted) + 2
    keys = [entry[:2] for entry in calendar._near]
    assert len(keys) == len(posted) + 1
    assert calendar._place_near(when_ns, key) == bisect(keys, (when_ns, key))
