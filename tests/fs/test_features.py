"""The table of what the file systems of each release do (sim/fs/features.py)."""

from dataclasses import astuple, fields

import pytest

from sim.fs.features import SINCE, Features, features, since
from sim.sched.version import NEWEST, OLDEST, numbers


def test_the_oldest_release_has_no_feature_and_the_newest_has_all() -> None:
    assert not any(astuple(features(OLDEST)))
    assert all(astuple(features(NEWEST)))


@pytest.mark.parametrize("name", [field.name for field in fields(Features)])
def test_a_feature_comes_with_its_release(name: str) -> None:
    release, meaning, source = SINCE[name]
    *head, last = release
    assert getattr(features(release), name)
    assert not getattr(features((*head, last - 1)), name)
    assert since(name) == numbers(release) and meaning and source
