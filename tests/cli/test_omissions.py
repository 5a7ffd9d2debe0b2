"""What a scenario leaves out is told on standard error, once; the host's costs are asked for."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from tests.cli.small import small_file

NEW = ("--set", "machine.kernel=4.18")
needs_linux = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="no /proc/stat")


def invoked(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, arguments, prog_name="iotwin", catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_costs_of_2005_under_a_new_kernel_are_told_beside_the_json(tmp_path: Path) -> None:
    result = invoked("params", small_file(tmp_path), *NEW, "--json", "-")
    assert json.loads(result.stdout)["parameters"]
    [line] = result.stderr.splitlines()
    assert line.startswith("iotwin: ") and "machine.cpu.generation" in line


def test_a_generation_or_accepting_it_says_nothing(tmp_path: Path) -> None:
    path = small_file(tmp_path)
    for given in ("machine.cpu.generation=zen4-2023", 'machine.accepts=["cpu-generation"]'):
        assert invoked("params", path, *NEW, "--set", given).stderr == ""


def test_variants_of_one_scenario_are_told_once(tmp_path: Path) -> None:
    names = ("machine.kernel=4.18", "run.duration=1 s", "measure.interval=1 s")
    sets = [word for name in names for word in ("--set", name)]
    told = invoked("compare", small_file(tmp_path), *sets).stderr.splitlines()
    assert len([line for line in told if "machine.cpu.generation" in line]) == 1


@needs_linux
@pytest.mark.parametrize(("option", "measured"), [((), True), (("--no-costs",), False)])
def test_record_measures_unless_it_is_told_not_to(
    tmp_path: Path, option: tuple[str, ...], measured: bool
) -> None:
    folder = tmp_path / "here"
    invoked("record", str(folder), "--duration", "0", *option)
    assert (folder / "costs.txt").exists() == measured
    assert (folder / "proc.txt").exists()
