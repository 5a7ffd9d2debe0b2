"""EBS volumes: the User Guide's limits, units and bursts; the instance's path."""

import pytest

from sim.block.bio import READ, WRITE
from sim.drivers.ebs import (
    Ebs,
    Gp2Params,
    Gp3Params,
    Io1Params,
    StandardParams,
)
from sim.drivers.ec2 import EBS_PATH_NAMES, EBS_PATHS, LOW, OPTIMIZED, TEN_GIGABIT, UNLIMITED
from sim.engine.rng import Streams
from sim.param import params_of
from sim.registry import lookup
from tests.drivers.loads import bytes_per_s, closed_loop, per_s
from tests.drivers.test_ssd import Alone

GIB = 1 << 30
MIB = 1 << 20
KIB = 2  # sectors


def quick(params=Gp2Params, **changes):
    """Return a volume whose latency is next to nothing and always the same."""
    still = {"read_latency_ns": 1000, "write_latency_ns": 1000, "sigma": 0.0}
    return Ebs(params(**(still | changes)))


def rate_of(volume, count, sectors=8, op=READ, in_order=False):
    return closed_loop(volume, op, 32, count, sectors=sectors, in_order=in_order)


# -- gp2


def test_gp2_bursts_at_3000_a_second_then_does_3_for_each_gib():
    """A thousandth of the credits: 5400 / (3000 - 300) = 2 s of burst, 6000 operations."""
    burst = rate_of(quick(credits=5400.0), 6000)
    assert per_s(burst) == pytest.approx(3000, rel=0.01)
    assert burst.end_ns == pytest.approx(2e9, rel=0.01)
    longer = rate_of(quick(credits=5400.0), 6000 + 900)
    assert longer.end_ns - burst.end_ns == pytest.approx(3e9, rel=0.01)


@pytest.mark.parametrize(("gib", "base"), [(10, 100), (100, 300), (500, 1500), (8000, 16000)])
def test_gp2s_base_rate_follows_its_size(gib, base):
    volume = quick(credits=0.0, capacity_bytes=gib * GIB)
    assert per_s(rate_of(volume, 3000)) == pytest.approx(base, rel=0.01)


@pytest.mark.parametrize(("gib", "limit"), [(100, 128 * MIB), (1000, 250 * MIB)])
def test_gp2s_throughput_follows_its_size(gib, limit):
    volume = quick(capacity_bytes=gib * GIB)
    rig = rate_of(volume, 2000, sectors=256 * KIB)
    assert bytes_per_s(rig) == pytest.approx(limit, rel=0.01)


def test_without_credits_the_throughput_is_a_unit_for_each_operation():
    """100 GiB: 300 x 256 KiB = 75 MiB/s."""
    rig = rate_of(quick(credits=0.0), 1500, sectors=256 * KIB)
    assert bytes_per_s(rig) == pytest.approx(75 * MIB, rel=0.01)


# -- Units


@pytest.mark.parametrize(("kib", "units"), [(4, 1), (256, 1), (260, 2), (1024, 4)])
def test_a_long_operation_is_several_units(kib, units):
    volume = quick(credits=0.0, capacity_bytes=500 * GIB)
    rig = rate_of(volume, 1000, sectors=kib * KIB)
    expected = min(1500 / units, 250 * MIB / (kib * 1024))
    assert per_s(rig) == pytest.approx(expected, rel=0.02)


def test_operations_under_way_join_the_unit_of_the_one_before():
    """64 KiB in order, many at a time: four make a unit, as 256 KiB at once would."""
    rig = rate_of(quick(credits=0.0), 4000, sectors=64 * KIB, in_order=True)
    assert bytes_per_s(rig) == pytest.approx(75 * MIB, rel=0.02)
    scattered = rate_of(quick(credits=0.0), 1000, sectors=64 * KIB)
    assert bytes_per_s(scattered) == pytest.approx(75 * MIB / 4, rel=0.02)


def test_one_at_a_time_nothing_is_there_to_join():
    rig = closed_loop(quick(credits=0.0), READ, 1, 500, sectors=64 * KIB, in_order=True)
    assert per_s(rig) == pytest.approx(300, rel=0.01)


def test_who_joins_does_not_overtake_the_one_that_it_joined():
    alone = Alone(quick(credits=0.0, capacity_bytes=GIB))
    scattered = [alone.submit(READ, 10_000 * n, 8) for n in range(1, 4)]
    first, second = alone.submit(READ, 0, 8), alone.submit(READ, 8, 8)
    alone.calendar.run()
    ended = [alone.ended[request] for request in (*scattered, first, second)]
    assert ended[3] <= ended[4] + 1000
    assert ended[4] > ended[2]


# -- The other types


@pytest.mark.parametrize(
    ("params", "changes", "per_second"),
    [
        (Gp3Params, {}, 3000),
        (Gp3Params, {"rate_per_s": 6000.0}, 6000),
        (Io1Params, {"rate_per_s": 2000.0}, 2000),
        (StandardParams, {}, 400),
        (StandardParams, {"credits": 0.0}, 100),
    ],
)
def test_a_type_does_its_rate_of_small_operations(params, changes, per_second):
    rig = rate_of(quick(params, **changes), 3000)
    assert per_s(rig) == pytest.approx(per_second, rel=0.02)


@pytest.mark.parametrize(
    ("params", "changes", "mib_per_s"),
    [
        (Gp3Params, {}, 125),
        (Io1Params, {"rate_per_s": 1000.0}, 250),
        (Io1Params, {"rate_per_s": 10_000.0}, 500),
        (StandardParams, {}, 90),
    ],
)
def test_a_type_does_its_throughput_of_long_operations(params, changes, mib_per_s):
    rig = rate_of(quick(params, **changes), 2000, sectors=1024 * KIB, in_order=True)
    assert bytes_per_s(rig) == pytest.approx(mib_per_s * MIB, rel=0.02)


def test_the_latency_has_the_mean_that_was_declared():
    rig = closed_loop(Ebs(Gp2Params(capacity_bytes=1000 * GIB)), READ, 1, 4000)
    assert rig.stats.read_ns / 4000 == pytest.approx(0.8e6, rel=0.03)


# -- The instance's path


def together(volumes, count, sectors):
    """Run the same load on several volumes of one machine; return the bytes/s of all."""
    shared = {}
    alone = None
    ended = []
    for volume in volumes:
        volume.share(shared)
        if alone is None:
            alone = Alone(volume)
        else:
            volume.attach("sdc", alone.calendar, Streams(2), lambda _: ended.append(1))
    for volume in volumes:
        alone.device = volume
        for number in range(count):
            alone.submit(READ, number * 4096, sectors)
    alone.calendar.run()
    return len(volumes) * count * sectors * 512e9 / alone.calendar.now


@pytest.mark.parametrize("count", [1, 2, 4])
def test_all_volumes_of_an_instance_share_its_path(count):
    """m3.xlarge, optimized: 62.5 MB/s, with however many volumes."""
    volumes = [quick(instance="m3.xlarge" + OPTIMIZED) for _ in range(count)]
    assert together(volumes, 200, 256 * KIB) == pytest.approx(62.5e6, rel=0.02)


def test_volumes_of_no_instance_share_nothing():
    volumes = [quick() for _ in range(2)]
    assert together(volumes, 200, 256 * KIB) == pytest.approx(2 * 128 * MIB, rel=0.02)


def test_a_throttled_volume_does_not_hold_up_its_neighbour_on_the_path():
    slow = quick(credits=0.0, capacity_bytes=GIB, instance="m3.xlarge")
    fast = quick(capacity_bytes=1000 * GIB, instance="m3.xlarge")
    shared = {}
    slow.share(shared)
    fast.share(shared)
    alone = Alone(slow)
    for number in range(100):
        alone.submit(READ, number * 4096, 8)  # the last leaves after a second
    ended = []
    fast.attach("sdc", alone.calendar, Streams(2), lambda _: ended.append(alone.calendar.now))
    alone.device = fast
    alone.submit(WRITE, 0, 8)
    alone.calendar.run()
    assert ended[0] < 1e6


def test_every_path_is_a_choice_and_has_a_rate():
    [choice] = [param for param in params_of(Gp2Params) if param.name == "instance"]
    assert choice.choices == EBS_PATH_NAMES
    assert set(EBS_PATH_NAMES) == {UNLIMITED, *EBS_PATHS}
    assert all(LOW <= rate <= TEN_GIGABIT for rate in EBS_PATHS.values())
    assert EBS_PATHS["m3.xlarge" + OPTIMIZED] == 62.5e6
    assert "m1.small" + OPTIMIZED not in EBS_PATHS


def test_every_type_is_registered():
    for name in ("standard", "gp2", "gp3", "io1"):
        assert lookup("device", f"ebs-{name}").cls is Ebs
