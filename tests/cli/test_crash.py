"""iotwin run --crash-at: what was accepted is handed on, in the queue, or lost."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from tests.cli.small import SMALL, small_file

TMPFS = ("--set", 'machine.mount."/".type="tmpfs"')


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, ["run", *arguments], prog_name="iotwin")
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


@pytest.fixture
def small(tmp_path: Path) -> str:
    return small_file(tmp_path)


def figures(*arguments: str) -> dict[str, float]:
    content = json.loads(run(*arguments, "--json", "-"))
    return {name: one["median"] for name, one in content["metrics"].items()}


@pytest.mark.parametrize("at", ["3.3 s", "4 s", "6 s", "9 s"])
def test_on_a_journal_nothing_accepted_is_lost(small: str, at: str) -> None:
    found = figures(small, "--crash-at", at)
    assert found["messages_lost"] == 0 and found["damage"] == 0
    assert found["messages_accepted"] == (found["messages_handed_on"] + found["messages_in_queue"])
    assert found["messages_in_mailboxes"] == 0  # All go to the next host.


def test_on_tmpfs_all_is_lost_that_was_not_handed_on(tmp_path: Path) -> None:
    mount = 'mount."/" = { type = "ext3", device = "sda" }'
    path = small_file(tmp_path, SMALL.replace(mount, 'mount."/" = { type = "tmpfs" }'))
    lost = 0.0
    for at in ("3525 ms", "3575 ms", "4 s", "4150 ms"):
        found = figures(path, "--crash-at", at)
        assert found["messages_in_queue"] == 0
        assert found["messages_accepted"] == found["messages_handed_on"] + found["messages_lost"]
        lost += found["messages_lost"]
    assert lost > 0


def test_the_page_says_what_was_cut_and_what_is_lost(small: str) -> None:
    lines = run(small, "--crash-at", "4 s").splitlines()
    assert lines[1].startswith("power cut at 4 s; seed 5, 1 replication, iotwin ")
    assert any(line.startswith("messages_lost") and "accepted and lost" in line for line in lines)
    assert lines[-1].startswith("/ (ext3, data=ordered): ")


def test_a_moment_beyond_the_run_is_refused(small: str) -> None:
    assert "at most 60 s" in run(small, "--crash-at", "2 min", code=2)


def test_before_anything_is_promised_there_is_nothing_to_lose(small: str) -> None:
    assert "no program has promised anything" in run(small, "--crash-at", "1 s", code=2)


def test_a_plot_of_a_power_cut_is_refused(small: str) -> None:
    assert "neither" in run(small, "--crash-at", "4 s", "--plot", "x.png", code=2)
