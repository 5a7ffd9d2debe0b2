"""Running: results on standard output, files whole, the same seed the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from sim.machine import simulate
from sim.report.study_file import schema
from sim.results import RunResult
from sim.scenario import load
from tests.cli.small import small_file


def output(*arguments: str) -> str:
    """Return standard output of a command line that succeeds and complains of nothing."""
    result = CliRunner().invoke(cli, arguments, prog_name="iotwin", catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.fixture
def small(tmp_path: Path) -> str:
    return small_file(tmp_path)


def test_run_prints_its_heading_figures_and_notes(small: str) -> None:
    lines = output("run", small).splitlines()
    assert lines[0] == "small: A small storm"
    assert lines[1].startswith("seed 5, 1 replication, iotwin ")
    assert lines[2].startswith("$ iotwin")
    row = next(line for line in lines if line.startswith("messages_accepted"))
    assert row.split() == ["messages_accepted", "60", "messages"]
    assert any(line.startswith("cpu.*, disk.* (base, seed 5): mean of iostat's") for line in lines)


def test_json_on_standard_output_is_nothing_but_json(small: str) -> None:
    content = json.loads(output("run", small, "--json", "-", "--replications", "2", "--jobs", "1"))
    assert list(content) == [
        "scenario",
        "what_if",
        "seed",
        "replications",
        "version",
        "kind",
        "metrics",
        "digests",
    ]
    assert (content["seed"], content["replications"]) == (5, 2)
    figure = content["metrics"]["duration_s"]
    assert list(figure)[:4] == ["median", "lo", "hi", "unit"]
    assert (figure["n"], figure["mean_lo"], figure["median_lo"]) == (2, None, None)


def test_json_in_a_file_leaves_the_table_on_standard_output(small: str, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    assert "messages_accepted" in output("run", small, "--json", str(path))
    assert json.loads(path.read_text())["scenario"] == "small"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.json", "small.toml"]


def test_the_readings_can_be_kept(small: str, tmp_path: Path) -> None:
    path = tmp_path / "readings.json"
    output("run", small, "--save", str(path))
    result = RunResult.from_json(json.loads(path.read_text()))
    assert "diskstats" in result.samples[0].files
    assert result.first_ns("storm_begin") is not None


def test_a_seed_gives_the_same_bytes_here_and_in_worker_processes(small: str) -> None:
    arguments = ["run", small, "--json", "-", "--replications", "2", "--jobs"]
    assert output(*arguments, "1") == output(*arguments, "2")
    other = output("run", small, "--json", "-", "--replications", "2", "--jobs", "1", "--seed", "9")
    assert other != output(*arguments, "1")


def test_set_and_what_if_change_what_is_run(small: str) -> None:
    base = json.loads(output("run", small, "--json", "-"))
    slow = json.loads(output("run", small, "--what-if", "slow", "--json", "-"))
    fewer = json.loads(output("run", small, "--set", "process.blast.messages=20", "--json", "-"))
    assert slow["what_if"] == "slow"
    assert (
        slow["metrics"]["disk.sda.await_ms"]["median"]
        > 2 * base["metrics"]["disk.sda.await_ms"]["median"]
    )
    assert fewer["metrics"]["messages_accepted"]["median"] == 20


def test_a_run_that_is_too_short_says_so_on_top_and_as_a_note(small: str) -> None:
    text = output("run", small, "--set", "run.duration=5 s")
    assert text.count("unfinished: no storm_end until the run's end at 5.0 s") == 2
    whole = output("run", small)
    assert "unfinished" not in whole
    content = json.loads(output("run", small, "--set", "run.duration=5 s", "--json", "-"))
    assert content["unfinished"] == ["storm_end"]


def test_a_storm_of_nothing_has_no_means(small: str) -> None:
    text = output("run", small, "--set", "process.blast.messages=0")
    assert ": no means: no full report lies inside storm_begin at 3.0 s to storm_end" in text


def test_a_run_ends_with_its_duration_whatever_the_interval(small: str) -> None:
    sets = ["--set", "process.blast.messages=1000000", "--set", "run.duration=7500 ms"]
    text = output("exec", small, *sets, "--", "vmstat", "99999")
    assert len(text.splitlines()) == 3  # since boot, and no report that nobody waited for
    result = simulate(load(small, sets=sets[1::2]), 1)
    assert [sample.t_ns for sample in result.samples] == [n * 10**9 for n in range(8)]
    assert max(record.t_ns for record in result.records) <= 7_500_000_000


def test_a_moment_after_the_end_is_told(small: str) -> None:
    arguments = ["exec", small, "--at", "55 s", "--", "uptime"]
    result = CliRunner().invoke(cli, arguments, prog_name="iotwin")
    assert result.exit_code == 0
    assert result.stderr.startswith("iotwin: the run ended before --at: this is as of ")


def test_a_full_file_system_of_the_server_is_not_taken_for_one_of_the_host(small: str) -> None:
    sets = ["--set", "process.blast.message_size=64 MiB"]
    text = Path(small).read_text(encoding="utf-8").replace('"4 GiB"', '"96 MiB"')
    Path(small).write_text(text, encoding="utf-8")
    result = CliRunner().invoke(cli, ["run", small, *sets], prog_name="iotwin")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "iotwin: error: on the simulated server: No space left on device: inode "
    )
    assert " of the server's /, in task sendmail[" in result.stderr


def test_compare_sets_what_ifs_beside_the_base(small: str) -> None:
    text = output("compare", small, "slow", "--replications", "3", "--jobs", "1")
    assert "what-if slow: A slower disk" in text
    heading = next(line for line in text.splitlines() if line.startswith("figure"))
    assert heading.split()[:3] == ["figure", "unit", "base"]
    assert "change %" in heading


def test_compare_without_names_takes_all_what_ifs_and_their_change_as_json(small: str) -> None:
    content = json.loads(output("compare", small, "--replications", "2", "--json", "-"))
    assert [variant["what_if"] for variant in content["variants"]] == [None, "slow"]
    assert content["variants"][1]["change"]["disk.sda.await_ms"]["median"] > 0
    pytest.importorskip("jsonschema").validate(content, schema())
    assert content["kind"] == "compare"
    for point, variant in zip(content["points"], content["variants"], strict=True):
        assert point["what_if"] == variant["what_if"]
        mean = {name: one["mean"] for name, one in point["figures"].items()}
        assert mean == {name: one["mean"] for name, one in variant["metrics"].items()}


def test_a_plot_is_written(small: str, tmp_path: Path) -> None:
    path = tmp_path / "storm.png"
    result = CliRunner().invoke(cli, ["run", small, "--plot", str(path)], prog_name="iotwin")
    assert result.exit_code == 0
    assert result.stderr == f"plot written to {path}\n"
    assert path.read_bytes().startswith(b"\x89PNG")


def test_exec_shows_what_a_tool_on_that_server_shows(small: str) -> None:
    text = output("exec", small, "--", "iostat", "-t", "-c", "-m", "-x", "2", "3")
    assert text.startswith("Linux 2.6.16 (small)")
    assert text.count("avg-cpu:") == 3
    assert text.count("Device:") == 3


def test_exec_knows_today_s_tools_and_json(small: str) -> None:
    arguments = ["exec", small, "--tools", "sysstat-12", "--json", "-", "--", "iostat", "-x", "2"]
    content = json.loads(output(*arguments))
    assert content["command"] == ["iostat", "-x", "2"]
    assert "aqu-sz" in content["output"]


def test_uptime_is_typed_when_it_is_asked_to_be(small: str) -> None:
    early, late = (output("exec", small, "--at", at, "--", "uptime") for at in ("1 s", "10 s"))
    assert "load average: 0.00" in early
    assert early != late


def test_vmstat_prints_a_line_an_interval(small: str) -> None:
    assert len(output("exec", small, "--", "vmstat", "2", "4").splitlines()) == 6


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--replications", "2"],
        ["compare", "--replications", "1"],
        ["exec", "vmstat", "1"],
        ["params"],
    ],
)
def test_a_reader_that_goes_away_is_no_error_and_the_file_is_written(
    small: str, tmp_path: Path, arguments: list[str]
) -> None:
    name, *others = arguments
    path = tmp_path / "out.json"
    command = [sys.executable, "-m", "sim", name, small, "--json", str(path), *others]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, told = process.communicate()
    assert (process.returncode, told) == (0, b"")
    assert json.loads(path.read_text(encoding="utf-8"))["scenario"] == "small"


def test_ctrl_c_ends_the_workers_too_at_once_and_quietly(small: str) -> None:
    command = [sys.executable, "-m", "sim", "run", small, "--replications", "4", "--jobs", "2"]
    command += ["--set", "process.blast.messages=1000000", "--set", "run.duration=100 h"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Who starts the tests in the background has interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        _wait_for_grandchildren(process.pid)
        begin_s = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, told = process.communicate(timeout=600)
    assert (process.returncode, out) == (130, b"")
    assert told == b"iotwin: interrupted after 0 of 4 runs\n"
    assert time.monotonic() - begin_s < 60  # of a run that takes hours
    _wait_until(lambda: not _is_group(process.pid))


def _wait_for_grandchildren(pid: int) -> None:
    """Wait until the workers of a process, children of its fork server, are there."""
    _wait_until(lambda: any(_children(child) for child in _children(pid)))


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def _is_group(pid: int) -> bool:
    """Say whether a process group has anybody left."""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_order_of_hashes_changes_nothing(small: str, tmp_path: Path) -> None:
    kept = []
    for hash_seed in ("1", "2"):
        path = tmp_path / f"{hash_seed}.json"
        subprocess.run(
            [sys.executable, "-m", "sim", "run", small, "--save", str(path)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )
        kept.append(path.read_bytes())
    assert kept[0] == kept[1]


def test_runs_follow_until_the_mean_is_known_as_well_as_was_asked(small: str) -> None:
    well = ("--precision", "50%", "--of", "messages_accepted")
    told = output("run", small, *well)
    assert "base: the mean of messages_accepted is known to 50 % after 10 replications\n" in told
    never = ("--precision", "0.01%", "--of", "disk.sda.await_ms", "--replications-max", "4")
    content = json.loads(output("compare", small, *never, "--json", "-"))
    assert [one["stopped"] for one in content["points"]] == ["not reached"] * 2
    plain = json.loads(output("compare", small, "--replications", "4", "--json", "-"))
    assert content["variants"] == plain["variants"]


def test_what_is_known_well_enough_states_what_was_asked_for(small: str) -> None:
    well = ("--precision", "50%", "--of", "disk.sda.await_ms", "--json", "-")
    for point in json.loads(output("compare", small, *well))["points"]:
        found = point["figures"]["disk.sda.await_ms"]
        assert (point["runs"], point["stopped"]) == (10, "precise")
        assert found["mean_hi"] - found["mean"] == pytest.approx(found["mean"] / 2)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--precision", "5%"], "name it with --of"),
        (["--of", "messages_accepted"], "--of goes with --precision"),
        (["--precision", "5%", "--of", "messages_acepted"], "did you mean 'messages_accepted'"),
        (["--precision", "5%", "--of", "load1_peak", "--replications", "3"], "exclude"),
        (["--replications-max", "9"], "goes with --precision"),
    ],
)
@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_precision_that_is_none_is_refused(
    small: str, command: str, words: list[str], told: str
) -> None:
    result = CliRunner().invoke(cli, [command, small, *words], prog_name="iotwin")
    assert result.exit_code == 2
    assert told in result.stderr
