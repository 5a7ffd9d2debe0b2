"""blk-throttle: rates over any interval, order, and that everything ends once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import READ, WRITE
from sim.block.throttle import SLICE_NS, Throttle, ThrottleParams
from sim.sched.core import Sched
from tests.block.disks import MS, PAGE, Rig, ram

KIB = 1024


class Limited(Rig):
    """A fast disk behind limits."""

    def __init__(self, plugs=True, **limits):
        super().__init__(ram(latency_ns=10_000, queue_depth=256), plug="task")
        self.sched = Sched(self.calendar, nr_cpus=1, kernel=(5, 10))
        params = ThrottleParams(**limits)
        self.device = Throttle(self.disk, params, self.sched, plugs=plugs)

    def submit(self, op, page, count=1, pages=1):
        bio = self.bio(op, page, count, pages=pages)
        bio.end_part = self.note
        assert self.device.submit_bio(bio)
        return bio

    parts = ()

    def note(self, bio, sector, count):
        self.parts = (*self.parts, (self.calendar.now, bio.op, count, count * bio.size * 512))

    def until(self, seconds):
        self.calendar.run_until(int(seconds * 1e9))
        self.disk.check()
        return self


def moved(rig, op, begin_ns, end_ns):
    """Return operations and bytes that ended in an interval."""
    inside = [part for part in rig.parts if part[1] == op and begin_ns <= part[0] < end_ns]
    return sum(part[2] for part in inside), sum(part[3] for part in inside)


@pytest.mark.parametrize("op, key", [(READ, "rbps"), (WRITE, "wbps")])
def test_bytes_a_second(op, key):
    rig = Limited(**{key: 400 * KIB})
    rig.submit(op, 0, count=1000)
    rig.until(4)
    assert moved(rig, op, 0, 4e9)[1] == pytest.approx(4 * 400 * KIB, rel=0.03)


@pytest.mark.parametrize("op, key", [(READ, "riops"), (WRITE, "wiops")])
def test_operations_a_second(op, key):
    rig = Limited(**{key: 50})
    for number in range(300):
        rig.submit(op, 100 * number, pages=4)
    rig.until(4)
    assert moved(rig, op, 0, 4e9)[0] == pytest.approx(200, abs=6)


def test_a_round_sends_six_reads_and_two_writes():
    """What a slice held back comes together (throtl_grp_quantum 8: three quarters are reads')."""
    rig = Limited(plugs=False, riops=1000, wiops=1000)  # a plug would sort them
    for number in range(300):
        rig.submit(READ, 100 * number)
        rig.submit(WRITE, 100 * number + 50)
    rig.until(0.15)
    second_slice = [op for at, op, _, _ in rig.parts if at >= SLICE_NS]
    assert len(second_slice) > 80
    assert second_slice[:80] == 10 * (6 * [READ] + 2 * [WRITE])


def test_the_other_direction_is_not_limited():
    rig = Limited(wbps=4 * KIB)
    rig.submit(WRITE, 0, count=100)
    rig.submit(READ, 5000, count=100)
    rig.until(0.1)
    assert moved(rig, READ, 0, 1e9)[0] == 100


def test_an_operation_within_the_limit_is_not_delayed():
    rig = Limited(rbps=400 * KIB)
    rig.submit(READ, 0)
    rig.until(0.001)
    assert len(rig.ended) == 1


def test_a_bio_longer_than_a_slice_waits_for_its_time():
    rig = Limited(wbps=100 * KIB)
    rig.submit(WRITE, 0, pages=64)  # 256 KiB: 2.56 s
    rig.until(2.4)
    assert not rig.ended
    rig.until(2.7)
    assert len(rig.ended) == 1


loads = st.lists(
    st.tuples(
        st.sampled_from([READ, WRITE]),
        st.integers(0, 1000),
        st.integers(1, 30),
        st.sampled_from([1, 4]),
        st.integers(0, 400 * MS),
    ),
    min_size=1,
    max_size=15,
)


@settings(max_examples=30, deadline=None)
@given(loads=loads, rbps=st.sampled_from([200 * KIB, None]), wiops=st.sampled_from([20, 100]))
def test_no_interval_has_more_than_its_rate_and_all_ends_once(loads, rbps, wiops):
    rig = Limited(rbps=rbps, wiops=wiops)
    time_ns = 0
    for op, page, count, pages, later_ns in loads:
        time_ns += later_ns
        rig.at(time_ns, rig.submit, op, page * 200, count, pages)
    rig.until(60)
    assert len(rig.ended) == len(loads)
    for begin_ns in range(0, int(4e9), SLICE_NS // 2):
        for width in (1, 2, 5, 10):
            slices = (width + 2) * SLICE_NS / 1e9
            reads, writes = (
                moved(rig, op, begin_ns, begin_ns + width * SLICE_NS) for op in (READ, WRITE)
            )
            assert writes[0] <= wiops * slices + 1
            if rbps is not None:
                assert reads[1] <= rbps * slices + 4 * PAGE * 512
