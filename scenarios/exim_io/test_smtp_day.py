"""The mail of a day: how much at which hour, in bursts, and what becomes of what is refused."""

from statistics import fmean

import pytest

from scenarios.exim_io.smtp_day import SmtpDay, SmtpDayParams
from sim.user.smtp.sender import HOUR_NS, PROFILES
from tests.user.exim import FULL, day, exim_server
from tests.user.servers import run_for, times_of, values_of


@pytest.mark.parametrize("profile", list(PROFILES))
def test_the_mean_over_24_hours_is_the_rate_given(profile: str) -> None:
    hours = SmtpDay(SmtpDayParams(profile=profile))
    assert fmean(hours.rate_weight(hour * HOUR_NS) for hour in range(24)) == pytest.approx(1)


def test_the_day_begins_at_its_first_hour() -> None:
    late = SmtpDay(SmtpDayParams(first_hour=13))
    early = SmtpDay(SmtpDayParams())
    assert late.rate_weight(0) == early.rate_weight(13 * HOUR_NS)
    assert late.rate_weight(12 * HOUR_NS) == early.rate_weight(HOUR_NS)


def test_as_many_are_accepted_and_rejected_as_were_sent() -> None:
    """Poisson: 100 and 200 expected, three standard deviations are 30 and 42."""
    client = day(
        accepted_per_day=432_000, rejected_per_day=864_000, burst_share=0.0, virus_share=0.0
    )
    machine = run_for(exim_server(client), 60)
    assert len(times_of(machine, "message_accepted")) == pytest.approx(100, abs=30)
    assert len(times_of(machine, "message_rejected")) == pytest.approx(200, abs=42)
    wanted = len(times_of(machine, "message_accepted"))
    assert len(values_of(machine, "accept_ns")) == len(values_of(machine, "message_offered"))
    assert len(values_of(machine, "accept_ns")) == wanted
    assert not values_of(machine, "not_accepted")  # What is not wanted is nobody's to accept.
    assert all(time < 30 for time in times_of(machine, "message_rejected"))


def test_a_burst_comes_within_its_spread() -> None:
    client = day(
        rejected_per_day=0,
        accepted_per_day=200_000,
        burst_share=1.0,
        burst_messages=8,
        burst_spread="0.5 s",
        duration="10 s",
    )
    machine = run_for(exim_server(client), 60)
    times = times_of(machine, "message_accepted")
    assert len(times) % 8 == 0 and times
    assert times[7] - times[0] < 3


def test_what_is_refused_for_good_is_not_tried_again_and_nothing_is_unfinished() -> None:
    machine = run_for(exim_server(day(accepted_per_day=0, duration="10 s"), **FULL), 40)
    assert values_of(machine, "mail_unfinished") == [0]
    assert values_of(machine, "day_begin") == values_of(machine, "day_end") == [1]


def test_twice_the_load_is_twice_the_mail() -> None:
    counts = []
    for scale in (1, 2):
        machine = exim_server(day(load_scale=scale, burst_share=0.0, accepted_per_day=400_000))
        counts.append(len(times_of(run_for(machine, 40), "message_accepted")))
    assert counts[1] / counts[0] == pytest.approx(2, rel=0.35)
