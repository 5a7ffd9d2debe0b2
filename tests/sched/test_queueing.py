"""Whole CPUs against queueing theory."""

import math

import pytest

from tests.sched.rig import CFS, EEVDF, MODERN, MS, O1, OpenQueue, Rig


def mmc_in_system(servers, utilisation):
    """Mean number in an M/M/c system (Erlang C)."""
    offered = servers * utilisation
    last = offered**servers / math.factorial(servers) / (1 - utilisation)
    none = 1 / (sum(offered**k / math.factorial(k) for k in range(servers)) + last)
    return offered + last * none * utilisation / (1 - utilisation)


def run_queue(kernel, cpus, utilisation, mean_ms, jobs=30_000):
    rig = Rig(cpus, kernel)
    rate_per_s = utilisation * cpus / mean_ms * 1000
    queue = OpenQueue(rig, rate_per_s=rate_per_s, mean_ns=mean_ms * MS, jobs=jobs)
    rig.calendar.run()
    return queue


@pytest.mark.parametrize("kernel", [O1, CFS, EEVDF])
@pytest.mark.parametrize("utilisation", [0.3, 0.7])
def test_one_cpu_is_m_m_1(kernel, utilisation):
    """The mean is that of FIFO and of processor sharing, as service is exponential."""
    queue = run_queue(kernel, 1, utilisation, 10)
    expected = utilisation / (1 - utilisation)
    assert queue.mean_in_system() == pytest.approx(expected, rel=0.1)


def test_littles_law():
    queue = run_queue(CFS, 2, 0.6, 10, jobs=5000)
    rate_per_s = len(queue.response_ns) / (queue.rig.calendar.now / 1e9)
    assert queue.mean_in_system() == pytest.approx(rate_per_s * queue.mean_response_s(), rel=0.01)


@pytest.mark.parametrize("kernel", [CFS, MODERN, EEVDF])
def test_four_cpus_that_look_for_an_idle_sibling_are_m_m_4(kernel):
    queue = run_queue(kernel, 4, 0.6, 20)
    assert queue.mean_in_system() == pytest.approx(mmc_in_system(4, 0.6), rel=0.08)


@pytest.mark.parametrize(("mean_ms", "at_least", "at_most"), [(5, 1.05, 1.3), (50, 0.95, 1.1)])
def test_four_cpus_of_2_6_16_lose_by_waiting_for_the_tick(mean_ms, at_least, at_most):
    """Nobody looks for an idle CPU at the wake-up; an idle one pulls at a tick, 4 ms later. That
    costs jobs of 5 ms a fifth, jobs of 50 ms little; four separate queues would cost 112 %."""
    queue = run_queue(O1, 4, 0.6, mean_ms)
    more = queue.mean_in_system() / mmc_in_system(4, 0.6)
    assert at_least < more < at_most


def test_processor_sharing_treats_short_jobs_well():
    """Under a fair scheduler mean response is proportional to demand: slowdown 1 / (1 - rho)."""
    rig = Rig(1, MODERN, hz=250)
    queue = OpenQueue(rig, rate_per_s=5, mean_ns=100 * MS, jobs=10_000)
    rig.calendar.run()
    assert queue.mean_response_s() == pytest.approx(0.1 / (1 - 0.5), rel=0.1)
