"""Where sectors are, and the seek curve."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.drivers.hdd import Geometry

TURN_NS = 4_000_000


def geometry(**changes):
    values = {
        "capacity_sectors": 2_000_000,
        "revolution_ns": TURN_NS,
        "heads": 4,
        "zones": 8,
        "outer_bytes_per_s": 120e6,
        "inner_bytes_per_s": 70e6,
        "head_skew_ns": 300_000,
        "cylinder_skew_ns": 500_000,
    }
    return Geometry(**(values | changes))


def rate(disk, first, sectors):
    """Return the sequential rate (bytes/s) over some sectors."""
    took_ns = disk.media_end_ns(first + sectors) - disk.locate(first)[2]
    return sectors * 512 * 1e9 / took_ns


def test_both_sustained_rates_come_out():
    disk = geometry()
    assert rate(disk, 0, 200_000) == pytest.approx(120e6, rel=0.01)
    assert rate(disk, 1_900_000, 90_000) == pytest.approx(70e6, rel=0.01)


def test_sectors_fill_tracks_then_cylinders():
    disk = geometry()
    places = [disk.locate(sector)[:2] for sector in range(100_000)]
    assert places == sorted(places)
    assert {head for _, head in places} == {0, 1, 2, 3}


def test_all_cylinders_are_used_and_no_more():
    disk = geometry()
    last, _, _ = disk.locate(1_999_999)
    assert last < disk.cylinders <= last + 10


def test_neighbours_on_a_track_are_a_sector_time_apart():
    disk = geometry()
    times = [disk.locate(sector)[2] for sector in range(100)]
    steps = {later - sooner for sooner, later in pairwise(times)}
    assert max(steps) - min(steps) <= 1  # rounding


@given(st.integers(0, 1_999_000), st.integers(1, 999))
def test_span_is_locate_and_media_end_in_one(start, length):
    disk = geometry()
    end = start + length
    cylinder, head, media_ns, last_cylinder, last_head, media_end_ns = disk.span(start, end)
    assert (cylinder, head, media_ns) == disk.locate(start)
    assert (last_cylinder, last_head) == disk.locate(end - 1)[:2]
    assert abs(media_end_ns - disk.media_end_ns(end)) <= 2  # ns of rounding


@given(st.integers(0, 1_999_998))
def test_media_time_is_monotone(sector):
    disk = geometry()
    assert disk.locate(sector)[2] < disk.locate(sector + 1)[2]


def test_one_zone_has_the_mean_rate():
    disk = geometry(zones=1)
    assert rate(disk, 0, 500_000) == pytest.approx(95e6, rel=0.01)


def test_a_disk_of_the_data_sheet_has_its_number_of_cylinders():
    # Savvio 10K.1: 51,052 tracks per surface.
    disk = geometry(
        capacity_sectors=143_359_375,
        revolution_ns=6_000_000,
        zones=16,
        outer_bytes_per_s=67e6,
        inner_bytes_per_s=45e6,
        head_skew_ns=400_000,
        cylinder_skew_ns=400_000,
    )
    assert disk.cylinders == pytest.approx(51_052, rel=0.01)


def test_what_passes_before_a_sector_is_of_its_track():
    disk = geometry(zones=1)
    sectors = disk.sectors_in(0, disk.revolution_ns + disk.head_skew_ns)
    assert disk.sectors_before(0, disk.revolution_ns) == 0
    assert disk.sectors_before(10, disk.revolution_ns) == 10
    assert disk.sectors_before(sectors + 10, disk.revolution_ns) == 10
    assert disk.sectors_before(sectors - 1, disk.revolution_ns // 2) == sectors // 2
