"""`iotwin sensitivity`: its text, its JSON, its plot; mistakes are refused before anything runs."""

import json
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from sim.report.study_file import schema
from sim.scenario.load import open_scenario
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.outcome import Shortfall
from tests.study.readers import readers_file

QUEUE = "process.readers.concurrency"
SIZE = "machine.disk.sda.capacity"
SHORT = ["--set", "run.duration=2 s"]
OVER = ["--over", f"{QUEUE}=1..4", "--over", f"{SIZE}=4..8 GiB", "--of", "transaction_ms", *SHORT]


@pytest.fixture(autouse=True)
def _salib():
    pytest.importorskip("SALib")


def run(*words, store="none"):
    command = ["sensitivity", *words, "--executor", "here", "--store", store]
    return CliRunner().invoke(cli, command, prog_name="iotwin")


def valid(path):
    """Return a study's JSON, which the published schema accepts."""
    content = json.loads(path.read_text())
    pytest.importorskip("jsonschema").validate(content, schema())
    return content


def test_what_decides_stands_first_and_is_said_in_a_sentence(tmp_path):
    """N readers of a disk of 5 ms wait N times 5 ms: from 1 to 4 of them that is 15 ms more."""
    out, plot = tmp_path / "s.json", tmp_path / "s.png"
    words = [*OVER, "--points", "4", "--json", str(out), "--plot", str(plot)]
    result = run(readers_file(tmp_path), *words)
    assert result.exit_code == 0, result.output
    assert "16 runs: 4 trajectories, each of 2 parameters and the seed" in result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "readers: Random readers of a disk of constant latency"
    first, second = (line.split() for line in lines[6:8])
    assert [first[0], second[0]] == [QUEUE, SIZE]
    assert float(first[3]) == pytest.approx(15, rel=0.02)
    assert lines[8].startswith(f"{QUEUE} decides transaction_ms: ")
    found = valid(out)
    assert (found["kind"], found["result"]["method"], found["result"]["runs"]) == (
        "sensitivity",
        "morris",
        16,
    )
    assert {one["seed"] for one in found["points"]} == set(range(3, 11))
    [indices] = found["result"]["indices"]
    assert indices["parameters"][0]["mu_star"] == pytest.approx(15, rel=0.02)
    assert indices["chance"]["share"] < 0.01
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_shares_of_the_variance(tmp_path):
    out, plot = tmp_path / "s.json", tmp_path / "s.png"
    words = [*OVER, "--of", "transactions_per_s", "--method", "sobol", "--points", "4"]
    result = run(readers_file(tmp_path), *words, "--json", str(out), "--plot", str(plot))
    assert result.exit_code == 0, result.output
    found = valid(out)["result"]
    assert [one["of"] for one in found["indices"]] == ["transaction_ms", "transactions_per_s"]
    assert found["runs"] == 4 * 5
    first, second = found["indices"][0]["parameters"]
    assert first["path"] == QUEUE
    assert first["st_lo"] <= first["st"] <= first["st_hi"]
    assert second["st"] < 0.01
    assert [one["path"] for one in found["over"]] == [QUEUE, SIZE]
    assert found["over"][1]["high"] == "8 GiB"
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_point_can_be_run_alone(tmp_path):
    """The settings and the seed of the JSON are those of `iotwin run`."""
    out, alone = tmp_path / "s.json", tmp_path / "run.json"
    file = readers_file(tmp_path)
    run(file, "faster", *OVER, "--points", "4", "--json", str(out))
    point = valid(out)["points"][5]
    words = ["run", file, "--what-if", point["what_if"], "--json", str(alone), "--store", "none"]
    words += ["--seed", str(point["seed"]), *SHORT]
    words += [word for path, value in point["set"].items() for word in ("--set", f"{path}={value}")]
    assert CliRunner().invoke(cli, words, prog_name="iotwin").exit_code == 0
    same = json.loads(alone.read_text())["metrics"]
    assert {name: one["mean"] for name, one in point["figures"].items()} == {
        name: one["mean"] for name, one in same.items()
    }


def test_what_nothing_decides_is_told(tmp_path):
    out = tmp_path / "s.json"
    words = ["--over", f"{SIZE}=4..8 GiB", "--of", "disk.sda.w_per_s", "--points", "4"]
    result = run(readers_file(tmp_path), *words, "--json", str(out))
    assert result.exit_code == 0
    assert "disk.sda.w_per_s: 0.00 in all runs: nothing decides it\n" in result.stdout
    [indices] = valid(out)["result"]["indices"]
    assert (indices["parameters"], indices["chance"]) == ([], None)
    assert (indices["min"], indices["max"]) == (0, 0)


def lacking(monkeypatch, runs):
    """Take a figure from so many first runs of each study."""
    real = Laboratory.run

    def without(laboratory, trials):
        found = real(laboratory, trials)
        for one in found[:runs]:
            one.metrics.pop("transaction_ms", None)
        return found

    monkeypatch.setattr(Laboratory, "run", without)


def test_runs_that_lack_the_figure_are_told(tmp_path, monkeypatch):
    lacking(monkeypatch, 2)
    result = run(readers_file(tmp_path), *OVER, "--points", "5")
    assert result.exit_code == 0
    told = "transaction_ms: 2 of 20 runs lack it: the indices are of 4 of 5 trajectories"
    assert told in result.stdout


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        (6, "no indices: too many runs lack this figure"),
        (6, "6 of 16 runs lack it, so that 2 of 4 trajectories are whole"),
        (16, "no run has this figure"),
    ],
)
def test_too_many_runs_that_lack_the_figure_leave_no_indices(tmp_path, monkeypatch, runs, told):
    lacking(monkeypatch, runs)
    result = run(readers_file(tmp_path), *OVER, "--points", "4")
    assert result.exit_code == 0
    assert f"transaction_ms: {told}\n" in result.stdout


def test_a_part_of_a_design_has_no_indices_and_is_kept(tmp_path, monkeypatch):
    real, out, store = Laboratory.run, tmp_path / "s.json", str(tmp_path / "runs.sqlite")

    def stops(laboratory, trials):
        done = real(laboratory, trials[:3])
        told = Shortfall(f"interrupted after 3 of {len(trials)} runs", 130)
        raise UnfinishedError([*done, *[None] * (len(trials) - 3)], told)

    file = readers_file(tmp_path)
    words = [*OVER, "--points", "4", "--json", str(out), "--plot", str(tmp_path / "s.png")]
    with monkeypatch.context() as patched:
        patched.setattr(Laboratory, "run", stops)
        result = run(file, *words, store=store)
    assert result.exit_code == 130
    assert "no indices: these need all 16 runs of the design\n" in result.stdout
    found = valid(out)
    assert (found["unfinished"], len(found["points"])) == ("interrupted after 3 of 16 runs", 3)
    assert found["result"]["indices"] == []
    again = run(file, *words, store=store)
    assert again.exit_code == 0
    assert "3 of 16 runs were done before" in again.stderr


def test_without_over_what_has_a_prior_is_varied(tmp_path, monkeypatch):
    """All priors of the scenario, but for the one that --set gives."""
    asked = []

    def stops(_laboratory, trials):
        asked.append(trials)
        raise UnfinishedError([None] * len(trials), Shortfall("interrupted after 0 runs", 130))

    monkeypatch.setattr(Laboratory, "run", stops)
    out = tmp_path / "s.json"
    words = ["--of", "throughput_per_s", "--set", "process.normal.rate=1 msg/s"]
    assert run("sendmail", *words, "--json", str(out)).exit_code == 130
    plan = open_scenario("sendmail").read().plan
    priors = {one.path for one in plan.priors} - {"process.normal.rate"}
    over = valid(out)["result"]["over"]
    assert {one["path"] for one in over} == priors
    assert all(one["source"] for one in over)
    assert len(asked[0]) == 10 * (len(priors) + 2)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "Missing option '--of'"),
        ("--of transaction_s", "did you mean 'transaction_ms'?"),
        ("--of transaction_ms", "no parameter with a prior in [calibrate]"),
        (f"--of transaction_ms --over {QUEUE}", "not PATH=VALUES"),
        (f"--of transaction_ms --over {QUEUE}=1,2", "not a range alone"),
        (f"--of transaction_ms --over {QUEUE}=1..4*2", "not a range alone"),
        (f"--of transaction_ms --over {QUEUE}=4..1", "LOW must be below HIGH"),
        (f"--of transaction_ms --over {QUEUE}=0..4", f"--over {QUEUE}=0..4: error: {QUEUE}: must"),
        ("--of transaction_ms --over process.reader.concurrency=1..2", f"did you mean '{QUEUE}'?"),
        (f"--of transaction_ms --over {QUEUE}=1..4 --over {QUEUE}=1..2", "is given twice"),
        (f"--of transaction_ms --over {QUEUE}=1..4 --set {QUEUE}=2", f"by --set {QUEUE}=2, too"),
        (f"fast --of transaction_ms --over {QUEUE}=1..4", "did you mean 'faster'?"),
        (f"--of transaction_ms --over {QUEUE}=1..4 --method moris", "'moris' is not one of"),
        (f"--of transaction_ms --over {QUEUE}=1..4 --points 3", "not in the range x>=4"),
        (
            f"--of transaction_ms --over {QUEUE}=1..4 --points 40000",
            "120,000 runs: error: more than 100,000 need --yes",
        ),
    ],
)
def test_mistakes_are_refused_before_anything_runs(tmp_path, monkeypatch, words, told):
    monkeypatch.setattr(Laboratory, "run", None)
    result = run(readers_file(tmp_path), *shlex.split(words))
    assert result.exit_code == 2, result.output
    assert told in result.output


def test_without_salib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.cli.extras.find_spec", lambda _name: None)
    result = run(readers_file(tmp_path), *OVER)
    assert result.exit_code == 2
    assert "SALib is missing, which the extra 'sensitivity' has" in result.output


def test_help_imports_no_library_of_numbers():
    code = (
        "import sys; from sim.cli.main import cli\n"
        "try: cli(['sensitivity', '--help'], prog_name='iotwin')\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'SALib', 'matplotlib'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[-1] == "[]"
