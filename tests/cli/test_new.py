"""`iotwin new`: what it writes runs as it is, and replaces nothing."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from sim.cli.new import templates
from sim.machine import simulate
from sim.observation import Observation
from sim.scenario import load
from sim.study.metrics import metrics_seen


def new(*arguments: str) -> Result:
    """Run `iotwin new`."""
    return CliRunner().invoke(cli, ["new", *arguments], prog_name="iotwin")


@pytest.mark.parametrize("kind", templates())
def test_a_template_and_all_its_what_ifs_can_be_read(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "mine.toml"
    result = new(kind, "-o", str(place))
    assert (result.exit_code, f"iotwin run {place}" in result.stdout) == (0, True)
    base = load(str(place))
    assert base.omissions == ()
    for what_if in base.what_ifs:
        assert load(str(place), what_if=what_if.name).omissions == ()
    assert "# Estimate by hand." in place.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", templates())
def test_the_commands_that_a_template_names_are_words(kind: str) -> None:
    text = templates()[kind].read_text(encoding="utf-8")
    for word in re.findall(r"iotwin words ([a-z_0-9-]+)", text):
        result = CliRunner().invoke(cli, ["words", word], prog_name="iotwin")
        assert result.exit_code == 0, word


def figures(kind: str, *sets: str) -> dict[str, float]:
    """Return the figures of a template's run."""
    scenario = load(str(templates()[kind]), sets=sets)
    return metrics_seen(Observation(simulate(scenario, scenario.seed), scenario.measure))


def test_the_database_reads_and_computes_as_its_estimate_says() -> None:
    """300/s x 2 x (1 - 15.6/24) = 210 reads a second; 19 % of four CPUs, and the kernel's calls."""
    found = figures("database", "run.duration=15 s")
    assert found["disk.nvme0n1.r_per_s"] == pytest.approx(210, rel=0.05)
    assert 600 < found["disk.nvme0n1.w_per_s"] < 900
    assert found["cpu.user_pct"] == pytest.approx(15, abs=1)


def test_a_commit_of_the_blank_scenario_is_three_waits_for_the_arm() -> None:
    """3 x (8.5 + 4.2) ms: 26 a second."""
    assert figures("blank")["transactions_per_s"] == pytest.approx(26, rel=0.1)


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    place = tmp_path / "mine.toml"
    place.write_text("mine", encoding="utf-8")
    result = new("web", "-o", str(place))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is there already" in result.stderr
    assert place.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("databse",), "did you mean 'database'?"),
        (("postgres",), "did you mean 'database'?"),
        (("nginx",), "did you mean 'web'?"),
        (("postfix",), "did you mean 'mail-server'?"),
        (("web", "-o", "mine"), "mine: a scenario's file ends in .toml"),
        (("web", "-o", "nowhere/web.toml"), "no folder nowhere"),
        ((), "KIND"),
    ],
)
def test_what_cannot_be_written_is_refused(arguments: tuple[str, ...], told: str) -> None:
    result = new(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


def test_the_commands_that_are_told_can_be_typed(tmp_path: Path) -> None:
    place = tmp_path / "my web.toml"
    assert f"  iotwin run '{place}'\n" in new("web", "-o", str(place)).stdout
