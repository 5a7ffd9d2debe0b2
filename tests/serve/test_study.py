"""A study as events: readings, figures after each run, and why it ended."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from sim.scenario import Scenario, load
from sim.serve.desk import Desk
from sim.serve.study import SHARE, Asked, Event, events
from sim.study.precision import FIRST, look
from sim.study.replicate import replicate
from tests.cli.small import SMALL, small_file

# Of a disk of constant latency a request's time scatters little: the first look finds it precise.
FIGURE = "disk.sda.await_ms"
SLO = '\n[slo]\nload1_peak = "< 99"\n'


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return load(small_file(tmp_path, SMALL.replace("messages = 60", "messages = 20") + SLO))


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with Desk() as one:
        yield one


def study(scenario: Scenario, figure: str) -> Asked:
    return Asked(scenario=scenario, figure=figure, command="iotwin run small.toml --seed 5")


async def collect(source: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in source]


def test_runs_follow_until_the_figure_is_known(scenario: Scenario, desk: Desk) -> None:
    found = asyncio.run(collect(events(study(scenario, FIGURE), desk)))
    kinds = [event["event"] for event in found]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert kinds.index("figures") > max(n for n, kind in enumerate(kinds) if kind == "reading")
    *_, last, end = found
    assert end["why"] == "precise", end
    assert last["runs"] == FIRST
    # It says what `iotwin run --replications` finds, and the interval that was asked for.
    [runs] = replicate([scenario], last["runs"])
    values = [run.metrics[FIGURE] for run in runs]
    precise = look(values, SHARE)
    assert precise is not None and precise.reached
    row = last["figures"][FIGURE]
    assert row["mean"] == f"{fmean(values):.2f}"
    assert row["interval"] == " .. ".join(f"{end:.2f}" for end in precise.interval)
    [level] = last["levels"]
    assert (level["level"], level["verdict"]) == ("load1_peak < 99", "met")


def test_a_figure_without_data_is_not_waited_for(scenario: Scenario, desk: Desk) -> None:
    found = asyncio.run(collect(events(study(scenario, "oom_kill_s"), desk)))
    assert (found[-1]["why"], found[-2]["runs"]) == ("no data", FIRST)


def test_a_second_study_ends_the_first(scenario: Scenario, desk: Desk) -> None:
    async def both() -> tuple[list[Event], Any]:
        first = events(study(scenario, FIGURE), desk)
        begun = [await anext(first), await anext(first)]
        second = events(study(scenario, FIGURE), desk)
        assert (await anext(second))["event"] == "begin"
        rest = await collect(first)
        await second.aclose()
        return [*begun, *rest], rest[-1]["why"]

    found, why = asyncio.run(both())
    assert [event["event"] for event in found[:2]] == ["begin", "reading"]
    assert why == "sent away"


def test_a_worker_that_dies_is_told_with_the_command_of_its_run(
    scenario: Scenario, desk: Desk
) -> None:
    async def broken() -> list[Event]:
        source = events(study(scenario, FIGURE), desk)
        await anext(source)
        assert desk._working is not None
        desk._working.kill()
        return await collect(source)

    end = asyncio.run(broken())[-1]
    assert end["why"] == "failed"
    assert end["text"].endswith("iotwin run small.toml --seed 5")
