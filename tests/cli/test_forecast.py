"""`iotwin forecast`: months that are known by hand, its JSON, its plot, its refusals.

A disk that needs 5 ms for each read is busy for half of the time with 100 a second. From 50 a
second that is twice the load: after ln 2 / ln 1.05 = 14.2 months with 5 % a month, 23.4 with 3 %.
"""

import json

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from sim.report.study_file import schema
from tests.study.readers import readers_file

LOAD = ("--load", "process.readers.rate")
GROWTH = ("--growth", "3..5 %/month")
HALF = ("--slo", "disk.sda.util_pct < 50 %")


def run(folder, *words, what_if="open"):
    command = ["forecast", readers_file(folder), what_if, *words, "--executor", "here"]
    return CliRunner().invoke(cli, [*command, "--store", "none"], prog_name="iotwin")


def test_the_month_is_that_of_the_utilisation_law(tmp_path):
    out, plot = tmp_path / "f.json", tmp_path / "f.png"
    result = run(
        tmp_path,
        *LOAD,
        *GROWTH,
        *HALF,
        "--slo",
        "transaction_ms < 1 ms",
        "--slo",
        "transaction_ms < 9 s",
        "--months",
        "24",
        "--json",
        str(out),
        "--plot",
        str(plot),
    )
    assert result.exit_code == 0, result.output
    content = json.loads(out.read_text())
    pytest.importorskip("jsonschema").validate(content, schema())
    found = content["result"]
    assert (found["today"], found["horizon"]) == (50, 24)
    half, missed, holds = found["months"]
    assert half["state"] == "breaks"
    assert half["load_lo"] < 100 * 1.05
    assert half["load_hi"] > 100 * 0.95
    assert 12 <= half["lo"] <= 15
    assert half["lo"] <= half["month"] <= (half["hi"] or 25)
    assert half["hi"] is None or half["hi"] >= 23
    assert (missed["state"], missed["month"]) == ("missed today", 0)
    assert holds["state"] == "holds"
    assert "transaction_ms < 1 ms: missed today, at 50 /s" in result.stdout
    assert "transaction_ms < 9 s: holds to month 24 at least" in result.stdout
    assert found["runs"] == sum(one["runs"] for one in content["points"])
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*LOAD, *GROWTH), "no service level to hold"),
        ((*LOAD, "--growth", "fast", *HALF), "'3..5 %/month'"),
        (("--load", "process.readers.rote", *GROWTH, *HALF), "process.readers.rate"),
        (("--load", "process.readers.rate=1..9", *GROWTH, *HALF), "not PATH alone"),
        (("--load", "machine.cpus", *GROWTH, *HALF), "not a load"),
        ((*LOAD, "--growth", "900 %/month", *HALF), "times today's load"),
        ((*LOAD, *GROWTH, *HALF, "--months", "0"), "--months"),
        ((*LOAD, *GROWTH, *HALF, "--budget", "200000"), "--yes"),
        (("--load", "process.readers.concurrency", "--growth", "40 %/month", *HALF), "100000"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path, words, told):
    result = run(tmp_path, *words)
    assert result.exit_code == 2, result.output
    assert told in result.stderr


def test_a_load_of_nothing_does_not_grow(tmp_path):
    zero = ("--set", "process.readers.count=0")
    result = run(tmp_path, "--load", "process.readers.count", *GROWTH, *HALF, *zero)
    assert result.exit_code == 2
    assert "today's load must be above 0" in result.stderr
