"""Progress: a bar on a terminal, after a while; now and then a line in a pipe."""

import io
import sys
import time

import pytest

from sim.cli.progress import Progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, quiet_s: float) -> str:
    """Return what some progress writes to a stream."""
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("simulating small", quiet_s) as progress:
        progress(1, 4)
        progress(3, 4)
    return stream.getvalue()


def test_a_terminal_sees_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "simulating small" in shown(Terminal(), monkeypatch, 0)


def test_a_short_run_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Terminal(), monkeypatch, 60) == ""


def test_a_pipe_sees_none_of_short_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), monkeypatch, 0) == ""


def test_a_pipe_sees_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a minute apart; what is left is in the ratio of what is done."""
    now_s = iter((0.0, 20.0, 31.0, 31.0, 31.0, 50.0, 62.0, 62.0, 62.0))
    monkeypatch.setattr(time, "monotonic", lambda: next(now_s))
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("simulating small", line_s=30) as progress:
        for done in (1, 2, 3, 4):
            progress(done, 8)
    assert stream.getvalue().splitlines() == [
        "iotwin: simulating small: 25 % done, about 93 s left",
        "iotwin: simulating small: 50 % done, about 62 s left",
    ]
