"""kyber: tokens, turns of the domains, and what the latencies do to the depths."""

import pytest

from sim.block.bio import READ, WRITE, Request
from sim.block.kyber import (
    BUCKETS,
    DOMAIN_READ,
    DOMAIN_WRITE,
    NO_PERCENTILE,
    Histogram,
    Kyber,
    KyberParams,
)
from sim.block.noop import NoElevator, NoopParams
from tests.block.disks import MS, Flood, Reader, Rig, Serial


def mean_read_ms(rig):
    """Return how long a read takes, in the eighth second: few reads are judged once a second."""
    before = rig.stats.reads, rig.stats.read_ns
    rig.calendar.run_until(8000 * MS)
    return (rig.stats.read_ns - before[1]) / (rig.stats.reads - before[0]) / MS


def flooded(elevator, writes=22, **params):
    """Return a disk of 0.2 ms that reads one page at a time beside a flood of writes."""
    rig = Rig(Serial(200_000, queue_depth=128), elevator(params_of(elevator)(**params)))
    Reader(rig, 1, 0, 1_000_000, think_ns=MS // 10)
    Flood(rig, 99, writes)
    rig.calendar.run_until(7000 * MS)
    return rig


def params_of(elevator):
    return KyberParams if elevator is Kyber else NoopParams


def test_reads_stay_near_their_target_under_a_flood_of_writes():
    assert mean_read_ms(flooded(NoElevator)) > 4.4
    rig = flooded(Kyber)
    assert mean_read_ms(rig) < 2.2
    domains = rig.disk.elevator.domains
    assert domains[DOMAIN_WRITE].depth < 12 < domains[DOMAIN_READ].depth
    assert rig.stats.writes > 16_000  # of 40,000 in 8 s: the writer goes on


def test_a_lower_target_gives_lower_latencies():
    loose, tight = (mean_read_ms(flooded(Kyber, read_lat_ns=lat)) for lat in (8 * MS, MS))
    assert tight < loose


def test_writes_that_miss_their_own_target_are_not_held_back_for_the_reads():
    """60 of them take 12 ms: more than the 10 ms that kyber grants a write."""
    assert flooded(Kyber, writes=60).disk.elevator.domains[DOMAIN_WRITE].depth == 128


def test_a_device_that_keeps_its_targets_is_left_alone():
    rig = Rig(Serial(service_ns=20_000), Kyber(KyberParams()))
    Reader(rig, 1, 0, 1_000_000)
    Flood(rig, 99, 32)
    rig.calendar.run_until(1200 * MS)
    assert [domain.depth for domain in rig.disk.elevator.domains] == [256, 128, 64]


def test_domains_take_turns_in_batches():
    rig = Rig(Serial(queue_depth=128), Kyber(KyberParams()))
    for number in range(40):
        rig.disk.elevator.insert(request(rig, READ, 10 * number))
        rig.disk.elevator.insert(request(rig, WRITE, 10_000 + 10 * number))
    kinds = "".join("rw"[rig.disk.elevator.next(0).op] for _ in range(48))
    assert kinds == "r" * 16 + "w" * 8 + "r" * 16 + "w" * 8


def test_a_domain_without_tokens_waits_for_one():
    rig = Rig(Serial(queue_depth=200), Kyber(KyberParams()))
    elevator = rig.disk.elevator
    elevator.domains[DOMAIN_WRITE].depth = 3
    for number in range(5):
        elevator.insert(request(rig, WRITE, 10 * number))
    given = [elevator.next(0) for _ in range(4)]
    assert given[3] is None
    elevator.completed(given[0])
    assert elevator.next(0).sector == 3 * 80


def request(rig, op, page):

    bio = rig.bio(op, page)
    return Request(op, bio.sector, bio.nr_sectors, 0, bio, 1, bio.flags)


@pytest.mark.parametrize(
    "latencies_ms, percentile, bucket",
    [
        ([0.1] * 99 + [9], 90, 0),
        ([0.1] * 9 + [9], 99, BUCKETS - 1),
        ([1.9] * 10, 50, 3),
        ([2.1] * 10, 90, 4),
        ([], 90, NO_PERCENTILE),
    ],
)
def test_percentiles_are_in_quarters_of_the_target(latencies_ms, percentile, bucket):
    histogram = Histogram(2 * MS)
    for latency_ms in latencies_ms:
        histogram.add(int(latency_ms * MS))
    assert histogram.take(percentile) == bucket
    assert histogram.samples() == 0 or bucket == NO_PERCENTILE


def test_writes_that_nobody_waits_for_get_three_quarters_of_the_tags():
    rig = Rig(Serial(service_ns=10**9, queue_depth=32), Kyber(KyberParams()))
    taken = sum(rig.disk.submit_bio(rig.bio(WRITE, 10 * n)) for n in range(64))
    assert taken == 48
    assert rig.disk.submit_bio(rig.bio(READ, 5))
