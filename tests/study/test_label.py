"""Which figures are called a reproduction, and which a prediction."""

from dataclasses import replace

import pytest

from sim.scenario import Scenario, load
from sim.scenario.fitted import Fit
from sim.study.label import kind_of
from sim.study.recorded import FigureSet


def fit(*variants: str) -> Fit:
    """Return a fit to the figures of some variants."""
    return Fit(
        file="f.toml",
        scenario="generic",
        kind="prediction",
        against="before",
        variants=variants,
        parameters=(),
        best={},
        members=((),),
        header={},
    )


def figures(kind: str) -> FigureSet:
    return FigureSet(data_set="x", name="before", title="x", kind=kind, figures={})


def twin(what_if: str | None = None) -> Scenario:
    """Return a scenario with a value that was fitted to a recording."""
    plain = load("generic", what_if=what_if)
    first, *others = plain.parameters
    return replace(
        plain, parameters=(replace(first, source="fit: recording here, 1 .. 2"), *others)
    )


def test_nothing_fitted_and_nothing_recorded_has_no_label() -> None:
    assert kind_of(load("generic"), (), None) is None


@pytest.mark.parametrize("kind", ["reproduction", "prediction"])
def test_without_a_fit_the_recording_has_the_word(kind: str) -> None:
    assert kind_of(load("generic"), [figures(kind)], None) == kind


def test_with_a_fit_to_the_base_its_what_if_is_a_prediction_whatever_the_recording_says() -> None:
    what_if = load("generic", what_if="ssd")
    assert kind_of(what_if, [figures("reproduction")], fit("base")) == "prediction"
    assert kind_of(what_if, [figures("prediction")], fit("base", "ssd")) == "reproduction"
    assert kind_of(load("generic"), (), fit("base")) == "reproduction"


def test_a_twin_reproduces_its_recording_and_predicts_its_what_ifs() -> None:
    assert kind_of(twin(), (), None) == "reproduction"
    assert kind_of(twin("ssd"), (), None) == "prediction"
