"""--executor, --jobs and --store as a user meets them: same bytes, kept runs, Ctrl-C, kill -9."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.laboratory import Where
from sim.cli.main import cli
from sim.study.store import Store
from tests.cli.small import SMALL

TOP = Path(__file__).resolve().parents[2]
posix = pytest.mark.skipif(os.name != "posix", reason="signals")


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """Return the path of a scenario that runs in a moment."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return str(path)


def iotwin(*arguments: str) -> Result:
    """Type a command."""
    return CliRunner().invoke(cli, arguments)


def started(arguments: Sequence[str]) -> "subprocess.Popen[str]":
    """Start a command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "sim", *arguments],
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Who starts the tests in the background has interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def rows(path: Path) -> int:
    """Return how many runs are stored."""
    if not path.exists():
        return 0
    with Store(path) as store:
        return len(store)


def test_the_same_command_simulates_nothing_twice(scenario: str, tmp_path: Path) -> None:
    store = str(tmp_path / "s")
    first = iotwin("run", scenario, "--replications", "2", "--json", "-", "--store", store)
    again = iotwin("run", scenario, "--replications", "3", "--json", "-", "--store", store)
    assert "were done before" not in first.stderr
    assert "2 of 3 runs were done before" in again.stderr
    plain = iotwin("run", scenario, "--replications", "3", "--json", "-")
    assert again.stdout == plain.stdout


def test_a_comment_is_no_reason_to_simulate_and_a_value_is(scenario: str, tmp_path: Path) -> None:
    store = tmp_path / "s"
    iotwin("run", scenario, "--store", str(store))
    Path(scenario).write_text("# looked at again\n" + SMALL)
    iotwin("run", scenario, "--store", str(store))
    assert rows(store) == 1
    Path(scenario).write_text(SMALL.replace('"2 ms"', '"3 ms"'))
    iotwin("run", scenario, "--store", str(store))
    assert rows(store) == 2


@pytest.mark.parametrize("place", ["here", "local:2"])
def test_everywhere_the_same_bytes(scenario: str, place: str) -> None:
    many = ("compare", scenario, "--replications", "3", "--json", "-")
    assert iotwin(*many, "--executor", place).stdout == iotwin(*many).stdout


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--executor", "cloud", "allowed: here, local"),
        ("--executor", "local:0", "no process"),
        ("--executor", "no_such:thing", "No module named"),
        ("--store", "/dev/null/s", "cannot be made"),
        ("--jobs", "0", "x>=1"),
    ],
)
def test_a_place_or_store_that_is_none_is_refused(
    scenario: str, option: str, value: str, told: str
) -> None:
    result = iotwin("run", scenario, option, value)
    assert result.exit_code == 2
    assert told in result.stderr


def test_another_file_is_not_taken_for_a_store(scenario: str, tmp_path: Path) -> None:
    mine = tmp_path / "thesis.txt"
    mine.write_text("precious " * 1000)
    result = iotwin("run", scenario, "--store", str(mine))
    kept = [one for one in tmp_path.iterdir() if one.read_bytes() == b"precious " * 1000]
    assert result.exit_code in (0, 2)
    assert kept  # renamed at most, as a damaged store is


@posix
def test_ctrl_c_prints_what_is_done_and_keeps_it(scenario: str, tmp_path: Path) -> None:
    store = tmp_path / "s"
    many = ("compare", scenario, "--replications", "400", "--jobs", "2", "--store", str(store))
    with started(many) as running:
        while rows(store) < 5:
            time.sleep(0.05)
            assert running.poll() is None
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate()
    assert running.returncode == 130
    assert "interrupted after" in err
    assert "the same command again goes on" in err
    assert "of 800 runs" in err
    assert out.startswith("interrupted after ")
    assert "message" in out  # a table of what there is
    assert rows(store) >= 5


@pytest.mark.parametrize(
    ("kept", "told"), [(1, "1 run is kept in"), (2, "2 runs are kept in"), (0, "")]
)
def test_an_error_says_how_many_runs_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: int, told: str
) -> None:
    where = Where("here", 1, str(tmp_path / "store.sqlite"))
    with pytest.raises(ValueError), where.laboratory("trying") as laboratory:
        laboratory.kept = kept
        raise ValueError
    err = capsys.readouterr().err
    assert told in err
    assert err.endswith(f"goes on with {'it' if kept == 1 else 'them'}\n") == bool(kept)


@posix
def test_a_study_that_is_killed_goes_on_where_it_was(scenario: str, tmp_path: Path) -> None:
    """At random moments, until it is through; no run that is stored is done again."""
    chance = random.Random(1)
    store = tmp_path / "s"
    out = tmp_path / "out.json"
    many = ("compare", scenario, "--replications", "12", "--jobs", "2", "--store", str(store))
    many = (*many, "--json", str(out))
    seen = 0
    for _try in range(6):
        with started(many) as running:
            deadline = time.monotonic() + chance.uniform(0.5, 4.0)
            while time.monotonic() < deadline and running.poll() is None:
                time.sleep(0.05)
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
        assert rows(store) >= seen
        seen = rows(store)
    finished = iotwin(*many)
    assert finished.exit_code == 0
    assert not seen or f"{seen} of 24 runs were done before" in finished.stderr
    plain = iotwin(*many[:-4], "--json", "-")
    assert json.loads(out.read_text()) == json.loads(plain.stdout)


def test_store_lists_exports_and_cleans(scenario: str, tmp_path: Path) -> None:
    store = str(tmp_path / "s")
    iotwin("compare", scenario, "--replications", "2", "--store", store)
    listed = iotwin("store", "--store", store, "ls").stdout
    assert "slow" in listed
    assert "4 runs in" in listed
    table = iotwin("store", "--store", store, "export", "-").stdout
    assert len(table.splitlines()) == 5
    assert (
        "0 runs forgotten, 4 left"
        in iotwin("store", "--store", store, "clean", "--older", "1d").stdout
    )
    assert (
        "4 runs forgotten, 0 left"
        in iotwin("store", "--store", store, "clean", "--older", "0d").stdout
    )


def test_a_store_that_is_not_there_and_an_age_that_is_none_are_told(tmp_path: Path) -> None:
    missing = iotwin("store", "--store", str(tmp_path / "s"), "ls")
    assert missing.exit_code == 2
    assert "no run was kept there yet" in missing.stderr
    before = iotwin("store", "--store", str(tmp_path / "s"), "clean", "--older", "-3d")
    assert before.exit_code == 2
    assert "an age is 0 or more" in before.stderr
    bad = iotwin("store", "--store", str(tmp_path / "s"), "clean", "--older", "3 parsecs")
    assert bad.exit_code == 2
    assert "30d" in bad.stderr


def test_cluster_says_what_to_type() -> None:
    told = iotwin("cluster", "--host", "head", "--port", "1234").stdout
    assert "dask scheduler --host head --port 1234" in told
    assert "--executor dask://head:1234" in told


def test_an_executor_that_makes_none_is_bad_input(scenario: str) -> None:
    over = ("--over", "machine.cpus=1,2")
    result = iotwin("sweep", scenario, *over, "--executor", "os:getcwd", "--store", "none")
    assert result.exit_code == 2
    assert "--executor os:getcwd: it returned a str" in result.stderr
