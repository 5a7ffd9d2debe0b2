"""The plug on a task's stack, from 2.6.39.

Models: while a task submits a batch, its requests stay in a list of its own: merging there needs no
lock, and queues see them sorted and at once. The list goes to its queues when the task is done
(flush()), before it sleeps for a request, when a queue has as many requests there as the release
allows, and when one more comes after a large one. A task that sleeps otherwise flushes first:
whoever sleeps in between calls flush().
Linux counterpart: blk_start_plug, blk_flush_plug_list, blk_attempt_plug_merge, block/blk-core.c
(2.6.39-4.20); blk_add_rq_to_plug, block/blk-mq.c (5.16 on); the limits are in limits.py.
Invariants: every request in the list has a slot and is accounted; flush() leaves it empty.
Left out: callbacks (md); that all queues' requests are counted together from 5.0 on (as many as
here for two queues from 5.15 on, where the limit is 64 for several queues).
"""

from operator import attrgetter
from typing import TYPE_CHECKING

from sim.block.bio import SECTOR, Bio, Plugging
from sim.block.request import Request, append_bios, prepend_bio

if TYPE_CHECKING:
    from sim.block.queue import Disk


class Plug(Plugging):
    """struct blk_plug: put it into ``bio.plug`` of each bio of a batch, then flush()."""

    def __init__(self) -> None:
        self._lists: list[tuple[Disk, list[Request]]] = []
        self._last: Request | None = None  # the youngest one here

    def submit_bio(self, disk: "Disk", bio: Bio, now_ns: int) -> bool:
        """Take over what is left of the run; False when the next bio needs a slot."""
        requests = self._list_of(disk)
        while bio.submitted < bio.count:
            sector = bio.sector + bio.submitted * bio.size
            most = bio.count - bio.submitted
            if not bio.granted:
                merged = _plug_merge(disk, requests, bio, sector, most)
                if not merged and disk.nr_waiting:
                    merged = disk.merges.try_merge(bio, sector, most, now_ns)
                if merged:
                    disk.count_merge(bio, merged)
                    disk.accept_bios(bio, merged)
                    continue
                if not disk.get_request(bio, now_ns):
                    return False
            bio.granted = False
            if self._is_full(disk, requests):
                self.flush()
                requests = self._list_of(disk)
            request = disk.take_request(bio, sector, now_ns)
            disk.account_start(request, now_ns)
            disk.nr_plugged += 1
            requests.append(request)
            self._last = request
            disk.accept_bios(bio, 1)
        return True

    def _is_full(self, disk: "Disk", requests: list[Request]) -> bool:
        """Return whether all has to go before one more request comes for this disk."""
        most = disk.params.plug_requests
        large = disk.params.plug_flush_bytes
        last = self._last
        if most and len(requests) >= most:
            return True
        return large > 0 and last is not None and last.nr_sectors * SECTOR >= large

    def _list_of(self, disk: "Disk") -> list[Request]:
        for known, requests in self._lists:
            if known is disk:
                return requests
        fresh: list[Request] = []
        self._lists.append((disk, fresh))
        return fresh

    def flush(self) -> None:
        """Give all requests to their queues, by sector, and run these (blk_flush_plug_list)."""
        lists = self._lists
        self._lists = []
        self._last = None
        for disk, requests in lists:
            requests.sort(key=attrgetter("sector"))
            now_ns = disk.calendar.now
            for request in requests:
                disk.nr_plugged -= 1
                disk.insert(request, now_ns)
                former = disk.merges.former_of(request)
                if former is not None:
                    disk.merges.try_unite(former, now_ns)
            disk.run_queue()


def _plug_merge(disk: "Disk", requests: list[Request], bio: Bio, sector: int, most: int) -> int:
    """Merge bios of the run into a request of the list; return how many."""
    for request in reversed(requests):
        if request.op != bio.op:
            continue
        if request.end == sector:
            count = min(most, disk.merges.room(request, bio))
            if count:
                if disk.tracer.enabled:
                    disk.trace("block_bio_backmerge", bio.op, sector, count * bio.size)
                append_bios(request, bio, count)
                return count
        elif request.sector == sector + bio.size and disk.merges.room(request, bio):
            if disk.tracer.enabled:
                disk.trace("block_bio_frontmerge", bio.op, sector, bio.size)
            prepend_bio(request, bio)
            return 1
    return 0
