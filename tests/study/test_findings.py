"""Findings: the figures of the study alone, and a reason for each variant or why there is none."""

import pytest

from sim.scenario import Scenario, load
from sim.study.compare import run_study
from sim.study.executors import place_of
from sim.study.explain import Explanation
from sim.study.findings import findings_of
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.outcome import Shortfall
from tests.cli.small import small_file


@pytest.fixture
def scenarios(tmp_path) -> list[Scenario]:
    path = small_file(tmp_path)
    return [load(path), load(path, what_if="slow")]


def test_looking_for_reasons_changes_no_figure(scenarios: list[Scenario]) -> None:
    found = findings_of(scenarios, 1, Laboratory())
    plain = run_study(scenarios, 1)
    assert [one.metrics for one in found.study.variants] == [one.metrics for one in plain.variants]
    assert list(found.explained) == list(found.validity) == ["base", "slow"]
    assert all(isinstance(one, Explanation) for one in found.explained.values())
    assert found.commands["slow"].endswith("small.toml --what-if slow --seed 5")
    assert all(one.replications[0].result is not None for one in found.study.variants)


def test_reasons_come_back_from_a_worker_whole(scenarios: list[Scenario]) -> None:
    here = findings_of(scenarios[:1], 1, Laboratory())
    there = findings_of(scenarios[:1], 1, Laboratory(place_of("local:1")))
    assert isinstance(here.explained["base"], Explanation)
    assert there.explained == here.explained


def test_a_study_that_did_not_end_is_not_explained(
    scenarios: list[Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Laboratory.run

    def stops(laboratory, trials):
        done = real(laboratory, trials[:1])
        told = Shortfall(f"interrupted after 1 of {len(trials)} runs", 130)
        raise UnfinishedError([*done, *[None] * (len(trials) - 1)], told)

    monkeypatch.setattr(Laboratory, "run", stops)
    found = findings_of(scenarios, 1, Laboratory())
    assert found.explained == {"base": "not explained: interrupted after 1 of 2 runs"}
    assert list(found.validity) == ["base"]


def test_an_explanation_that_was_interrupted_leaves_the_study_whole(
    scenarios: list[Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(_laboratory, _function, items, _names, **_more):
        raise UnfinishedError([None] * len(items), Shortfall("interrupted", 130))

    monkeypatch.setattr(Laboratory, "map", stops)
    found = findings_of(scenarios, 1, Laboratory())
    assert found.study.unfinished is None and len(found.study.variants) == 2
    assert set(found.explained.values()) == {"not explained: interrupted"}
    assert found.unfinished == Shortfall("interrupted", 130)


def test_a_server_on_which_nobody_does_anything_says_so(tmp_path) -> None:
    text = """\
title = "Nobody"
[machine]
kernel = "2.6.32"
memory = "1 GiB"
disk.sda = { device = "ram", capacity = "4 GiB" }
mount."/" = { type = "ext3", device = "sda" }
[process.nobody]
program = "cpuburn"
count = 0
[run]
duration = "2 s"
[measure]
interval = "1 s"
"""
    found = findings_of([load(small_file(tmp_path, text))], 1, Laboratory())
    assert found.explained == {
        "base": "not explained: no program made a transaction or a system call"
    }
