"""Load balancing between CPUs."""

import pytest

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


@pytest.mark.parametrize("kernel", [O1, CFS, MODERN])
def test_balancing_stops_when_nobody_waits(kernel):
    rig = Rig(4, kernel)
    rig.hogs(0, 0)
    rig.run(1)
    before = rig.calendar.entries_run()
    rig.run(10)
    assert rig.calendar.entries_run() - before < 2 * 10 * 20 + 10  # The hogs' own bursts of 50 ms.
