"""Declared parameters: every number of a model has a unit and a source.

Models: nothing; it is how models declare what may be set about them.
Linux counterpart: module_param() and sysctl tables.
Invariants: a default lies within its own bounds and choices; a source begins with what says of
 which kind it is (sim.origin).
Left out: parsing a whole table (sim.toml does that, it alone knows files and lines).

    @dataclass(frozen=True, kw_only=True)
    class HddParams:
        rpm: float = param(15000, dim="rpm", source="data sheet: ...", doc="spindle speed")
        settle_ns: int = param("0.2 ms", dim="time_ns", source="assumed: why", doc="after a seek")

In a scenario the key of a field is its name without the unit suffix, since the text carries the
unit (`settle = "0.3 ms"`); `key=` overrides it, and the full field name is understood as well.

A class whose defaults depend on the kernel version also defines

        @classmethod
        def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:

returning field name -> (canonical value, source) for what differs from the declared default. One
with values that follow from others, where they are not given (None), also defines

        @classmethod
        def following(cls, values: Mapping[str, Any]) -> Mapping[str, tuple[Value, str]]:

returning the same for these, so that `iotwin params` lists what takes effect.
"""

import copyreg
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, Final

from sim.origin import ALLOWED, origin_of
from sim.units import DIMS, Value, format_quantity, given_text, parse_quantity

_METADATA_KEY: Final = "param"
# The suffix of a field name that its text in a scenario makes superfluous, longest first.
_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "time_ns": ("_ns",),
    "bytes": ("_bytes",),
    "bytes_per_s": ("_bytes_per_s", "_per_s"),
    "rate_per_s": ("_per_s",),
    "percent": ("_percent", "_pct"),
    "clock_khz": ("_khz",),
}


class ParamError(ValueError):
    """A value outside what its parameter allows; `given` and `allowed` are texts for the user."""

    def __init__(self, given: str, problem: str, allowed: str) -> None:
        super().__init__(f"{problem}, got {given} (accepted: {allowed})")
        self.given = given
        self.problem = problem
        self.allowed = allowed


@dataclass(frozen=True, kw_only=True)
class Param:
    """What is declared about one field of a class of parameters."""

    name: str
    key: str
    dim: str
    source: str
    doc: str
    default: Value | None
    required: bool
    minimum: float | None
    maximum: float | None
    choices: tuple[Value, ...]
    names_host: bool  # it names a host outside the server: there must be one of that name
    is_code: bool  # time of the kernel's code: shorter on a newer machine ([machine.cpu] code)

    def parse(self, given: object) -> Value:
        """Return `given` in the canonical unit; raise UnitError or ParamError."""
        value = parse_quantity(given, self.dim)
        self.check(value, given_text(given))
        return value

    def check(self, value: Value, given: str) -> None:
        """Raise ParamError unless the canonical `value` is within choices and bounds."""
        if self.choices and value not in self.choices:
            raise ParamError(given, "not one of the choices", self.allowed())
        if isinstance(value, str):
            return
        if self.minimum is not None and value < self.minimum:
            problem = f"must be at least {format_quantity(_like(value, self.minimum), self.dim)}"
            raise ParamError(given, problem, self.allowed())
        if self.maximum is not None and value > self.maximum:
            problem = f"must be at most {format_quantity(_like(value, self.maximum), self.dim)}"
            raise ParamError(given, problem, self.allowed())

    def allowed(self) -> str:
        """Return the accepted values as a text for the user."""
        if self.choices:
            return ", ".join(given_text(choice) for choice in self.choices)
        low, high = (
            None if bound is None else format_quantity(_bound(bound), self.dim)
            for bound in (self.minimum, self.maximum)
        )
        if low is not None and high is not None:
            return f"{low} to {high}"
        if low is not None:
            return f"{low} or more"
        return f"{high} or less" if high is not None else "any"


def _bound(bound: float) -> int | float:
    return int(bound) if float(bound).is_integer() else bound


def _like(value: Value, bound: float) -> int | float:
    return bound if isinstance(value, float) else _bound(bound)


def param(
    default: Any = MISSING,
    *,
    dim: str,
    source: str,
    doc: str,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[Value, ...] = (),
    key: str = "",
    names_host: bool = False,
    is_code: bool = False,
) -> Any:
    """Return a dataclass field that knows its dimension, source, meaning and bounds.

    `default` is canonical, or a text with a unit; None means "not given"; left away, the scenario
    must give the value. `minimum` and `maximum` are in the canonical unit and inclusive. `is_code`:
    it is CPU time of the kernel's code, which the machine's generation shortens.
    """
    if dim not in DIMS:
        raise ValueError(f"no dimension {dim!r}; known: {', '.join(DIMS)}")
    if not source or not doc:
        raise ValueError("a parameter needs a source and a doc")
    if origin_of(source) is None:
        raise ValueError(f"source {source!r}: it begins with nothing known (allowed: {ALLOWED})")
    if isinstance(default, str) and dim != "text":
        default = parse_quantity(default, dim)
    declared = Param(
        name="",
        key=key,
        dim=dim,
        source=source,
        doc=doc,
        default=None if default is MISSING else default,
        required=default is MISSING,
        minimum=minimum,
        maximum=maximum,
        choices=choices,
        names_host=names_host,
        is_code=is_code,
    )
    if declared.default is not None:
        declared.check(declared.default, given_text(declared.default))
    return field(default=default, metadata={_METADATA_KEY: declared})


def redeclare(parent: type, name: str, default: Any, *, source: str) -> Any:
    """Return a field as a parent class declares it, with a default and a source of its own."""
    declared: Param = next(one for one in fields(parent) if one.name == name).metadata[
        _METADATA_KEY
    ]
    return param(
        default,
        dim=declared.dim,
        source=source,
        doc=declared.doc,
        minimum=declared.minimum,
        maximum=declared.maximum,
        choices=declared.choices,
        key=declared.key,
        names_host=declared.names_host,
        is_code=declared.is_code,
    )


def params_of(cls: type) -> tuple[Param, ...]:
    """Return the declared parameters of a frozen dataclass, in order; other fields are skipped.

    Who reads a scenario comes by here before there is an instance: the place to make instances fit
    for another process. A frozen class that mypyc compiled would not let pickle set its fields.
    """
    return _params_of(cls)


@cache
def _params_of(cls: Any) -> tuple[Param, ...]:
    copyreg.pickle(cls, _reduce)
    found = []
    for item in fields(cls):
        declared = item.metadata.get(_METADATA_KEY)
        if declared is not None:
            key = declared.key or _short(item.name, declared.dim)
            found.append(replace(declared, name=item.name, key=key))
    return tuple(found)


def _reduce(record: Any) -> tuple[Any, ...]:
    values = {item.name: getattr(record, item.name) for item in fields(record)}
    return _rebuild, (type(record), values)


def _rebuild(cls: type, values: dict[str, Any]) -> Any:
    params_of(cls)  # what arrived from another process may be sent on by this one
    return cls(**values)


def _short(name: str, dim: str) -> str:
    for suffix in _SUFFIXES.get(dim, ()):
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return name
