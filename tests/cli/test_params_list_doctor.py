"""What there is: scenarios, parameters with their origin, the installation."""

import json
from pathlib import Path

from click.testing import CliRunner

from sim.cli.main import cli
from tests.cli.small import small_file


def output(*arguments: str) -> str:
    """Return standard output of a command line that succeeds."""
    result = CliRunner().invoke(cli, arguments, prog_name="iotwin", catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_list_shows_scenarios_and_what_ifs() -> None:
    lines = output("list").splitlines()
    assert lines[0].split() == ["scenario", "what-if", "title"]
    assert any(line.startswith("sendmail ") for line in lines)
    assert any(line.split()[:1] == ["tmpfs"] for line in lines)
    found = json.loads(output("list", "--json", "-"))["scenarios"]
    assert "tmpfs" in next(one for one in found if one["scenario"] == "sendmail")["what_ifs"]


def test_params_show_value_unit_layer_and_source(tmp_path: Path) -> None:
    path = small_file(tmp_path)
    text = output("params", path, "--set", "machine.cpus=8")
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert rows["machine.cpus"][1:] == ["8", "set", "command", "line"]
    assert rows["machine.disk.sda.latency"][1:4] == ["2", "ms", "scenario"]
    assert rows["machine.disk.sda.queue.unplug_delay"][1:4] == ["3", "ms", "default"]
    assert "values are assumed (" in text.splitlines()[-1]


def test_params_of_a_what_if_name_its_layer(tmp_path: Path) -> None:
    text = output("params", small_file(tmp_path), "--what-if", "slow")
    row = next(line for line in text.splitlines() if line.startswith("machine.disk.sda.latency"))
    assert row.split()[1:4] == ["8", "ms", "what-if"]


def test_assumed_parameters_can_be_seen_alone_and_counted(tmp_path: Path) -> None:
    path = small_file(tmp_path)
    content = json.loads(output("params", path, "--json", "-"))
    assumed = [p for p in content["parameters"] if p["source"].startswith("assumed")]
    assert content["assumed_share"] == len(assumed) / len(content["parameters"])
    shown = output("params", path, "--assumed").splitlines()
    assert len(shown) == len(assumed) + 5


def test_every_parameter_has_source_doc_and_layer(tmp_path: Path) -> None:
    for parameter in json.loads(output("params", small_file(tmp_path), "--json", "-"))[
        "parameters"
    ]:
        assert parameter["source"] and parameter["doc"] and parameter["layer"], parameter


def test_doctor_tells_versions_and_what_is_compiled() -> None:
    rows = {row["part"]: row for row in json.loads(output("doctor", "--json", "-"))["parts"]}
    assert rows["kernel modules"]["found"] in ("compiled", "interpreted")
    assert "sendmail" in rows["programs"]["note"]
    assert "ext3" in rows["filesystems"]["note"]
    assert rows["simpy"]["found"] != "missing"
    assert "simpy" in output("doctor")
