"""`iotwin table`: its text, its JSON, layouts that cannot be."""

import json

import pytest
from click.testing import CliRunner

from sim.cli.main import cli


def run(*words):
    return CliRunner().invoke(cli, ["table", *words], prog_name="iotwin")


def test_without_a_name_the_tables_are_listed():
    assert run().output == (
        "table   what it shows\n"
        "raid    RAID 0, 1, 5 and 10 over 2 to 8 disks\n"
        "access  in order against at random, by kind of device\n"
        "NAME    of a scenario, by its name: the base and every what-if, a row each\n"
    )


def test_the_table_of_two_mirrored_disks():
    result = run("raid", "--level", "1", "--devices", "2", "--jobs", "1")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0].startswith("Arrays of ec2/m3.xlarge (kernel 3.13")
    assert lines[1].startswith("seed 1, iotwin ")
    assert lines[4:] == GOLDEN.splitlines()


GOLDEN = """\
level  disks  capacity GB  may lose  read MB/s  write MB/s  random reads/s  random writes/s
-          1        40.26         0      358.0       151.0           10001             6002
raid1      2        40.26         1      358.0       151.0           20002             6002
"""


def test_json_has_the_rows_of_the_text(tmp_path):
    path = tmp_path / "t.json"
    result = run("raid", "--level", "0", "--devices", "2", "--jobs", "1", "--json", str(path))
    found = json.loads(path.read_text())
    assert [row["disks"] for row in found["rows"]] == [1, 2]
    last = result.output.splitlines()[-1].split()
    assert float(last[4]) == pytest.approx(found["rows"][1]["read_mb_per_s"], abs=0.1)


def test_a_plot_is_drawn(tmp_path):
    path = tmp_path / "t.png"
    result = run("raid", "--level", "0", "--devices", "2", "--jobs", "1", "--plot", str(path))
    assert result.exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


SCENARIO = """\
title = "Commits"
[machine]
kernel = "6.1"
memory = "1 GiB"
[machine.disk.sda]
device = "ram"
latency = "{latency}"
capacity = "1 GiB"
[machine.mount."/"]
type = "ext4"
device = "sda"
[process.database]
program = "committer"
commits = 100
[run]
duration = "10 s"
until = "commits_done"
[measure]
begin = "commits_begin"
end = "commits_done"
families = ["commits", "load"]
[what_if.slow]
title = "A slower disk"
doc = "Half the rate?"
machine.disk.sda.latency = "10 ms"
[what_if.ten]
title = "Ten committers"
doc = "Ten times the rate?"
process.database.committers = 10
"""


def test_a_scenario_has_a_row_for_each_what_if_and_its_programs_figures(tmp_path):
    path, told = tmp_path / "c.toml", tmp_path / "c.json"
    path.write_text(SCENARIO.format(latency="5 ms"), encoding="utf-8")
    result = run(str(path), "--jobs", "1", "--json", str(told))
    assert result.exit_code == 0, result.output
    lines = [line.split("  ") for line in result.output.splitlines()]
    heading, *rows = [[cell.strip() for cell in line if cell.strip()] for line in lines[3:]]
    assert heading[:2] == ["what-if", "commits_per_s"] and heading[-1] == "title"
    assert [(row[0], row[-1]) for row in rows] == [
        ("base", "(as it is)"),
        ("slow", "A slower disk"),
        ("ten", "Ten committers"),
    ]
    base, slow, ten = (float(row[1]) for row in rows)
    assert base == pytest.approx(2 * slow, rel=0.01)
    assert ten > 4 * base
    found = json.loads(told.read_text())
    assert found["variants"][1]["metrics"]["commits_per_s"]["median"] == pytest.approx(slow, 0.01)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("raid", "--level", "5", "--devices", "2"), "too few devices, 2 (accepted: 3 or more)"),
        (("raid", "--level", "0", "--devices", "1"), "too few devices, 1 (accepted: 2 or more)"),
        (("raid", "--level", "6"), "'6' is not one of '0', '1', '5', '10'"),
        (("raid", "--profile", "sas-15"), "no profile 'sas-15' - did you mean 'sas-15k'?"),
        (("access", "--level", "5"), "--level is for table raid, not access"),
        (("raid", "--json", "/nowhere/t.json"), "no folder /nowhere"),
        (("rade",), "no table 'rade' - did you mean 'raid'? (known: raid, "),
        (("fsync-were",), "no table 'fsync-were' - did you mean 'fsync-where'?"),
        (("fsync-where", "--level", "5"), "--level is for table raid, not fsync-where"),
        (("fsync-where", "--plot", "t.png"), "--plot is for table raid and access"),
        (("sendmail.toml",), "sendmail.toml"),
        (("elevators",), "no program of 'elevators' has figures of its own"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(words, told):
    result = run(*words)
    assert result.exit_code == 2
    assert told in result.output
    assert "Traceback" not in result.output
