"""Cases: a folder anywhere is one, its parts are found, and what is wrong with them is told."""

import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from sim.machine import simulate
from sim.registry import provisional
from sim.scenario import ScenarioError, find, load
from sim.scenario.cases import data_sets, name_of, scenario_files, use_all
from sim.study.metrics import compute_metrics
from sim.study.workers import Workers

PROGRAM = '''
from dataclasses import dataclass

from sim.observation import Family, Metric, mean_within
from sim.registry import register
from sim.user.program import ServerProgram
from .words import WORD


@dataclass(frozen=True, kw_only=True)
class HelloParams:
    """Nothing to be said."""


@register("program", "hello", params=HelloParams, doc="says a word")
class Hello(ServerProgram):
    """One process."""

    marks = ("word",)
    figures = (Family("hello", (Metric("word_letters", "letters", mean_within("word")),)),)

    def __init__(self, params):
        self.params = params

    def main(self, sys):
        sys.trace_marker("word", len(WORD))
        yield from sys.sleep(1)
'''
SCENARIO = """\
title = "A case of somebody's own"
uses = ["program.py"]
[machine]
kernel = "2.6.16"
memory = "1 GiB"
mount."/" = { type = "tmpfs", size = "16 MiB" }
[process.hello]
program = "hello"
[run]
duration = "2 s"
[measure]
interval = "1 s"
families = ["hello", "cpu"]
[recorded]
before = "my-case"
"""
DATASET = """\
title = "A word"
[figures.before]
kind = "reproduction"
[figures.before.metrics]
word_letters = { value = 5, within = 1 }
"""


@pytest.fixture(autouse=True)
def _provisional() -> Iterator[None]:
    with provisional():
        yield


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """Return a case's folder."""
    folder = tmp_path / "my_case"
    (folder / "recording").mkdir(parents=True)
    (folder / "recording" / "dataset.toml").write_text(DATASET, encoding="utf-8")
    (folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "words.py").write_text('WORD = "hello"\n', encoding="utf-8")
    return folder


def complaint(folder: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        load(str(folder))
    assert len(caught.value.problems) == 1
    return str(caught.value).partition("\n")[0].rpartition("error: ")[2]


def test_a_folder_is_a_scenario_with_its_own_program_figures_and_recording(case: Path) -> None:
    scenario = load(str(case))
    assert scenario.name == name_of(find(str(case))) == "my-case"
    [recorded] = scenario.recorded
    assert recorded.folder == case / "recording"
    figures = compute_metrics(simulate(scenario, 1), scenario.measure)
    assert figures["word_letters"] == 5


def test_its_file_and_a_second_reading_are_the_same(case: Path) -> None:
    first, second = load(str(case)), load(str(case / "scenario.toml"))
    assert first.processes == second.processes


def digest(scenario) -> str:  # type: ignore[no-untyped-def]
    return simulate(scenario, 1).digest()


def test_its_program_goes_along_to_a_clean_process(case: Path) -> None:
    scenario = load(str(case))
    with Workers(1) as workers:
        there = workers.submit(digest, scenario).result()
    assert there == digest(scenario)
    assert multiprocessing.active_children() == []


def test_what_was_forgotten_is_found_again(case: Path) -> None:
    with provisional():
        load(str(case))
    assert load(str(case)).processes["hello"].program == "hello"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("program.py", None, "uses: no file 'program.py' beside the scenario"),
        ("program.py", "", "uses: program.py registers nothing: it lacks @register(...)"),
        ("program.py", "x = 1\ny = z\n", "uses: program.py:2: NameError: name 'z' is not defined"),
        ("program.py", "x = 1\ny = (\n", "uses: program.py:2: '(' was never closed"),
        ("words.py", "a b\n", "uses: words.py:1: invalid syntax"),
        ("words.py", "WORDS = 1\n", "uses: program.py:7: ImportError: cannot import name 'WORD'"),
        (
            "program.py",
            PROGRAM.replace('"hello"', '"dd"'),
            "program 'dd' is sim.user.dd.Dd already",
        ),
        (
            "program.py",
            PROGRAM.replace("yield from sys.sleep(1)", "sys.sleep(1)"),
            "uses: program.py:27: sys.sleep() does nothing without 'yield from'",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(
    case: Path, name: str, text: str | None, message: str
) -> None:
    (case / name).unlink()
    if text is not None:
        (case / name).write_text(text, encoding="utf-8")
    assert message in complaint(case)


@pytest.mark.parametrize(
    ("slip", "told"),
    [
        ("yield from sys.trace_marker('word', 1)", "see program.py:28, a part of your own"),
        ("yield from sys.open(1, 2)", "see program.py:28, a part of your own"),
    ],
)
def test_a_slip_in_a_part_of_one_s_own_is_not_the_twin_s(case: Path, slip: str, told: str) -> None:
    (case / "program.py").write_text(f"{PROGRAM}        {slip}\n", encoding="utf-8")
    result = CliRunner().invoke(cli, ["run", str(case)], prog_name="iotwin")
    assert told in result.stderr
    assert result.exit_code == 1


DEVICE = """

@dataclass(frozen=True, kw_only=True)
class BoxParams:
    capacity_bytes: int = param("1 GiB", dim="bytes", source="scenario", doc="size")
    cache_bytes: int = param("2 GiB", dim="bytes", source="scenario", doc="of that, a cache")


@register("device", "box", params=BoxParams, doc="a box")
class Box(Driver):
    @classmethod
    def refusal(cls, params):
        return "a cache larger than the box" if params.cache_bytes > params.capacity_bytes else ""
"""


def test_a_device_refuses_values_that_cannot_be_together(case: Path) -> None:
    imports = "from sim.block.driver import Driver\nfrom sim.param import param\n"
    (case / "program.py").write_text(imports + PROGRAM + DEVICE, encoding="utf-8")
    with (case / "scenario.toml").open("a", encoding="utf-8") as file:
        file.write('[machine.disk.sda]\ndevice = "box"\n')
    assert "machine.disk.sda: a cache larger than the box" in complaint(case)


def test_a_what_if_uses_nothing_of_its_own(case: Path) -> None:
    with (case / "scenario.toml").open("a", encoding="utf-8") as file:
        file.write('[what_if.other]\ndoc = "Which?"\nuses = ["words.py"]\n')
    assert "a what-if has no 'uses'" in complaint(case)


def test_a_scenario_elsewhere_may_use_a_program_that_comes_along(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = SCENARIO.partition("[recorded]")[0].replace('"hello", ', "")
    text = text.replace("program.py", "factomd/program.py").replace('"hello"', '"factomd"')
    path.write_text(text, encoding="utf-8")
    assert load(str(path)).processes["hello"].program == "factomd"


def test_an_unknown_program_of_a_case_says_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = SCENARIO.partition("[recorded]")[0].replace('uses = ["program.py"]\n', "")
    path.write_text(text.replace('"hello"', '"factomd"'), encoding="utf-8")
    code = f"from sim.scenario import load\nload({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'uses = ["factomd/program.py"]' in done.stderr


def test_recordings_have_the_names_of_their_cases() -> None:
    assert set(data_sets()) <= set(scenario_files())


def test_all_parts_that_come_along_can_be_imported() -> None:
    use_all()
