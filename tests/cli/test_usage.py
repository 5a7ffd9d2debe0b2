"""Bad input: one clear message, exit code 2, nothing on standard output, no file half written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from sim.scenario import load
from tests.cli.small import SMALL, small_file


def invoke(*arguments: str) -> Result:
    """Run a command line."""
    return CliRunner().invoke(cli, arguments, prog_name="iotwin")


def refused(*arguments: str) -> str:
    """Return what a refused command line says."""
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize("command", ["run", "compare", "params"])
def test_an_unknown_scenario_names_the_nearest(command: str) -> None:
    message = "iotwin: error: no scenario 'sendmial' - did you mean 'sendmail'? (known: "
    assert refused(command, "sendmial").startswith(message)


def test_an_unknown_what_if_names_the_nearest(tmp_path: Path) -> None:
    text = refused("run", small_file(tmp_path), "--what-if", "slwo")
    assert "'small' has no what-if 'slwo' - did you mean 'slow'? (known: slow)" in text


def test_a_folder_is_no_scenario_and_its_files_are_offered(tmp_path: Path) -> None:
    small_file(tmp_path)
    text = refused("run", f"{tmp_path}/")
    assert text.startswith("iotwin: error: a folder, not a scenario file: ")
    assert "small.toml" in text


BAD = [
    ("cpus = 2", "cpus = 0", "7:8: error: machine.cpus: must be at least 1, got 0"),
    ('"1 GiB"', '"-1 GiB"', "8:10: error: machine.memory: must be at least 16 MiB, got"),
    ('"2 ms"', '"2 GiB"', "expected a time, but 'GiB' is a unit of a size"),
    ('device = "sda"', 'device = "sdb"', "unknown device 'sdb' - did you mean 'sda'?"),
    ('"1 GiB"', '"64 MiB"', "the kernel itself takes 96 MiB (machine.vm.kernel), got"),
    ('"0.5 s"', '"1e300 s"', "process.blast.think_time: expected a time of at most"),
    (
        'until = "storm_end"',
        'until = "storm_ende"',
        "no program here leaves it - did you mean 'storm_end'?",
    ),
    ('interval = "1 s"', 'begin = "storm_bgin"', "unknown mark 'storm_bgin' in [measure] begin"),
    ("marks_storm = true", "", "unknown mark 'storm_end' in [run] until"),
    ('interval = "1 s"', 'interval = "2 min"', "measure.interval: must be at most run.duration"),
    ("cpus = 2", "cpuss = 2", "unknown key 'cpuss' in [machine] - did you mean 'cpus'?"),
    ("[machine]", "[machine", "error: not valid TOML"),
    ('"4 GiB"', '"1 MiB"', '11:7: error: machine.mount."/": 1048576 bytes are too few'),
    ('type = "ext3"', 'type = "ext3", journal = "3 GiB"', "a journal of 3221225472 bytes (acc"),
    ('"closed"', '"open"', "process.blast: arrivals = \"open\" needs a 'rate'"),
]
# The key that says what a table describes, misspelt -> what the table lacks.
LACKING = {
    'device = "ram"': "disk 'sda' needs a profile or a device",
    'device = "sda"': "lacks 'device' (what ext3 lies on)",
    'type = "ext3"': "lacks 'type' (file system)",
    'program = "smtp_sender"': "lacks 'program' (the program)",
}
MISSPELT = {"device": "devise", "type": "typ", "program": "programm"}


def test_a_what_if_is_named_once_and_all_that_are_not_there_are_told(tmp_path: Path) -> None:
    path = small_file(tmp_path)
    assert "Error: named twice: slow\n" in refused("compare", path, "slow", "slow")
    text = refused("compare", path, "slwo", "nope")
    assert "no what-if 'slwo' (did you mean 'slow'?) and no 'nope' (known: slow)" in text


@pytest.mark.parametrize("at", ["-5 s", "2 min"])
def test_a_moment_that_no_run_has_is_refused(tmp_path: Path, at: str) -> None:
    text = refused("exec", small_file(tmp_path), "--at", at, "--", "uptime")
    assert "is not within the run: 0 to 60 s" in text


def test_a_file_that_is_not_there_may_be_a_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "iotwin: error: no scenario file 'sendmail.toml' - did you mean 'sendmail'?"
    assert refused("run", "sendmail.toml").startswith(text)


def test_what_is_no_file_is_neither_read_nor_offered(tmp_path: Path) -> None:
    (tmp_path / "d.toml").mkdir()
    assert refused("run", str(tmp_path / "d.toml")).endswith("(known: none)\n")
    os.mkfifo(tmp_path / "f.toml")
    text = refused("run", str(tmp_path / "f.toml"))
    assert text.startswith("iotwin: error: neither a file nor a scenario: ")
    assert text.endswith("(known: none)\n")


def test_a_byte_order_mark_is_no_part_of_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8-sig")
    assert invoke("params", str(path)).exit_code == 0


@pytest.mark.parametrize(("good", "bad", "message"), BAD)
def test_a_wrong_scenario_is_shown_with_its_line(
    tmp_path: Path, good: str, bad: str, message: str
) -> None:
    path = small_file(tmp_path, SMALL.replace(good, bad, 1))
    text = refused("run", path, "--json", str(tmp_path / "out.json"))
    assert message in text
    assert "^" in text
    assert text.endswith("1 error\n")
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("good", LACKING)
def test_a_key_that_says_what_a_table_describes_may_be_misspelt(tmp_path: Path, good: str) -> None:
    key = good.split()[0]
    bad = good.replace(key, MISSPELT[key])
    text = refused("run", small_file(tmp_path, SMALL.replace(good, bad, 1)))
    assert LACKING[good] in text
    assert f"error: unknown key '{MISSPELT[key]}' in [" in text
    assert f"] - did you mean '{key}'? (accepted: " in text
    assert text.endswith("2 errors\n")


def test_a_key_that_one_of_the_kind_has_is_not_misspelt(tmp_path: Path) -> None:
    text = SMALL.replace('device = "ram", capacity', "rpm = 7200, capacity")
    told = refused("run", small_file(tmp_path, text))
    assert "disk 'sda' needs a profile or a device" in told
    assert told.endswith("1 error\n")


# [process.server] of `generic` has arrivals = "open" and a rate.
IDLE_RATE = (
    'process.server.rate: has no effect beside arrivals = "closed", got "50 /s" (accepted: no rate,'
    ' or arrivals = "open")'
)


@pytest.mark.parametrize("options", [(), ("--what-if", "closed")])
def test_a_rate_beside_customers_who_wait_is_refused(options: tuple[str, ...]) -> None:
    sets = () if options else ("--set", "process.server.arrivals=closed")
    text = refused("run", "generic", *options, *sets, "--set", "process.server.rate=50 /s")
    assert text.startswith(f"--set process.server.rate=50 /s: error: {IDLE_RATE}\n")
    assert text.endswith("1 error\n")


def test_a_rate_in_a_file_is_refused_with_its_line(tmp_path: Path) -> None:
    generic = Path(load("generic").path).read_text(encoding="utf-8")
    text = generic.replace(
        'arrivals = "open"\nrate = "45 /s"', 'arrivals = "closed"\nrate = "50 /s"'
    )
    line = text.splitlines().index('rate = "50 /s"') + 1
    path = small_file(tmp_path, text)
    assert refused("run", path).startswith(f"{path}:{line}:8: error: {IDLE_RATE}\n")


@pytest.mark.parametrize(
    "options",
    [
        ("--what-if", "closed"),
        ("--set", "process.server.arrivals=closed"),
        ("--set", "process.server.arrivals=closed", "--set", "process.server.rate=0 /s"),
    ],
)
def test_a_rate_that_a_higher_layer_makes_idle_is_none_of_its_authors(
    options: tuple[str, ...],
) -> None:
    assert invoke("params", "generic", *options).exit_code == 0


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = SMALL.replace("cpus = 2", "cpus = 0").replace("messages = 60", "messages = -1")
    assert refused("run", small_file(tmp_path, text)).endswith("2 errors\n")


def test_a_wrong_set_names_the_option(tmp_path: Path) -> None:
    text = refused("run", small_file(tmp_path), "--set", "machine.cpus=none")
    assert text.startswith("--set machine.cpus=none: error: machine.cpus: expected a whole number")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["iostta", "5"],
            "no such tool on this server; allowed: cat, cpupower, free, iostat, mpstat",
        ),
        (["iostat", "--frobnicate"], "unknown option"),
        (["iostat", "5", "3", "--foo"], "iostat: unknown option '--foo'; allowed: -c"),
        (["vmstat", "5", "3", "7"], "vmstat: unknown argument '7';"),
    ],
)
def test_a_tool_that_is_not_there_is_refused(tmp_path: Path, argv: list[str], message: str) -> None:
    assert message in refused("exec", small_file(tmp_path), "--", *argv)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["sar", "-P", "ALL"], "COUNT; the real sar of this computer: {shell} -- sar -P ALL\n"),
        (["iostat", "-h"], "COUNT; the real iostat of this computer: {shell} -- iostat -h\n"),
        (["ps", "aux"], "vmstat; other programs of this computer: {shell} -- COMMAND\n"),
        (["sar", "-n", "DEV"], "COUNT; no sar would find counters of network interfaces in"),
        (["cat", "-n", "/proc/stat"], "cat: no such file: '-n'; allowed: FILE... below /proc/, "),
    ],
)
def test_a_refused_tool_leads_to_the_real_one(tmp_path: Path, argv: list[str], told: str) -> None:
    path = small_file(tmp_path)
    text = refused("exec", path, "--what-if", "slow", "--at", "20 s", "--", *argv)
    assert told.format(shell=f"iotwin shell {path} --what-if slow --at '20 s'") in text


@pytest.mark.parametrize("kernel", ["2.6.16", "4.20"])
def test_cat_prints_what_the_servers_proc_has(tmp_path: Path, kernel: str) -> None:
    path = small_file(tmp_path, SMALL.replace("2.6.16", kernel))
    result = invoke(
        "exec", path, "--", "cat", "/proc/sys/vm/swappiness", "/proc/sys/vm/page-cluster"
    )
    assert (result.exit_code, result.stdout) == (0, "60\n3\n")
    pressure = invoke("exec", path, "--", "cat", "/proc/pressure/io")
    if kernel == "4.20":
        assert [line.split()[0] for line in pressure.stdout.splitlines()] == ["some", "full"]
    else:
        assert (pressure.exit_code, pressure.stdout) == (2, "")
        assert "cat: no such file: 'pressure/io'" in pressure.stderr


@pytest.mark.parametrize(
    "option",
    [["--seed", "-1"], ["--seed", "x"], ["--replications", "0"], ["--jobs", "0"], ["--nonsense"]],
)
def test_a_wrong_option_is_refused(tmp_path: Path, option: list[str]) -> None:
    assert "Error" in refused("run", small_file(tmp_path), *option)


@pytest.mark.parametrize("option", ["--json", "--plot", "--save"])
def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, option: str
) -> None:
    path = tmp_path / "no" / "x.json"
    message = refused("run", small_file(tmp_path), option, str(path))
    assert message == f"iotwin: error: cannot write {path}: no folder {path.parent}\n"


@pytest.mark.parametrize("name", ["-", "x", "x.txt"])
def test_a_plot_that_cannot_be_drawn_is_refused_before_the_run(tmp_path: Path, name: str) -> None:
    message = refused("run", small_file(tmp_path), "--plot", name)
    assert message.startswith(f"iotwin: error: cannot write {name}: ")


def test_a_closed_standard_output_is_no_mistake_of_the_twin(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    command = f"{sys.executable} -m sim list --json {path} >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "scenarios" in json.loads(path.read_text(encoding="utf-8"))


def test_a_scenario_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_bytes("kernel = '2'\0".encode("utf-16"))
    text = refused("run", str(tmp_path / "small.toml"))
    assert text.endswith(
        ":1:1: error: not in UTF-8: byte 0xff (accepted: text in UTF-8)\n1 error\n"
    )


def test_a_letter_of_another_encoding_is_shown_with_its_line(tmp_path: Path) -> None:
    text = SMALL.replace("A small storm", "Ein gr\xf6\xdferer Sturm")
    (tmp_path / "small.toml").write_bytes(text.encode("latin-1"))
    said = refused("run", str(tmp_path / "small.toml"))
    assert ":2:16: error: not in UTF-8: byte 0xf6 (accepted: text in UTF-8)" in said
    assert '    2 | title = "Ein gr\ufffd' in said


def test_a_second_storm_is_refused(tmp_path: Path) -> None:
    second = SMALL.partition("[process.blast]")[2].partition("[run]")[0]
    text = SMALL.replace("[run]", f"[process.again]{second}[run]")
    said = refused("run", small_file(tmp_path, text))
    assert "process.again: the storm is that of process.blast already" in said


@pytest.mark.parametrize("option", ["--json", "--save"])
def test_no_result_replaces_the_scenario(tmp_path: Path, option: str) -> None:
    path = small_file(tmp_path)
    message = refused("run", path, option, path)
    assert message == f"iotwin: error: cannot write {path}: it is read\n"
    assert Path(path).read_text(encoding="utf-8") == SMALL


def test_two_results_do_not_go_to_one_file(tmp_path: Path) -> None:
    out = str(tmp_path / "x")
    message = refused("run", small_file(tmp_path), "--json", out, "--save", out)
    assert message == f"iotwin: error: cannot write {out}: another result goes there\n"


def test_a_file_without_a_name_is_refused(tmp_path: Path) -> None:
    message = refused("run", small_file(tmp_path), "--json", "")
    assert message == "iotwin: error: cannot write '': a file has a name\n"


def test_a_name_whose_file_lies_here_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small_file(tmp_path)
    assert "no scenario (a file is here: ./small.toml) 'small'" in refused("run", "small")


def test_a_job_file_that_is_not_there_is_told_without_the_number_of_an_error(
    tmp_path: Path,
) -> None:
    job = str(tmp_path / "none.fio")
    text = refused("fio", job, "--machine", small_file(tmp_path))
    assert text == f"{job}:1:1: error: cannot be read: No such file or directory\n1 error\n"
    fit = tmp_path / "latin.toml"
    fit.write_bytes("# Gr\xf6\xdfe\n".encode("latin-1"))
    said = refused("run", small_file(tmp_path), "--fit", str(fit))
    assert f"{fit}:1:5: error: not in UTF-8: byte 0xf6 (accepted: text in UTF-8)" in said
