"""Tiers: every file has one, and no failure of any tier is lost."""

import shutil
from pathlib import Path

import pytest

from tests import __main__ as runner
from tests.tiers import NAMED, TIERS, TOP, is_checkout, tier_of, why_not_installed

TESTS = TOP / "tests"


@pytest.mark.parametrize("pattern", [one for patterns in NAMED.values() for one in patterns])
def test_what_is_named_is_there(pattern: str) -> None:
    assert any(path.name.startswith("test_") for path in TESTS.glob(pattern))


def test_a_file_that_nothing_names_is_a_unit_test() -> None:
    found = {tier_of(TESTS / name) for name in ("net/test_link.py", "new/test_thing.py")}
    assert found == {"unit"}
    assert tier_of(TESTS / "cli" / "test_run.py") == "cases"
    assert set(NAMED) < set(TIERS)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0, 0, 0, 0], 0),
        ([1, 0, 0, 0], 1),
        ([0, 1, 0, 0], 1),
        ([0, 0, 0, 1], 1),
        ([5, 0, 5, 5], 0),  # tests that -k names are in one tier
        ([5, 5, 5, 5], 5),
        ([0, 2], 2),  # an interrupt ends it
        ([4], 4),
    ],
)
def test_a_failure_of_any_tier_is_one_of_all(
    codes: list[int], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(codes)
    monkeypatch.setattr(runner, "run_pytest", lambda _: left.pop(0))
    assert runner.run_tiers(["-q"]) == expected
    assert left == []


@pytest.mark.parametrize(
    ("word", "does"),
    [
        ("tests/house", True),
        ("tests/house/test_tiers.py::test_x", True),
        ("--tier=unit", True),
        ("--tier", True),
        ("-q", False),
        ("storm", False),  # of -k storm
    ],
)
def test_who_names_tests_gets_just_those(word: str, does: bool) -> None:
    assert runner.names_tests(word) == does


FOLDERS = ("sim", "calibration", "scenarios", "labs")


def test_a_twin_of_other_sources_is_not_taken_for_one_of_these(tmp_path: Path) -> None:
    places = [str(TOP), str(tmp_path)]
    assert is_checkout(str(TOP)) and not is_checkout(str(tmp_path))
    assert why_not_installed(places).startswith("no twin is installed")
    left_out = shutil.ignore_patterns("__pycache__", "*.so", "_compiled.txt")
    for folder in FOLDERS:
        shutil.copytree(TOP / folder, tmp_path / folder, ignore=left_out)
    assert why_not_installed(places).startswith("the installed twin is not compiled")
    (tmp_path / "sim" / "_compiled.txt").write_text("00000000 sim/units.py\n", encoding="utf-8")
    assert why_not_installed(places) == ""
    for changed in ("scenarios/sendmail/scenario.toml", "sim/param.py"):
        path = tmp_path / changed
        before = path.read_bytes()
        path.write_text("x = 1\n", encoding="utf-8")
        assert f"see {changed}" in why_not_installed(places)
        path.write_bytes(before)
