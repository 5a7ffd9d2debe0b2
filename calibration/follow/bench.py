"""Where the twin of a server that is followed runs: one process beside the follower.

Models: the colleague at the next desk, who has other things to do as well.
Linux counterpart: prctl(2) PR_SET_PDEATHSIG, nice(2).
Invariants: the process does one job at a time, at a tenth of the usual weight (nice 10), and rests
as long as each part of a job took: half of one core at most, a tenth of one that others want; it
ends when its parent does, however that ended.
Left out: several twins at once.
"""

import os
import tempfile
import time
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from threadpoolctl import threadpool_limits

from calibration.follow.jobs import Job, Result
from sim.study.workers import begin, clean_context

NICE: Final = 10  # kernel/sched/core.c, sched_prio_to_weight: 110, where 0 has 1024
MEMORY: Final = "/dev/shm"  # a file system in memory: no device of the server is written to


class Rest:
    """Progress of a run: sleep as long as was worked since the last call."""

    def __init__(self) -> None:
        self._worked_s = time.process_time()

    def __call__(self, done: int, total: int) -> None:
        """Rest."""
        time.sleep(time.process_time() - self._worked_s)
        self._worked_s = time.process_time()


def work(connection: Connection, folder: str) -> None:
    """Do jobs until the parent has ended."""
    begin()
    os.nice(NICE)
    # By name: the twin needs libraries that the follower does without.
    hand = import_module("calibration.follow.hand").Hand(Path(folder), Rest())
    with threadpool_limits(1):
        while True:
            try:
                connection.send(hand.do(connection.recv()))
            except (EOFError, OSError):
                return  # nobody listens


class Bench:
    """The process, and whether it is at work; a context manager."""

    def __init__(self) -> None:
        """Start the process."""
        in_memory = MEMORY if os.path.isdir(MEMORY) and os.access(MEMORY, os.W_OK) else None
        self._folder = tempfile.TemporaryDirectory(prefix="iotwin.", dir=in_memory)
        self._job: Job | None = None
        self._context = clean_context()
        self._connection, self._process = self._start()

    def _start(self) -> tuple[Connection, BaseProcess]:
        here, there = self._context.Pipe()
        process = self._context.Process(target=work, args=(there, self._folder.name), daemon=True)
        process.start()
        there.close()
        return here, process

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *error: object) -> None:
        """End the process now, whatever it does, and remove what it wrote."""
        self._process.kill()
        self._process.join()
        self._folder.cleanup()

    @property
    def is_free(self) -> bool:
        """Whether a job can be begun."""
        return self._job is None

    def begin(self, job: Job) -> None:
        """Begin a job."""
        assert self._job is None
        self._job = job
        self._connection.send(job)

    def poll(self, wait_s: float = 0.0) -> Result | None:
        """Return what came of the job, if it is done within that time."""
        job = self._job
        if job is None or not self._connection.poll(wait_s):
            return None
        self._job = None
        try:
            result: Result = self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            told = f"the twin's process ended (exit code {self._process.exitcode})"
            self._connection, self._process = self._start()
            return Result(kind=job.kind, epoch=job.epoch, refusal=f"{told}; it begins anew")
        return result
