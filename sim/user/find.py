"""find: looks at each file below a directory, once or again and again.

Models: a tree of one level: the names of each directory are read, and each is looked at (lstat), as
`find`, `du`, `updatedb` or rsync's list of files do.
Counterpart: findutils find/ftsfind.c.
Invariants: each file is looked at once a walk, in the order of its directory; records: "find_ns",
the time of each walk.
Left out: deeper trees; what the names are compared with.

Estimate: with all names in memory a file costs a call and its path, some 2 us: 20,000 files 40 ms.
With none, a directory's blocks (100 names in one) and the blocks of inodes (16 or 32 in one) are
read, a random read each where other things lie between: 20,000 / 100 + 20,000 / 16 = 1450 reads, of
which those of one directory are adjacent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.observation import Compute, Family, Metric, Observation, mean
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_RDONLY, Sys
from sim.units import NS_PER_S
from sim.user.program import ServerProgram


@dataclass(frozen=True, kw_only=True)
class FindParams:
    """The tree, and when it is walked."""

    path: str = param("/home", dim="text", source="scenario", doc="the directory")
    directories: int = param(
        100, dim="count", minimum=1, source="scenario", doc="directories in it"
    )
    files: int = param(100, dim="count", minimum=1, source="scenario", doc="files in each")
    size_bytes: int = param("8 KiB", dim="bytes", minimum=0, source="scenario", doc="size of each")
    start_ns: int = param(0, dim="time_ns", minimum=0, source="scenario", doc="the first walk")
    period_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="scenario",
        doc="from the end of a walk to the next; 0: only once",
    )


def _walk(which: int) -> Compute:
    """Return the time of the first (0) or the last (-1) walk of the run."""

    def compute(seen: Observation) -> float | None:
        times = [float(record.value) / NS_PER_S for record in seen.result.marks("find_ns")]
        return times[which] if times else None

    return compute


def _slab_reclaimable_bytes(seen: Observation) -> float | None:
    """Mean of SReclaimable (2.6.28 on) at the readings of the measured part."""
    return mean(float(memory.get("SReclaimable", 0)) * 1024 for memory in seen.meminfo())


FIGURES: Final = Family(
    "names",
    (
        Metric("walk_first_s", "s", _walk(0)),
        Metric("walk_last_s", "s", _walk(-1)),
        Metric("slab_reclaimable_bytes", "B", _slab_reclaimable_bytes),
    ),
)


@register("program", "find", params=FindParams, doc="looks at every file of a tree")
class Find(ServerProgram):
    """One process."""

    figures: ClassVar[tuple[Family, ...]] = (FIGURES,)
    marks: ClassVar[tuple[str, ...]] = ("find_ns",)

    def __init__(self, params: FindParams) -> None:
        self.params = params

    def files(self) -> Mapping[str, int]:
        params = self.params
        places = [f"{params.path}/d{number:04}" for number in range(params.directories)]
        return {
            f"{place}/f{number:05}": params.size_bytes
            for place in places
            for number in range(params.files)
        }

    def main(self, sys: Sys) -> Blocking[None]:
        """Walk, and once more."""
        yield from sys.sleep(self.params.start_ns)
        yield from self._walk(sys)
        while self.params.period_ns:
            yield from sys.sleep(self.params.period_ns)
            yield from self._walk(sys)

    def _walk(self, sys: Sys) -> Blocking[None]:
        began_ns = sys.clock_ns()
        for number in range(self.params.directories):
            place = f"{self.params.path}/d{number:04}"
            fd = yield from sys.open(place, O_RDONLY)
            names = yield from sys.readdir(fd)
            yield from sys.close(fd)
            for name in names:
                yield from sys.lstat(f"{place}/{name}")
            yield  # The CPU time owed passes now: with all in memory no call sleeps.
        sys.trace_marker("find_ns", sys.clock_ns() - began_ns)
