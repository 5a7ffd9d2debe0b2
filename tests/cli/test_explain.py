"""iotwin explain: tables that add up, JSON, a picture, a word about what is not there."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from tests.cli.small import small_file


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, ["explain", *arguments], prog_name="iotwin")
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


@pytest.fixture
def small(tmp_path: Path) -> str:
    return small_file(tmp_path)


def test_rows_and_columns_of_a_table_add_up(small: str) -> None:
    lines = run(small).splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("waits for"))
    total = next(line for line in lines[head:] if line.startswith("sum"))
    rows = lines[head + 1 : lines.index(total, head) - 1]
    spent = [float(re.split(r"  +", row)[1]) for row in rows]
    whole, *columns = [float(n) for n in re.findall(r"\d+\.\d+", total.replace("100.0 %", ""))]
    assert sum(spent) == pytest.approx(whole, rel=0.01)
    assert sum(columns) == pytest.approx(whole, rel=0.01)


def test_a_what_if_is_explained_by_its_name(small: str) -> None:
    slow = run(small, "slow")
    assert "what-if slow: A slower disk" in slow
    assert "behind a journal" in slow


def test_json_has_parts_that_sum_to_the_response_time(small: str) -> None:
    content = json.loads(run(small, "--json", "-"))
    assert content["scenario"] == "small" and content["what_if"] is None
    for kind in content["transactions"]:
        assert sum(part["mean_ms"] for part in kind["parts"]) == pytest.approx(
            kind["followed_mean_ms"]
        )
        assert all(part["path"] for part in kind["parts"])
    load = content["load"]
    assert load["mean"] == pytest.approx(
        load["on_cpu"] + load["run_queue"] + sum(load["blocked"].values())
    )


def test_a_system_call_can_be_asked_for_and_folded(small: str, tmp_path: Path) -> None:
    path = tmp_path / "why.txt"
    assert "fsync(): " in run(small, "--of", "fsync()", "--folded", str(path))
    lines = path.read_text().splitlines()
    assert lines and all(re.fullmatch(r"fsync\(\);.+ \d+", line) for line in lines)


def test_an_unknown_kind_is_refused_with_those_there_are(small: str) -> None:
    told = run(small, "--of", "fsink()", code=2)
    assert "'fsink()' was seen" in told and "fsync()" in told


def test_the_same_seed_gives_the_same_text(small: str) -> None:
    assert run(small) == run(small)
