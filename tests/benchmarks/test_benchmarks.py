"""The benchmarks do the work that they count, and print it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import engine
from benchmarks.measure import measure

REPOSITORY = Path(__file__).resolve().parents[2]


def test_cases_take_turns_and_ratios_are_to_the_first() -> None:
    order: list[str] = []

    def case(name: str, units: float) -> float:
        order.append(name)
        return units

    cases = {"base": lambda: case("base", 1.0), "other": lambda: case("other", 1.0)}
    rows = measure("group", "units/s", cases, rounds=3)
    assert order == ["base", "other"] * 3
    assert [(row.case, row.unit) for row in rows] == [("base", "units/s"), ("other", "units/s")]
    assert rows[0].ratio == 1.0


@pytest.mark.parametrize("case", [engine.bare_timers, engine.timers, engine.calendar_processes])
def test_an_engine_case_runs_as_many_events_as_it_says(case: object) -> None:
    assert callable(case)
    assert case() == pytest.approx(engine.EVENTS, rel=0.01)


def test_the_command_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "engine", "--json", str(report)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    rows = json.loads(report.read_text())["rows"]
    assert rows[0]["case"] in done.stdout
    assert {row["group"] for row in rows} == {"engine"}
    assert all(row["value"] > 0 for row in rows)


def test_an_unknown_group_is_a_usage_error() -> None:
    command = [sys.executable, "-m", "benchmarks", "engines"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no group engines; known: command, engine, io_uring, kernel_path, storm" in done.stderr
