"""CPUs at changing clocks: work is conserved, time is not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.sched.guest import GuestParams
from sim.sched.init import sched_init
from sim.sched.irq import InterruptLine
from sim.sched.params import SchedParams
from sim.sched.task import TASK_UNINTERRUPTIBLE
from sim.sched.vcpu import GuestSched
from tests.sched.clocks import HASWELL, ClockedRig, bursts, clock
from tests.sched.rig import CFS, EEVDF, MS, RELEASES, US, Rig, S, compute, hog, sleeper
from tests.sched.test_cputime import D

LOWEST = clock()
HIGHEST = clock(governor="performance")


def finish_s(rig, main):
    """Return when a program alone on the machine is done."""
    task = rig.sched.spawn("alone", main)
    while task.gen is not None:
        rig.run(0.01)
    return (task.utime_ns + task.stime_ns) / S


def test_half_the_clock_doubles_the_time_of_a_computation():
    assert finish_s(ClockedRig(cpufreq=HIGHEST), compute(100 * MS)) == 0.1
    assert finish_s(ClockedRig(cpufreq=LOWEST), compute(100 * MS)) == 0.2


def test_what_waits_for_memory_knows_no_clock():
    slow = ClockedRig(cpufreq=clock(stall_share=0.4))
    assert finish_s(slow, compute(100 * MS)) == pytest.approx(0.6 * 0.2 + 0.4 * 0.1)


def test_turbo_is_faster_than_the_base():
    turbo = clock(governor="performance", turbo_khz=3_200_000)
    assert finish_s(ClockedRig(cpufreq=turbo), compute(120 * MS)) == pytest.approx(0.09)


def test_a_hypervisors_overhead_lengthens_work():
    assert finish_s(ClockedRig(overhead=10.0), compute(100 * MS)) == pytest.approx(0.11)


def test_a_service_that_waits_for_a_disk_does_not_mind_the_clock():
    for governor in ("powersave", "performance"):
        rig = ClockedRig(cpufreq=clock(governor=governor))
        task = rig.sched.spawn("reader", sleeper(TASK_UNINTERRUPTIBLE, 5 * MS, in_iowait=True))
        rig.run(1)
        assert task.nvcsw == pytest.approx(200, abs=1)


@pytest.mark.parametrize("kernel", RELEASES)
def test_clocks_that_never_change_change_nothing(kernel):
    """At the base clock, without idle states, a machine is the plain one to the nanosecond."""
    logs = []
    for rig in (
        Rig(2, kernel, switch_ns=2 * US),
        ClockedRig(2, kernel, cpufreq=HIGHEST, switch_ns=2 * US),
    ):
        done = []
        for number in range(4):
            rig.sched.spawn("burst", bursts((3 + number) * MS, 11 * MS, done))
        rig.hogs(0, 5)
        rig.run(2)
        logs.append((done, [time.user_ns for time in rig.sched.cpu_times], rig.sched.nr_switches))
    assert logs[0] == logs[1]


def test_shares_by_nice_do_not_depend_on_the_clock():
    rig = ClockedRig(cpufreq=LOWEST)
    low, high = rig.hogs(5, 0)
    rig.run(20)
    assert high.utime_ns / low.utime_ns == pytest.approx(1024 / 335, rel=0.02)


TASKS = st.lists(
    st.tuples(st.integers(20 * US, 30 * MS), st.integers(20 * US, 60 * MS), st.integers(-5, 10)),
    min_size=1,
    max_size=6,
)
CLOCKS = st.builds(
    clock,
    governor=st.sampled_from(("powersave", "performance", "ondemand", "conservative", "schedutil")),
    package=st.booleans(),
    stall_share=st.sampled_from((0.0, 0.13, 0.5)),
    turbo_khz=st.sampled_from((None, 3_100_000)),
)


@settings(max_examples=40, deadline=None)
@given(tasks=TASKS, cpufreq=CLOCKS, cpus=st.integers(1, 3), idle=st.sampled_from((None, HASWELL)))
def test_times_sum_up_and_work_is_conserved_at_any_clock(tasks, cpufreq, cpus, idle):
    rig = ClockedRig(cpus, cpufreq=cpufreq, cpuidle=idle, switch_ns=US)
    for work_ns, sleep, nice in tasks:
        rig.sched.spawn("task", bursts(work_ns, work_ns + sleep), nice=nice)
    for when in (7, 33, 180):
        rig.at(when * MS, lambda _: InterruptLine(rig.sched, 0, 20 * US).serve())
    for _ in range(20):
        rig.run(0.02)
        for cpu, time in enumerate(rig.sched.cpu_times):
            one = rig.sched.cpu_at(cpu)
            assert time.total_ns() == rig.calendar.now
            assert time.idle_ns + time.iowait_ns == sum(one.residency_ns)
            assert one.worked_ns == time.busy_ns()
            # Nobody waits beside a CPU that is idle, beyond two ticks.
            assert one.curr is not None or not one.queue.nr_queued
        for task in rig.sched.processes.tasks.values():
            assert task.user_debt_ns >= 0 and task.system_debt_ns >= 0


@settings(max_examples=40, deadline=None)
@given(cpufreq=CLOCKS, works=st.lists(st.integers(1, 50 * MS), min_size=1, max_size=5))
def test_cycles_used_are_cycles_asked_for(cpufreq, works):
    """Whatever the clock did meanwhile, work x base clock was done: to a nanosecond a burst."""
    kept = ("governor", "package", "turbo_khz")  # and no waiting for memory
    plain = clock(**{name: getattr(cpufreq, name) for name in kept})
    rig = ClockedRig(cpufreq=plain)
    tasks = [rig.sched.spawn("work", compute(work)) for work in works]
    rig.run(1 + 3 * sum(works) / S)
    assert all(task.gen is None for task in tasks)
    asked = sum(works) * plain.base_khz
    used = rig.sched.cpu_at(0).cycles
    looks = 200 + len(works) * 20
    assert asked <= used <= asked + looks * 3_200_000


def test_an_idle_cpu_sleeps_beside_a_busy_one():
    rig = ClockedRig(2, CFS, cpuidle=HASWELL)
    rig.sched.spawn("hog", hog)
    rig.run(10)
    assert sum(rig.residency_ns()) == pytest.approx(10 * S, rel=1e-6)
    assert rig.residency_ns()[4] == pytest.approx(10 * S, rel=1e-3)


def test_iowait_is_residency_too():
    rig = ClockedRig(cpuidle=HASWELL)
    rig.sched.spawn("reader", sleeper(D, 5 * MS, in_iowait=True))
    rig.run(10)
    times = rig.sched.cpu_times[0]
    assert times.iowait_ns > 9 * S
    assert sum(rig.residency_ns()) == times.idle_ns + times.iowait_ns


def switches_in_ticks(rig_class):
    """When CPU time is measured in ticks of 10 ms: who ran when, of two hogs and a sleeper."""
    rig = rig_class(kernel=EEVDF, notsc=True, hz=100)
    hogs = rig.hogs(0, 0)
    rig.sched.spawn("sleeper", bursts(MS, 7 * MS))
    rig.run(2)
    return [(task.nivcsw, task.utime_ns, task.vruntime) for task in hogs]


def test_a_cpu_with_a_clock_measures_run_time_in_the_same_steps_as_a_plain_one():
    assert switches_in_ticks(ClockedRig) == switches_in_ticks(Rig)


def test_so_does_a_virtual_cpu():
    calendar = Calendar()
    params = SchedParams(notsc=True, hz=100)
    hardware = {"guest": GuestParams(host_cpus=2)}
    sched = sched_init(calendar, 2, (6, 12), params, Tracer(calendar), Streams(1), hardware)
    assert isinstance(sched, GuestSched)
    assert [rq._steps_ns(25 * MS, 10 * MS) for rq in sched.rqs] == [10 * MS] * 2
    assert [rq._steps_ns(19 * MS, 8 * MS) for rq in sched.rqs] == [0] * 2
