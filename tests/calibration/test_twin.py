"""A twin of a known server: the demands found are the true ones, and so is the what-if."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from calibration.dataset import open_source
from calibration.look import Look, look
from calibration.twin.columns import columns_of_run, figures_of
from calibration.twin.fitting import Twin, draw_draft, fit_draft
from calibration.twin.report import twin_text
from sim.cli.main import cli
from sim.scenario import load
from sim.scenario.fitted import read_fit
from sim.study.laboratory import Laboratory
from sim.study.trial import Trial
from tests.calibration.recorded_twin import record_run, run_truth

# parameter -> (the true value in its canonical unit, how far the twin may be off, relative): the
# two classes and the device, as a minute of two hundred requests a second shows them.
TRUTHS = {
    "process.sda-reads.rate": (120, 0.08),
    "process.sda-fsyncs.rate": (25, 0.2),
    "process.sda-fsyncs.write_size": (16384, 0.35),
    "machine.disk.sda.read": (1_500_000, 0.15),
    "machine.disk.sda.write": (800_000, 0.4),
    "process.sda-reads.user": (3_000_000, 0.1),
    "process.sda-reads.system": (500_000, 0.3),
}
# column -> how far the twin may be off at twice the load, relative
DOUBLED = {
    "sda r_per_s": 0.08,
    "sda w_per_s": 0.2,
    "sda r_await_ms": 0.25,
    "sda w_await_ms": 0.35,
    "sda util_pct": 0.2,
    "cpu user_pct": 0.1,
    "cpu system_pct": 0.15,
    "cpu iowait_pct": 0.35,
}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record the known server; return the folder."""
    return record_run(run_truth(), tmp_path_factory.mktemp("twin") / "known")


@pytest.fixture(scope="module")
def seen(known: Path) -> Look:
    """Look at that recording."""
    return look(open_source([str(known)]))


def make_twin(seen: Look, folder: Path) -> Twin:
    """Fit a twin with the fewest simulations that do."""
    return fit_draft(
        draw_draft(seen, 1),
        seen,
        folder / "twin.toml",
        comment="a test",
        seed=1,
        simulations=32,
        laboratory=Laboratory(measure=columns_of_run),
    )


@pytest.fixture(scope="module")
def twin(seen: Look, tmp_path_factory: pytest.TempPathFactory) -> Twin:
    """Fit the twin once for all tests."""
    return make_twin(seen, tmp_path_factory.mktemp("fit"))


@pytest.fixture(scope="module")
def scenario_file(twin: Twin, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write the twin to a file."""
    path = tmp_path_factory.mktemp("written") / "known.twin.toml"
    path.write_text(twin.text, encoding="utf-8")
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", TRUTHS)
def test_a_fitted_demand_is_the_true_one(scenario_file: str, path: str) -> None:
    true, tolerance = TRUTHS[path]
    values = {one.path: one.value for one in load(scenario_file).parameters}
    assert values[path] == pytest.approx(true, rel=tolerance)


@pytest.mark.slow
def test_the_intervals_hold_the_true_demands(twin: Twin) -> None:
    """Seven intervals of 90 %: all but one hold it, at least."""
    space = twin.fit.space
    low, high = space.values(np.quantile(twin.fit.posterior.points, (0.05, 0.95), axis=0))
    ends = dict(zip(space.names, zip(low, high, strict=True), strict=True))
    inside = [ends[path][0] <= TRUTHS[path][0] <= ends[path][1] for path in TRUTHS]
    assert inside.count(False) <= 1


@pytest.mark.slow
def test_what_the_recording_does_not_tell_is_said(twin: Twin) -> None:
    [servers] = [row for row in twin.rows if row.path == "machine.disk.sda.servers"]
    assert not servers.is_identified
    entry = twin.draft.sheet.sections["machine", "disk", "sda"]["servers"]
    assert entry.source.startswith("assumed: recording known does not tell")


@pytest.mark.slow
def test_the_twin_reproduces_the_recorded_columns(twin: Twin) -> None:
    for one in twin.columns:
        simulated = twin.simulated[one.metric]
        # A load average of a minute tells the tasks to a third: three standard errors.
        near = pytest.approx(one.value, rel=0.25, abs=3 * one.resolution)
        assert simulated == near, one.metric


@pytest.mark.slow
def test_twice_the_load_is_predicted_as_the_true_server_bears_it(scenario_file: str) -> None:
    trial = Trial(scenario_file, "double_load", (), 1)
    [predicted] = Laboratory(measure=columns_of_run).figures([trial])
    true = figures_of(run_truth("double_load"))
    for column, tolerance in DOUBLED.items():
        assert predicted[column] == pytest.approx(true[column], rel=tolerance), column


@pytest.mark.slow
def test_the_command_gives_the_same_twin_again_and_its_ensemble(
    twin: Twin, known: Path, tmp_path: Path
) -> None:
    """Here in other processes than the twin of the other tests: the same but for the heading."""
    place = tmp_path / "again.toml"
    arguments = (
        str(known),
        "-o",
        str(place),
        "--simulations",
        "32",
        "--jobs",
        "2",
        "--json",
        str(tmp_path / "again.json"),
    )
    result = invoke(*arguments)
    assert (result.exit_code, "twin written to" in result.stderr) == (0, True)
    text = place.read_text(encoding="utf-8")
    assert text.partition("\ntitle")[2] == twin.text.partition("\ntitle")[2]
    report = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    assert set(report["parameters"]) == {row.path for row in twin.rows}
    fit = read_fit(tmp_path / "again.fit.toml", "again")
    assert (len(fit.members), fit.kind) == (64, "prediction")
    assert set(fit.header["sha256"]) == {"host.txt", "proc.txt"}
    ssd = load(str(place), what_if="ssd", fit=fit.layer(fit.member(0)))
    assert ssd.server.all("disk")["sda"].profile == "ssd-sata"


@pytest.mark.slow
def test_the_report_has_every_column_every_note_and_every_parameter(twin: Twin, seen: Look) -> None:
    text = twin_text(twin, seen)
    for one in twin.columns:
        assert f"\n{one.name} " in text
    for row in twin.rows:
        assert f"\n{row.path} " in text
    assert "left out: aqu_sz" in text
    assert "modelled as parallel servers with fitted" in text


@pytest.mark.slow
def test_run_compare_and_params_take_the_twin(scenario_file: str) -> None:
    for arguments in (("run", scenario_file), ("params", scenario_file)):
        result = CliRunner().invoke(cli, arguments, prog_name="iotwin")
        assert (result.exit_code, "sda" in result.stdout) == (0, True)
    done = tomllib.loads(Path(scenario_file).read_text(encoding="utf-8"))
    assert {"ssd", "double_load", "no_fsync"} <= set(done["what_if"])


def invoke(*arguments: str) -> Result:
    """Run `iotwin twin`."""
    return CliRunner().invoke(cli, ["twin", *arguments], prog_name="iotwin")


def test_an_idle_host_has_no_twin_and_no_file_is_left(tmp_path: Path) -> None:
    folder = record_run(run_truth("idle"), tmp_path / "idle")
    result = invoke(str(folder), "-o", str(tmp_path / "twin.toml"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "idle: no busy device" in result.stderr
    assert not (tmp_path / "twin.toml").exists()


def test_a_folder_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    result = invoke(str(tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "neither a data set" in result.stderr + str(result.exception)


def test_too_few_simulations_are_refused() -> None:
    result = invoke("sendmail", "--simulations", "3")
    assert result.exit_code == 2
    assert "--simulations" in result.stderr
