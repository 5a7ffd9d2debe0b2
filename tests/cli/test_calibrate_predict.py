"""iotwin calibrate and predict, from the recording to the what-if."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from tests.cli.fitted import FITTED
from tests.cli.small import small_file

SMALL_FIT = ("--simulations", "24", "--members", "24")


def iotwin(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="iotwin")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the scenario and a fit of it."""
    place = tmp_path_factory.mktemp("fit")
    scenario = small_file(place, FITTED)
    done = iotwin("calibrate", scenario, "-o", str(place / "a.toml"), "--jobs", "2", *SMALL_FIT)
    assert done.exit_code == 0, done.output
    (place / "report.txt").write_text(done.stdout)
    return place


def test_the_report_tells_scenario_seed_command_and_every_parameter(folder: Path) -> None:
    text = (folder / "report.txt").read_text()
    assert text.startswith("small: A small storm\nseed 5, 24 points, iotwin ")
    assert "fitted to sendmail: before; for what-ifs: prediction" in text
    assert all(name in text for name in ("blast.concurrency", "message_user", "duration_s: of"))


def test_nothing_is_left_beside_the_fit(folder: Path) -> None:
    assert sorted(p.name for p in folder.iterdir()) == ["a.toml", "report.txt", "small.toml"]


def test_the_file_does_not_depend_on_processes_or_on_an_interrupt(
    folder: Path, tmp_path: Path
) -> None:
    scenario, place = str(folder / "small.toml"), tmp_path / "b.toml"
    journal = tmp_path / "b.toml.journal"
    journal.write_text('\n{"key": "cut o')
    done = iotwin("calibrate", scenario, "-o", str(place), "--jobs", "1", "--resume", *SMALL_FIT)
    assert done.exit_code == 0, done.output
    assert place.read_text() == (folder / "a.toml").read_text()


def test_with_a_fit_to_the_base_a_what_if_is_run_as_a_prediction(folder: Path) -> None:
    scenario, fit = str(folder / "small.toml"), str(folder / "a.toml")
    text = iotwin("run", scenario, "--fit", fit, "--what-if", "slow").stdout
    assert "slow: prediction: parameters were fitted to a recording, but not of" in text
    kinds = [
        one["kind"]
        for one in json.loads(
            iotwin(
                "compare", scenario, "slow", "--fit", fit, "--json", "-", "--replications", "1"
            ).stdout
        )["variants"]
    ]
    assert kinds == ["reproduction", "prediction"]


def test_run_and_params_take_the_fit(folder: Path) -> None:
    scenario, fit = str(folder / "small.toml"), str(folder / "a.toml")
    assert iotwin("run", scenario, "--fit", fit).exit_code == 0
    rows = json.loads(iotwin("params", scenario, "--fit", fit, "--json", "-").stdout)["parameters"]
    [row] = [row for row in rows if row["path"] == "process.blast.concurrency"]
    assert (row["layer"], row["source"]) == ("fit", "fit: a.toml")


def test_predict_answers_in_the_form_of_run_with_label_and_shares(folder: Path) -> None:
    scenario, fit = str(folder / "small.toml"), str(folder / "a.toml")
    answer = json.loads(iotwin("predict", scenario, "slow", "--fit", fit, "--json", "-").stdout)
    run = json.loads(iotwin("run", scenario, "--what-if", "slow", "--json", "-").stdout)
    assert set(run) < set(answer)
    assert (answer["kind"], answer["fit"], answer["members"]) == ("prediction", "a.toml", 24)
    rate = answer["metrics"]["throughput_per_s"]
    assert rate["lo"] <= rate["median"] <= rate["hi"]
    assert set(rate["shares"]) <= {"process.blast.concurrency", "process.sendmail.message_user"}


def test_the_variant_that_was_fitted_to_is_called_a_reproduction(folder: Path) -> None:
    scenario, fit = str(folder / "small.toml"), str(folder / "a.toml")
    text = iotwin("predict", scenario, "--fit", fit, "--members", "2").stdout
    assert "reproduction: fit a.toml (to before), 2 members" in text


def test_two_replications_of_a_member_show_the_share_of_chance(folder: Path) -> None:
    scenario, fit = str(folder / "small.toml"), str(folder / "a.toml")
    done = iotwin("predict", scenario, "--fit", fit, "--replications", "2", "--json", "-")
    rate = json.loads(done.stdout)["metrics"]["throughput_per_s"]
    assert 0 < rate["shares"]["chance"] <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("calibrate", "SMALL", "--against", "befor"), "no recorded state 'befor' (known: before"),
        (("calibrate", "SMALL", "-o", "/no/such/folder/x.toml"), "no folder /no/such/folder"),
        (("calibrate", "SMALL", "--simulations", "3"), "3 is not in the range"),
        (("predict", "SMALL", "slow"), "`iotwin calibrate small -o FILE` makes one"),
        (("predict", "SMALL", "slwo", "--fit", "FIT"), "did you mean 'slow'?"),
        (("predict", "SMALL", "slow", "--fit", "FOLDER/b.toml"), "did you mean 'a.toml'?"),
        (("predict", "sendmail", "tmpfs", "--fit", "FIT"), "a fit of scenario 'small', not of"),
        (("run", "SMALL", "--fit", "SMALL"), "lacks the dict 'fit': not a file of a fit"),
    ],
)
def test_a_mistake_ends_with_2_and_says_what_is_allowed(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    places = {"SMALL": str(folder / "small.toml"), "FIT": str(folder / "a.toml")}
    done = iotwin(*(places.get(a, a.replace("FOLDER", str(folder))) for a in arguments))
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_at_once_and_says_how_to_go_on(folder: Path, tmp_path: Path) -> None:
    words = ["calibrate", str(folder / "small.toml"), "-o", str(tmp_path / "c.toml"), *SMALL_FIT]
    journal = tmp_path / "c.toml.journal"
    with subprocess.Popen(
        [sys.executable, "-m", "sim", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Who starts the tests in the background has interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        while process.poll() is None and not journal.exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _out, told = process.communicate(timeout=600)
    assert process.returncode == 130
    assert re.search(r"interrupted: \d+ simulations are kept in .*c\.toml\.journal, --resume", told)
    assert "Traceback" not in told
    assert not (tmp_path / "c.toml").exists()
