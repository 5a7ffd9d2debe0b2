"""`iotwin serve` as a process: how it begins and ends, and that moves leave nothing behind."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from sim.cli.main import cli
from tests.cli.small import small_file
from tests.serve.served import Asked, Served, open_files, resident_kib, served, soon

GONE_S = 0.1
TIMES = 5  # whatever else runs only adds to a time: the least of so many counts
STANDING = 3  # the server that forks, one that watches resources, one worker that waits
SENDERS = "process.blast.concurrency"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(small_file(tmp_path_factory.mktemp("served"))) as one:
        soon(lambda: len(one.started()) == STANDING)
        yield one


def invoke(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["serve", *words], prog_name="iotwin")
    return result.exit_code, result.output


# -- Bad input


def test_a_port_in_use_is_told_with_the_nearest_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = invoke("--port", str(port))
    assert code == 2
    assert f"port {port} is in use (accepted: a free port; the nearest: " in output
    nearest = int(output.partition("the nearest: ")[2].partition(")")[0])
    assert nearest != port
    socket.create_server(("127.0.0.1", nearest)).close()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("generik",), "did you mean 'generic'?"),
        (("generic", "--set", "machine.cpus=0"), "must be at least 1, got 0"),
        (("generic", "--set", "machine.cpu=2"), "did you mean 'machine.cpus'?"),
        (("--set", "machine.cpus=2"), "--set and --seed go with a SCENARIO"),
        (("--port", "70000"), "0<=x<=65535"),
    ],
)
def test_bad_input_is_told(words: tuple[str, ...], expected: str) -> None:
    process = [sys.executable, "-m", "sim", "serve", *words]
    done = subprocess.run(process, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert expected in done.stderr


# -- Beginning and end


def test_the_address_that_is_printed_holds_what_was_asked(tmp_path: Path) -> None:
    words = ("--seed", "3", "--set", f"{SENDERS}=8")
    with served(small_file(tmp_path), *words) as one:
        expected = f"http://127.0.0.1:{one.port}/?scenario=small&set={SENDERS}%3D8&seed=3"
        assert one.address == expected


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_all_processes_end_with_the_server(tmp_path: Path, number: int, code: int) -> None:
    with served(small_file(tmp_path)) as one:
        asked = one.ask(("scenario", "small"))
        asked.event()
        soon(lambda: len(one.started()) == STANDING + 1)
        started = one.started()
        one.process.send_signal(number)
        assert one.process.wait() == code
        soon(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))
        asked.leave()
        assert one.process.stderr is not None
        assert "Traceback" not in one.process.stderr.read()


# -- Moving on


def begun(server: Served) -> Asked:
    """Ask for a study, and wait until it goes on and another worker waits."""
    asked = server.ask(("scenario", "small"))
    asked.event()
    soon(lambda: len(server.started()) == STANDING + 1)
    return asked


def test_a_run_ends_when_its_page_has_gone(server: Served) -> None:
    taken_s = []
    for _time in range(TIMES):
        begun(server).leave()
        taken_s.append(soon(lambda: len(server.started()) == STANDING))
    assert min(taken_s) < GONE_S


def test_the_run_before_ends_when_another_is_asked_for(server: Served) -> None:
    taken_s = []
    for _time in range(TIMES):
        first = begun(server)
        running = server.started()
        begin_s = time.monotonic()
        second = server.ask(("scenario", "small"), ("set", f"{SENDERS}=8"))
        # It is the one that waited that works now; the one that worked has gone.
        soon(lambda before=running: len(before - server.started()) == 1)
        taken_s.append(time.monotonic() - begin_s)
        assert first.rest()[-1]["why"] == "sent away"
        first.leave()
        second.leave()
        soon(lambda: len(server.started()) == STANDING)
    assert min(taken_s) < GONE_S


def test_what_is_wrong_ends_the_run_before_as_well(server: Served) -> None:
    first = begun(server)
    with pytest.raises(AssertionError, match="has no what-if"):
        server.ask(("scenario", "small"), ("what_if", "slw"))
    assert first.rest()[-1]["why"] == "sent away"
    soon(lambda: len(server.started()) == STANDING)


def test_a_hundred_moves_leave_no_process_and_no_memory_behind(server: Served) -> None:
    """A move that left something would leave its scenario: more than 100 KiB each."""

    def move(number: int) -> None:
        asked = server.ask(("scenario", "small"), ("set", f"{SENDERS}={1 + number % 9}"))
        if number % 3:
            asked.event()
        asked.leave()

    def rest() -> tuple[int, int]:
        soon(lambda: len(server.started()) == STANDING)
        time.sleep(GONE_S)
        return open_files(server.process.pid), resident_kib(server.process.pid)

    for number in range(20):
        move(number)
    files, memory = rest()
    moves = 100
    for number in range(moves):
        move(number)
    assert rest()[0] == files
    assert resident_kib(server.process.pid) - memory < 20 * moves
