"""memload: a program that takes memory, uses it, and gives it back.

Models: one process whose memory grows at a rate up to a size; a part of it is hot. Ten times a
second it uses pages at random, of the hot part and of all of it, and tells how many it got done.
After `hold` it gives everything back and ends.
Counterpart: stress(1) --vm, a database with a buffer pool, a program that leaks.
Invariants: records: "work_done" uses of pages since the last one, "progress" bytes taken, both once
 a second; a program that has been killed tells nothing more; "out_of_memory" the bytes that the
 kernel would not promise.
Left out: computing with what it has: CPU time of a use is that of a cache miss.

Estimate: U uses a second of W pages of which M are in memory: U (1 - M/W) major faults a second,
and as many pages go out, if the device keeps up.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from sim.observation import Family, Metric, Observation
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Region, Sys
from sim.units import NS_PER_S
from sim.user.program import ServerProgram

PAGE: Final = 4096
STEPS_PER_S: Final = 10
USE_NS: Final = 100  # user CPU of a use; assumed: a cache miss


@dataclass(frozen=True, kw_only=True)
class MemloadParams:
    """How much, how fast, how it is used."""

    size_bytes: int = param(
        "1 GiB", dim="bytes", minimum=PAGE, source="scenario", doc="memory in the end"
    )
    growth_bytes_per_s: float = param(
        "1 GB/s",
        dim="bytes_per_s",
        minimum=1,
        source="scenario",
        key="growth",
        doc="how fast it is taken",
    )
    hot_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="scenario",
        doc="the part, from its beginning, that is hot",
    )
    hot_uses_per_s: float = param(
        0.0, dim="rate_per_s", minimum=0, source="scenario", doc="uses of pages of the hot part"
    )
    uses_per_s: float = param(
        0.0, dim="rate_per_s", minimum=0, source="scenario", doc="uses of any pages beyond it"
    )
    write_share: float = param(
        0.5,
        dim="number",
        minimum=0,
        maximum=1,
        doc="of the uses, those that write",
        source="assumed: every other use changes something",
    )
    start_ns: int = param(0, dim="time_ns", minimum=0, source="scenario", doc="when it begins")
    hold_ns: int = param(
        "100000 h",
        dim="time_ns",
        minimum=0,
        source="scenario",
        doc="how long after its beginning it gives everything back",
    )


def _work_per_s(seen: Observation) -> float | None:
    """Return the units of work that programs did in the measured part, a second."""
    length_ns = seen.end_ns - seen.begin_ns
    done = sum(float(record.value) for record in seen.marked("work_done"))
    return done * NS_PER_S / length_ns if length_ns else None


def _progress(seen: Observation) -> float | None:
    """Return how far a program had come that counts what it has: its last count."""
    counts = list(seen.result.marks("progress"))
    return float(counts[-1].value) if counts else None


# Of every program that leaves the marks "work_done" and "progress".
WORK: Final = Family(
    "work", (Metric("work_per_s", "/s", _work_per_s), Metric("progress", "", _progress))
)


@register("program", "memload", params=MemloadParams, doc="takes memory, uses it, gives it back")
class Memload(ServerProgram):
    """One process."""

    figures: ClassVar[tuple[Family, ...]] = (WORK,)
    marks: ClassVar[tuple[str, ...]] = ("out_of_memory", "progress", "work_done")

    def __init__(self, params: MemloadParams) -> None:
        self.params = params
        self.taken = 0  # bytes
        self.done = 0  # uses of pages since they were last told

    def main(self, sys: Sys) -> Blocking[None]:
        """Grow and use; give back."""
        params = self.params
        if params.start_ns:
            yield from sys.sleep(params.start_ns)
        hot = min(params.hot_bytes, params.size_bytes)
        cuts = [hot] if 0 < hot < params.size_bytes else []
        try:
            region = sys.mmap(params.size_bytes, cuts)
        except OSError as error:
            sys.print_text(f"memload: mmap: {error.strerror}\n")
            sys.trace_marker("out_of_memory", params.size_bytes)
            return
        begun_ns = sys.clock_ns()
        step = 0
        while sys.clock_ns() - begun_ns < params.hold_ns:
            wanted = int((sys.clock_ns() - begun_ns) * params.growth_bytes_per_s / NS_PER_S)
            wanted = min(wanted // PAGE * PAGE, params.size_bytes)
            if wanted > self.taken:
                yield from sys.touch(region, self.taken, wanted - self.taken)
                self.taken = wanted
            if self.taken:
                yield from self._use(sys, region)
            step += 1
            if not step % STEPS_PER_S:
                self._tell(sys)
            yield from sys.sleep(NS_PER_S // STEPS_PER_S)
        sys.munmap(region)

    def _use(self, sys: Sys, region: Region) -> Blocking[None]:
        """Use pages at random, for a tenth of a second's worth."""
        params = self.params
        rates = (
            [params.hot_uses_per_s, params.uses_per_s] if params.hot_bytes else [params.uses_per_s]
        )
        pools = region.pools if len(region.pools) == len(rates) else region.pools[:1] * len(rates)
        for pool, rate in zip(pools, rates, strict=True):
            uses = int(rate / STEPS_PER_S)
            if uses:
                sys.compute(uses * USE_NS)
                yield from sys.touch_at_random(pool, uses, params.write_share)
                self.done += uses

    def _tell(self, sys: Sys) -> None:
        sys.trace_marker("work_done", self.done)
        sys.trace_marker("progress", self.taken)
        self.done = 0
