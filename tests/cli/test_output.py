"""Files appear whole or not at all."""

import errno
import json
from pathlib import Path

import pytest

from sim.cli.diagnose import EXIT_FAILED, EXIT_USAGE, diagnose
from sim.cli.output import UnwritableError, check_writable, write_file, write_json


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
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnwritableError, match="no folder"):
        check_writable(str(tmp_path / "no" / "x"))
    with pytest.raises(UnwritableError, match="directory"):
        check_writable(str(tmp_path))


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc")
def test_a_folder_that_takes_no_files_is_found_early_even_by_root() -> None:
    with pytest.raises(UnwritableError, match=r"^cannot write /proc/x\.json: "):
        check_writable("/proc/x.json")


def test_a_wrong_place_is_the_users_mistake_a_full_disk_is_not() -> None:
    assert diagnose(UnwritableError("/proc/x.json", "no")) == EXIT_USAGE
    assert diagnose(OSError(errno.ENOSPC, "No space left on device")) == EXIT_FAILED
