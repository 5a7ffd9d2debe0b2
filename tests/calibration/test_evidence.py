"""`python -m calibration page`: figures are kept, replaced by area, and bad input is told."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from calibration.__main__ import main
from calibration.evidence import command, page_cache
from calibration.evidence.page_cache import errors_of_concurrent
from calibration.evidence.stored import Compared, put, read
from calibration.stored_rows import BadData


def figure(area: str, name: str, error: float) -> Compared:
    return Compared(area=area, name=name, error=error, date="today", sources="abc", command="x")


def test_figures_of_an_area_are_replaced_together_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "compared.json"
    put(path, [figure("a", "one", 1.0), figure("a", "two", 2.0), figure("b", "one", 3.0)])
    put(path, [figure("a", "three", 4.0), figure("c", "one", 5.0)])
    assert [(one.area, one.name) for one in read(path)] == [
        ("a", "three"),
        ("b", "one"),
        ("c", "one"),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "expected a list of figures, got dict"),
        ("[1]", "figure 1: lacks 'area'"),
        ('[{"area": "a"}]', "figure 1: lacks 'name'"),
        ("[", "not JSON"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "compared.json"
    path.write_text(text)
    with pytest.raises(BadData, match=complaint):
        read(path)
    done = CliRunner().invoke(main, ["page", "--shared", str(tmp_path), "--store", str(path)])
    assert done.exit_code == 2
    assert complaint in done.output
    assert path.read_text() == text


@pytest.mark.parametrize("part", list(command.PARTS))
def test_a_folder_without_recordings_is_one_message(tmp_path: Path, part: str) -> None:
    path = tmp_path / "compared.json"
    done = CliRunner().invoke(main, ["page", part, "--shared", str(tmp_path), "--store", str(path)])
    assert done.exit_code == 2
    assert "cannot be read" in done.output and str(tmp_path) in done.output
    assert not path.exists()


def test_what_is_compared_is_kept_with_date_sources_and_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        command.PARTS,
        "drives",
        lambda _shared, _tell: iter([("drives", "one", -0.5, "replay one")]),
    )
    path = tmp_path / "compared.json"
    words = ["page", "drives", "--shared", str(tmp_path), "--store", str(path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    [row] = json.loads(path.read_text())
    assert (row["area"], row["name"], row["error"]) == ("drives", "one", -0.5)
    assert row["date"].startswith("20") and len(row["sources"]) == 12


def test_an_error_is_of_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"read_s_sum": 11.0, "write_s_sum": 9.0, "makespan_s_sum": 10.0}
    monkeypatch.setattr(page_cache, "figures", lambda _name, *_sets: found)
    means = {name: {"mean": 10.0} for name in ("readtime", "writetime", "makespan")}
    errors = errors_of_concurrent({"concurrent": {"8": means}}, "8")
    assert errors == {
        "8 programs, readtime": pytest.approx(0.1),
        "8 programs, writetime": pytest.approx(-0.1),
        "8 programs, makespan": 0.0,
    }
