"""CFQ's control groups: shares of a disk by weight (from 2.6.33 on)."""

import itertools
import random

import pytest

from sim.block.blk_cgroup import DEFAULT_WEIGHT, BlkioCgroup
from sim.block.cfq import Cfq, CfqParams
from sim.drivers.hdd import Hdd, HddParams
from tests.block.disks import MS, Flood, Reader, Rig, Serial, ram

S = 1000 * MS
MANY = 1 << 30


def disk(queue_depth=1):
    """Return a device with heads that takes 1 ms for everything."""
    device = ram(queue_depth=queue_depth)
    device.rotational = True
    return device


class Groups:
    """Control groups with these weights; process 100 * n + i is in the n-th, others in the root."""

    def __init__(self, *weights):
        self.cgroups = [BlkioCgroup(f"g{at}", weight) for at, weight in enumerate(weights, 1)]

    def of(self, pid):
        at = pid // 100
        return self.cgroups[at - 1] if 0 < at <= len(self.cgroups) else None

    def rig(self, driver=None, kernel="3.2", **changes):
        values = {name: value for name, (value, _) in CfqParams.kernel_defaults(kernel).items()}
        elevator = Cfq.make(CfqParams(**(values | changes)))
        return Rig(driver or disk(), elevator, blkcg=self.of, plug="task", pools="sync")

    def times(self):
        return [sum(stat.time_ns for stat in group.stats.values()) for group in self.cgroups]


class Process:
    """Reads on and on: in order, or anywhere; keeps count."""

    def __init__(self, rig, pid, *, anywhere=False, think_ns=10_000, pages=20_000_000):
        self.rig, self.pid, self.think_ns, self.done = rig, pid, think_ns, 0
        self.draw = random.Random(pid) if anywhere else None
        self.pages, self.page = pages, pid * 50_000
        rig.calendar.post(0, self.go, None)

    def go(self, _):
        self.page = self.draw.randrange(self.pages) if self.draw else self.page + 1
        bio = self.rig.bio(0, self.page, pid=self.pid)
        bio.end_io = self.ended
        assert self.rig.disk.submit_bio(bio)

    def ended(self, bio):
        self.done += 1
        self.rig.calendar.post(self.think_ns, self.go, None)


def counts(rig, groups, each=1, run_ns=8 * S, **how):
    """Return the reads of each group, with so many processes in each."""
    found = []
    for at in range(1, len(groups.cgroups) + 1):
        found.append([Process(rig, 100 * at + i, **how) for i in range(each)])
    rig.calendar.run_until(run_ns)
    return [sum(one.done for one in group) for group in found]


# -- Laws.


@pytest.mark.parametrize("weights", [(1000, 500), (1000, 100), (600, 300, 100)])
@pytest.mark.parametrize("anywhere", [False, True])
def test_shares_are_as_the_weights(weights, anywhere):
    """Each read takes a millisecond: of n reads a group has n * weight / sum of weights."""
    groups = Groups(*weights)
    found = counts(groups.rig(), groups, anywhere=anywhere)
    for count, weight in zip(found, weights, strict=True):
        assert count / sum(found) == pytest.approx(weight / sum(weights), rel=0.1)
    times = groups.times()
    assert times[0] / sum(times) == pytest.approx(weights[0] / sum(weights), rel=0.05)


def test_more_processes_have_no_more():
    """A group is one: eight processes against one of the same weight."""
    groups = Groups(500, 500)
    rig = groups.rig()
    many = [Process(rig, 100 + i) for i in range(8)]
    one = Process(rig, 200)
    rig.calendar.run_until(8 * S)
    assert sum(process.done for process in many) == pytest.approx(one.done, rel=0.1)


def test_who_is_alone_has_all():
    """Weights share out what is wanted: the lightest group alone reads as the root group does."""
    groups = Groups(10)
    [alone] = counts(groups.rig(), groups, run_ns=5 * S)
    root = Process(Groups().rig(), 1)
    root.rig.calendar.run_until(5 * S)
    assert alone == pytest.approx(root.done, rel=0.01)


def test_nobody_starves():
    """Weight 10 beside 1000 three times: one in 301 of the reads, and at least every 10 s one."""
    groups = Groups(1000, 1000, 1000, 10)
    rig = groups.rig()
    for at in (1, 2, 3):
        Process(rig, 100 * at)
    Reader(rig, 400, 30_000_000, MANY, step=1)
    rig.calendar.run_until(30 * S)
    times = [when for when, bio in rig.ended if bio.task_id == 400]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert len(times) / 30_000 == pytest.approx(1 / 301, rel=0.5)
    assert max(gaps) < 10 * S


def test_the_times_of_all_groups_are_the_disks():
    groups = Groups(1000, 300, 100)
    found = counts(groups.rig(), groups, each=2)
    assert sum(groups.times()) == pytest.approx(8 * S, rel=0.1)
    sectors = [sum(stat.sectors for stat in group.stats.values()) for group in groups.cgroups]
    assert sum(sectors) == pytest.approx(8 * sum(found), abs=8 * 6)


def test_the_root_group_weighs_twice_an_ordinary_one():
    groups = Groups(DEFAULT_WEIGHT)
    rig = groups.rig()
    own, root = Process(rig, 100), Process(rig, 1)
    rig.calendar.run_until(8 * S)
    assert root.done == pytest.approx(2 * own.done, rel=0.1)


# -- What releases changed.


@pytest.mark.parametrize(
    ("kernel", "changes", "ratio"),
    [("2.6.38", {}, 1), ("2.6.38", {"group_isolation": True}, 4), ("2.6.39", {}, 4)],
)
def test_who_seeks_is_in_the_root_group_to_2_6_38(kernel, changes, ratio):
    """To 2.6.38 a disk waits once for all who seek; group_isolation = 1 waits for each group."""
    groups = Groups(800, 200)
    found = counts(groups.rig(kernel=kernel, **changes), groups, anywhere=True)
    assert found[0] / found[1] == pytest.approx(ratio, rel=0.15)


@pytest.mark.parametrize(("group_idle_ms", "keeps"), [(8, True), (0, False)])
def test_group_idle_keeps_shares_where_slice_idle_is_0(group_idle_ms, keeps):
    """The one of weight 900 thinks 3 ms: nothing of it waits when a turn could be its own."""
    groups = Groups(900, 100)
    rig = groups.rig(slice_idle_ns=0, group_idle_ns=group_idle_ms * MS)
    heavy, light = Process(rig, 100, think_ns=3 * MS), Process(rig, 200)
    rig.calendar.run_until(8 * S)
    assert (heavy.done > light.done) is keeps


def test_on_flash_of_4_2_groups_share_requests():
    """slice_idle is 0 and the drive queues: a group is charged for requests, not for time."""
    groups = Groups(600, 200)
    rig = groups.rig(Serial(), kernel="4.4")
    found = counts(rig, groups, each=32, run_ns=2 * S, anywhere=True)
    assert found[0] / found[1] == pytest.approx(3, rel=0.15)


def test_writes_that_nobody_waits_for_are_of_the_root_group():
    """A flood of them from the lightest group is served as if the root group had sent it."""
    served = []
    for pid in (1, 100):
        groups = Groups(10)
        rig = groups.rig(Hdd(HddParams()))
        flood = Flood(rig, pid, 20)
        Process(rig, 2)
        rig.calendar.run_until(S)
        served.append(len(flood.ended_ns))
    assert served[0] == served[1] > 0
