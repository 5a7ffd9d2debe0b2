"""Groups of tasks: each has its share of the machine, however many tasks it has."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.syscalls import SchedAttr
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from sim.sched.task_group import TaskGroup, weight_to_shares
from tests.sched.rig import CFS, EEVDF, MODERN, MS, Rig, S, hog

KERNELS = [CFS, MODERN, (5, 4), EEVDF, (6, 18, 44)]


def grouped(rig, *counts, shares=(), parents=()):
    """Hogs by group: `counts` of them in each, None for no group."""
    groups = []
    for number in range(len(counts)):
        parent = parents[number] if number < len(parents) else None
        own = shares[number] if number < len(shares) else 1024
        groups.append(TaskGroup(f"g{number}", own, None if parent is None else groups[parent]))
    rig.sched.add_groups(groups)
    return groups, [spawn(rig, group, count) for group, count in zip(groups, counts, strict=True)]


def spawn(rig, group, count, main=hog, nice=0):
    return [rig.sched.spawn("t", main, None, nice, SchedAttr(group=group)) for _ in range(count)]


def used_s(tasks):
    return sum(task.utime_ns for task in tasks) / S


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(200, 4096)), min_size=2, max_size=4),
    st.sampled_from(KERNELS),
)
def test_on_one_cpu_groups_share_by_weight_and_not_by_number_of_tasks(members, kernel):
    """Within two turns of everybody: a turn ends at a tick of 4 ms."""
    rig = Rig(1, kernel)
    counts = [count for count, _ in members]
    shares = [share for _, share in members]
    _, tasks = grouped(rig, *counts, shares=shares)
    rig.run(20)
    for own, share in zip(tasks, shares, strict=True):
        fair_s = 20 * share / sum(shares)
        assert used_s(own) == pytest.approx(fair_s, abs=0.3), (counts, shares)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [(2, 8), (4, 12), (2, 2)])
def test_on_two_cpus_groups_of_equal_shares_have_a_cpu_each(kernel, counts):
    rig = Rig(2, kernel)
    _, tasks = grouped(rig, *counts)
    rig.run(10)
    assert used_s(tasks[0]) == pytest.approx(10, rel=0.03)
    assert rig.cpu_s("idle_ns") < 0.05


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("cpus", "counts"), [(3, (3, 9)), (4, (4, 4)), (4, (4, 8)), (4, (4, 16)), (8, (8, 24))]
)
def test_a_group_with_a_task_for_each_cpu_has_its_share_of_all(kernel, cpus, counts):
    """Who is alone on a CPU for a while has no turn that ends: a tick weighs its group anew."""
    rig = Rig(cpus, kernel)
    _, tasks = grouped(rig, *counts)
    rig.run(10)
    assert used_s(tasks[0]) == pytest.approx(5 * cpus, rel=0.02)


def test_a_group_that_runs_alone_on_a_cpu_is_weighed_anew_at_a_tick():
    rig = Rig(2, EEVDF)
    (one, _), _ = grouped(rig, 2, 2)
    rig.run(0.1)
    assert sum(rq.entity.weight for rq in one.rqs) == pytest.approx(1024, abs=2)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_group_in_a_group_has_a_share_of_its_parents(kernel):
    """a: 1/2, of which a/x 2/3 and a/y 1/3; b: 1/2."""
    rig = Rig(1, kernel)
    groups, _ = grouped(
        rig, 0, 0, 0, 0, shares=(1024, 1024, 2048, 1024), parents=(None, None, 0, 0)
    )
    _, b, ax, ay = groups
    tasks = {group.name: spawn(rig, group, 2) for group in (b, ax, ay)}
    rig.run(30)
    shares = [used_s(tasks[group.name]) / 30 for group in (b, ax, ay)]
    assert shares == pytest.approx([1 / 2, 1 / 3, 1 / 6], abs=0.01)
    assert groups[0].usage_ns == ax.usage_ns + ay.usage_ns


@pytest.mark.parametrize("kernel", KERNELS)
def test_tasks_of_no_group_compete_with_groups_one_by_one(kernel):
    rig = Rig(1, kernel)
    _, [own] = grouped(rig, 3)
    free = rig.hogs(0, 0)
    rig.run(15)
    assert [used_s(own), used_s(free)] == pytest.approx([5, 10], abs=0.1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_nice_counts_within_a_group_alone(kernel):
    """Nice 5 has 335 of 1359 of its group's half; outside it would have 335 of 1359 of all."""
    rig = Rig(1, kernel)
    (one, _), _ = grouped(rig, 0, 1)
    [plain] = spawn(rig, one, 1)
    [nice] = spawn(rig, one, 1, nice=5)
    rig.run(30)
    assert nice.utime_ns / plain.utime_ns == pytest.approx(335 / 1024, rel=0.05)
    assert used_s([nice, plain]) == pytest.approx(15, abs=0.1)


def test_a_group_that_is_alone_has_everything():
    rig = Rig(2, MODERN)
    _, [few, many] = grouped(rig, 0, 3, shares=(100_000, 2))
    rig.run(3)
    assert few == []
    assert used_s(many) == pytest.approx(6, rel=0.02)


@pytest.mark.parametrize(("weight", "shares"), [(100, 1024), (1, 11), (10000, 102400), (50, 512)])
def test_a_weight_of_version_2_is_shares_of_version_1(weight, shares):
    assert weight_to_shares(weight) == shares


programs = st.lists(
    st.tuples(
        st.integers(0, 3),  # group; 3: none
        st.integers(MS // 10, 20 * MS),
        st.integers(0, 20 * MS),
        st.integers(-5, 10),
    ),
    min_size=1,
    max_size=10,
)


def in_turns(compute_ns, rest_ns):
    def main(task):
        while True:
            task.charge_user(compute_ns)
            yield
            yield from sleep_ns(task, rest_ns, TASK_INTERRUPTIBLE)

    return main


def check_counts(rq):
    """What the walks up and down must leave consistent."""
    queue = rq.queue
    assert queue.nr_queued == len(queue.waiting())
    for below in (queue._root, *queue._below.values()):
        members = below.queue.waiting()
        assert below.queue.nr_queued == len(members)
        assert below.queue.load == sum(member.weight for member in members)
        entity, parent = below.entity, below.parent
        if parent is not None:
            waits = entity in parent.queue.waiting()
            assert waits == (bool(members) and below.running is None and not below.throttled)
            assert below.on_rq == (waits or below.running is not None)
            assert (parent.running is entity) == (below.running is not None)


@settings(max_examples=40, deadline=None)
@given(programs, st.integers(1, 3), st.sampled_from(KERNELS))
def test_whatever_happens_the_queues_agree_on_who_waits(drawn, cpus, kernel):
    rig = Rig(cpus, kernel)
    groups, _ = grouped(rig, 0, 0, 0, parents=(None, None, 1))
    tasks = []
    for number, compute_ns, rest_ns, nice in drawn:
        group = groups[number] if number < 3 else None
        main = in_turns(compute_ns, rest_ns)
        tasks.append(rig.sched.spawn("t", main, None, nice, SchedAttr(group=group)))
    for _ in range(100):
        rig.run(0.0037)
        for rq in rig.sched.rqs:
            check_counts(rq)
    rig.sched.update()
    for group in groups:
        names = {one.name for one in groups if group in (one, one.parent)}
        inside = [task for task in tasks if task.group in names]
        assert group.usage_ns == sum(task.utime_ns + task.stime_ns for task in inside)
    assert sum(cpu.busy_ns() for cpu in rig.sched.cpu_times) == sum(t.utime_ns for t in tasks)
