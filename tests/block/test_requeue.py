"""Steps of a flush sequence go through kblockd, which needs a CPU."""

from hypothesis import given
from hypothesis import strategies as st

from sim.block.bio import BIO_FLUSH, BIO_FUA, FLUSH
from sim.block.mq_deadline import MqDeadline, MqDeadlineParams
from sim.block.queue import REQUEUE_NS
from sim.sched.core import Sched
from sim.sched.params import SchedParams
from tests.block.disks import MS, PAGE, Rig, ram
from tests.sched.rig import EEVDF, S, compute

US = 1_000


def rig_with_kblockd(elevator=MqDeadline, params=MqDeadlineParams):
    """Return a rig whose disk has started, and its scheduler of one CPU."""
    rig = Rig(ram(queue_depth=32, write_cache=True), elevator(params()))
    sched = Sched(rig.calendar, 1, EEVDF, SchedParams(context_switch_ns=0))
    rig.disk.start(sched)
    return rig, sched


def steps(rig):
    """Return what the driver was given: time, and a page or "flush"."""
    return [
        (r.when_ns, "flush" if r.args[1] == FLUSH else r.args[2] // PAGE)
        for r in rig.tracer.records()
    ]


def run(rig):
    rig.calendar.run_until(10 * S)
    rig.disk.check()
    return rig


def test_each_step_is_dispatched_by_a_kworker_after_its_cpu_time():
    rig, _ = rig_with_kblockd()
    rig.write(2, flags=BIO_FLUSH | BIO_FUA)
    run(rig)
    first, step = REQUEUE_NS, MS + REQUEUE_NS
    assert steps(rig) == [(first, "flush"), (first + step, 2), (first + 2 * step, "flush")]
    assert [time for time, _ in rig.ended] == [first + 2 * step + MS]


def test_what_comes_before_the_kworker_has_run_goes_with_the_rest():
    """Two flushes' ends let two writes go: one run of the kworker for both."""
    rig, sched = rig_with_kblockd()
    for page in (2, 4):
        rig.at(MS // 2, rig.write, page, flags=BIO_FLUSH)
    rig.write(6, flags=BIO_FLUSH)
    run(rig)
    kinds = [what for _, what in steps(rig)]
    assert sorted(map(str, kinds)) == ["2", "4", "6", "flush", "flush"]
    assert len({time for time, what in steps(rig) if what in (2, 4)}) == 1
    assert sum(time.system_ns for time in sched.cpu_times) == 4 * REQUEUE_NS


def test_a_write_that_needs_no_flush_before_it_goes_at_once():
    """blk_insert_flush, 6.5: only the flush after it goes through kblockd."""
    rig, _ = rig_with_kblockd()
    rig.write(2, flags=BIO_FUA)
    run(rig)
    assert steps(rig) == [(0, 2), (MS + REQUEUE_NS, "flush")]


def test_a_write_without_flags_does_not_wait_for_the_kworker():
    rig, _ = rig_with_kblockd()
    rig.write(1)
    rig.disk.unplug()
    run(rig)
    assert [time for time, _ in rig.ended] == [MS]


def test_a_busy_cpu_delays_a_commit_block_where_who_runs_is_not_preempted():
    """The hog has used nothing yet, so that it keeps its CPU for its first slice."""
    rig, sched = rig_with_kblockd()
    sched.spawn("hog", compute(400 * US))
    rig.write(2, flags=BIO_FLUSH | BIO_FUA)
    run(rig)
    assert steps(rig)[0] == (400 * US + REQUEUE_NS, "flush")


sequences = st.lists(
    st.tuples(st.integers(0, 3000), st.sampled_from([0, BIO_FLUSH, BIO_FUA, BIO_FLUSH | BIO_FUA])),
    max_size=12,
)


@given(sequences)
def test_every_bio_ends_once(wanted):
    rig, _ = rig_with_kblockd()
    for number, (at_us, flags) in enumerate(wanted):
        rig.at(at_us * US, rig.write, number * 100, flags=flags)
    run(rig)
    assert len({id(bio) for _, bio in rig.ended}) == len(rig.ended) == len(wanted)
    assert rig.disk.requests.allocated() == 0


def test_requeueing_is_of_multi_queue_devices():
    rig = Rig(ram(queue_depth=32, write_cache=True))
    rig.disk.start(Sched(rig.calendar, 1, EEVDF))
    rig.write(2, flags=BIO_FLUSH)
    run(rig)
    assert steps(rig)[0] == (0, "flush")
