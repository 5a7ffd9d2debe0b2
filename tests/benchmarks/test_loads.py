"""The loads of a trial do what they say, and a trial says what went wrong."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import loads, own_server

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_queue_of_mail_keeps_its_newest_messages(tmp_path: Path) -> None:
    take = loads.mail(tmp_path, 3, random.Random(1))
    for _ in range(loads.QUEUED + 5):
        take()
    names = sorted(tmp_path.iterdir(), key=lambda one: int(one.suffix[1:]))
    assert [one.name for one in names] == [f"q3.{n}" for n in range(6, loads.QUEUED + 6)]
    assert {one.stat().st_size for one in names} == {len(loads.BODY)}


def test_a_log_is_written_over_in_place(tmp_path: Path) -> None:
    write = loads.log(tmp_path, 0, random.Random(1))
    for _ in range(3):
        write()
    content = (tmp_path / "log0").read_bytes()
    assert len(content) == loads.LOG_BYTES
    assert content.startswith(b"x" * 3 * loads.BLOCK)
    assert not content.startswith(b"x" * 4 * loads.BLOCK)


def test_reads_go_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads, "READ_BYTES", loads.CHUNK)
    (tmp_path / "big").write_bytes(b"r" * loads.CHUNK)
    try:
        read = loads.reads(tmp_path, 0, random.Random(1))
    except OSError:
        pytest.skip("no O_DIRECT here")
    read()


def test_twice_as_many_programs_ask_for_twice_as_much(tmp_path: Path) -> None:
    """By hand: 2 and 4 programs of 200/s for half a second: 200 and 400, each to its root."""
    for programs in (2, 4):
        folder = tmp_path / str(programs)
        options = ["--programs", str(programs), "--rate", "200", "--seconds", "0.5"]
        command = [sys.executable, "-m", "benchmarks.loads", "mail", str(folder), *options]
        subprocess.run(command, cwd=REPOSITORY, check=True)
        last = {p: max(_number(one, p) for one in folder.iterdir()) for p in range(programs)}
        assert sum(last.values()) == pytest.approx(100 * programs, abs=5 * (100 * programs) ** 0.5)


def _number(path: Path, program: int) -> int:
    name, _dot, number = path.name.partition(".")
    return int(number) if name == f"q{program}" else 0


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("exit 3", "gone: the load fails: exit 3"),
        ("true", "gone: the load ended before it was recorded: true"),
    ],
)
def test_a_load_that_ends_at_once_is_told(
    command: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    with pytest.raises(SystemExit, match=told):
        own_server.record(command, place, "today", 10, 1)
    assert os.listdir(place) == []
