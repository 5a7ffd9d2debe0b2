"""What an answer rests on: inside or outside the priors, and what was never fitted."""

import pytest

from sim.scenario import Scenario, load
from sim.scenario.cases import shipped_fit
from sim.scenario.fitted import read_fit
from sim.study.validity import Change, Validity, validity_of

SENDERS = "process.blast.concurrency"  # its prior: log-uniform from 2 to 100


def of(what_if: str | None, *sets: str) -> Validity:
    return validity_of(load("sendmail"), load("sendmail", what_if=what_if, sets=sets))


def test_the_base_changes_nothing_and_lies_inside_its_priors() -> None:
    found = of(None)
    assert (found.changes, found.outside, found.unfitted) == ((), (), ())
    assert found.priors == len(load("sendmail").calibrate.priors)


@pytest.mark.parametrize(("value", "outside"), [(2, 0), (100, 0), (101, 1), (1, 1)])
def test_a_value_beyond_its_prior_is_outside(value: int, outside: int) -> None:
    found = of(None, f"{SENDERS}={value}")
    assert len(found.outside) == outside
    if outside:
        [one] = found.outside
        assert (one.path, one.value, one.low, one.high) == (SENDERS, str(value), "2", "100")
        assert one.bounds == "bounds"


def test_a_what_if_tells_what_it_changes_with_units_and_what_nothing_was_fitted_of() -> None:
    found = of("tmpfs")
    mount = 'machine.mount."/var/spool"'
    assert found.changes == (
        Change(f"{mount}.type", "ext3", "tmpfs"),
        Change(f"{mount}.size", "-", "8 GiB"),
    )
    assert found.unfitted == found.changes


def test_a_change_of_a_fitted_parameter_is_no_change_of_something_unfitted() -> None:
    found = of("half_the_senders")
    assert found.changes == (Change(SENDERS, "22", "11"),)
    assert found.unfitted == ()


def test_a_value_that_a_what_if_sets_to_what_it_was_is_no_change() -> None:
    assert of(None, f"{SENDERS}=22").changes == ()


def test_a_scenario_without_a_calibration_has_no_priors() -> None:
    plain: Scenario = load("generic")
    assert validity_of(plain, plain).priors == 0


def test_a_fit_says_which_parameters_the_recording_did_not_identify() -> None:
    fit = read_fit(shipped_fit("sendmail.before"))
    assert SENDERS in fit.parameters and SENDERS not in fit.unidentified
    assert "process.blast.think_time" in fit.unidentified
    assert set(fit.unidentified) < set(fit.parameters)
