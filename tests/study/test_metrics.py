"""Figures come out of /proc text and marks as an administrator would work them out."""

import random
from dataclasses import replace

import pytest

import scenarios.sendmail.program  # noqa: F401  (registers sendmail, whose figures some are)
from sim.observation import MeasureSpec, Observation
from sim.results import Record, RunResult
from sim.study.metrics import compute_metrics, histograms_seen, metrics_of, units_of
from sim.user.smtp.figures import refused_spans
from tests.study.storms import NS_PER_S, storm

MEASURE = MeasureSpec(
    interval_ns=5 * NS_PER_S,
    families=("storm", "load", "cpu", "disk", "port"),
    devices=("sdb",),
    programs=("sendmail",),
)


def test_the_storm_of_known_counters_gives_its_figures() -> None:
    figures = compute_metrics(storm(None, 0), MEASURE)
    expected = {
        "messages_accepted": 2030,
        "duration_s": 187.0,
        "throughput_per_s": 2030 / 187,
        "load1_peak": 37.0,
        "port_refused_s": 60.0,
        "cpu.user_pct": 6.0,
        "cpu.iowait_pct": 21.75,
        "cpu_idle_pct_min": 72.25,
        "cpu.iowait_of_util": 21.75 / 95,
        "tasks_iowait": 1.0,
        "disk.sdb.w_per_s": 173.0,
        "disk.sdb.wrqm_per_s": 692.0,
        "disk.sdb.wrqm_per_w": 4.0,
        "disk.sdb.avgrq_sectors": 44.0,
        "disk.sdb.await_ms": 23.0,
        "disk.sdb.svctm_ms": 950 / 173,
        "disk.sdb.avgqu_sz": 3.8,
        "disk.sdb.util_pct": 95.0,
    }
    assert {name: figures[name] for name in expected} == pytest.approx(expected)


def test_only_reports_wholly_inside_the_storm_are_averaged() -> None:
    seen = Observation(storm(None, 0), MEASURE)
    ends_s = [report.t_ns // NS_PER_S for report in seen.full_reports]
    assert (ends_s[0], ends_s[-1], len(ends_s)) == (35, 215, 37)
    assert seen.describe().startswith("mean of iostat's 37 full reports of 5 s, from 30 s to 215 s")


def test_an_idle_disk_has_figures_of_zero() -> None:
    figures = compute_metrics(storm("tmpfs", 0), MEASURE)
    assert figures["disk.sdb.w_per_s"] == 0
    assert figures["cpu_idle_pct_min"] == pytest.approx(32)
    assert figures["port_refused_s"] == 0
    assert "disk.sdb.wrqm_per_w" not in figures


def test_figures_without_data_are_left_out_rather_than_invented() -> None:
    result = replace(storm(None, 0), records=())
    figures = compute_metrics(result, MEASURE)
    assert not {"duration_s", "throughput_per_s", "port_refused_s", "tasks_d"} & set(figures)


def test_a_storm_shorter_than_a_report_has_no_averages() -> None:
    marks = (
        Record(31 * NS_PER_S, "storm_begin", "blast", 1),
        Record(33 * NS_PER_S, "storm_end", "blast", 1),
    )
    result = replace(storm(None, 0), records=marks)
    assert "cpu.user_pct" not in compute_metrics(result, MEASURE)
    assert Observation(result, MEASURE).describe() == (
        "no means: no full report lies inside storm_begin at 31.0 s to storm_end at 33.0 s"
        " (reports of 5 s, [measure] interval)"
    )


def test_a_storm_that_does_not_end_is_called_unfinished() -> None:
    result = storm(None, 0)
    assert Observation(result, MEASURE).unfinished() == ""
    begun = tuple(record for record in result.records if record.name != "storm_end")
    seen = Observation(replace(result, records=begun), MEASURE)
    assert seen.missing == ("storm_end",)
    assert seen.unfinished() == "unfinished: no storm_end until the run's end at 280.0 s"
    assert "to the run's end at 280.0 s" in seen.describe()
    assert "storm_end" not in seen.describe()


def test_without_marks_the_whole_run_is_measured() -> None:
    result = replace(storm(None, 0), records=())
    seen = Observation(result, replace(MEASURE, begin="", end=""))
    assert seen.unfinished() == ""
    assert "inside the run's beginning at 0.0 s to the run's end at 280.0 s" in seen.describe()


def test_messages_before_and_after_the_storm_are_not_counted() -> None:
    result = storm(None, 0)
    others = tuple(Record(t_s * NS_PER_S, "message_accepted", "x", 1) for t_s in (29, 218))
    result = replace(result, records=(*result.records, *others))
    assert compute_metrics(result, MEASURE)["messages_accepted"] == 2030


def test_a_port_closed_at_the_end_is_refused_until_the_end() -> None:
    result = storm(None, 0)
    result = replace(result, records=(Record(270 * NS_PER_S, "port_open", "sendmail", 0),))
    assert refused_spans(result) == [(270 * NS_PER_S, 280 * NS_PER_S)]


def test_a_scenario_gets_the_families_it_asks_for() -> None:
    names = [metric.name for metric in metrics_of(replace(MEASURE, families=("port",)))]
    assert names == ["port_refused_s"]


def test_every_figure_has_a_name_of_its_own() -> None:
    metrics = metrics_of(MEASURE)
    assert len(units_of(MEASURE)) == len(metrics)


MAIL = MeasureSpec(families=("accept",), programs=("smtp_sender",))


def mails(times_ms: list[float], refused: int = 0) -> RunResult:
    """Return a storm in which mails, ten a second from 31 s on, took these times."""
    base = storm(None, 0)
    records = [
        Record(31 * NS_PER_S + n * NS_PER_S // 10, "accept_ns", "mail", round(1e6 * time))
        for n, time in enumerate(times_ms)
    ]
    offered = [replace(record, name="message_offered", value=1) for record in records]
    lost = [Record(32 * NS_PER_S, "not_accepted", "mail", 1)] * refused
    return replace(base, records=(*base.records, *offered, *records, *lost))


def test_what_was_not_accepted_took_longer_than_anything() -> None:
    whole = compute_metrics(mails([10.0] * 90 + [20.0] * 10), MAIL)
    assert whole == {
        "accept_ms": pytest.approx(11),
        "accept_p95_ms": pytest.approx(20),
        "not_accepted": 0,
    }
    few = compute_metrics(mails([10.0] * 97, refused=3), MAIL)
    assert (few["accept_p95_ms"], few["not_accepted"]) == (10, 3)
    many = compute_metrics(mails([10.0] * 90, refused=10), MAIL)
    assert "accept_p95_ms" not in many
    assert many["accept_ms"] == 10


def test_a_run_keeps_the_times_of_its_quantiles() -> None:
    result = mails([10.0] * 90 + [20.0] * 10, 5)
    [(mark, found)] = histograms_seen(Observation(result, MAIL)).items()
    assert (mark, found.total, found.never) == ("accept_ns", 105, 5)
    assert found.beyond(15e6) == 15


def test_a_steady_state_begins_after_the_transient() -> None:
    steady = replace(MAIL, steady=True)
    chance = random.Random(1)
    times = [500 + chance.gauss(0, 1) for _ in range(100)]
    times += [10 + chance.gauss(0, 1) for _ in range(900)]
    seen = Observation(mails(times), steady)
    assert (seen.unsteady, seen.cut) == ("", 100)
    assert seen.begin_ns == 41 * NS_PER_S
    assert "the steady state at 41.0 s" in seen.describe()
    assert compute_metrics(mails(times), steady)["accept_ms"] == pytest.approx(10, abs=0.2)
    assert compute_metrics(mails(times), MAIL)["accept_ms"] == pytest.approx(59, abs=1)


@pytest.mark.parametrize(
    ("times", "offered", "why"),
    [
        ([10.0 + n for n in range(1000)], 0, "more than half would be cut"),
        ([10.0] * 40, 0, "40 transactions, of at least 50"),
        ([10.0] * 400, 50, "400 transactions done of 450 offered"),
    ],
)
def test_a_run_without_a_steady_state_has_no_figures(
    times: list[float], offered: int, why: str
) -> None:
    steady = replace(MAIL, steady=True)
    result = mails(times)
    more = [Record(60 * NS_PER_S, "message_offered", "mail", 1)] * offered
    result = replace(result, records=(*result.records, *more))
    assert why in Observation(result, steady).unsteady
    assert compute_metrics(result, steady) == {}
    assert histograms_seen(Observation(result, steady)) == {}
