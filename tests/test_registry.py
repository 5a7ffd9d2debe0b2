"""The registry: one class per name, helpful when a name is wrong."""

from dataclasses import dataclass

import pytest

from sim.registry import UnknownName, lookup, names, register


@dataclass(frozen=True, kw_only=True)
class NoParams:
    """A thing without parameters."""


@register("program", "test_registry_nothing", params=NoParams, doc="does nothing")
class Nothing:
    """Registered below."""


def test_a_registered_class_is_found_by_its_name() -> None:
    entry = lookup("program", "test_registry_nothing")
    assert (entry.cls, entry.params, entry.doc) == (Nothing, NoParams, "does nothing")
    assert "test_registry_nothing" in names("program")


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'test_registry_nothing'") as caught:
        lookup("program", "test_registry_nothin")
    assert caught.value.nearest == "test_registry_nothing"


def test_a_name_belongs_to_one_class() -> None:
    with pytest.raises(ValueError, match="already"):

        @register("program", "test_registry_nothing", params=NoParams, doc="another")
        class Other:
            pass


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind"):
        register("gadget", "x", params=NoParams, doc="d")
