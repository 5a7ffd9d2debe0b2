"""Properties: whatever is asked of a disk, everything ends once and the counters agree."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, BIO_FUA, BIO_SYNC, READ, WRITE, Plug
from sim.block.blk_cgroup import BlkioCgroup
from sim.block.cfq import Cfq, CfqParams
from sim.drivers.ebs import Ebs, Gp2Params
from sim.drivers.frontend import Frontend
from sim.drivers.hdd import Hdd, HddParams
from sim.drivers.nvme import Nvme, NvmeParams
from sim.drivers.ssd import Ssd, SsdParams
from sim.drivers.xen_blkfront import XenBlkfrontParams
from sim.registry import lookup, names
from tests.block.disks import MS, PAGE, Rig, Serial, ram

DRIVERS = {
    "ram": lambda: ram(queue_depth=2, write_cache=True),
    "hdd": lambda: Hdd(HddParams(capacity_bytes=1 << 30, queue_depth=4)),
    "hdd with a write cache": lambda: Hdd(
        HddParams(capacity_bytes=1 << 30, write_cache=True, buffer_bytes=1 << 20)
    ),
    "ssd": lambda: Ssd(SsdParams(capacity_bytes=1 << 30)),
    "ssd whose buffer is small and volatile": lambda: Ssd(
        SsdParams(capacity_bytes=1 << 30, buffer_bytes=1 << 16, buffer_protected=False)
    ),
    "nvme": lambda: Nvme(NvmeParams(capacity_bytes=1 << 30, buffer_protected=False)),
    "ebs behind a front end": lambda: Frontend(XenBlkfrontParams(slots=3), Ebs(Gp2Params())),
}

bios = st.tuples(
    st.sampled_from([READ, WRITE, WRITE]),
    st.integers(0, 3000),  # page
    st.integers(1, 40),  # bios in the run
    st.sampled_from([0, 0, 0, BIO_SYNC, BIO_BARRIER, BIO_FLUSH, BIO_FLUSH | BIO_FUA]),
    st.integers(1, 4),  # pid
    st.integers(0, 4_000_000),  # ns after the one before
)


def play(rig, bios, use_plug=False):
    """Submit all bios; return how often each was submitted and ended, page by page."""
    wanted, ended = Counter(), Counter()

    def end_part(bio, sector, count):
        first = sector // PAGE
        ended.update((bio.op, page) for page in range(first, first + count))

    time_ns = 0
    for op, page, count, flags, pid, later_ns in bios:
        if flags & ~BIO_SYNC:
            op, count = WRITE, 1
        bio = rig.bio(op, page, count, flags, pid)
        bio.end_part = end_part
        wanted.update((op, page + number) for number in range(count))
        time_ns += later_ns

        def submit(bio=bio):
            if use_plug and bio.plug is None:
                bio.plug = Plug()
            taken = rig.disk.submit_bio(bio)
            if use_plug:
                bio.plug.flush()
            rig.disk.check()
            if not taken:  # for want of a slot or tag: as a task that looks again and again
                rig.at(rig.calendar.now + MS, submit, bio)

        rig.at(time_ns, submit)
    rig.run()
    return wanted, ended


class Keeping(Serial):
    """A device that knows the requests it has, and all it ever had."""

    def __init__(self):
        super().__init__(queue_depth=4)
        self.inside, self.met = set(), set()

    def attach(self, name, calendar, streams, complete):
        def leave(request):
            self.inside.remove(request)
            complete(request)

        super().attach(name, calendar, streams, leave)

    def submit(self, request):
        assert request not in self.inside
        self.inside.add(request)
        self.met.add(request)
        super().submit(request)


@pytest.mark.parametrize("elevator", names("elevator"))
@pytest.mark.parametrize("use_plug", [False, True])
@given(bios=st.lists(bios, max_size=40))
def test_a_request_is_begun_again_only_when_it_is_complete(elevator, use_plug, bios):
    entry = lookup("elevator", elevator)
    driver = Keeping()
    rig = Rig(driver, entry.cls(entry.params()))
    wanted, ended = play(rig, bios, use_plug)
    assert wanted == ended
    assert set(rig.disk.spare) <= driver.met


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("elevator", names("elevator"))
@settings(max_examples=40, deadline=None)
@given(bios=st.lists(bios, max_size=40))
def test_every_sector_ends_once(driver, elevator, bios):
    entry = lookup("elevator", elevator)
    rig = Rig(DRIVERS[driver](), entry.cls(entry.params()))
    wanted, ended = play(rig, bios)
    assert wanted == ended
    assert len(rig.ended) == len(bios)
    stats = rig.stats
    assert stats.read_sectors + stats.write_sectors == PAGE * wanted.total()
    assert stats.reads + stats.writes + stats.read_merges + stats.write_merges <= wanted.total()


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("use_plug", [False, True])
@pytest.mark.parametrize("isolation", [False, True])
@settings(max_examples=30, deadline=None)
@given(bios=st.lists(bios, max_size=40))
def test_every_sector_ends_once_in_service_trees(driver, use_plug, isolation, bios):
    """Every other process is in one of two control groups."""
    groups = [None, BlkioCgroup("heavy", 1000), None, BlkioCgroup("light", 10)]
    params = CfqParams(service_trees=True, early=False, group_isolation=isolation)
    rig = Rig(DRIVERS[driver](), Cfq.make(params), blkcg=lambda pid: groups[pid % 4])
    wanted, ended = play(rig, bios, use_plug)
    assert wanted == ended and len(rig.ended) == len(bios)
    sectors = sum(stat.sectors for group in groups if group for stat in group.stats.values())
    assert sectors <= PAGE * wanted.total()


@settings(max_examples=60, deadline=None)
@given(bios=st.lists(bios, max_size=40))
def test_every_sector_ends_once_with_plugs_on_the_stack(bios):
    rig = Rig(ram(queue_depth=2, write_cache=True), plug="task", pools="sync")
    wanted, ended = play(rig, bios, use_plug=True)
    assert wanted == ended
