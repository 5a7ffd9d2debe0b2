"""Load balancing between CPUs."""

import pytest

from sim.sched.balance import busy_period_ns
from sim.sched.features import features
from tests.sched.rig import CFS, EEVDF, MODERN, O1, RELEASES, Rig


@pytest.mark.parametrize("kernel", RELEASES)
def test_as_many_hogs_as_cpus_have_a_cpu_each(kernel):
    rig = Rig(4, kernel)
    hogs = rig.hogs(0, 0, 0, 0)
    assert rig.run(5).shares(hogs) == pytest.approx([0.25] * 4, rel=0.02)


def forked(rig, count):
    """Hogs that one parent forks, all on its CPU where the release does not balance forks."""
    hogs = []

    def parent(task):
        for _ in range(count):
            hogs.append(rig.sched.spawn("hog", hog_main, task))
        return
        yield

    def hog_main(task):
        while True:
            task.charge_user(10_000_000)
            yield

    rig.sched.spawn("parent", parent)
    return hogs


@pytest.mark.parametrize("kernel", RELEASES)
def test_hogs_forked_on_one_cpu_spread_over_all(kernel):
    rig = Rig(4, kernel)
    forked(rig, 8)
    rig.run(10)
    assert rig.cpu_s("idle_ns") < 0.3
    assert [rq.nr_running() for rq in rig.sched.rqs] == [2] * 4


def test_three_hogs_on_two_cpus_take_turns_since_smpnice():
    """2.6.16 leaves one CPU to one of them for ever."""
    spread = {}
    for kernel in (O1, EEVDF):
        rig = Rig(2, kernel)
        hogs = rig.hogs(0, 0, 0)
        shares = rig.run(60).shares(hogs)
        spread[kernel] = max(shares) - min(shares)
    assert spread[O1] == pytest.approx(0.25, abs=0.01)
    assert spread[EEVDF] < 0.12


def seconds_beside(kernel, seconds=10):
    """How long two tasks of nice 19 are on the CPU with two of three hogs of nice 0, each."""
    rig = Rig(2, kernel)
    hogs = rig.hogs(0, 0, 0, 19, 19)
    crowded = [0, 0]
    for _ in range(seconds * 1000):
        rig.run(0.001)
        cpus = [hog.cpu for hog in hogs]
        full = int(cpus[:3].count(1) == 2)
        for number in (0, 1):
            crowded[number] += cpus[3 + number] == full
    return [ms / 1000 for ms in crowded]


def test_a_cpu_that_was_shared_until_now_has_time_to_spare_and_takes_no_load_since_6_6():
    """So tasks of little weight stay where two hogs are for about half of the time."""
    assert seconds_beside((5, 4)) == pytest.approx([0, 0], abs=1.5)
    assert seconds_beside((6, 12)) == pytest.approx([5, 5], abs=1.0)


@pytest.mark.parametrize("nice", [1, 5, 10, 15, 19])
@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_hogs_of_low_priority_have_less_than_others_and_more_than_beside_all_of_them(nice, count):
    """On two CPUs with three hogs of nice 0: at least the share beside two of these and all of
    theirs, at most the share of one that has one of these beside it and nobody else."""
    rig = Rig(2, EEVDF)
    hogs = rig.hogs(0, 0, 0, *[nice] * count)
    rig.run(20)
    weight = hogs[-1].weight
    least = weight / (2 * 1024 + count * weight)
    most = weight / (1024 + weight)
    for hog in hogs[3:]:
        assert 0.9 * least <= hog.utime_ns / 20e9 <= 1.1 * most
        assert hog.utime_ns < min(other.utime_ns for other in hogs[:3])


@pytest.mark.parametrize("kernel", [O1, CFS, MODERN])
def test_balancing_stops_when_nobody_waits(kernel):
    rig = Rig(4, kernel)
    rig.hogs(0, 0)
    rig.run(1)
    before = rig.calendar.entries_run()
    rig.run(10)
    assert rig.calendar.entries_run() - before < 2 * 10 * 20 + 10  # The hogs' own bursts of 50 ms.


@pytest.mark.parametrize(("failed", "moves"), [(0, False), (1, False), (2, True)])
@pytest.mark.parametrize(("kernel", "hot_ms"), [((2, 6, 18), 2.5), (CFS, 0.5), (EEVDF, 0.5)])
def test_who_ran_just_now_is_left_until_looks_have_failed(kernel, hot_ms, failed, moves):
    """cache_hot_time 2.5 ms, sysctl_sched_migration_cost 0.5 ms; cache_nice_tries 1."""
    for age_ms in (hot_ms - 0.1, hot_ms):
        rig = Rig(2, kernel)
        rig.hogs(0, 0, 0)
        rig.run(0.1)
        light, full = sorted(rig.sched.rqs, key=lambda rq: rq.nr_running())
        [waiting] = full.queue.waiting()
        waiting.last_ran_ns = rig.calendar.now - round(age_ms * 1e6)
        balancer = rig.sched._balancer
        balancer._failed[light.cpu] = failed
        balancer._move_tasks(light, full, 10**6)
        assert (waiting.cpu == light.cpu) is (moves or age_ms == hot_ms)


def test_looks_before_going_idle_are_no_failures():
    """They are many, and would have hot tasks moved (load_balance: not if CPU_NEWLY_IDLE)."""
    rig = Rig(2, (5, 4))
    rig.hogs(0, 0, 0)
    rig.run(0.1)
    light, full = sorted(rig.sched.rqs, key=lambda rq: rq.nr_running())
    balancer = rig.sched._balancer
    balancer._failed[light.cpu] = 0
    full.queue.waiting()[0].last_ran_ns = rig.calendar.now
    balancer._look(light)
    assert full.nr_running() == 2
    assert balancer._failed[light.cpu] == 0


@pytest.mark.parametrize(
    ("kernel", "periods_ms"),
    [((2, 6, 16), (64, 128, 256)), ((3, 16), (64, 128)), ((6, 6), (28, 60))],
)
def test_a_busy_cpu_looks_half_as_often_after_each_look_that_found_balance(kernel, periods_ms):
    """Two CPUs, ticks of 4 ms: up to max_interval, which is 4 ms to 3.15, then twice the CPUs."""
    does = features(kernel)
    intervals, found = 1, []
    while intervals <= does.busy_balance_most:
        found.append(busy_period_ns(does, 2, 4_000_000, intervals) // 1_000_000)
        intervals *= 2
    assert tuple(found) == periods_ms
