"""What there is: scenarios, parameters with their origin, the installation."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from sim.origin import Origin
from sim.scenario import load
from tests.cli.small import small_file

TOP = Path(__file__).resolve().parents[2]
SHARES = r"\d+ values: " + ", ".join(rf"\d+ {origin.value} \(\d+ %\)" for origin in Origin)


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
    assert rows["machine.cpus"][1:] == ["8", "set", "chosen", "command", "line"]
    assert rows["machine.disk.sda.latency"][1:4] == ["2", "ms", "scenario"]
    assert rows["machine.disk.sda.queue.max"][1:4] == ["512", "KiB", "default"]
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


def test_a_bare_value_of_the_file_or_of_set_is_chosen(tmp_path: Path) -> None:
    found = origins(small_file(tmp_path), "--set", "machine.cpus=8")
    assert found["machine.kernel"] == "chosen"
    assert found["machine.cpus"] == "chosen"


def test_a_choice_that_nobody_recorded_is_assumed() -> None:
    found = origins("sendmail")
    unrecorded = ("kernel", "disk.sdb.scheduler", 'mount."/var/spool".type', "memory")
    assert {found[f"machine.{name}"] for name in unrecorded} == {"assumed"}


def test_what_the_recording_s_results_decided_is_fitted_whatever_it_says() -> None:
    """The number of CPUs follows from the recorded iowait; the rest stands in [calibrate]."""
    found = origins("sendmail")
    calibrate = load("sendmail").calibrate
    assert calibrate is not None
    for path in ("machine.cpus", *(prior.path for prior in calibrate.priors)):
        assert found[path] == "fitted", path
    assert found["process.blast.messages"] == "recorded"


def test_what_a_what_if_puts_in_place_of_a_fitted_value_is_its_choice() -> None:
    found = origins("sendmail", "--what-if", "half_the_senders")
    assert found["process.blast.concurrency"] == "chosen"
    assert found["process.blast.think_time"] == "fitted"


def test_shares_of_origins_are_shares_of_all_parameters() -> None:
    content = json.loads(output("params", "sendmail", "--json", "-"))
    counted = Counter(p["origin"] for p in content["parameters"])
    total = len(content["parameters"])
    assert sum(counted.values()) == total
    for origin in Origin:
        assert content[f"{origin.key}_share"] == counted[origin.value] / total


def origins(*arguments: str) -> dict[str, str]:
    """Return the origin of each parameter by path."""
    content = json.loads(output("params", *arguments, "--json", "-"))
    return {row["path"]: row["origin"] for row in content["parameters"]}


def test_compressed_swap_lists_the_algorithm_and_what_it_does_to_a_page() -> None:
    text = output("params", "r3-swap", "--what-if", "zram")
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert rows["machine.zram.zram0.algorithm"][1:3] == ["lzo-rle", "kernel"]
    assert rows["machine.zram.zram0.ratio"][1:3] == ["2.74", "default"]
    assert rows["machine.zram.zram0.compress"][1:3] == ["4.6", "us"]
    assert rows["machine.zram.zram0.decompress"][1:3] == ["2.24", "us"]


def test_idle_states_are_listed_with_the_latency_that_takes_effect() -> None:
    content = json.loads(output("params", "web-governor", "--json", "-"))
    rows = {row["path"]: row for row in content["parameters"]}
    scale = rows["machine.cpuidle.exit_scale"]["value"]
    assert rows["machine.cpuidle.C6.exit_latency"]["value"] == int(133_000 * scale)
    assert rows["machine.cpuidle.C1.exit_latency"]["value"] == int(2_000 * scale)
    assert "machine.cpuidle.C6.exit_latency" not in origins("sendmail")


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
