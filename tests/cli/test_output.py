"""Files appear whole or not at all."""

import json
from pathlib import Path

import pytest

from sim.cli.output import check_writable, write_file, write_json


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")
    write_json({"a": "µ"}, str(path))
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "µ"}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_text("old")

    def fail(place: Path) -> None:
        place.write_text("half")
        raise RuntimeError("out of paint")

    with pytest.raises(RuntimeError):
        write_file(path, fail)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.png"]


def test_a_place_that_cannot_be_written_is_found_early(tmp_path: Path) -> None:
    check_writable(None, "-", str(tmp_path / "x"))
    with pytest.raises(FileNotFoundError, match="no folder"):
        check_writable(str(tmp_path / "no" / "x"))
    with pytest.raises(IsADirectoryError):
        check_writable(str(tmp_path))
