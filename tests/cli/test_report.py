"""`iotwin report`: a page, its exit codes, its JSON; mistakes are refused before anything runs."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from sim.report import html_report
from sim.report.study_file import schema
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.outcome import Shortfall
from tests.cli.small import SMALL, small_file
from tests.report.pages import Page

EVIL = "<script>alert(1)</script>"


def run(*words: str) -> Result:
    command = ["report", *words, "--executor", "here", "--store", "none"]
    return CliRunner().invoke(cli, command, prog_name="iotwin")


def test_one_page_has_answer_and_reasons(tmp_path: Path) -> None:
    place, out = tmp_path / "small.html", tmp_path / "small.json"
    text = SMALL.replace("A small storm", EVIL).replace("Does it matter?", EVIL)
    file = small_file(tmp_path, text)
    slo = ["--slo", "load1_peak < 99", "--slo", "duration_s < 1 ms"]
    words = [file, "slow", "--html", str(place), "--replications", "3", "--json", str(out), *slo]
    result = run(*words)
    assert result.exit_code == 3, result.output
    page = Page(place.read_text(encoding="utf-8"))
    assert page.wrong == []
    assert [tag for tag, _attributes in page.elements].count("script") == 3
    assert page.text.count(EVIL) >= 3
    content = json.loads(out.read_text())
    pytest.importorskip("jsonschema").validate(content, schema())
    assert (content["kind"], [one["what_if"] for one in content["points"]]) == (
        "report",
        [None, "slow"],
    )
    levels, change = content["result"]["answer"]
    assert levels.startswith("As it is 1 of 2 service levels are missed, duration_s < 1 ms: ")
    assert change.startswith('With "A slower disk" duration_s is ')
    for sentence in (levels, change):
        assert sentence in page.text and sentence in result.output
    assert content["result"]["unidentified"] is None
    assert len(content["result"]["variants"][1]["digests"]) == 3
    assert "machine.disk.sda.latency" in page.text


def test_the_same_command_makes_the_same_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["iotwin", "report", "small.toml"])
    file, places = small_file(tmp_path), [tmp_path / name for name in ("a.html", "b.html")]
    for place in places:
        words = [file, "--html", str(place), "--replications", "1", "--set", "run.duration=10 s"]
        assert run(*words).exit_code == 0
    assert places[0].read_bytes() == places[1].read_bytes()


def test_without_names_all_what_ifs_are_told_in_a_row_each(tmp_path: Path) -> None:
    text = SMALL + '\n[what_if.fast]\ntitle = "A faster disk"\nmachine.disk.sda.latency = "1 ms"\n'
    place = tmp_path / "small.html"
    result = run(small_file(tmp_path, text), "--html", str(place), "--replications", "1")
    assert result.exit_code == 0, result.output
    rows = [line.split()[0] for line in result.stdout.splitlines()[-3:]]
    assert rows == ["base", "slow", "fast"]
    assert "the least and the greatest of 2 what-ifs" in Page(place.read_text()).text


def test_an_interrupted_report_is_of_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Laboratory.run

    def stops(laboratory, trials):
        done = real(laboratory, trials[:1])
        told = Shortfall(f"interrupted after 1 of {len(trials)} runs", 130)
        raise UnfinishedError([*done, *[None] * (len(trials) - 1)], told)

    monkeypatch.setattr(Laboratory, "run", stops)
    place = tmp_path / "small.html"
    result = run(small_file(tmp_path), "slow", "--html", str(place), "--replications", "1")
    assert result.exit_code == 130
    assert "interrupted after 1 of 2 runs" in Page(place.read_text()).text


@pytest.mark.parametrize("code", [1, 130])
def test_reasons_that_lack_are_told_by_page_json_and_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def stops(_laboratory, _function, items, _names, **_more):
        raise UnfinishedError([None] * len(items), Shortfall("not all was done", code))

    monkeypatch.setattr(Laboratory, "map", stops)
    place, out = tmp_path / "small.html", tmp_path / "small.json"
    words = ["slow", "--html", str(place), "--replications", "1", "--json", str(out)]
    result = run(small_file(tmp_path), *words)
    assert result.exit_code == code
    assert "iotwin: not all was done" in result.stderr
    assert "duration_s is " in result.stdout
    assert "not explained: not all was done" in Page(place.read_text()).text
    assert json.loads(out.read_text())["unfinished"] == "not all was done"


def test_a_page_that_would_be_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_report, "SIZE_MAX", 1000)
    place = tmp_path / "small.html"
    result = run(small_file(tmp_path), "slow", "--html", str(place), "--replications", "1")
    assert result.exit_code == 2
    assert "name fewer what-ifs" in result.output
    assert not place.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "Missing option '--html'"),
        ("slow --html -", "cannot write -"),
        ("slow --html /nowhere/small.html", "no folder /nowhere"),
        ("slow --html small.html --json small.html", "another result goes there"),
        ("slwo --html small.html", "did you mean 'slow'?"),
        ("slow slow --html small.html", "named twice: slow"),
        ("slow --html small.html --of duration", "did you mean 'duration_s'?"),
        ("slow --html small.html --slo 'duration_s < 1 kg'", "1 kg"),
        ("slow --html small.html --set machine.cups=2", "did you mean 'cpus'?"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, told: str
) -> None:
    monkeypatch.setattr(Laboratory, "run", None)
    monkeypatch.chdir(tmp_path)
    result = run(small_file(tmp_path), *shlex.split(words))
    assert result.exit_code == 2, result.output
    assert told in result.output
    assert not Path("small.html").exists()
