"""Service levels on the command line: verdicts, exit codes, [slo] in a file."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from tests.cli.small import SMALL, small_file

LEVELS = """
[slo]
load1_peak = ["< 12", "< 20 in 60 % of runs"]
disk.sda.await_ms = "< 5 ms"
"""


def iotwin(*arguments: str) -> Result:
    """Return what a command line gives."""
    more = ("--jobs", "1", "--store", "none")
    return CliRunner().invoke(cli, (*arguments, *more), prog_name="iotwin")


def verdicts(text: str) -> dict[str, list[str]]:
    """Return the cells of each row of the table of levels."""
    lines = text[text.index("\nservice level  ") + 1 :].split("\n\n")[0].splitlines()
    rows = ([cell for cell in line.split("  ") if cell.strip()] for line in lines[1:])
    return {row[0]: [cell.strip() for cell in row[1:]] for row in rows}


def test_the_levels_of_a_file_are_judged_for_base_and_what_if(tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    small = small_file(tmp_path, SMALL + LEVELS)
    told = iotwin("compare", small, "slow", "--replications", "3", "--json", str(path))
    assert told.exit_code == 3, told.output
    found = verdicts(told.stdout)
    levels = ["load1_peak < 12", "load1_peak < 20 in 60 % of runs", "disk.sda.await_ms < 5 ms"]
    assert list(found) == levels
    assert [row[1::2] for row in found.values()] == [
        ["met", "met"],
        ["undecided", "undecided"],  # 0.6^3 = 0.22
        ["met", "missed"],
    ]
    base, slow = json.loads(path.read_text())["variants"]
    assert [one["verdict"] for one in slow["levels"]] == ["met", "undecided", "missed"]
    assert base["levels"][2]["hi"] < 5 < slow["levels"][2]["lo"]


@pytest.mark.parametrize(
    ("levels", "runs", "code"),
    [
        (["load1_peak < 12"], "3", 0),
        (["load1_peak < 12"], "1", 4),
        (["load1_peak < 12", "load1_peak < 12 in 90 % of runs"], "3", 4),
        (["load1_peak < 12 in 90 % of runs", "disk.sda.await_ms > 1 s"], "3", 3),
        (["oom_kill_s > 1 s"], "1", 3),  # No data, which is missed.
        (["loud1_peak < 12"], "1", 2),
        (["load1_peak < 12", "load1_peak > 13"], "1", 2),
        (["load1_peak"], "1", 2),
    ],
)
def test_the_exit_code_says_what_became_of_the_levels(
    tmp_path: Path, levels: list[str], runs: str, code: int
) -> None:
    options = [word for level in levels for word in ("--slo", level)]
    told = iotwin("run", small_file(tmp_path), "--replications", runs, *options)
    assert told.exit_code == code, told.output
    if levels == ["oom_kill_s > 1 s"]:
        assert verdicts(told.stdout)["oom_kill_s > 1 s"][1] == "no data, which is missed"


@pytest.mark.parametrize(
    ("levels", "place", "told"),
    [
        ('load1_peek = "< 12"', "small.toml:51:1: ", "did you mean 'load1_peak'?"),
        ('load1_peak = "< 12 apples"', "small.toml:51:14: ", "expected a number"),
        ("load1_peak = 12", "small.toml:51:14: ", "expected a level, or a list of levels"),
        ('load1_peak = ["< 12", "> 12"]', "small.toml:51:14: ", "no server keeps this level and"),
        ('disk.sda.await_mss = "< 1 s"', "small.toml:51:10: ", "'disk.sda.await_ms'"),
    ],
)
def test_a_mistake_in_slo_is_shown_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, levels: str, place: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    small_file(tmp_path, f"{SMALL}[slo]\n{levels}\n")
    result = iotwin("run", "./small.toml")
    assert result.exit_code == 2
    assert result.stderr.startswith(place), result.stderr
    assert told in result.stderr
    assert "(accepted: " in result.stderr


def test_levels_are_not_for_a_power_cut(tmp_path: Path) -> None:
    told = iotwin("run", small_file(tmp_path), "--crash-at", "5s", "--slo", "load1_peak < 12")
    assert told.exit_code == 2
    assert "--slo" in told.stderr


def test_a_steady_state_needs_times_of_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SMALL.replace('devices = ["sda"]', 'devices = ["sda"]\nsteady = true')
    small_file(tmp_path, text)
    told = iotwin("run", "./small.toml", "--set", 'measure.families=["load"]')
    assert told.exit_code == 2
    assert "times of transactions tell a steady state" in told.stderr
