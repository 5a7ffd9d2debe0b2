"""The scenarios that come along: complete, explained, listed in their README."""

import re
from pathlib import Path

import pytest

from sim.scenario import load, scenario_files
from sim.scenario.load import headlines
from sim.study.recorded import load_figures

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "scenarios" / "README.md"
NAMES = sorted(scenario_files())


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_and_all_its_what_ifs_can_be_read(name: str) -> None:
    base = load(name)
    for what_if in base.what_ifs:
        assert load(name, what_if=what_if.name).what_if == what_if
        assert what_if.doc, f"{what_if.name} does not say which question it answers"


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_begins_with_what_it_shows_and_an_estimate_by_hand(name: str) -> None:
    text = scenario_files()[name].read_text(encoding="utf-8")
    comment = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    assert text.startswith("# ")
    assert "Estimate by hand" in comment


@pytest.mark.parametrize("name", NAMES)
def test_what_a_scenario_names_as_recorded_is_there(name: str) -> None:
    base = load(name)
    for variant in (None, *(what_if.name for what_if in base.what_ifs)):
        for recorded in load(name, what_if=variant).recorded:
            assert load_figures(recorded).figures


# How a scenario is put together, not what its server is like: names, and who talks to whom.
WIRING = {
    "device",
    "devices",
    "destination",
    "file",
    "filename",
    "filter",
    "host",
    "hostname",
    "if",
    "interval",
    "marks_storm",
    "of",
    "on",
    "path",
    "port",
    "program",
    "scanner",
    "server",
    "source",
    "start",
    "target",
    "via",
}


def is_recorded(name: str) -> bool:
    what_ifs = (None, *(what_if.name for what_if in load(name).what_ifs))
    return any(load(name, what_if=what_if).recorded for what_if in what_ifs)


def test_every_value_of_a_recorded_case_says_where_it_is_from() -> None:
    """A choice without a source counts as the scenario's own; of a server there is none."""
    recorded = [name for name in NAMES if is_recorded(name)]
    assert recorded
    without_source = [
        f"{name}: {parameter.path}"
        for name in recorded
        for parameter in load(name).parameters
        if parameter.path.startswith(("machine.", "link.", "process."))
        and parameter.path.rpartition(".")[2] not in WIRING
        and re.fullmatch(r".*\.toml:\d+", parameter.source)
    ]
    assert without_source == []


def test_the_index_lists_every_scenario_and_links_to_pages_that_are_there() -> None:
    index = INDEX.read_text(encoding="utf-8").partition("\n## ")[0]
    rows = re.findall(r"^\| `(\S*)` \| (.*) \| (.*) \|$", index, re.M)
    assert [row[:2] for row in rows] == [(one.name, one.title) for one in headlines()]
    pages = {page for *_, where in rows for page in re.findall(r"\]\((\S*)\)", where)}
    assert pages and [page for page in pages if not (INDEX.parent / page).is_file()] == []
