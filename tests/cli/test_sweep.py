"""`iotwin sweep`: its text, its JSON, its plot; mistakes are refused before anything runs."""

import json
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from sim.report.study_file import schema
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.outcome import Shortfall
from tests.study.readers import readers_file

OVER = "process.readers.concurrency"


def run(*words):
    command = ["sweep", *words, "--executor", "here", "--store", "none"]
    return CliRunner().invoke(cli, command, prog_name="iotwin")


def valid(path):
    """Return a study's JSON, which the published schema accepts."""
    content = json.loads(path.read_text())
    pytest.importorskip("jsonschema").validate(content, schema())
    return content


def test_a_row_a_point_and_a_table_a_what_if(tmp_path):
    file = readers_file(tmp_path)
    result = run(file, "base", "faster", "--over", f"{OVER}=1,4", "--replications", "1")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "readers: Random readers of a disk of constant latency"
    assert lines[1].startswith("seed 3, 1 replication of each point, iotwin ")
    assert [lines.index(f"base: {lines[0][9:]}"), lines.index(FASTER)] == [4, 9]
    assert lines[5].split() == [OVER, "transactions_per_s", "transaction_ms", "transaction_p95_ms"]
    figures = [[float(cell) for cell in lines[row].split()] for row in (7, 12)]
    assert figures[0] == pytest.approx([4, 200, 20, 20], rel=0.01)
    assert figures[1] == pytest.approx([4, 400, 10, 10], rel=0.01)


FASTER = "what-if faster: A disk that is twice as fast"


def test_the_json_is_as_the_schema_says(tmp_path):
    out = tmp_path / "sweep.json"
    file = readers_file(tmp_path)
    words = ["--over", f"{OVER}=1..8*2", "--over", "machine.memory=512 MiB", "--json", str(out)]
    result = run(file, *words, "--replications", "3", "--plot", str(tmp_path / "sweep.png"))
    assert result.exit_code == 0
    found = valid(out)
    assert (found["schema"], found["kind"], found["seed"]) == ("iotwin.study/1", "sweep", 3)
    point = found["points"][2]
    assert point["set"] == {OVER: 4, "machine.memory": "512 MiB"}
    assert (point["what_if"], point["runs"], point["stopped"]) == (None, 3, None)
    figure = point["figures"]["transactions_per_s"]
    assert figure["mean"] == pytest.approx(200, rel=0.01)
    assert figure["mean_lo"] <= figure["mean"] <= figure["mean_hi"]
    [knee] = found["result"]["knee"]
    assert (knee["of"], knee["path"], knee["at"]) == ("transactions_per_s", OVER, None)
    assert knee["bounds"]["saturation_per_s"] == pytest.approx(200, rel=0.05)
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_a_point_can_be_run_alone(tmp_path):
    """The settings of the JSON are those of `iotwin run`."""
    out, alone = tmp_path / "sweep.json", tmp_path / "run.json"
    file = readers_file(tmp_path)
    run(file, "faster", "--over", f"{OVER}=3", "--replications", "1", "--json", str(out))
    [point] = valid(out)["points"]
    words = ["run", file, "--what-if", point["what_if"], "--json", str(alone), "--store", "none"]
    words += [word for path, value in point["set"].items() for word in ("--set", f"{path}={value}")]
    assert CliRunner().invoke(cli, words, prog_name="iotwin").exit_code == 0
    same = json.loads(alone.read_text())["metrics"]
    assert {name: one["mean"] for name, one in point["figures"].items()} == {
        name: one["mean"] for name, one in same.items()
    }


def test_points_of_a_space(tmp_path):
    pytest.importorskip("scipy")
    out = tmp_path / "sweep.json"
    words = ["--over", f"{OVER}=1..16", "--over", "machine.cpus=1,2", "--design", "lhs:4"]
    plot = ["--plot", str(tmp_path / "sweep.png")]
    result = run(readers_file(tmp_path), *words, "--replications", "1", "--json", str(out), *plot)
    assert result.exit_code == 0
    found = valid(out)
    assert (found["result"]["design"], found["result"]["knee"]) == ("lhs:4", [])
    assert sorted((n - 1) // 4 for n in (one["set"][OVER] for one in found["points"])) == [
        0,
        1,
        2,
        3,
    ]


def test_texts_are_varied_too(tmp_path):
    out = tmp_path / "sweep.json"
    words = ["--over", "machine.disk.sda.scheduler=noop,deadline", "--of", "disk.sda.r_per_s"]
    plot = ["--plot", str(tmp_path / "sweep.png")]
    result = run(readers_file(tmp_path), *words, "--replications", "1", "--json", str(out), *plot)
    assert result.exit_code == 0
    assert "knee: no parameter that is varied is a number" in result.output
    assert [one["set"]["machine.disk.sda.scheduler"] for one in valid(out)["points"]] == [
        "noop",
        "deadline",
    ]


def test_precision_instead_of_replications(tmp_path):
    out = tmp_path / "sweep.json"
    words = ["--over", f"{OVER}=2", "--precision", "5 %", "--of", "transactions_per_s"]
    result = run(readers_file(tmp_path), *words, "--json", str(out))
    assert result.exit_code == 0
    [point] = valid(out)["points"]
    assert (point["runs"], point["stopped"]) == (10, "precise")


def test_levels_of_the_scenario_are_judged_at_each_point(tmp_path):
    """4 readers wait 20 ms for a read, and 1 waits 5 ms."""
    out = tmp_path / "sweep.json"
    words = ["--over", f"{OVER}=1,4", "--set", "slo.transaction_ms=< 10 ms", "--json", str(out)]
    result = run(readers_file(tmp_path), *words, "--replications", "3")
    assert result.exit_code == 0
    assert [row.split()[-1] for row in result.output.splitlines()[5:7]] == ["met", "missed"]
    judged = [one["levels"][0]["verdict"] for one in valid(out)["points"]]
    assert judged == ["met", "missed"]


def test_an_interrupted_sweep_prints_what_is_done(tmp_path, monkeypatch):
    real = Laboratory.run

    def stops(laboratory, trials):
        done = real(laboratory, trials[:1])
        told = Shortfall(f"interrupted after 1 of {len(trials)} runs", 130)
        raise UnfinishedError([*done, *[None] * (len(trials) - 1)], told)

    monkeypatch.setattr(Laboratory, "run", stops)
    out = tmp_path / "sweep.json"
    words = ["--over", f"{OVER}=2,4", "--replications", "1", "--json", str(out)]
    result = run(readers_file(tmp_path), *words)
    assert result.exit_code == 130
    assert "interrupted after 1 of 2 runs" in result.output.splitlines()
    found = valid(out)
    assert found["unfinished"] == "interrupted after 1 of 2 runs"
    assert [one["set"] for one in found["points"]] == [{OVER: 2}]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "Missing option '--over'"),
        (f"--over {OVER}", "not PATH=VALUES"),
        ("--over process.reader.concurrency=1,2", f"did you mean '{OVER}'?"),
        (f"--over {OVER}=0,1", f"--over {OVER}=0,1: error: {OVER}: must be at least 1, got 0"),
        (f"--over {OVER}=9..1*2", "LOW must be below HIGH"),
        (f"--over {OVER}=1..9", "a range alone has no values"),
        (f"--over {OVER}=1 --over {OVER}=2", "is given twice"),
        (f"--over {OVER}=1 --set {OVER}=2", f"by --set {OVER}=2, too"),
        (f"--over {OVER}=1..30000+1", "150,000 runs: error: more than 100,000 need --yes"),
        (f"--over {OVER}=1 --design sobol", "'sobol' (allowed: grid, sobol:N, lhs:N)"),
        (f"--over {OVER}=1 --design lhs:0", "(allowed: grid, sobol:N, lhs:N)"),
        (f"--over {OVER}=1 --of transaction_s", "did you mean 'transaction_ms'?"),
        (f"--over {OVER}=1 --precision 5%", "name it with --of FIGURE"),
        (f"--over {OVER}=1 --precision 0% --of transaction_ms", "more than 0 %"),
        (f"--over {OVER}=1 --precision '5 ms' --of transaction_ms", "expected a percentage"),
        (f"--over {OVER}=1 --replications-max 20", "goes with --precision"),
        (
            f"--over {OVER}=1 --precision 5% --of transaction_ms --replications 5",
            "--replications and --precision exclude each other",
        ),
        (f"fast --over {OVER}=1", "did you mean 'faster'?"),
        (f"faster faster --over {OVER}=1", "named twice: faster"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(tmp_path, monkeypatch, words, told):
    monkeypatch.setattr(Laboratory, "run", None)
    result = run(readers_file(tmp_path), *shlex.split(words))
    assert result.exit_code == 2, result.output
    assert told in result.output


def test_a_design_without_scipy_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.cli.extras.find_spec", lambda _name: None)
    result = run(readers_file(tmp_path), "--over", f"{OVER}=1..4", "--design", "sobol:4")
    assert result.exit_code == 2
    assert "scipy is missing, which the extra 'fit' has" in result.output


def test_help_imports_no_library_of_numbers():
    code = (
        "import sys; from sim.cli.main import cli\n"
        "try: cli(['sweep', '--help'], prog_name='iotwin')\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[-1] == "[]"
