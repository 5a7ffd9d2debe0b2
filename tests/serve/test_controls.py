"""Sliders: which numbers of a scenario can be moved, and between what."""

from functools import cache

import pytest

from sim.scenario import Scenario, open_scenario
from sim.serve.controls import Control, controls_of
from sim.units import parse_quantity

SOME = ("sendmail", "generic", "exim-io", "tunnel", "fsync-where")


@cache
def scenario(name: str, *sets: str) -> Scenario:
    return open_scenario(name).read(None, sets=sets)


def controls(name: str, *sets: str) -> dict[str, Control]:
    found = controls_of(scenario(name), scenario(name, *sets))
    assert len({one.path for one in found}) == len(found)
    return {one.path: one for one in found}


@pytest.mark.parametrize("name", SOME)
def test_positions_rise_and_hold_what_the_scenario_says(name: str) -> None:
    parameters = {one.path: one for one in scenario(name).parameters}
    assert controls(name)
    for path, one in controls(name).items():
        dim = parameters[path].dim
        numbers = [parse_quantity(text, dim) for text in one.positions]
        assert numbers == sorted(set(numbers)), path
        assert len(numbers) > 2, path
        assert numbers[one.own] == parameters[path].value
        assert one.now == one.own


@pytest.mark.parametrize("name", SOME)
def test_the_ends_of_the_program_s_sliders_can_be_set(name: str) -> None:
    file = open_scenario(name)
    file.read()
    for path, one in controls(name).items():
        if path.startswith("process."):
            for text in (one.positions[0], one.positions[-1]):
                settings = (f"{path}={text}",)
                assert file.read(None, sets=settings).processes


def test_a_prior_of_the_fit_is_the_scale() -> None:
    found = controls("sendmail")["process.blast.concurrency"]
    assert (found.positions[0], found.positions[-1]) == ("2", "100")


def test_without_a_prior_it_is_a_tenth_to_ten_times() -> None:
    found = controls("generic")["process.server.rate"]
    assert (found.positions[0], found.positions[-1]) == ("4.5 /s", "450 /s")
    assert controls("generic")["machine.cpus"].positions[0] == "1"  # not a fifth of a CPU


def test_two_declared_bounds_are_the_scale() -> None:
    found = controls("exim-io")["process.day.first_hour"]
    assert found.positions == tuple(str(hour) for hour in range(24))


@pytest.mark.parametrize("name", SOME)
def test_no_slider_leaves_the_declared_bounds(name: str) -> None:
    parameters = {one.path: one for one in scenario(name).parameters}
    for path, one in controls(name).items():
        declared = parameters[path]
        numbers = [float(parse_quantity(text, declared.dim)) for text in one.positions]
        assert declared.minimum is None or declared.minimum <= numbers[0], path
        assert declared.maximum is None or numbers[-1] <= declared.maximum, path


def test_bytes_go_in_powers_of_two_with_one_step_between() -> None:
    found = controls("generic")["machine.memory"].positions
    assert found[-5:] == ("8 GiB", "12 GiB", "16 GiB", "24 GiB", "32 GiB")


def test_texts_and_numbers_that_the_scenario_leaves_alone_are_no_sliders() -> None:
    found = controls("sendmail")
    assert "process.blast.arrivals" not in found
    assert "process.sendmail.nice" not in found


def test_a_number_that_is_set_becomes_a_position_though_it_lies_outside() -> None:
    found = controls("generic", "process.server.rate=1000 /s")["process.server.rate"]
    assert found.positions[found.now] == found.positions[-1] == "1000 /s"
    assert found.positions[found.own] == "45 /s"


def test_load_from_outside_comes_first_and_parts_of_the_machine_last() -> None:
    groups = list(dict.fromkeys(one.group for one in controls("sendmail").values()))
    assert groups[:2] == ["process blast", "process normal"]
    assert groups.index("process sendmail") < groups.index("machine")
    assert groups[-1].startswith("machine disk")
