"""A server of `iotwin serve` as a process, and what it has started."""

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

PATIENCE_S = 30.0


class Served:
    """A server that runs, its port and its address."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        self.port = int(address.partition("127.0.0.1:")[2].partition("/")[0])

    def ask(self, *items: tuple[str, str]) -> "Asked":
        """Ask for a study, and do not wait for more than its first line."""
        return Asked(self.port, urlencode(items))

    def started(self) -> set[int]:
        """Return the processes that this one has started, and those that these have."""
        return below(self.process.pid)


class Asked:
    """A study that goes on."""

    def __init__(self, port: int, query: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        self._connection.request("GET", f"/api/study?{query}")
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        assert self.event()["event"] == "begin"

    def event(self) -> dict[str, object]:
        """Wait for the next event."""
        found: dict[str, object] = json.loads(self._answer.readline())
        return found

    def rest(self) -> list[dict[str, object]]:
        """Wait for all further events."""
        return [json.loads(line) for line in self._answer.read().splitlines()]

    def leave(self) -> None:
        """Close the connection, as a page does that moves on."""
        self._answer.close()
        self._connection.close()


@contextmanager
def served(*words: str) -> Iterator[Served]:
    """Run `iotwin serve` on a free port."""
    command = [sys.executable, "-m", "sim", "serve", *words, "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background job, and all below it, would ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            address = process.stdout.readline().strip()
            if not address:
                raise AssertionError(process.stderr.read())
            yield Served(process, address)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def below(pid: int) -> set[int]:
    """Return the living processes below one."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue  # it ended meanwhile
            if state != "Z":
                parents[int(folder.name)] = int(parent)
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def soon(is_so: object, limit_s: float = PATIENCE_S) -> float:
    """Return after how many seconds something is so; fail if it takes longer than the limit."""
    assert callable(is_so)
    begin_s = time.monotonic()
    while not is_so():
        passed_s = time.monotonic() - begin_s
        assert passed_s < limit_s, f"not so after {passed_s:.2f} s"
        time.sleep(0.002)
    return time.monotonic() - begin_s


def resident_kib(pid: int) -> int:
    """Return how much memory of a process is there."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def open_files(pid: int) -> int:
    """Return how many files a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
