"""iotwin calibrate and predict, from the recording to the what-if."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from sim.study.store import Store
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
    assert set(run) - set(answer) == {"digests"}  # a member is a run of its own
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


def test_an_interrupted_fit_goes_on_by_the_same_command_and_gives_the_same_file(
    folder: Path, tmp_path: Path
) -> None:
    """Here in one process, and the fit of the other tests in two: the same bytes."""
    place, store = tmp_path / "c.toml", tmp_path / "runs.sqlite"
    words = ["calibrate", str(folder / "small.toml"), "-o", str(place), "--executor", "here"]
    words += ["--store", str(store), *SMALL_FIT]
    with subprocess.Popen(
        [sys.executable, "-m", "sim", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Who starts the tests in the background has interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        while process.poll() is None and not stored(store):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _out, told = process.communicate(timeout=600)
    assert process.returncode == 130
    done = stored(store)
    kept, them = ("1 run is", "it") if done == 1 else (f"{done} runs are", "them")
    assert f"{kept} kept in {store}: the same command again goes on with {them}" in told
    assert f"interrupted after {done} of 24 runs" in told
    assert "Traceback" not in told
    assert not place.exists()
    again = iotwin(*words)
    assert again.exit_code == 0, again.output
    assert f"{done} of 24 runs were done before" in again.stderr
    assert place.read_text() == (folder / "a.toml").read_text()
    assert stored(store) == 24


def stored(path: Path) -> int:
    """Return how many runs a store has; 0 while there is none."""
    if not path.exists():
        return 0
    with Store(path) as store:
        return len(store)


def test_a_prediction_of_more_members_simulates_the_further_ones_alone(
    folder: Path, tmp_path: Path
) -> None:
    store = tmp_path / "runs.sqlite"
    words = ("predict", str(folder / "small.toml"), "slow", "--fit", str(folder / "a.toml"))
    words += ("--store", str(store), "--executor", "here", "--json", "-")
    assert "before" not in iotwin(*words, "--members", "2").stderr
    more = iotwin(*words, "--members", "3")
    assert "2 of 3 runs were done before" in more.stderr
    alone = iotwin(*words[:5], "--members", "3", "--json", "-")
    assert json.loads(more.stdout) == json.loads(alone.stdout)
