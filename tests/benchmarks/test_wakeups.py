"""How late sleeps end: a line for each length, and no sleep ends early."""

import pytest

from benchmarks import wakeups


def test_no_sleep_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups, "EACH_S", 0.01)
    late = wakeups.late_us(0.2)
    assert len(late) == 50
    assert late == sorted(late)
    assert late[0] >= 0


def test_there_is_a_line_for_each_length(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wakeups, "EACH_S", 0.0)
    monkeypatch.setattr(wakeups, "LEAST", 1)
    wakeups.main()
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split()[:4] == ["sleep", "ms", "late", "us"]
    assert [float(row.split()[0]) for row in rows] == list(wakeups.LENGTHS_MS)
