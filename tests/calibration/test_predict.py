"""What widens a prediction: shares of variance on ensembles whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.fit.predict import MEMBERS_MIN, Prediction, predict
from calibration.fit.prediction_report import held, prediction_json, prediction_table, widest
from sim.report.tables import plain
from sim.scenario import Scenario, load
from sim.scenario.fitted import Fit, fit_layer
from sim.study.recorded import Figure
from sim.study.trial import Figures, Trial
from sim.units import parse_quantity
from tests.calibration.server_of_formulas import Formulas

WORKERS, THINK = "process.blast.concurrency", "process.blast.think_time"
MEMBERS = 100


def ensemble() -> Fit:
    """Return a fit with a hundred members, workers and think time independent."""
    random = np.random.default_rng(3)
    members = tuple(
        (str(random.integers(4, 40)), f"{random.integers(1, 900)} ms") for _ in range(MEMBERS)
    )
    return Fit(
        file="f.toml",
        scenario="sendmail",
        kind="prediction",
        against="before",
        variants=("base",),
        parameters=(WORKERS, THINK),
        header={},
        members=members,
        best=dict(zip((WORKERS, THINK), members[0], strict=True)),
    )


def scenario(what_if: str | None = "tmpfs") -> Scenario:
    return load("sendmail", what_if=what_if, fit=fit_layer(ensemble().best, "fit: f.toml"))


def server(trial: Trial) -> Figures:
    """Return a rate made of workers alone, a load of think time and chance in equal parts."""
    values = dict(trial.values)
    think_ms = parse_quantity(values[THINK], "time_ns") / 1e6
    chance = np.random.default_rng(trial.seed).normal(0, 260)
    return {
        "throughput_per_s": float(values[WORKERS]),
        "load1_peak": think_ms + chance,
        "cpu_idle_pct_min": 50.0,
    }


def predicted(
    replications: int = 1, what_if: str | None = "tmpfs", members: int = MEMBERS
) -> Prediction:
    return predict(
        ensemble(),
        scenario(what_if),
        "sendmail",
        Formulas(server),
        members=members,
        replications=replications,
        seed=1,
    )


def test_the_interval_is_that_of_the_members() -> None:
    rate = predicted().metrics["throughput_per_s"]
    rates = sorted(int(workers) for workers, _think in ensemble().members)
    assert rates[2] <= rate.lo <= rates[8]
    assert rates[92] <= rate.hi <= rates[97]


def test_what_one_parameter_makes_is_called_its_share() -> None:
    shares = predicted().shares["throughput_per_s"]
    assert shares[WORKERS] == pytest.approx(1, abs=0.03)
    assert shares[THINK] < 0.06


def test_chance_is_told_apart_where_there_are_replications() -> None:
    shares = predicted(replications=4).shares["load1_peak"]
    assert shares["chance"] == pytest.approx(0.5, abs=0.1)
    assert shares[THINK] == pytest.approx(0.5, abs=0.15)


def test_without_replications_what_is_left_is_not_explained() -> None:
    prediction = predicted()
    assert "chance" not in prediction.shares["load1_peak"]
    assert prediction.joint["load1_peak"] == pytest.approx(0.5, abs=0.15)


def test_a_figure_that_never_changes_has_no_shares() -> None:
    assert "cpu_idle_pct_min" not in predicted().shares


def test_members_have_chance_of_their_own_and_what_ifs_the_same() -> None:
    seen: dict[str | None, list[int]] = {None: [], "tmpfs": []}

    def remembers(trial: Trial) -> Figures:
        seen[trial.what_if].append(trial.seed)
        return server(trial)

    for what_if in (None, "tmpfs"):
        lab = Formulas(remembers)
        predict(ensemble(), scenario(what_if), "sendmail", lab, members=5, replications=2, seed=9)
    assert seen[None] == seen["tmpfs"] == list(range(9, 19))


def test_only_the_variant_that_was_fitted_to_is_a_reproduction() -> None:
    assert predicted(what_if="tmpfs").kind == "prediction"
    assert predicted(what_if=None).kind == "reproduction"


def test_the_table_says_whether_the_interval_holds_what_was_recorded() -> None:
    recorded = {
        "throughput_per_s": Figure(value=20, text="20", low=18, high=22),
        "cpu_idle_pct_min": Figure(value=32, text="32", low=27, high=37),
    }
    text = plain(prediction_table(predicted(), recorded))
    rate, load, idle = text.splitlines()[1:]
    assert "holds it" in rate
    assert f"{WORKERS} 1" in rate.replace("99 %", "100 %")
    assert "misses it" in idle
    assert "holds" not in load


def test_the_recorded_figures_that_an_interval_holds_are_counted() -> None:
    recorded = {
        "throughput_per_s": Figure(value=20, text="20", low=18, high=22),
        "cpu_idle_pct_min": Figure(value=32, text="32", low=27, high=37),
        "load1_peak": Figure(value=None, text="high", low=None, high=None),
        "not simulated": Figure(value=1, text="1", low=1, high=1),
    }
    assert held(predicted(), recorded) == "The 90 % intervals hold 1 of the 2 recorded figures."
    assert held(predicted(), {}) == ""


def test_the_json_has_the_form_of_run_and_the_shares() -> None:
    found = prediction_json(predicted(), {}, "1.0")
    assert (found["scenario"], found["what_if"], found["kind"]) == (
        "sendmail",
        "tmpfs",
        "prediction",
    )
    assert set(found["metrics"]["throughput_per_s"]) == {
        "median",
        "lo",
        "hi",
        "unit",
        "shares",
        "explained",
    }


def test_a_small_share_is_not_named() -> None:
    prediction = replace(predicted(), shares={"load1_peak": {"a": 0.04, "b": 0.6}})
    assert widest(prediction, "load1_peak") == "b 60 %"


def test_a_handful_of_members_has_an_interval_and_no_shares() -> None:
    few = predicted(members=MEMBERS_MIN - 1)
    assert (few.shares, few.joint) == ({}, {})
    assert widest(few, "throughput_per_s") == ""
    assert predicted(members=MEMBERS_MIN).shares["throughput_per_s"]
