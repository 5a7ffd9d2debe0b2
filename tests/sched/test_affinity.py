"""Tasks that may not run everywhere: where they run, and who makes room for them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.syscalls import SchedAttr, parse_cpus
from tests.sched.rig import MS, RELEASES, Rig, hog
from tests.sched.test_groups import in_turns


def pinned(rig, *cpus, main=hog, comm="pinned"):
    return rig.sched.spawn(comm, main, None, 0, SchedAttr(allowed=frozenset(cpus)))


@pytest.mark.parametrize("kernel", RELEASES)
def test_pinned_hogs_share_their_cpu_and_leave_the_other_to_who_is_free(kernel):
    rig = Rig(2, kernel)
    held = [pinned(rig, 0) for _ in range(3)]
    [free] = rig.hogs(0)
    rig.run(6)
    assert free.utime_ns == pytest.approx(6000 * MS, rel=0.05)
    assert [task.utime_ns for task in held] == pytest.approx([2000 * MS] * 3, rel=0.1)


@pytest.mark.parametrize("kernel", RELEASES)
def test_of_two_crowded_cpus_the_one_whose_tasks_may_move_is_relieved(kernel):
    """Three hogs may run on 0 alone, two on 1 and 2: the third CPU takes one of the two."""
    rig = Rig(3, kernel)
    held = [pinned(rig, 0) for _ in range(3)]
    pair = [pinned(rig, 1, 2) for _ in range(2)]
    rig.run(4)
    assert [task.utime_ns for task in pair] == pytest.approx([4000 * MS] * 2, rel=0.06)
    assert sum(task.utime_ns for task in held) == pytest.approx(4000 * MS, rel=0.02)


def test_children_inherit_the_affinity():
    rig = Rig(4)
    children = []

    def parent(task):
        for _ in range(5):
            children.append(rig.sched.spawn("child", hog, task))
        return
        yield

    pinned(rig, 2, 3, main=parent)
    rig.run(1)
    assert {child.cpu for child in children} == {2, 3}


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(MS // 10, 20 * MS),
            st.integers(0, 20 * MS),
            st.sets(st.integers(0, 3), min_size=1),
        ),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(RELEASES),
)
def test_nobody_runs_where_it_must_not_and_no_cpu_idles_beside_who_may(drawn, kernel):
    rig = Rig(4, kernel)
    for compute_ns, rest_ns, cpus in drawn:
        pinned(rig, *cpus, main=in_turns(compute_ns, rest_ns))
    since = {}
    for ms in range(300):
        rig.run(0.001)
        waits = {}
        for rq in rig.sched.rqs:
            assert rq.curr is None or rq.cpu in rq.curr.allowed
            for task in rq.queue.waiting():
                assert rq.cpu in task.allowed
                waits[rq.cpu] = waits.get(rq.cpu, frozenset()) | task.allowed
        idle = [rq.cpu for rq in rig.sched.rqs if rq.curr is None]
        pairs = {(cpu, other) for cpu in idle for other, fit in waits.items() if cpu in fit}
        since = {pair: since.get(pair, ms) for pair in sorted(pairs)}
        assert all(ms - first <= 6 * 4 for first in since.values())


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0", {0}), ("0-2,5", {0, 1, 2, 5}), (" 1 , 3-3", {1, 3}), ("7,0-1", {0, 1, 7})],
)
def test_a_list_of_cpus_is_read_as_the_kernel_does(text, cpus):
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "1,,2", "0-99999", "1.5", "1 2"])
def test_what_is_no_list_of_cpus_is_refused(text):
    with pytest.raises(ValueError, match="CPUs"):
        parse_cpus(text)
