"""What python -m benchmarks.coverage keeps of an interrupted run."""

from pathlib import Path

import pytest

from benchmarks.coverage import Kept
from calibration.fit.sbc import Outcome

RUN = (7, 40, 200, 48, False, "0.1")
ONE = Outcome(ranks=(0.25, 0.5), second={"load1_peak": 0.75}, narrowed=(0.5, 0.0))
TWO = Outcome(ranks=(0.0, 1.0), second={}, narrowed=(0.25, 0.125))


def test_what_is_kept_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    kept = Kept(path, RUN)
    kept.add(3, ONE)
    kept.add(0, TWO)
    assert Kept(path, RUN).outcomes == kept.outcomes == {3: ONE, 0: TWO}


def test_every_cut_of_the_file_keeps_the_whole_lines_and_can_be_gone_on_with(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kept"
    Kept(path, RUN).add(3, ONE)
    whole = path.read_text()
    for size in range(len(whole)):
        path.write_text(whole[:size])
        assert Kept(path, RUN).outcomes == {}
        Kept(path, RUN).add(0, TWO)
        assert Kept(path, RUN).outcomes == {0: TWO}


def test_a_file_of_another_run_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    Kept(path, RUN).add(3, ONE)
    before = path.read_bytes()
    with pytest.raises(SystemExit, match="kept by another run"):
        Kept(path, (8, *RUN[1:]))
    assert path.read_bytes() == before


def test_without_a_file_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Kept(None, RUN).add(0, ONE)
    assert list(tmp_path.iterdir()) == []
