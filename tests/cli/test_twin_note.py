"""A twin's own figures: compare and predict say that they are, and which answer is not."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from sim.scenario.fitted import recording_of_twin
from tests.cli.small import SMALL

FIT = """\
[fit]
kind = "prediction"
scenario = "small"
against = "recorded"
variants = ["base"]
command = "{command}"
[best]
"process.blast.concurrency" = "4"
[ensemble]
parameters = ["process.blast.concurrency"]
members = [["4"], ["5"]]
"""
MADE = "iotwin mine --simulations 48 --seed 1 'my server/iostat.txt' vmstat.txt"


def twin(folder: Path, command: str = MADE) -> Path:
    """Write a scenario with an ensemble beside it, as a command makes both."""
    place = folder / "small.toml"
    place.write_text(SMALL, encoding="utf-8")
    (folder / "small.fit.toml").write_text(FIT.format(command=command), encoding="utf-8")
    return place


def iotwin(*arguments: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(cli, arguments, prog_name="iotwin")


@pytest.mark.parametrize(
    ("command", "recorded"),
    [
        (MADE, ("my server/iostat.txt", "vmstat.txt")),
        ("iotwin twin --simulations 48 --seed 1 --hold-out 50 here", ("here",)),
        ("iotwin calibrate small", ()),
        ("", ()),
        ("iotwin", ()),
    ],
)
def test_what_a_twin_was_made_of_is_what_was_typed(
    tmp_path: Path, command: str, recorded: tuple[str, ...]
) -> None:
    assert recording_of_twin(twin(tmp_path, command)) == recorded


def test_a_scenario_without_an_ensemble_is_no_twin(tmp_path: Path) -> None:
    place = twin(tmp_path)
    (tmp_path / "small.fit.toml").write_text("no = 'fit'")
    assert recording_of_twin(place) == ()
    (tmp_path / "small.fit.toml").unlink()
    assert recording_of_twin(place) == ()


def test_predict_of_a_twin_names_the_answer_that_is_tied_to_the_recording(tmp_path: Path) -> None:
    place = str(twin(tmp_path))
    result = iotwin("predict", place, "slow", "--members", "2", "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert "small.toml is a twin: figures here are its own" in result.stderr
    assert "iotwin mine 'my server/iostat.txt' vmstat.txt --what-if slow\n" in result.stderr
