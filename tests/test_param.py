"""Parameters: declared once, with unit, source and bounds."""

from dataclasses import dataclass

import pytest

from sim.param import ParamError, param, params_of
from sim.units import UnitError


@dataclass(frozen=True, kw_only=True)
class DiskParams:
    rpm: float = param(15000, dim="rpm", source="data sheet", doc="spindle speed", minimum=1)
    settle_ns: int = param("0.2 ms", dim="time_ns", source="assumed: no figure", doc="settling")
    size_bytes: int = param(dim="bytes", source="scenario", doc="capacity", minimum=512)
    mode: str = param(
        "ordered", dim="text", source="assumed: a", doc="b", choices=("ordered", "journal")
    )
    dirty_bytes: int = param(0, dim="bytes", source="assumed: a", doc="b", key="dirty_bytes")


def test_a_default_with_a_unit_becomes_canonical() -> None:
    assert DiskParams(size_bytes=512).settle_ns == 200_000


def test_a_parameter_without_default_is_required() -> None:
    with pytest.raises(TypeError, match="size_bytes"):
        DiskParams()
    required = [declared.name for declared in params_of(DiskParams) if declared.required]
    assert required == ["size_bytes"]


def test_the_key_drops_the_unit_unless_declared() -> None:
    keys = [declared.key for declared in params_of(DiskParams)]
    assert keys == ["rpm", "settle", "size", "mode", "dirty_bytes"]


def test_a_value_below_its_minimum_says_the_bound_in_its_unit() -> None:
    size = params_of(DiskParams)[2]
    with pytest.raises(
        ParamError, match=r'must be at least 512 B, got "4 B" \(accepted: 512 B or more\)'
    ):
        size.parse("4 B")


def test_a_value_outside_the_choices_lists_them() -> None:
    mode = params_of(DiskParams)[3]
    with pytest.raises(ParamError, match='accepted: "ordered", "journal"'):
        mode.parse("ordred")


def test_a_wrong_unit_stays_a_unit_error() -> None:
    with pytest.raises(UnitError, match="unit of a size"):
        params_of(DiskParams)[1].parse("4 KiB")


def test_a_parameter_without_source_is_refused() -> None:
    with pytest.raises(ValueError, match="source"):
        param(1, dim="count", source="", doc="x")


def test_a_default_outside_its_own_bounds_is_refused() -> None:
    with pytest.raises(ParamError):
        param(0, dim="count", source="assumed: s", doc="d", minimum=1)
