"""Progress: seen on a terminal, after a while; never in a pipe."""

import io
import sys

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


def test_a_pipe_sees_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), monkeypatch, 0) == ""
