"""What came beside what was answered: which columns count, who is inside, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from calibration.__main__ import main
from calibration.twin.afterwards import outcomes
from tests.calibration.test_twin_draft import old_row, text

CAME = {
    "disk.sda.r_per_s": 190.0,
    "disk.sda.r_await_ms": 5.0,
    "disk.sda.w_per_s": 0.2,
    "disk.sda.w_await_ms": 9.0,
    "disk.sda.rareq_bytes": 8192.0,
    "load_mean": 3.0,
    "cpu.user_pct": 20.0,
}


def figure(median: float, lo: float, hi: float) -> dict[str, Any]:
    """Return a figure as `iotwin mine --json` has it."""
    return {"median": median, "lo": lo, "hi": hi, "unit": "/s"}


def answer() -> dict[str, Any]:
    """Return what `iotwin mine --json` writes, of it what is read."""
    today = {
        name: figure(value / 2, value / 2, value / 2)
        for name, value in CAME.items()
        if name != "disk.sda.w_await_ms"
    }
    asked = {
        "disk.sda.r_per_s": figure(200, 180, 220),
        "disk.sda.r_await_ms": figure(3, 2, 4),
        "disk.sda.w_per_s": figure(0.2, 0, 0.3),
        "disk.sda.w_await_ms": figure(9, 8, 10),
        "disk.sda.rareq_bytes": figure(1, 1, 1),
        "load_mean": figure(2, 1, 4),
        "cpu.user_pct": figure(1, 1, 1),
    }
    return {
        "recording": "today",
        "verdict": "a fair twin",
        "today": {"metrics": today},
        "what_ifs": {"load=2": {"sentence": "", "metrics": asked}},
    }


def test_a_column_is_inside_its_interval_or_not() -> None:
    found = {one.name: one for one in outcomes(answer(), "load=2", CAME)}
    assert found["disk.sda.r_per_s"].is_inside
    assert found["load_mean"].is_inside
    assert not found["disk.sda.r_await_ms"].is_inside
    assert found["load_mean"].width == 4


def test_columns_that_nobody_asked_for_and_awaits_of_hardly_anything_do_not_count() -> None:
    """0.2 writes/s beside 190 reads/s are a journal's."""
    names = [one.name for one in outcomes(answer(), "load=2", CAME)]
    assert names == ["disk.sda.r_per_s", "disk.sda.r_await_ms", "load_mean"]


def told(folder: Path, *arguments: str) -> Result:
    """Run the command on the answer and a recording of 190 reads/s."""
    place = folder / "answer.json"
    place.write_text(json.dumps(answer()), encoding="utf-8")
    later = folder / "iostat.txt"
    later.write_text(text(old_row("sda", r=190, w=0, size_kib=8, await_ms=3, util=50)))
    chosen = [one.format(later=later) for one in arguments or ("{later}",)]
    return CliRunner().invoke(main, ["afterwards", str(place), *chosen], prog_name="calibration")


def test_the_command_says_how_many_columns_are_inside(tmp_path: Path) -> None:
    result = told(tmp_path, "{later}")
    assert result.exit_code == 0, result.output
    assert "inside: 2 of 2 columns" in result.stdout
    assert "the twin was a fair twin" in result.stdout


def test_what_vmstat_has_of_a_load_average_is_not_compared_with_one(tmp_path: Path) -> None:
    """Who waits for a commit is not in it: b and r are the fewest that there can be."""
    vmstat = tmp_path / "vmstat.txt"
    vmstat.write_text(
        "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"
        " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
        + " 0  3      0 100000  10000  90000    0    0     8     8  100  100  2  1 95  2  0\n"
        * 5
    )
    content = json.loads(told(tmp_path, "{later}", str(vmstat), "--json", "-").stdout)
    assert set(content["outcomes"]) == {"disk.sda.r_per_s", "disk.sda.r_await_ms"}


def test_the_same_is_told_to_a_program(tmp_path: Path) -> None:
    content = json.loads(told(tmp_path, "{later}", "--json", "-").stdout)
    assert (content["inside"], content["columns"]) == (2, 2)
    assert content["outcomes"]["disk.sda.r_per_s"]["came"] == pytest.approx(190)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{later}", "--what-if", "laod=2"), "did you mean 'load=2'?"),
        (("nowhere",), "no file, folder or data set 'nowhere'"),
        (("{later}", "--device", "sdz"), "no column of sdz in "),
    ],
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    result = told(tmp_path, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr + str(result.exception)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"what_ifs": {}}', "[" * 100_000])
def test_what_is_no_answer_is_refused(tmp_path: Path, content: str) -> None:
    place = tmp_path / "other.json"
    place.write_text(content, encoding="utf-8")
    result = CliRunner().invoke(main, ["afterwards", str(place), str(place)])
    assert result.exit_code == 2
    assert "other.json: no" in result.stderr
