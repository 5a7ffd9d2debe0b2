"""Figures of mail come out of marks: what was queued when, how long it took, who wrote blocks."""

import pytest

import scenarios.exim_io.exim  # noqa: F401  (registers exim, whose figures these are)
from sim.observation import MeasureSpec
from sim.results import Record, RunResult
from sim.study.metrics import compute_metrics
from sim.units import NS_PER_S

MEASURE = MeasureSpec(
    interval_ns=NS_PER_S,
    begin="day_begin",
    end="day_end",
    families=("mail", "blocks", "hdparm"),
    programs=("exim",),
)


def figures(*marks: tuple[float, str, str, float]) -> dict[str, float]:
    """Return the figures of a run with these marks (s, name, comm, value), from 10 s on."""
    rows = [(10.0, "day_begin", "day", 1), *marks, (100.0, "day_end", "day", 1)]
    records = tuple(
        Record(round(at_s * NS_PER_S), name, comm, value)
        for at_s, name, comm, value in sorted(rows)
    )
    result = RunResult(
        scenario="x", title="x", what_if=None, seed=1, version="0", samples=(), records=records
    )
    return compute_metrics(result, MEASURE)


def accepted(at_s: float) -> tuple[float, str, str, float]:
    return at_s, "message_accepted", "exim", 1


def delivered(at_s: float, took_s: float) -> list[tuple[float, str, str, float]]:
    return [
        (at_s, "message_delivered", "exim", 1),
        (at_s, "delivery_ns", "exim", took_s * NS_PER_S),
    ]


def test_the_queue_is_what_was_accepted_and_not_delivered() -> None:
    found = figures(
        accepted(11), accepted(12), *delivered(13, 2), accepted(14), accepted(15), *delivered(16, 4)
    )
    assert (found["mail.queue_max"], found["mail.queue_end"]) == (3, 2)
    assert found["mail.accepted"] == 4
    assert found["mail.delivery_s"] == pytest.approx(3)


def test_what_was_before_the_measured_part_is_in_the_queue_but_not_counted() -> None:
    found = figures(accepted(5), accepted(20))
    assert (found["mail.accepted"], found["mail.queue_max"]) == (1, 2)


def test_without_deliveries_there_is_no_time_of_one() -> None:
    assert "mail.delivery_s" not in figures(accepted(11))


def test_block_events_are_those_of_the_five_seconds_from_an_acceptance_on() -> None:
    """A mark at the end of a second has the lines of that second."""
    counts = [(second + 1.0, "block_events", "kjournald", 10.0) for second in range(30, 50)]
    counts += [(second + 1.0, "block_events", "mysqld", 1.0) for second in range(30, 33)]
    found = figures(accepted(30.5), accepted(40), *counts)
    assert found["block_events.kjournald"] == 50
    assert found["block_events.others"] == (3 + 0) / 2
    assert found["block_events.kjournald_pct"] == pytest.approx(100 * 200 / 203)


def test_hdparm_tells_of_the_host_that_its_process_is_named_after() -> None:
    found = figures((12, "hdparm_cached_bytes_per_s", "guest", 5e8))
    assert found["guest.cached_read_bytes_per_s"] == 5e8
    assert "dom0.cached_read_bytes_per_s" not in found
