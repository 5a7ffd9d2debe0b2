"""The fits that come along: of the recording and the plan that are there, and labelled."""

from pathlib import Path

import pytest

from calibration.fit.recorded import fingerprints
from sim.scenario import load
from sim.scenario.cases import data_sets, shipped_fits
from sim.scenario.fitted import Fit, read_fit

PATHS = shipped_fits()


def read(path: Path) -> Fit:
    return read_fit(path, path.name.partition(".")[0])


def test_sendmail_has_a_prediction_and_a_reproduction() -> None:
    kinds = {path.name: read(path).kind for path in PATHS}
    assert kinds["sendmail.before.toml"] == "prediction"
    assert kinds["sendmail.both.toml"] == "reproduction"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_a_fit_is_of_the_recording_that_is_there(path: Path) -> None:
    header = read(path).header
    assert header["sha256"] == fingerprints(data_sets()[header["recording"]])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_a_fit_has_the_parameters_of_the_plan_and_has_converged(path: Path) -> None:
    fit = read(path)
    plan = load(fit.scenario).calibrate
    assert plan is not None
    assert fit.parameters == tuple(prior.path for prior in plan.priors)
    assert fit.header["converged"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_every_member_is_a_scenario_that_can_be_run(path: Path) -> None:
    fit = read(path)
    for number in range(0, len(fit.members), 16):
        assert load(fit.scenario, fit=fit.layer(fit.member(number)))
