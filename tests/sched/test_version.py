"""Releases and what each does."""

import pytest

from sim.sched.features import features
from sim.sched.version import changed_defaults, in_force, kernel_version
from tests.sched.rig import RELEASES


@pytest.mark.parametrize(
    ("release", "numbers"),
    [
        ("2.6.16.60-0.21-smp", (2, 6, 16)),
        ("2.6.32-754.el6.x86_64", (2, 6, 32)),
        ("5.10-rc3", (5, 10)),
        ("6.1", (6, 1)),
    ],
)
def test_release_strings_are_read_like_uname_prints_them(release, numbers):
    assert kernel_version(release) == numbers


def test_what_is_not_a_release_is_refused():
    with pytest.raises(ValueError, match="expected numbers"):
        kernel_version("latest")


def test_a_table_gives_the_row_in_force():
    table = (((2, 6, 0), "a"), ((2, 6, 32), "b"), ((4, 7), "c"))
    versions = [(2, 6, 31), (2, 6, 32), (3, 0), (4, 7), (6, 1)]
    assert [in_force(table, version) for version in versions] == ["a", "b", "b", "c", "c"]


def test_a_release_before_the_table_is_refused():
    with pytest.raises(ValueError, match=r"kernel 2\.4\.37: the oldest is 2\.6\.0"):
        features((2, 4, 37))


def test_every_release_has_features():
    assert len({features(release) for release in RELEASES}) >= 5


CHANGES = (
    ((2, 6, 22), "dirty_ratio", 10.0, "first"),
    ((2, 6, 30), "dirty_ratio", 20.0, "second"),
    ((3, 1), "barrier", True, "third"),
)


@pytest.mark.parametrize(
    ("release", "changed"),
    [
        ("2.6.21", {}),
        ("2.6.22", {"dirty_ratio": (10.0, "first")}),
        ("2.6.30.5", {"dirty_ratio": (20.0, "second")}),
        ("6.18", {"dirty_ratio": (20.0, "second"), "barrier": (True, "third")}),
    ],
)
def test_a_default_is_the_last_change_of_it_up_to_the_release(release, changed):
    assert changed_defaults(CHANGES, release) == changed
