"""`iotwin optimise`: the choice where it is known by hand, its JSON, its codes, its refusals.

Four readers wait for one disk of 5 ms: 20 ms for a read. A disk twice as fast, or one that serves
two at a time, makes 10 ms of it, both together 5 ms.
"""

import json

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from sim.report.study_file import schema
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.outcome import Shortfall
from tests.study.readers import READERS

OPTIONS = """
[option.fast]
title = "A disk that is twice as fast"
price = "200 EUR"
machine.disk.sda.read = "2.5 ms"
[option.wide]
title = "A disk that serves two at a time"
price = "150 EUR"
machine.disk.sda.servers = 2
[option.memory]
title = "Memory that nobody reads from"
price = "20.50 EUR"
needs = ["wide"]
machine.memory = "2 GiB"
"""
FOUR = ("--set", "process.readers.concurrency=4")
SLO = ("--slo", "transaction_ms < 12 ms")


def run(folder, *words, text=READERS + OPTIONS):
    path = folder / "readers.toml"
    path.write_text(text, encoding="utf-8")
    command = ["optimise", str(path), *words, *FOUR, "--executor", "here", "--store", "none"]
    return CliRunner().invoke(cli, command, prog_name="iotwin")


def test_the_cheapest_and_the_next_and_what_the_json_says(tmp_path):
    out, plot = tmp_path / "o.json", tmp_path / "o.png"
    result = run(tmp_path, *SLO, "--json", str(out), "--plot", str(plot))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[4].split() == ["options", "price", "levels", "runs", "because", "of"]
    # wide+memory is what was chosen and more.
    assert [line.split("  ")[0] for line in lines[5:9]] == ["no option", "wide", "fast", ""]
    assert "the cheapest that meets all levels: wide, 150 EUR (right in at least 95 of 100" in (
        result.stdout
    )
    content = json.loads(out.read_text())
    pytest.importorskip("jsonschema").validate(content, schema())
    found = content["result"]
    assert found["chosen"] == {"options": ["wide"], "price": 150}
    assert found["next"] == {"options": ["fast"], "price": 200}
    assert (found["verdict"], found["probability"], found["unit"]) == ("met", 0.95, "EUR")
    assert found["combinations"] == 6
    assert found["runs"] == sum(one["runs"] for one in found["tried"])
    assert [one["what_if"] for one in content["points"]] == [None, "wide", "fast"]
    assert [one["figures"]["transaction_ms"]["mean"] for one in content["points"]] == (
        pytest.approx([20, 10, 10], rel=0.03)
    )
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_only_both_together_are_enough(tmp_path):
    result = run(tmp_path, "--slo", "transaction_ms < 7 ms")
    assert result.exit_code == 0
    assert "the cheapest that meets all levels: fast+wide, 350 EUR" in result.stdout
    assert "no dearer one is shown to meet as well" in result.stdout


def test_options_lie_over_a_what_if(tmp_path):
    """A disk that is twice as fast is there already."""
    result = run(tmp_path, "faster", *SLO)
    assert result.exit_code == 0
    assert "nothing has to be bought" in result.stdout
    assert "what-if faster: " in result.stdout


def test_codes_of_what_cannot_be_and_of_what_is_not_known(tmp_path):
    none = run(tmp_path, "--slo", "transaction_ms < 3 ms")
    assert none.exit_code == 3
    assert "no combination meets all levels" in none.stdout
    few = run(tmp_path, "--slo", "transaction_ms < 7 ms", "--budget", "20")
    assert few.exit_code == 4
    assert "undecided: no combination is shown to meet all levels" in few.stdout
    assert "not tried: 4 dearer combinations" in few.stdout


def test_an_interrupted_choice_prints_what_is_done(tmp_path, monkeypatch):
    real, calls = Laboratory.run, []

    def stops(laboratory, trials):
        calls.append(len(trials))
        if len(calls) > 1:
            raise UnfinishedError([None] * len(trials), Shortfall("interrupted after 10 runs", 130))
        return real(laboratory, trials)

    monkeypatch.setattr(Laboratory, "run", stops)
    plot = tmp_path / "o.png"
    result = run(tmp_path, *SLO, "--plot", str(plot))
    assert result.exit_code == 130
    lines = result.stdout.splitlines()
    assert lines[4] == "interrupted after 10 runs"
    assert lines[7].split()[:5] == ["no", "option", "0", "EUR", "missed"]
    assert "no combination is shown to meet all levels (the study did not end)" in result.stdout
    assert plot.is_file()


def test_a_scenario_without_options_says_how_one_is_written(tmp_path):
    result = run(tmp_path, *SLO, text=READERS)
    assert result.exit_code == 2
    assert 'price = "300 EUR"' in result.stderr
    assert 'extends = "readers"' in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no service level to hold"),
        ((*SLO, "--correct", "40%"), "more than 50 %"),
        ((*SLO, "--correct", "sure"), "--correct"),
        ((*SLO, "--budget", "200000"), "--yes"),
        (("fastre", *SLO), "did you mean 'faster'"),
        (("faster+wide", *SLO), "'wide' is an option"),
        (("--slo", "transaction_sm < 3 ms"), "transaction_ms"),
        ((*SLO, "--plot", "o.txt"), "suffix"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path, words, told):
    result = run(tmp_path, *words)
    assert result.exit_code == 2
    assert told in result.stderr


def test_options_that_cannot_be_together_are_told_before_anything_runs(tmp_path):
    arm = '[option.arm]\nprice = "1 EUR"\nmachine.disk.sda.device = "hdd"\n'
    result = run(tmp_path, *SLO, text=READERS + OPTIONS + arm)
    assert result.exit_code == 2
    assert "with options wide+arm: unknown key 'servers'" in result.stderr
