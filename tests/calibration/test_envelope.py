"""Mean-value analysis beside a prediction: from the recording alone, and only where it is asked."""

import pytest

from calibration.fit.envelope import envelope_beside, envelope_json, envelope_of, envelope_text
from calibration.fit.predict import Prediction
from sim.scenario import load
from sim.scenario.cases import data_sets, shipped_fit
from sim.scenario.fitted import read_fit
from sim.study.summary import Summary, summarise


def summary(low: float, high: float, unit: str = "/s") -> Summary:
    """Return an interval."""
    return summarise([low, high], unit)


def predicted(what_if: str | None, *, low: float, high: float, util: float = 0.0) -> Prediction:
    """Return a prediction of the mail storm with that throughput."""
    return Prediction(
        scenario=load("sendmail", what_if=what_if),
        fit=read_fit(shipped_fit("sendmail.before"), "sendmail"),
        seed=1,
        members=64,
        replications=1,
        joint={},
        metrics={
            "throughput_per_s": summary(low, high),
            "disk.sdb.util_pct": summary(util, util, "%"),
        },
        shares={"throughput_per_s": {"process.blast.think_time": 0.77, "chance": 0.02}},
    )


def test_without_its_disk_the_recorded_storm_is_bound_by_its_cpus() -> None:
    """4 CPUs at 45 % and a disk at 99 %, at 11 messages a second."""
    found = envelope_of(data_sets()["sendmail"])
    assert found is not None
    assert (found.gone, found.left) == ("sdb", "CPU")
    assert found.gone_ms == pytest.approx(89.96, abs=0.01)
    assert found.left_ms == pytest.approx(40.98, abs=0.01)
    assert found.bound_per_s == pytest.approx(4 / 0.04098, rel=1e-3)


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(27, 121, "holds that too"), (40, 80, "excludes that")]
)
def test_the_report_says_whether_the_interval_excludes_it_and_what_widens_it(
    low: float, high: float, verdict: str
) -> None:
    prediction = predicted("tmpfs", low=low, high=high)
    found = envelope_beside(prediction, data_sets()["sendmail"])
    assert found is not None
    said = envelope_text(prediction, found)
    assert f"97.60 /s. The interval of throughput_per_s {verdict}" in said
    assert "process.blast.think_time widens it most (77 %)" in said
    assert envelope_json(prediction, found)["inside"] == ("holds" in verdict)


@pytest.mark.parametrize(("what_if", "util"), [(None, 0.0), ("ssd", 40.0)])
def test_where_the_disk_stays_nothing_is_said(what_if: str | None, util: float) -> None:
    prediction = predicted(what_if, low=10, high=20, util=util)
    assert envelope_beside(prediction, data_sets()["sendmail"]) is None


def test_a_recording_of_words_has_no_demands() -> None:
    assert envelope_of("tunnel") is None
