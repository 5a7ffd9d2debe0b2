"""[calibrate]: a plan is read whole; what is wrong with it is told with line and nearest name."""

import pytest

from sim.scenario import Layer, ScenarioError, load, load_text
from sim.scenario.calibrate import CalibrateSpec
from sim.scenario.fitted import fit_layer
from tests.cli.fitted import FITTED
from tests.scenario.test_load import FILE


def plan(text: str = FITTED) -> CalibrateSpec:
    found = load_text(text, FILE).calibrate
    assert found is not None
    return found


def test_the_plan_is_read_into_canonical_values() -> None:
    concurrency, message_user = plan().priors
    assert (concurrency.low, concurrency.high, concurrency.dim) == (2.0, 20.0, "count")
    assert (message_user.low, message_user.high) == (1e6, 1e8)
    assert plan().duration_ns == 120 * 10**9
    assert plan().base.columns[0].discrepancy_percent == 30.0
    assert len(plan().base.left_out) == 17


def test_a_plan_adds_no_parameter_to_the_server() -> None:
    assert not [p for p in load("sendmail").parameters if p.path.startswith("calibrate")]


def test_a_what_if_has_no_plan() -> None:
    assert load_text(FITTED, FILE, what_if="slow").calibrate is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'parameter."process.blast.concurrency"',
            'parameter."process.blast.concurency"',
            "unknown numeric parameter 'process.blast.concurency' - did you mean"
            " 'process.blast.concurrency'?",
        ),
        ('"log-uniform"', '"loguniform"', "not one of the choices"),
        ("high = 20", "high = 2", "the prior needs 0 < low < high"),
        ('low = "1 ms"', 'low = "1 GB"', "'GB' is a unit of a size"),
        ("low = 2\n", "", "lacks 'low' (a bound of the prior)"),
        ('high = "100 ms"\nsource = "assumed: a test"', 'high = "100 ms"', "lacks 'source'"),
        ("load1_peak =", "load1_peek =", "unknown recorded figure 'load1_peek'"),
        (
            '"disk.dm-6.await_ms" = "of another server"',
            "",
            "says nothing of the recorded disk.dm-6.await_ms",
        ),
        ('recording = "sendmail"', 'recording = "sendmial"', "did you mean 'sendmail'?"),
        (
            "calibrate.against.before.column",
            "calibrate.against.befor.column",
            "unknown set of figures 'befor'",
        ),
        ('duration = "2 min"', 'durations = "2 min"', "unknown key 'durations' in [calibrate]"),
        ('discrepancy = "30 %"', 'discrepancy = "-3 %"', "must be at least 0 %"),
    ],
)
def test_a_mistake_is_told_with_its_line(old: str, new: str, message: str) -> None:
    assert old in FITTED
    with pytest.raises(ScenarioError) as caught:
        load_text(FITTED.replace(old, new, 1), FILE)
    assert message in str(caught.value)
    assert all(problem.place.line for problem in caught.value.problems)


def test_another_mistake_is_not_followed_by_complaints_about_the_plan() -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(FITTED.replace('latency = "2 ms"', 'latency = "2 GB"'), FILE)
    assert {problem.message.partition(":")[0] for problem in caught.value.problems} == {
        "machine.disk.sda.latency"
    }


def test_a_wrong_value_of_a_fitted_parameter_is_one_mistake() -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(FITTED, FILE, sets=["process.blast.concurrency=0"])
    [problem] = caught.value.problems
    assert problem.message == "process.blast.concurrency: must be at least 1"


def test_of_hundreds_of_parameters_the_nearest_are_named() -> None:
    name = 'parameter."process.blast.concurrency"'
    with pytest.raises(ScenarioError) as caught:
        load_text(FITTED.replace(name, name.replace("urr", "ur"), 1), FILE)
    [problem] = caught.value.problems
    assert problem.allowed.startswith("process.blast.concurrency, ")
    assert problem.allowed.endswith(" names")
    assert len(problem.allowed) < 250


def test_a_fitted_value_lies_on_the_scenario_and_under_a_what_if_and_set() -> None:
    fit = fit_layer(
        {"process.blast.concurrency": "9", "machine.disk.sda.latency": "3 ms"}, "fit: f.toml"
    )
    scenario = load_text(FITTED, FILE, what_if="slow", sets=["process.blast.messages=5"], fit=fit)
    found = {p.path: (p.value, p.layer, p.source) for p in scenario.parameters}
    assert found["process.blast.concurrency"] == (9, Layer.FIT, "fit: f.toml")
    assert found["machine.disk.sda.latency"][:2] == (8_000_000, Layer.WHAT_IF)
    assert found["process.blast.messages"][:2] == (5, Layer.SET)


def test_a_fitted_value_of_a_parameter_that_is_not_there_is_told() -> None:
    fit = fit_layer({"process.blast.concurency": "9"}, "fit: f.toml")
    with pytest.raises(
        ScenarioError, match=r"unknown key 'concurency'.*did you mean 'concurrency'"
    ):
        load_text(FITTED, FILE, fit=fit)
