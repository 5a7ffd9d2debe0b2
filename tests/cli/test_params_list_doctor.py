"""What there is: scenarios, parameters with their origin, the installation."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from tests.cli.small import small_file

TOP = Path(__file__).resolve().parents[2]
SHARES = r"\d+ values: " + ", ".join(
    rf"\d+ {origin} \(\d+ %\)" for origin in ("sourced", "chosen", "fitted", "assumed")
)


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
    assert re.fullmatch(SHARES, text.splitlines()[-1])


def test_params_of_a_what_if_name_its_layer(tmp_path: Path) -> None:
    text = output("params", small_file(tmp_path), "--what-if", "slow")
    row = next(line for line in text.splitlines() if line.startswith("machine.disk.sda.latency"))
    assert row.split()[1:4] == ["8", "ms", "what-if"]


def test_assumed_parameters_can_be_seen_alone_and_counted(tmp_path: Path) -> None:
    path = small_file(tmp_path)
    content = json.loads(output("params", path, "--json", "-"))
    assumed = [p for p in content["parameters"] if p["source"].startswith("assumed")]
    assert content["assumed_share"] == len(assumed) / len(content["parameters"])
    assert {p["origin"] for p in assumed} == {"assumed"}
    shown = output("params", path, "--assumed").splitlines()
    assert len(shown) == len(assumed) + 5


def test_a_bare_value_of_the_file_or_of_set_is_chosen_not_sourced() -> None:
    content = json.loads(output("params", "sendmail", "--set", "machine.cpus=2", "--json", "-"))
    origins = {row["path"]: row["origin"] for row in content["parameters"]}
    assert origins["machine.kernel"] == "chosen"
    assert origins["machine.cpus"] == "chosen"
    assert origins["process.sendmail.message_user"] == "sourced"
    assert origins["process.blast.concurrency"] == "fitted"


def test_fitted_values_are_neither_sourced_nor_assumed() -> None:
    content = json.loads(output("params", "sendmail", "--json", "-"))
    origins = Counter(p["origin"] for p in content["parameters"])
    fitted = {p["path"] for p in content["parameters"] if p["source"].startswith("fit")}
    assert {"process.blast.concurrency", "process.blast.think_time"} < fitted
    assert origins["fitted"] == len(fitted)
    shares = {name: content[f"{name}_share"] for name in ("sourced", "chosen", "fitted", "assumed")}
    total = len(content["parameters"])
    assert shares == {name: count / total for name, count in origins.items()}
    # README: 28 % of the values that were not fitted are assumed.
    assert origins["assumed"] / (total - origins["fitted"]) == pytest.approx(0.28, abs=0.02)


def test_no_source_says_where_files_lie_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small_file(tmp_path)
    monkeypatch.chdir(Path(__file__).parent)
    for name in (path, "sendmail"):
        content = json.loads(output("params", name, "--json", "-"))
        sources = [p["source"] for p in content["parameters"]]
        given = [source for source in sources if re.search(r"\.toml:\d+$", source)]
        assert given
        assert {source.count("/") for source in given} == {1}
        assert [source for source in sources if str(TOP) in source or str(tmp_path) in source] == []


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
