"""The whole chain on a server of formulas: finds the truth, repeats itself, says what it cannot."""

import tomllib
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.fit.chain import FitResult, Plan, calibrate
from calibration.fit.fitfile import command_of, fit_text
from calibration.fit.picture import plot_fit
from calibration.fit.report import parameter_rows, report
from sim.scenario.cases import data_sets
from sim.scenario.fitted import read_fit
from sim.units import parse_quantity
from tests.calibration import server_of_formulas as server


@pytest.fixture(scope="module")
def result() -> FitResult:
    return calibrate(server.plan(), server.recorded(), server.Formulas())


def test_the_truth_is_inside_the_90_percent_intervals(result: FitResult) -> None:
    low, high = result.space.values(np.quantile(result.posterior.points, (0.05, 0.95), axis=0))
    for i, prior in enumerate(result.space.priors):
        truth = parse_quantity(server.TRUTH[prior.path], prior.dim)
        assert low[i] <= float(truth) <= high[i]


def test_what_the_recording_shows_is_narrowed_and_the_rest_said_to_be_the_prior(
    result: FitResult,
) -> None:
    narrowed = {row.path: row.is_identified for row in parameter_rows(result)}
    assert narrowed == {server.WORKERS: True, server.THINK: True, server.IDLE: False}
    [line] = [line for line in report(result).splitlines() if line.startswith(server.IDLE)]
    assert line.endswith("not identified: the prior")


def test_the_report_has_every_column_and_says_that_the_sampler_converged(result: FitResult) -> None:
    text = report(result)
    assert all(f"before: {name}" in text for name in server.UNITS)
    assert "sampler: converged" in text


def test_the_same_plan_gives_the_same_file_and_says_beforehand_how_many_trials_it_takes(
    result: FitResult,
) -> None:
    asked: list[server.Trial] = []

    def counted(trial: server.Trial) -> server.Figures:
        asked.append(trial)
        return server.figures(trial)

    again = server.Formulas(counted)
    assert fit_text(calibrate(server.plan(), server.recorded(), again)) == fit_text(result)
    assert again.planned == len(asked) == len(set(asked)) == server.plan().simulations


def test_another_seed_is_another_sample(result: FitResult) -> None:
    other = calibrate(server.plan(seed=2), server.recorded(), server.Formulas())
    assert fit_text(other) != fit_text(result)


def test_the_file_reads_back(result: FitResult, tmp_path: Path) -> None:
    path = tmp_path / "formulas.before.toml"
    path.write_text(fit_text(result))
    fit = read_fit(path, "formulas")
    assert (fit.kind, fit.against, fit.variants) == ("prediction", "before", ("base",))
    assert len(fit.members) == 32
    assert [fit.member(i) for i in range(32)] == [
        result.space.texts(point) for point in result.ensemble
    ]
    assert set(fit.header["sha256"]) == {"dataset.toml", "iostat.txt"}


def test_the_command_in_the_file_makes_it_again(result: FitResult) -> None:
    wanted = "iotwin calibrate formulas --against before --seed 1 --simulations 48 --members 32"
    assert f'command = "{wanted}"' in fit_text(result)


def test_fewer_waves_are_the_first_ones_of_the_same_plan() -> None:
    whole = server.plan()
    some = replace(whole, waves_done=3)
    assert len(whole.waves) == 5
    assert sum(whole.waves) == whole.simulations
    assert some.waves == whole.waves[:3]
    assert "--waves" not in command_of(whole)
    assert "--waves 3" in command_of(some)


def test_a_state_after_a_change_makes_it_a_reproduction() -> None:
    plan = server.plan()
    after = {**plan.spec.against, "after": plan.spec.against["before"]}
    after["after"] = type(after["after"])(
        figures="after", what_if="fast", columns=after["after"].columns, left_out={}
    )
    spec = type(plan.spec)(
        recording="sendmail",
        folder=data_sets()["sendmail"],
        duration_ns=None,
        priors=plan.spec.priors,
        against=after,
    )
    kinds = [
        Plan(scenario="s", spec=spec, states=states, seed=1).kind
        for states in (("before",), ("before", "after"))
    ]
    assert kinds == ["prediction", "reproduction"]


def test_a_picture_is_drawn(result: FitResult, tmp_path: Path) -> None:
    plot_fit(result, tmp_path / "fit.png")
    assert (tmp_path / "fit.png").read_bytes()[:4] == b"\x89PNG"


def test_a_count_that_settles_on_one_value_freezes_nothing(tmp_path: Path) -> None:
    """So sure a recording that one number of workers is left: no box without an inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sure = calibrate(server.plan(), server.recorded(discrepancy=1e-4), server.Formulas())
    [workers, *_others] = parameter_rows(sure)
    assert (workers.low, workers.high) == ("16", "16")
    assert np.isfinite(sure.posterior.r_hat).all()
    assert "correlation" in report(sure)
    path = tmp_path / "sure.toml"
    path.write_text(fit_text(sure))
    assert len(read_fit(path, "formulas").members) == 32


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_written_as_toml_has_it(result: FitResult, number: float) -> None:
    broken = replace(result.posterior, r_hat=np.array([1.0, number]))
    header = tomllib.loads(fit_text(replace(result, posterior=broken)))["fit"]
    assert str(header["r_hat"]) == str(number)
    assert header["converged"] is False
