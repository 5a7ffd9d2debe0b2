"""A disk as a queue: the formulas it has to obey."""

import random

import pytest

from tests.block.disks import MS, Rig, ram


def poisson_reads(rig, rate_per_s, count, seed=1):
    """Read at random times, each read unplugging; return the rig after all are done."""
    draw = random.Random(seed)
    time_ns = 0
    for number in range(count):
        time_ns += round(draw.expovariate(rate_per_s) * 1e9)
        rig.at(time_ns, rig.read, 10 * number)
        rig.at(time_ns, rig.disk.unplug)
    rig.tracer.stop()
    return rig.run()


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_random_arrivals_at_a_constant_server_wait_as_m_d_1_says(load):
    rig = poisson_reads(Rig(ram(MS)), load * 1000, 30_000)
    wait_ms = load / (2 * (1 - load))  # in units of the service time, 1 ms
    found = rig.stats.read_ns / rig.stats.reads / 1e6
    assert found == pytest.approx(1 + wait_ms, rel=0.04)


def test_utilisation_is_arrivals_times_service():
    rig = poisson_reads(Rig(ram(MS)), 500, 20_000)
    assert rig.stats.io_ticks_ns / rig.calendar.now == pytest.approx(0.5, rel=0.03)


def test_littles_law():
    rig = poisson_reads(Rig(ram(MS, queue_depth=3)), 2000, 20_000)
    in_flight = rig.stats.time_in_queue_ns / rig.calendar.now
    rate = rig.stats.reads / rig.calendar.now
    assert in_flight == pytest.approx(rate * rig.stats.read_ns / rig.stats.reads, rel=1e-9)


def test_a_closed_loop_of_n_sees_n_times_the_service_time():
    rig = Rig(ram(MS))
    left = 1000

    def read(_=None):
        nonlocal left
        if left:
            left -= 1
            bio = rig.bio(0, 10 * left)
            bio.end_io = read
            rig.disk.submit_bio(bio)
            rig.disk.unplug()

    for _ in range(5):
        read()
    rig.run()
    assert rig.stats.read_ns / rig.stats.reads == pytest.approx(5 * MS, rel=0.01)
