"""`iotwin samples`: recordings as a table, as JSON, and what it says when it cannot."""

import bz2
import gzip
import json
import lzma

import pytest
from click.testing import CliRunner

from calibration.samples import COLUMNS
from sim.cli.main import cli
from tests.calibration.iostat_texts import CPU, TEXTS


def run(*arguments, stdin=None):
    return CliRunner().invoke(cli, ["samples", *map(str, arguments)], input=stdin)


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "iostat.txt"
    path.write_text(TEXTS["9"], encoding="utf-8")
    return path


SUMMARY = """\
{path}: iostat
  reports: 2, of them since boot: 1
  kernel: 2.6.32-131.el6.x86_64
  hostname: mx1
  date: 05/01/2017
  arch: x86_64
  cpus: 4
  start: 2017-04-30T23:59:58
  interval_s: 5
  tool: iostat

name     column             values     min  median     max
cpu all  user_pct                1    5.92    5.92    5.92
cpu all  system_pct              1    5.36    5.36    5.36
cpu all  iowait_pct              1   21.74   21.74   21.74
cpu all  idle_pct                1   66.98   66.98   66.98
sda      io_per_s                1    3.00    3.00    3.00
sda      write_bytes_per_s       1   57344   57344   57344
sda      write_bytes             1  286720  286720  286720
and 4 columns that were always 0

"""


def test_the_summary_tells_facts_and_columns(recorded):
    result = run(recorded)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == SUMMARY.format(path=recorded)


def test_json_is_the_list_of_rows(recorded, tmp_path):
    rows = json.loads(run(recorded, "--json", "-").stdout)
    assert len(rows) == 2 * (6 + 5)
    assert rows[0] == {
        "time_s": 0.0,
        "kind": "cpu",
        "name": "all",
        "column": "user_pct",
        "value": 5.92,
        "since_boot": True,
        "report": 0,
    }
    place = tmp_path / "rows.json"
    assert run(recorded, "--json", place).exit_code == 0
    assert json.loads(place.read_text()) == rows


def test_one_column_is_shown_alone(recorded):
    rows = json.loads(run(recorded, "--column", "idle_pct", "--json", "-").stdout)
    assert {row["column"] for row in rows} == {"idle_pct"}
    result = run(recorded, "--column", "idle_pc")
    assert result.exit_code == 2
    assert "the nearest is 'idle_pct'" in result.stderr


def test_standard_input_and_an_interval():
    result = run("-", "--interval", "5s", "--json", "-", stdin=CPU * 2)
    assert [row["time_s"] for row in json.loads(result.stdout)] == [0.0] * 6 + [5.0] * 6
    for bad in ("0s", "-1s", "5 apples", "x"):
        assert run("-", "--interval", bad, stdin=CPU).exit_code == 2


def test_a_directory_is_read_file_by_file(recorded, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.gz").write_bytes(gzip.compress(CPU.encode()))
    (tmp_path / "notes.txt").write_text("to do: nothing\n", encoding="utf-8")
    result = run(tmp_path, "--json", "-")
    assert result.exit_code == 0
    assert "notes.txt: nothing in it is understood" in result.stderr
    files = [row["file"] for row in json.loads(result.stdout)]
    assert sorted(set(files)) == [str(recorded), str(tmp_path / "more" / "a.gz")]


def test_lines_that_are_not_taken_are_told_with_their_number(recorded):
    recorded.write_text("nohup: ignoring input\n" * 30 + TEXTS["9"], encoding="utf-8")
    result = run(recorded)
    lines = result.stderr.splitlines()
    assert lines[0] == f"{recorded}: line 1: not of a known format: 'nohup: ignoring input'"
    assert lines[-1] == f"{recorded}: and 10 more lines that were not taken"
    assert len(lines) == 21
    assert "  lines not taken: 30\n" in result.stdout


@pytest.mark.parametrize("content", [b"", b"hello\n", bytes(range(256)), b"{", b"\x1f\x8b\x08"])
def test_a_file_that_is_not_understood_ends_with_2_and_writes_nothing(tmp_path, content):
    path, place = tmp_path / "a", tmp_path / "rows.json"
    path.write_bytes(content)
    result = run(path, "--json", place)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"iotwin: error: {path}: ")
    assert not place.exists()


def test_mistakes_of_the_command_line_end_with_2(tmp_path):
    assert run().exit_code == 2
    assert run(tmp_path / "none").exit_code == 2
    assert run(tmp_path).exit_code == 2  # an empty directory


def test_the_columns_are_listed_with_their_meanings():
    lines = run("--columns").stdout.splitlines()
    assert len(lines) == 1 + len(COLUMNS)
    rows = json.loads(run("--columns", "--json", "-").stdout)
    assert [row["column"] for row in rows] == list(COLUMNS)


@pytest.mark.parametrize(
    ("typed", "free_bytes", "boot"),
    [
        ("vmstat -w -S M 5", 16_627 * 2**20, True),
        ("vmstat -y -S m 5", 16_627 * 10**6, False),
        ("sudo vmstat -wS k 5", 16_627_000, True),
    ],
)
def test_the_command_that_is_told_gives_the_unit_and_whether_the_first_row_is_since_boot(
    tmp_path, typed, free_bytes, boot
):
    """Without it memory that is no whole number of pages is not taken."""
    path = tmp_path / "vmstat.txt"
    path.write_text(
        "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"
        " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
        " 1  0      0  16627    114   6164    0    0     5    11  110  205  3  1 95  1  0\n"
    )
    wanted = [str(path), "--column", "mem_free_bytes", "--json", "-"]
    assert json.loads(run(*wanted).stdout) == []
    [row] = json.loads(run(*wanted, "--command", typed).stdout)
    assert (row["value"], row["since_boot"]) == (free_bytes, boot)


def test_a_command_that_is_none_of_the_tools_is_refused_with_their_names(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x\n")
    done = run(str(path), "--command", "vnstat 5")
    assert done.exit_code == 2
    assert "'vnstat 5' is none of: cat, date, dd" in done.stderr


@pytest.mark.parametrize(
    ("typed", "unit"),
    [
        ("vmstat 5; free -m", 2**20),
        ("while sleep 5; do free -g; done", 2**30),
        ("/usr/bin/free --mega", 10**6),
        ("free -m --si", 10**6),
        ("free", 2**10),
    ],
)
def test_of_several_commands_each_tool_has_its_own(tmp_path, typed, unit):
    path = tmp_path / "free.txt"
    path.write_text("     total used free shared buffers cached\nMem:  5 2 3 0 1 1\n")
    [row] = json.loads(
        run(path, "--command", typed, "--column", "mem_total_bytes", "--json", "-").stdout
    )
    assert row["value"] == 5 * unit


def test_two_commands_of_a_tool_with_other_options_tell_nothing(tmp_path):
    path = tmp_path / "free.txt"
    path.write_text("     total used free shared buffers cached\nMem:  5 2 3 0 1 1\n")
    done = run(path, "--command", "free -m; free -g")
    assert done.exit_code == 2
    assert "unit not known" in done.stderr


PACK = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress}


@pytest.mark.parametrize("name", PACK)
def test_a_compressed_file_is_read_as_far_as_it_goes(tmp_path, name):
    text = TEXTS["9"]
    path = tmp_path / "iostat"
    path.write_bytes(PACK[name](text.encode()) + PACK[name](text.encode()))
    whole = json.loads(run(path, "--json", "-").stdout)
    assert len(whole) == 2 * 2 * (6 + 5)
    path.write_bytes(path.read_bytes()[:-9])
    cut = run(path, "--json", "-")
    assert f"the {name} data are cut" in cut.stderr
    rows = json.loads(cut.stdout)
    assert rows == whole[: len(rows)]


def test_what_cannot_be_expanded_is_named(tmp_path):
    path = tmp_path / "iostat.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(9))
    done = run(path)
    assert done.exit_code == 2
    assert "it is compressed; `zstd -d` makes text of it" in done.stderr


def test_counters_without_a_clock_are_not_shown_as_nothing(tmp_path):
    path = tmp_path / "diskstats"
    path.write_text("8 0 sda 100 10 2000 300 200 20 4000 600 0 700 900\n" * 2)
    assert "columns with values since boot alone (--json lists them)" in run(path).stdout


def test_titles_without_a_row_are_understood_and_have_no_figures(tmp_path):
    path = tmp_path / "swaps"
    path.write_text("Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
    done = run(path)
    assert done.exit_code == 2
    assert f"{path}: it is understood (swapon), and gives no figures" in done.stderr
