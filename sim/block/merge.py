"""Finding a waiting request that a bio, or another request, can become part of.

Models: a bio joins the request that ends where it starts (back merge), else the one that starts
where it ends (front merge); if the request then touches another one, the two become one. Limits:
sectors and segments of a request. A request that refused a bio for its length is left alone from
then on (REQ_NOMERGE).
Linux counterpart: elv_merge, block/elevator.c; ll_back_merge_fn, ll_front_merge_fn, attempt_merge,
block/ll_rw_blk.c (2.6.16), block/blk-merge.c (2.6.25).
Invariants: holds exactly the requests that wait and may grow; after a merge no limit is exceeded.
Left out: several waiting requests in one direction that end (or start) at the same sector: the
latest is found; contiguous pages that share a segment.
"""

from collections.abc import Callable

from sim.block.bio import (
    DISCARD,
    OPS,
    PAGE_SECTORS,
    Bio,
    Request,
    absorb_request,
    append_bios,
    prepend_bio,
)
from sim.block.elevator import Elevator
from sim.engine.trace import Tracer


class MergeTable:
    """The waiting requests of a queue, by where they end and where they start."""

    def __init__(
        self,
        elevator: Elevator,
        absorbed: Callable[[Request, int], None],
        max_sectors: int,
        max_segments: int,
        tracer: Tracer,
        name: str,
        max_discard: int,
    ) -> None:
        self._elevator = elevator
        self._tracer = tracer
        self._name = name  # of the disk, for tracepoints
        self._absorbed = absorbed  # (request that is no more, now)
        self._max_sectors = max_sectors
        self._max_segments = max_segments
        self._max_discard = max_discard  # sectors of a discard, which has no segments
        # By op, then by sector.
        self._by_end: list[dict[int, Request]] = [{} for _ in range(OPS)]
        self._by_start: list[dict[int, Request]] = [{} for _ in range(OPS)]

    def add(self, request: Request) -> None:
        """Let bios find a request that begins to wait."""
        op = request.op
        self._by_end[op][request.end] = request
        self._by_start[op][request.sector] = request

    def remove(self, request: Request) -> None:
        """Forget a request that must not grow any more."""
        op = request.op
        end = request.end
        found = self._by_end[op].pop(end, None)
        if found is not request and found is not None:
            self._by_end[op][end] = found  # Another one ends there.
        start = request.sector
        found = self._by_start[op].pop(start, None)
        if found is not request and found is not None:
            self._by_start[op][start] = found

    def try_merge(self, bio: Bio, sector: int, most: int, now_ns: int) -> int:
        """Merge up to ``most`` bios of the run, the first at ``sector``; return how many."""
        op = bio.op
        request = self._by_end[op].get(sector)
        if request is not None and self._elevator.allow_merge(request, bio):
            count = min(most, self.room(request, bio))
            if count:
                self._back_merge(request, bio, count, now_ns)
            else:
                self.remove(request)  # REQ_NOMERGE
            return count
        request = self._by_start[op].get(sector + bio.size)
        if request is not None and self._elevator.allow_merge(request, bio):
            if self.room(request, bio):
                self._front_merge(request, bio, now_ns)
                return 1
            self.remove(request)  # REQ_NOMERGE
        return 0

    def room(self, request: Request, bio: Bio) -> int:
        """Return how many bios of the run the request has room for."""
        if bio.op == DISCARD:
            return (self._max_discard - request.nr_sectors) // bio.size
        segments = (bio.size + PAGE_SECTORS - 1) // PAGE_SECTORS
        bios = min(
            (self._max_sectors - request.nr_sectors) // bio.size,
            (self._max_segments - request.nr_segments) // segments,
        )
        return max(bios, 0)  # A bio alone may have more segments than fit.

    def _back_merge(self, request: Request, bio: Bio, count: int, now_ns: int) -> None:
        if self._tracer.enabled:
            self._trace("block_bio_backmerge", bio, request.end, count)
        self._unlink_end(request)
        append_bios(request, bio, count)
        following = self._by_start[request.op].get(request.end)
        if following is not None and self._fit(request, following):
            self._unite(request, following, now_ns)
        self._by_end[request.op][request.end] = request

    def _front_merge(self, request: Request, bio: Bio, now_ns: int) -> None:
        by_start = self._by_start[request.op]
        if by_start.get(request.sector) is request:
            del by_start[request.sector]
        old_sector = request.sector
        prepend_bio(request, bio)
        if self._tracer.enabled:
            self._trace("block_bio_frontmerge", bio, request.sector, 1)
        by_start[request.sector] = request
        self._elevator.moved(request, old_sector)
        former = self.former_of(request)
        if former is not None and self._fit(former, request):
            self._unlink_end(former)
            self._unite(former, request, now_ns)
            self._by_end[former.op][former.end] = former

    def _trace(self, name: str, bio: Bio, sector: int, count: int) -> None:
        self._tracer.emit(name, self._name, bio.op, sector, count * bio.size, bio.flags, count)

    def try_unite(self, former: Request, now_ns: int) -> None:
        """Merge a waiting request with the one that starts where it ends (attempt_back_merge)."""
        following = self._by_start[former.op].get(former.end)
        if following is not None and following is not former and self._fit(former, following):
            self._unlink_end(former)
            self._unite(former, following, now_ns)
            self._by_end[former.op][former.end] = former

    def former_of(self, request: Request) -> Request | None:
        """Return the waiting request that ends where this one starts."""
        return self._by_end[request.op].get(request.sector)

    def _fit(self, former: Request, following: Request) -> bool:
        sectors = former.nr_sectors + following.nr_sectors
        if former.op == DISCARD:
            return sectors <= self._max_discard and self._elevator.allow_unite(former, following)
        return (
            sectors <= self._max_sectors
            and former.nr_segments + following.nr_segments <= self._max_segments
            and self._elevator.allow_unite(former, following)
        )

    def _unite(self, former: Request, following: Request, now_ns: int) -> None:
        """Make ``following`` part of ``former``, whose own end is not in the table now."""
        self.remove(following)
        self._elevator.absorbed(former, following)
        absorb_request(former, following)
        self._absorbed(following, now_ns)

    def _unlink_end(self, request: Request) -> None:
        by_end = self._by_end[request.op]
        if by_end.get(request.end) is request:
            del by_end[request.end]
