"""Damaged texts, and texts that are made to hurt: a message or a result, in bounded time."""

import bz2
import gzip
import json
import lzma
import os
import threading
import time

import pytest
from click.testing import CliRunner

from calibration.readers import (
    DOCUMENTS,
    READERS,
    UnreadableRecording,
    intake,
    read_bytes,
    read_file,
    read_text,
)
from calibration.readers.json_text import find_documents
from calibration.readers.line import Line, Sink
from sim.cli.main import cli
from tests.calibration.hunt_damaged import damaged, hunt

# Eight times the text takes 8 times the time, or 64 if in proportion to the square. 20 tells
# them apart where what else the machine does makes either 2.5 times as long.
TIMES = 8
LINEAR = 20.0
LEAST_S = 0.01  # below it, clocks and caches decide
SHOWN_S = 0.02  # of a line of 1000 characters: 20 us for each
TRIES = 3
BEGINS = ("", "12:00:00 ", "12:00:00 up ", "%Cpu(s): ", "cpu ", "Device ", "$ ", "a(1): ", "=== ")
REPEATED = (
    "a",
    "1",
    " ",
    "a ",
    "1 ",
    ".",
    ":",
    "(",
    "-",
    "_",
    "1.0 ",
    "a=",
    '"',
    "{",
    ",",
    "1 us,",
)


def test_damaged_texts_are_read_or_refused():
    """A sample of the hunt of 10,000, which `python -m tests.calibration.hunt_damaged` is."""
    _counts, broken = hunt(400, 20_000)
    assert broken == []


def test_the_hunt_damages_what_its_seed_says():
    assert damaged(7) == damaged(7)
    assert len({damaged(seed) for seed in range(50)}) > 40


def _cpu_s(work):
    """Return the least CPU time of some tries: whatever else runs only adds to it."""
    times = []
    for _try in range(TRIES):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def _read(text):
    try:
        read_text(text, "x")
    except UnreadableRecording:
        return


@pytest.mark.parametrize("begin", BEGINS)
def test_time_is_in_proportion_to_the_length_of_a_line(begin):
    """A long line that is shown to all readers costs what its letters cost, whatever they are."""
    for letters in REPEATED:
        lines = [begin + letters * (n // len(letters)) for n in (25_000, 25_000 * TIMES)]
        short, long = (_cpu_s(lambda text=text: _read(text)) for text in lines)
        assert long < LINEAR * max(short, LEAST_S), letters


@pytest.mark.parametrize("make", READERS, ids=lambda make: make.__name__)
def test_no_reader_lingers_over_a_line_that_it_is_shown(make):
    """Of 1000 characters, the longest that all are shown."""
    for begin in BEGINS:
        for letters in REPEATED:
            line = Line(1, begin + letters * (1000 // len(letters)))
            assert _cpu_s(lambda line=line: make(Sink()).feed(line)) < SHOWN_S, (begin, letters)


@pytest.mark.parametrize(
    "part",
    [
        '["a\n',
        "[\n",
        "[1,\n",
        '"\\"',
        "[1,,",
        "{ ",
        "[[],",
        '{"a":{},',
        "[2009-07-16 12:00:00] x\n",
    ],
)
def test_looking_for_json_takes_time_in_proportion(part):
    parts = (2_500, 2_500 * TIMES)
    short, long = (_cpu_s(lambda n=n: find_documents("[" + part * n)) for n in parts)
    assert long < LINEAR * max(short, LEAST_S)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_a_bomb_is_refused_with_the_bound(compress, monkeypatch):
    monkeypatch.setattr("calibration.readers.compressed.BYTES_MAX", 4 << 20)
    bomb = compress(b"sda 1.0 2.0\n" * 500_000)
    with pytest.raises(UnreadableRecording, match="MiB that are read; give a part"):
        read_bytes(bomb, "x")


def test_a_bomb_of_zeros_is_no_text_after_the_first_piece():
    begin = time.process_time()
    with pytest.raises(UnreadableRecording, match="binary"):
        read_bytes(lzma.compress(bytes(64 << 20), preset=0), "x")
    assert time.process_time() - begin < 5


def test_a_text_with_a_hole_of_zeros_is_read():
    hole = b"\0" * 20
    text = b"10:00:00 up 1 day,  load average: 1.00, 2.00, 3.00\n" * 20
    assert read_bytes(text + hole + b"\n" + text, "x").select("load1")


def test_thousands_of_empty_members_are_not_copied_for_ever():
    with pytest.raises(UnreadableRecording):
        read_bytes(gzip.compress(b"") * 20_000, "x")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[\n" * 100_000])
def test_deep_json_is_told(text):
    with pytest.raises(UnreadableRecording, match="deeper than 100 brackets"):
        read_text(text, "x")


@pytest.mark.parametrize("document", [one.format for one in DOCUMENTS])
def test_numbers_of_thousands_of_digits_are_told(document):
    huge = "9" * 5000
    text = f'{{"sysstat":{{"hosts":[{{"statistics":[{{"avg-cpu":{{"user":{huge}}}}}]}}]}}}}'
    with pytest.raises(UnreadableRecording):
        read_text(text, document)
    with pytest.raises(UnreadableRecording, match="more than 30 digits"):
        read_text(f"cpu  {huge} 1 1 1\n", document)


def test_a_line_beyond_the_bound_is_told_with_its_length():
    with pytest.raises(UnreadableRecording, match="a line of 1,048,577 characters"):
        read_text("a" * (intake.LINE_MAX + 1), "x")


def test_lines_of_nothing_end_the_reading(monkeypatch):
    monkeypatch.setattr("calibration.readers.UNKNOWN_MAX", 100)
    with pytest.raises(UnreadableRecording, match="more than 100 lines are of no known format"):
        read_text("nothing\n" * 1000, "x")


def test_more_figures_than_are_held_are_told(monkeypatch):
    monkeypatch.setattr("calibration.readers.SAMPLES_MAX", 100)
    with pytest.raises(UnreadableRecording, match="more than the 100 figures"):
        read_text("10:00:00 up 1 day,  load average: 1.00, 2.00, 3.00\n" * 100, "x")


def test_problems_beyond_the_first_are_counted(monkeypatch):
    monkeypatch.setattr("calibration.readers.line.PROBLEMS_MAX", 10)
    load = "10:00:00 up 1 day,  load average: 1.00, 2.00, 3.00\n"
    problems = read_text(load + "nothing\n" * 25, "x").problems
    assert len(problems) == 11
    assert problems[-1].why == "15 more lines are not taken"


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused(device):
    with pytest.raises(UnreadableRecording, match="it is a device"):
        read_file(intake.Path(device))


def test_a_pipe_without_a_writer_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "WRITER_WAIT_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableRecording, match="nobody wrote into it"):
        read_file(tmp_path / "pipe")


def test_a_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write():
        with pipe.open("w") as file:
            for _line in range(3):
                file.write("10:00:00 up 1 day,  load average: 1.00, 2.00, 3.00\n")
                file.flush()
                time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    recording = read_file(pipe)
    writer.join()
    assert [one.value for one in recording.select("load1")] == [1.0, 1.0, 1.0]


def test_a_large_file_is_refused_unread(tmp_path):
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(intake.BYTES_MAX + 1)
    with pytest.raises(UnreadableRecording, match="256 MiB, more than the 256 MiB"):
        read_file(large)


def test_links_in_a_circle_are_a_message(tmp_path, monkeypatch):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "up").symlink_to(".")
    monkeypatch.chdir(tmp_path)
    for words in (["look", "loop"], ["samples", "loop"], ["samples", "."], ["import", "loop"]):
        done = CliRunner().invoke(cli, words, prog_name="iotwin")
        # What is no message of the command line would be raised, and end with 1.
        assert done.exit_code == 2, done.output


def test_json_of_ordinary_depth_is_read():
    content = {"a": [[1, 2], {"b": 10**25}]}
    assert [one.content for one in find_documents(json.dumps(content))] == [content]
