"""iotwin trace: files that are there and whole, what is told of them, and what is refused."""

import json
import os
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from sim.study.blktrace import HEADER, is_ours
from tests.cli.small import SMALL, small_file
from tests.study.traces import blktrace, merged, perfetto

SHORT = SMALL.replace("messages = 60", "messages = 3")
TIMES = ("--from", "3s", "--to", "4s")


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["trace", *arguments], prog_name="iotwin")
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def small(tmp_path: Path) -> str:
    return small_file(tmp_path, SHORT)


def test_both_files_of_one_run_have_the_same_requests(small: str, tmp_path: Path) -> None:
    path, folder = tmp_path / "small.pftrace", tmp_path / "blk"
    shown = run(small, *TIMES, "--perfetto", str(path), "--blktrace", str(folder)).stdout
    drawn = [s for s in perfetto(path).slices if s.track == "disk sda/drive" and s.end_ns]
    ended = [event for event in merged(folder, "sda") if event.letter == "C"]
    assert len(drawn) == len(ended) > 0
    assert f"{len(ended)} requests of sda" in shown
    assert f"{path}: {path.stat().st_size:,} bytes\n" in shown
    assert sorted(p.name for p in folder.iterdir()) == ["sda.blktrace.0", "sda.blktrace.1"]
    assert "seed 5, 3 s to 4 s of the run" in shown


def test_json_says_what_there_is_of_what(small: str, tmp_path: Path) -> None:
    path = tmp_path / "slow.pftrace"
    shown = run(small, "slow", *TIMES, "--perfetto", str(path), "--json", "-", "--seed", "9").stdout
    content = json.loads(shown)
    assert (content["scenario"], content["what_if"], content["seed"]) == ("small", "slow", 9)
    assert (content["from_s"], content["to_s"]) == (3, 4)
    assert content["requests"]["sda"] > 0 and content["switches"] > 0
    assert content["files"] == [{"path": str(path), "bytes": path.stat().st_size}]


def test_the_same_run_gives_the_same_bytes(small: str, tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        run(small, *TIMES, "--perfetto", str(path))
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_without_times_it_is_the_whole_run(small: str, tmp_path: Path) -> None:
    """storm_end and 4 s more come before the minute is over: that is told."""
    path = tmp_path / "all.pftrace"
    result = run(small, "--perfetto", str(path))
    assert "before --to" in result.stderr
    assert min(s.start_ns for s in perfetto(path).slices) < 4_000_000_000


def test_what_an_earlier_trace_left_is_replaced_all_of_it(small: str, tmp_path: Path) -> None:
    folder = tmp_path / "blk"
    run(small, *TIMES, "--blktrace", str(folder), "--set", "machine.cpus=4")
    (folder / "notes.txt").write_text("mine")
    assert len(list(folder.glob("sda.blktrace.*"))) == 4
    run(small, *TIMES, "--blktrace", str(folder))
    assert sorted(p.name for p in folder.iterdir()) == [
        "notes.txt",
        "sda.blktrace.0",
        "sda.blktrace.1",
    ]
    assert all(is_ours(path) for path in folder.glob("*.blktrace.*"))


def recorded_event() -> bytes:
    """Return the first event of a file of blktrace's: a time stamp."""
    stamp = struct.pack("<II", 1_160_543_460, 0)
    return HEADER.pack(0x65617407, 0, 0, 0, 0, 1 | 1 << 26, 0, 8 << 20, 0, 0, len(stamp)) + stamp


@pytest.mark.parametrize(
    "content", [recorded_event(), b"", b"a text"], ids=["blktrace's", "empty", "text"]
)
def test_what_blktrace_recorded_is_never_replaced(
    small: str, tmp_path: Path, content: bytes
) -> None:
    folder = tmp_path / "blk"
    folder.mkdir()
    theirs = folder / "sdc.blktrace.0"
    theirs.write_bytes(content)
    told = run(small, *TIMES, "--blktrace", str(folder), code=2).stderr
    assert f"cannot write {theirs}: it is there, and no trace of iotwin's" in told
    assert [p.name for p in folder.iterdir()] == ["sdc.blktrace.0"]
    assert theirs.read_bytes() == content


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give --perfetto FILE, --blktrace DIR, or both"),
        (("--from", "4s", "--to", "3s", "--perfetto", "x"), "--from: 4 s is not before the end"),
        (("--from", "3s", "--to", "3s", "--perfetto", "x"), "0 or more, less than 3 s"),
        (("--to", "61s", "--perfetto", "x"), "--to: 61 s is not within the run"),
        (("--to", "0s", "--perfetto", "x"), "more than 0, at most 60 s"),
        (("--from", "-1s", "--perfetto", "x"), "--from"),
        (("--from", "59s", "--perfetto", "x"), "--from: the run ended at"),
        (("--from", "3", "--perfetto", "x"), "a time needs a unit"),
        (("--from", "3 MB", "--perfetto", "x"), "--from"),
        (("--perfetto", "-"), "only --json goes to standard output"),
        (("--perfetto", "none/x"), "no folder"),
        (("--perfetto", "small.toml"), "it is read"),
        (("--blktrace", "none/x"), "no folder"),
        (("--blktrace", "small.toml"), "it is no folder"),
        (("--blktrace", "-"), "a folder has a name"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(
    small: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in " ".join(run("./small.toml", *arguments, code=2).stderr.split())
    assert os.listdir() == ["small.toml"]


def test_a_name_of_a_command_is_cut_as_the_kernel_cuts_it(tmp_path: Path) -> None:
    """TASK_COMM_LEN: fifteen letters and a zero."""
    text = SHORT.replace("[process.sendmail]", "[process.a_name_that_is_too_long]")
    text = text.replace('target = "sendmail"', 'target = "a_name_that_is_too_long"')
    folder = tmp_path / "blk"
    run(small_file(tmp_path, text), *TIMES, "--blktrace", str(folder))
    notes = [e for path in folder.iterdir() for e in blktrace(path) if e.letter == "n"]
    assert {len(e.pdu) for e in notes if e.action & 0xFF == 0} == {16}
