"""Instance-store SSDs: the published rates, and those that were recorded."""

import pytest

from sim.block.bio import READ, WRITE
from sim.drivers.disk import profile_names
from sim.drivers.instance_store import InstanceStore, InstanceStoreParams
from tests.drivers.drives import drive, profile
from tests.drivers.loads import bytes_per_s, closed_loop, per_s

KIB = 2  # sectors
EC2 = [name for name in profile_names() if name.startswith("ec2/")]


def declared(name, key):
    return float(profile(name)[key]["value"].split()[0])


def test_all_families_are_there():
    families = {name[4:6] for name in EC2}
    assert families == {"m3", "c3", "r3", "i2", "i4"}


@pytest.mark.parametrize("name", EC2)
def test_a_volume_does_its_rates(name):
    reads = closed_loop(drive(name), READ, 32, 3000)
    assert per_s(reads) == pytest.approx(declared(name, "reads"), rel=0.02)
    writes = closed_loop(drive(name), WRITE, 32, 3000)
    assert per_s(writes) == pytest.approx(declared(name, "writes"), rel=0.02)
    read = closed_loop(drive(name), READ, 4, 500, sectors=512 * KIB, in_order=True)
    assert bytes_per_s(read) == pytest.approx(1e6 * declared(name, "read_rate"), rel=0.02)


def test_the_m3_xlarge_does_what_was_recorded():
    """dd of the whole device 352 to 363 MB/s, direct writes 150 and 152 MB/s: a fit."""
    read = closed_loop(drive("ec2/m3.xlarge"), READ, 2, 2000, sectors=128 * KIB, in_order=True)
    assert 352e6 <= bytes_per_s(read) <= 363e6
    written = closed_loop(drive("ec2/m3.xlarge"), WRITE, 8, 2000, sectors=128 * KIB, in_order=True)
    assert 150e6 <= bytes_per_s(written) <= 152e6


def test_a_lone_operation_takes_the_latency_of_flash():
    device = InstanceStore(InstanceStoreParams(read_latency_ns=500_000))
    assert per_s(closed_loop(device, READ, 1, 500)) == pytest.approx(2000, rel=0.01)


def test_flash_takes_so_many_at_a_time():
    device = InstanceStore(InstanceStoreParams(read_latency_ns=2_000_000, parallel=4))
    assert per_s(closed_loop(device, READ, 32, 500)) == pytest.approx(2000, rel=0.02)


def written_in_order(factor, passes):
    device = InstanceStore(
        InstanceStoreParams(capacity_bytes=256 << 20, first_write=factor, written=False)
    )
    return closed_loop(device, WRITE, 8, passes * 4096, sectors=64 * KIB, in_order=True)


def test_the_first_write_to_a_place_takes_longer_and_the_second_does_not():
    once, twice = written_in_order(3.0, 1), written_in_order(3.0, 2)
    assert bytes_per_s(once) == pytest.approx(151e6 / 3, rel=0.02)
    assert twice.end_ns == pytest.approx(4 / 3 * once.end_ns, rel=0.02)
    assert bytes_per_s(written_in_order(1.0, 1)) == pytest.approx(151e6, rel=0.02)


def test_volumes_share_the_way_to_the_hosts_drives():
    params = InstanceStoreParams(host_rate_bytes_per_s=500e6)
    shared: dict[str, object] = {}
    alone = InstanceStore(params)
    alone.share(shared)
    assert bytes_per_s(closed_loop(alone, READ, 4, 500, sectors=512 * KIB)) == pytest.approx(
        358e6, rel=0.02
    )
    narrow = InstanceStore(InstanceStoreParams(host_rate_bytes_per_s=100e6))
    narrow.share({})
    assert bytes_per_s(closed_loop(narrow, READ, 4, 500, sectors=512 * KIB)) == pytest.approx(
        100e6, rel=0.02
    )
