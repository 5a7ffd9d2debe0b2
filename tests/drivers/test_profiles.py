"""Profiles: each is complete, sourced, and its device works."""

import pytest

from sim.drivers.disk import profile_names
from sim.drivers.hdd import HddParams
from sim.param import params_of
from sim.registry import lookup
from tests.drivers.drives import drive, profile, random_reads


def test_there_is_a_15k_a_10k_and_a_7200_rpm_disk():
    assert {"sas-15k", "sas-10k", "sata-7200", "ssd-sata"} <= set(profile_names())


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_says_what_it_is_and_whence(name):
    table = profile(name)
    assert table["doc"] and table["source"]
    for given in table.values():
        if isinstance(given, dict):
            assert set(given) == {"value", "source"}


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_has_only_known_keys(name):
    table = profile(name)
    known = {param.key for param in params_of(lookup("device", table["device"]).params)}
    assert set(table) - {"doc", "source", "device"} <= known


@pytest.mark.parametrize("name", profile_names())
def test_a_profiles_device_serves_reads(name):
    rig = random_reads(drive(name), in_flight=2, count=50)
    assert rig.stats.reads == 50


def test_every_number_of_a_disk_has_a_source():
    assert all(param.source and param.doc for param in params_of(HddParams))
