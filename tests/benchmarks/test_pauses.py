"""What a read takes longer after a pause is measured beside one that follows at once."""

from itertools import cycle
from pathlib import Path

import pytest

from benchmarks import pauses


def test_what_a_read_takes_longer_is_told_beside_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pauses, "EACH_MS", 0.0)
    monkeypatch.setattr(pauses, "LEAST", 3)
    took = cycle([90.0, 50.0, 100.0, 40.0, 80.0, 60.0])
    again, more = pauses.more_us(lambda: next(took), 0.1)
    assert (again, more) == ([40.0, 50.0, 60.0], [20.0, 40.0, 60.0])


def test_a_line_is_printed_for_each_pause(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pauses, "EACH_MS", 0.0)
    monkeypatch.setattr(pauses, "LEAST", 1)
    monkeypatch.setattr(pauses, "reader_of", lambda path: lambda: 60.0)
    monkeypatch.setattr("sys.argv", ["pauses", "file"])
    pauses.main()
    _title, *rows = capsys.readouterr().out.splitlines()
    assert [float(row.split()[0]) for row in rows] == list(pauses.PAUSES_MS)
    assert {tuple(row.split()[1:3]) for row in rows} == {("60", "0")}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [([], "usage: python -m benchmarks.pauses FILE"), (["no such file"], "No such file")],
)
def test_without_a_file_it_says_what_it_wants(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.setattr("sys.argv", ["pauses", *arguments])
    with pytest.raises(SystemExit, match=told):
        pauses.main()


def test_a_file_that_is_too_small_is_refused(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"x" * 4096)
    with pytest.raises(OSError, match=r"fewer than 256 KiB|Invalid argument"):
        pauses.reader_of(str(small))
