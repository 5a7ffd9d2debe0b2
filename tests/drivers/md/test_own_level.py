"""A new level is one new class, also of plain Python."""

from tests.drivers.md import own_level


def test_a_level_may_be_the_users_own() -> None:
    assert own_level.run() == [(0, 24), (3, 56), (4, 0)]
