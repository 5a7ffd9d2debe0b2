"""Where work is done: the same everywhere; no worker outlives its parent; bad places are told."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sim.study import executors
from sim.study.executors import (
    BadExecutorError,
    Here,
    OtherSourcesError,
    check_sources,
    cores,
    place_of,
    processes,
)
from sim.study.trial import model


def own_executor() -> ThreadPoolExecutor:
    """Return an executor as a user's own module would."""
    return ThreadPoolExecutor(1)


def no_executor() -> str:
    """Return what is none."""
    return "me"


@pytest.mark.parametrize(
    ("text", "jobs", "number"),
    [("here", None, 0), ("here", 4, 0), ("local:3", None, 3), ("local:1", 8, 0), ("local", 2, 2)],
)
def test_a_place_takes_so_much_at_a_time(text: str, jobs: int | None, number: int) -> None:
    assert place_of(text, jobs).jobs == number


def test_local_means_a_process_for_each_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "cores", lambda: 7)
    assert place_of("local").jobs == 7


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("everywhere", "allowed: here, local"),
        ("local:0", "no process"),
        ("local:two", "allowed"),
        ("dask://host", "allowed"),
        ("no_such_module:call", "No module named"),
        (f"{__name__}:nothing", "no attribute 'nothing'"),
    ],
)
def test_a_place_that_is_none_is_refused(text: str, told: str) -> None:
    with pytest.raises(BadExecutorError, match=told):
        place_of(text)


def test_an_executor_of_ones_own_is_called_when_it_is_needed() -> None:
    place = place_of(f"{__name__}:own_executor", 3)
    assert place.jobs == 3
    with place.start(3) as executor:
        assert executor.submit(divmod, 7, 2).result() == (3, 1)


def test_what_is_no_executor_is_refused() -> None:
    place = place_of(f"{__name__}:no_executor")
    with pytest.raises(BadExecutorError, match=r"returned a str, not a concurrent"):
        place.start(1)


def test_a_worker_with_other_sources_says_so_before_it_does_anything() -> None:
    check_sources(model())
    with pytest.raises(OtherSourcesError, match="other sources"):
        check_sources("another")


def test_an_error_ends_the_workers_with_the_work_they_are_at() -> None:
    begin_s = time.monotonic()
    with pytest.raises(ZeroDivisionError), processes(2) as workers:
        futures = [workers.submit(time.sleep, 3600) for _ in range(4)]
        raise ZeroDivisionError
    assert time.monotonic() - begin_s < 600
    assert all(future.done() for future in futures)
    assert not multiprocessing.active_children()


def test_without_affinity_all_cpus_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert cores() == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_without_a_fork_server_workers_are_spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with processes(1) as workers:
        assert workers.submit(os.getppid).result() == os.getpid()


@pytest.mark.parametrize("missing", [ImportError, NotImplementedError, OSError])
def test_without_processes_the_work_is_done_here(
    monkeypatch: pytest.MonkeyPatch, missing: type[Exception]
) -> None:
    def refuse(method: str) -> None:
        raise missing

    monkeypatch.setattr(multiprocessing, "get_context", refuse)
    with processes(2) as workers:
        assert workers.submit(os.getpid).result() == os.getpid()
        with pytest.raises(ZeroDivisionError):
            workers.submit(divmod, 1, 0).result()
    assert isinstance(workers, Here)


ORPHANS = """
import os, time
from sim.study.executors import processes
if __name__ == "__main__":
    with processes(2) as workers:
        found = {workers.submit(time.sleep, 0.2) and workers.submit(os.getpid) for _ in range(4)}
        print(*{future.result() for future in found}, flush=True)
        time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_a_parent_that_was_killed(tmp_path: Path, end: signal.Signals) -> None:
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    top = str(Path(__file__).resolve().parents[2])
    with subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": top},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().split()
        parent.send_signal(end)
        # Workers, fork server and tracker hold the pipe: its end comes when all of them are gone.
        assert parent.stdout.read() == ""
