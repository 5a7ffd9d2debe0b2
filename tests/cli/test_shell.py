"""`iotwin shell` where it cannot be: a clear message, and nothing has been simulated."""

import os
from pathlib import Path

import pytest

from sim.cli import shell
from tests.cli.small import small_file
from tests.cli.test_usage import refused


def test_an_unknown_program_is_told_and_what_is_there_instead(tmp_path: Path) -> None:
    said = refused("shell", small_file(tmp_path), "--", "iostatt", "-x", "1")
    assert "no program 'iostatt' on this computer (iotwin exec has iostat, sar" in said


def test_a_program_that_asks_by_netlink_is_refused(tmp_path: Path) -> None:
    said = refused("shell", small_file(tmp_path), "--", "iotop")
    assert "it would show this computer" in " ".join(said.split())
    assert "(instead: pidstat -d 1)" in said


def test_a_moment_that_the_run_has_not_is_told(tmp_path: Path) -> None:
    said = refused("shell", small_file(tmp_path), "--at", "1 h", "--", "uptime")
    assert "3600 s is not within the run: 0 to 60 s" in said


def fake(folder: Path, name: str, text: str) -> None:
    """Put a program in the way of the real one."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1",
            "no user and mount namespace to who is not root: unshare: unshare failed: Operation",
        ),
        ("exit 1", "no reason given"),
    ],
)
def test_where_namespaces_are_forbidden_the_reason_is_told_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    fake(tmp_path, "unshare", text)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(shell, "Server", None)  # a run would fail
    said = refused("shell", small_file(tmp_path), "--", "true")
    assert said.startswith("iotwin: error: this computer gives ")
    assert message in said


def test_without_unshare_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, "look", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    said = refused("shell", small_file(tmp_path), "--", "look")
    assert "unshare and mount are not installed (util-linux has them)" in said
