"""What an address asks: read as `iotwin run` would, and never a file."""

from pathlib import Path

import pytest

from sim.scenario import ScenarioError, UnknownScenario
from sim.serve.questions import Catalogue, Question, read_query
from tests.cli.small import SMALL, small_file

RATE = "process.server.rate"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue()


def told(error: pytest.ExceptionInfo[ScenarioError]) -> str:
    [problem] = error.value.problems
    return problem.render()


def test_an_address_reads_back_as_what_was_asked() -> None:
    asked = Question(scenario="a", what_ifs=("b", "c"), sets=("d.e=1 /s",), seed="4", of="f")
    assert read_query(asked.query()) == asked


def test_an_address_is_a_variant_under_settings(catalogue: Catalogue) -> None:
    question = Question(
        scenario="generic", what_ifs=("ssd", "one_cpu"), sets=(f"{RATE}=60 /s",), seed="3"
    )
    own, asked = catalogue.asked(question)
    assert own.server.cpus == asked.scenario.server.cpus == 1
    assert asked.scenario.seed == 3
    [rate] = [one for one in asked.scenario.parameters if one.path == RATE]
    assert rate.value == 60
    assert asked.command == (
        f"iotwin run generic --what-if ssd+one_cpu --set '{RATE}=60 /s' --seed 3"
    )


def test_times_of_transactions_decide_if_nothing_is_said(catalogue: Catalogue) -> None:
    _own, asked = catalogue.asked(Question(scenario="sendmail"))
    assert asked.figure == "accept_p95_ms"


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], "no scenario is named"),
        ([("scenario", "a"), ("scenario", "b")], "scenario comes twice"),
        ([("scenario", "a"), ("wat_if", "b")], "did you mean 'what_if'? (accepted: scenario, "),
    ],
)
def test_a_part_of_an_address_that_is_none_is_told(
    items: list[tuple[str, str]], expected: str
) -> None:
    with pytest.raises(ScenarioError) as error:
        read_query(items)
    assert expected in told(error)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (Question(scenario="generic", sets=("x",)), "set=x: error: not PATH=VALUE, got x"),
        (Question(scenario="generic", sets=("process.server.rat=1",)), f"did you mean '{RATE}'?"),
        (Question(scenario="generic", sets=(f"{RATE}=fast",)), "fast"),
        (Question(scenario="generic", sets=(f"{RATE}=1 /s", f"{RATE}=2 /s")), "is set twice"),
        (Question(scenario="generic", sets=("machine.cpus=0",)), "must be at least 1, got 0"),
        (Question(scenario="generic", seed="-1"), "not a seed, got -1 (accepted: 0 to 9223372"),
        (Question(scenario="generic", seed="٣"), "not a seed"),
        (Question(scenario="generic", of="load1_peek"), "did you mean 'load1_peak'?"),
    ],
)
def test_a_value_that_cannot_be_is_told_with_what_is_allowed(
    catalogue: Catalogue, question: Question, expected: str
) -> None:
    with pytest.raises(ScenarioError) as error:
        catalogue.asked(question)
    assert expected in told(error)


@pytest.mark.parametrize(
    "path", ["recorded.before", "uses", "extends", "machine.disk.sda.profile", "machine.hostname"]
)
def test_only_numbers_can_be_set(catalogue: Catalogue, path: str) -> None:
    with pytest.raises(ScenarioError, match="unknown number"):
        catalogue.asked(Question(scenario="sendmail", sets=(f"{path}=/etc/passwd",)))


def test_a_file_is_not_found_by_its_path(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "scenario.toml").write_text(SMALL)
    for name in (path, "small.toml", "./small.toml", "here", "../small.toml", "small"):
        with pytest.raises(UnknownScenario, match="no scenario"):
            catalogue.asked(Question(scenario=name))


def test_the_file_of_the_command_line_goes_by_its_name(tmp_path: Path) -> None:
    path = small_file(tmp_path)
    given = Catalogue(path)
    assert given.first == "small"
    assert given.titles()["small"] == "A small storm"
    _own, asked = given.asked(Question(scenario="small", what_ifs=("slow",)))
    assert asked.command == f"iotwin run {path} --what-if slow --seed 5"


def test_an_unknown_what_if_is_told_with_the_nearest(catalogue: Catalogue) -> None:
    with pytest.raises(UnknownScenario, match="did you mean 'ssd'"):
        catalogue.asked(Question(scenario="generic", what_ifs=("sdd",)))
