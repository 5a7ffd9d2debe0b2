"""Replications: the same seeds for every variant, the same figures wherever they run."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sim.scenario import RecordedSpec, Scenario, load_text
from sim.study.compare import run_study
from sim.study.recorded import DatasetError
from sim.study.replicate import Here, cores, processes, replicate
from tests.cli.small import SMALL

FILE = Path("small.toml")


def variants() -> list[Scenario]:
    """Return a base and a what-if that run in a moment."""
    return [load_text(SMALL, FILE), load_text(SMALL, FILE, what_if="slow")]


def test_every_variant_has_the_same_seeds_in_order() -> None:
    runs = replicate(variants(), 3)
    assert [[run.seed for run in done] for done in runs] == [[5, 6, 7], [5, 6, 7]]


def test_where_it_runs_changes_nothing() -> None:
    here = replicate(variants(), 2)
    with ThreadPoolExecutor(2) as threads:
        there = replicate(variants(), 2, executor=threads)
    with processes(2) as workers:
        elsewhere = replicate(variants(), 2, executor=workers)
    digests = [[[run.digest for run in done] for done in runs] for runs in (here, there, elsewhere)]
    assert digests[0] == digests[1] == digests[2]
    assert len({digest for done in digests[0] for digest in done}) == 4


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
from sim.study.replicate import processes
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


def test_only_the_first_readings_are_kept() -> None:
    assert [run.result is not None for run in replicate(variants()[:1], 3)[0]] == [
        True,
        False,
        False,
    ]


def test_progress_rises_to_the_whole() -> None:
    shares: list[float] = []
    replicate(variants(), 2, progress=lambda done, total: shares.append(done / total))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1, abs=0.2)


def test_the_change_is_against_the_first_variant() -> None:
    study = run_study(variants(), 2)
    assert study.variants[0].change is None
    change = study.variants[1].change
    assert change is not None
    assert change["disk.sda.await_ms"].lo > 0


def test_a_missing_recording_is_found_before_anything_runs() -> None:
    spec = RecordedSpec(figures="before", folder=Path("nothing"))
    with pytest.raises(DatasetError, match="no data set nothing"):
        run_study([replace(variants()[0], recorded=(spec,))], 1)
