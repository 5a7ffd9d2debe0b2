"""The registry: one class per name, helpful when a name is wrong."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sim.registry import KINDS, UnknownName, lookup, names, provisional, register

TOP = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class NoParams:
    """A thing without parameters."""


class Nothing:
    """Registered below."""


@pytest.fixture(autouse=True)
def _nothing() -> Iterator[None]:
    with provisional():
        register("program", "test_nothing", params=NoParams, doc="does nothing")(Nothing)
        yield


def test_a_registered_class_is_found_by_its_name() -> None:
    entry = lookup("program", "test_nothing")
    assert (entry.cls, entry.params, entry.doc) == (Nothing, NoParams, "does nothing")
    assert "test_nothing" in names("program")


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'test_nothing'") as caught:
        lookup("program", "test_nothin")
    assert caught.value.nearest == "test_nothing"


def test_a_name_belongs_to_one_class() -> None:
    with pytest.raises(ValueError, match="already"):

        @register("program", "test_nothing", params=NoParams, doc="another")
        class Other:
            pass


def test_what_is_registered_provisionally_is_forgotten() -> None:
    known = [names(kind) for kind in KINDS]
    with provisional():
        register("elevator", "test_lift", params=NoParams, doc="up and down")(Nothing)
        assert "test_lift" in names("elevator")
    assert [names(kind) for kind in KINDS] == known


def test_what_is_registered_provisionally_is_forgotten_after_a_failure_too() -> None:
    with pytest.raises(RuntimeError), provisional():
        register("elevator", "test_lift", params=NoParams, doc="up and down")(Nothing)
        raise RuntimeError
    assert "test_lift" not in names("elevator")


FIRST_ASKED_WITHIN = """\
from sim.registry import names, provisional
with provisional():
    names("elevator")
assert "cfq" in names("elevator")
"""


def test_the_package_s_own_things_are_not_forgotten() -> None:
    subprocess.run([sys.executable, "-c", FIRST_ASKED_WITHIN], cwd=TOP, check=True)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind"):
        register("gadget", "x", params=NoParams, doc="d")
