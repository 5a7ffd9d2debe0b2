"""fio as it is typed: a process that starts jobs and waits for them.

Models: the parent: it forks a process for each job; at a stonewall it waits for those before.
Counterpart: fio backend.c (run_threads, reap_threads), 3.36.
Invariants: the jobs of one group run at the same time; when the session ends, every job has ended
 and left its figures; record: "fio_end" with the number of jobs.
Left out: jobs as threads, exitall, reports while it runs.
"""

from collections.abc import Mapping, Sequence

from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.fio import Fio


class FioSession:
    """Groups of jobs, one group after the other."""

    def __init__(self, groups: Sequence[Sequence[Fio]]) -> None:
        self.groups = groups
        self.ended_ns: int = -1  # when the last job had ended

    def files(self) -> Mapping[str, int]:
        """Return the files that are there beforehand, as large as the largest user needs."""
        sizes: dict[str, int] = {}
        for group in self.groups:
            for job in group:
                for path, size in job.files().items():
                    sizes[path] = max(size, sizes.get(path, 0))
        return sizes

    def main(self, sys: Sys) -> Blocking[None]:
        """Run the groups."""
        jobs = 0
        for group in self.groups:
            children = []
            for job in group:
                child = yield from sys.fork("fio", job.main)
                children.append(child)
            for child in children:
                yield from sys.waitpid(child)
            jobs += len(children)
        self.ended_ns = sys.clock_ns()
        sys.trace_marker("fio_end", jobs)
