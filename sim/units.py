"""Quantities as people write them, and back.

Models: the text form of every number that a scenario, a profile or a command line may carry
("5.4 ms", "8 GiB", "64K", "180 IOPS", "1 Gbit/s", "15000 rpm", "30 %").
Linux counterpart: none; the reading of sizes follows fio and dd.
Invariants: a quantity has exactly one dimension, and parse(format(x)) == x for every canonical x.
 Canonical values are int nanoseconds and int bytes; rates are float per second.
 A prefix with B is what SI says (kB = 1000), with iB binary (KiB = 1024); a bare 4k or 64K is
 binary, as fio and dd users expect.
Left out: general algebra of units. A dimension is a row of a table here; there are few,
 and a library for all of physics reads 64K as 64 kelvin.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, overload

Value = int | float | str | bool

# What times in nanoseconds are multiplied and divided by (include/vdso/time64.h: NSEC_PER_SEC ...).
NS_PER_US: Final = 1_000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000

_TIME: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_DECIMAL: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_BARE: Final = {"k": 2**10, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

_BYTES: Final[dict[str, int]] = (
    {f"{prefix}B": factor for prefix, factor in (_DECIMAL | _BINARY).items()}
    | {"KB": 10**3}
    | _BARE
)
_BYTES_PER_S: Final[dict[str, Fraction]] = {
    f"{p}B/s": Fraction(f) for p, f in (_DECIMAL | _BINARY).items()
} | {f"{p}bit/s": Fraction(f, 8) for p, f in (_DECIMAL | _BINARY).items()}
_RATE: Final = {
    "/s": Fraction(1),
    "IOPS": Fraction(1),
    "IO/s": Fraction(1),
    "msg/s": Fraction(1),
    "Hz": Fraction(1),
    "/min": Fraction(1, 60),
    "/h": Fraction(1, 3600),
}

_CLOCK: Final = {"kHz": 1, "MHz": 1000, "GHz": 10**6}

# dimension -> unit -> factor to the canonical unit
_UNITS: Final[Mapping[str, Mapping[str, int | Fraction]]] = {
    "time_ns": _TIME,
    "bytes": _BYTES,
    "rate_per_s": _RATE,
    "bytes_per_s": _BYTES_PER_S,
    "rpm": {"rpm": 1},
    "percent": {"%": 1},
    "clock_khz": _CLOCK,
    "count": {},
    "number": {},
}
# What a number without a unit means: the canonical unit. Not for times: nobody writes plain
# nanoseconds, and "5" could be seconds as well as milliseconds. Nor for clocks: 2400 or 2.4?
_NEEDS_UNIT: Final = frozenset({"time_ns", "clock_khz"})
INTEGER: Final = frozenset({"time_ns", "bytes", "count", "clock_khz"})
# What is beyond can only be a slip, and times a random number it would be more than a float holds.
_LARGEST: Final[Mapping[str, int | float]] = {
    "time_ns": 10**18,  # 31.7 years
    "bytes": 2**63 - 1,  # include/linux/fs.h: loff_t
    "rate_per_s": 1e15,
    "bytes_per_s": 1e15,
    "rpm": 1e15,
    "percent": 1e15,
    "clock_khz": 10**12,
    "count": 2**63 - 1,
    "number": 1e100,
}
# Once in 3.2 years; 0 is never.
_SMALLEST: Final = {"rate_per_s": Fraction(1, 10**8), "bytes_per_s": Fraction(1, 10**8)}
_EXAMPLES: Final[Mapping[str, str]] = {
    "time_ns": '"5.4 ms", "5 s", "10 min"',
    "bytes": '"8 GiB", "64K", "73 GB", 4096',
    "rate_per_s": '"180 IOPS", "11 /s", 180',
    "bytes_per_s": '"100 MB/s", "1 Gbit/s"',
    "rpm": '"15000 rpm", 15000',
    "percent": '"30 %", 30',
    "clock_khz": '"2.4 GHz", "1200 MHz"',
    "count": "such as 128",
    "number": "such as 0.5",
    "text": 'such as "a text"',
    "bool": "true, false",
}
DIMS: Final[tuple[str, ...]] = tuple(_EXAMPLES)

_QUANTITY: Final = re.compile(
    r"\s*([+-]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(\S*)\s*"
)
_EXPONENT_MAX: Final = 400  # "1e999999999 s" must be an error, not a minute of arithmetic
_DIGITS_MAX: Final = 400  # Python reads 4300 digits, and then raises an error of its own
SHOWN_MAX: Final = 200  # characters of what was given that a message shows


class UnitError(ValueError):
    """A quantity that cannot be read; `given` and `allowed` are texts for the user."""

    def __init__(self, given: object, problem: str, allowed: str) -> None:
        super().__init__(f"{problem}, got {given_text(given)} (accepted: {allowed})")
        self.given = given_text(given)
        self.problem = problem
        self.allowed = allowed


def given_text(given: object) -> str:
    """Return a value as it would stand in a TOML file; of a long one its beginning."""
    if isinstance(given, bool):
        return "true" if given else "false"
    return f'"{shortened(given)}"' if isinstance(given, str) else shortened(str(given))


def shortened(text: str) -> str:
    """Return a text as a message shows it: of a long one the beginning."""
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def examples(dim: str) -> str:
    """Return texts of `dim` that are accepted."""
    return _EXAMPLES[dim]


def unit_of(dim: str) -> str:
    """Return the canonical unit of `dim` ("ns", "B", "/s", ...), "" when it has none."""
    if dim == "time_ns":
        return "ns"
    return {
        "bytes": "B",
        "rate_per_s": "/s",
        "bytes_per_s": "B/s",
        "rpm": "rpm",
        "percent": "%",
        "clock_khz": "kHz",
    }.get(dim, "")


@overload
def parse_quantity(
    given: object, dim: Literal["time_ns", "bytes", "count", "clock_khz"]
) -> int: ...
@overload
def parse_quantity(
    given: object, dim: Literal["rate_per_s", "bytes_per_s", "rpm", "percent", "number"]
) -> float: ...
@overload
def parse_quantity(given: object, dim: Literal["text"]) -> str: ...
@overload
def parse_quantity(given: object, dim: Literal["bool"]) -> bool: ...
@overload
def parse_quantity(given: object, dim: str) -> Value: ...
def parse_quantity(given: object, dim: str) -> Value:
    """Return `given` (text, number, bool) in the canonical unit of `dim`; raise UnitError."""
    if dim == "text":
        if not isinstance(given, str):
            raise UnitError(given, "expected a text, in quotes", _EXAMPLES[dim])
        if not given.isprintable():
            raise UnitError(ascii(given)[1:-1], "expected a line of text", _EXAMPLES[dim])
        return given
    if dim == "bool":
        if not isinstance(given, bool):
            raise UnitError(given, "expected true or false", _EXAMPLES[dim])
        return given
    if dim not in _UNITS:
        raise ValueError(f"no dimension {dim!r}; known: {', '.join(DIMS)}")
    return _number_of_text(given, dim) if isinstance(given, str) else _number(given, dim)


def _number(given: object, dim: str) -> int | float:
    """Return a number, or the number that a text says, in the canonical unit."""
    exact = _exact(given, dim)
    _check_size(exact, given, dim)
    if dim not in INTEGER:
        return float(exact)
    if exact.denominator != 1 and dim != "time_ns":
        raise UnitError(
            given, f"expected a whole number of {unit_of(dim) or 'things'}", _EXAMPLES[dim]
        )
    return round(exact)


@lru_cache(maxsize=4096)
def _number_of_text(given: str, dim: str) -> int | float:
    """Return _number() of a text: scenarios say the same texts again for each of their variants."""
    return _number(given, dim)


def _check_size(exact: Fraction, given: object, dim: str) -> None:
    """Refuse what nobody can mean."""
    if abs(exact) > _LARGEST[dim]:
        most = format_quantity(_LARGEST[dim], dim)
        raise UnitError(given, f"expected {_expected(dim)} of at most {most}", _EXAMPLES[dim])
    if exact and abs(exact) < _SMALLEST.get(dim, 0):
        least = format_quantity(float(_SMALLEST[dim]), dim)
        raise UnitError(given, f"expected 0 or at least {least}", _EXAMPLES[dim])


def _exact(given: object, dim: str) -> Fraction:
    """Return the exact value of a number or text in canonical units."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise UnitError(given, f"expected {_expected(dim)}", _EXAMPLES[dim])
    if isinstance(given, str):
        return _exact_text(given, dim)
    if isinstance(given, float) and not math.isfinite(given):
        raise UnitError(given, "expected a finite number", _EXAMPLES[dim])
    if dim in _NEEDS_UNIT and given != 0:
        raise UnitError(given, f"{_expected(dim)} needs a unit", _EXAMPLES[dim])
    return Fraction(given)


def _exact_text(given: str, dim: str) -> Fraction:
    match = _QUANTITY.fullmatch(given)
    if match is None:
        raise UnitError(given, f"expected {_expected(dim)}", _EXAMPLES[dim])
    digits, unit = match.groups()
    if len(digits) > _DIGITS_MAX:
        shown = f"{given[:20]}..."
        raise UnitError(
            shown, f"expected {_expected(dim)}, not {len(digits)} digits", _EXAMPLES[dim]
        )
    if "e" in digits.lower() and abs(int(digits.lower().partition("e")[2])) > _EXPONENT_MAX:
        raise UnitError(given, "expected a number of sensible size", _EXAMPLES[dim])
    number = Fraction(digits)
    if not unit:
        return _exact(number.numerator if number.denominator == 1 else float(number), dim)
    factor = _UNITS[dim].get(unit)
    if factor is None:
        raise UnitError(given, _unit_problem(unit, dim), _EXAMPLES[dim])
    return number * factor


def _expected(dim: str) -> str:
    return {
        "time_ns": "a time",
        "bytes": "a size",
        "rate_per_s": "a rate",
        "bytes_per_s": "a transfer rate",
        "rpm": "a speed of rotation",
        "percent": "a percentage",
        "clock_khz": "a clock rate",
        "count": "a whole number",
        "number": "a number",
    }[dim]


def _unit_problem(unit: str, dim: str) -> str:
    """Say what the unit is, when it is one of another dimension."""
    for other, units in _UNITS.items():
        if unit in units:
            return f"expected {_expected(dim)}, but '{unit}' is a unit of {_expected(other)}"
    return f"expected {_expected(dim)}, but '{unit}' is no known unit"


def format_quantity(value: Value, dim: str) -> str:
    """Return the shortest usual text of a canonical value; parsing it gives the value back."""
    if dim == "bool":
        return "true" if value else "false"
    if dim == "text" or isinstance(value, str):
        return str(value)
    if dim == "time_ns":
        return _format_time(int(value))
    if dim == "bytes":
        return _format_bytes(int(value))
    if dim == "bytes_per_s":
        return _format_bytes_per_s(float(value))
    if dim == "clock_khz":
        return _format_clock(int(value))
    unit = unit_of(dim)
    return f"{_plain(value)} {unit}" if unit else _plain(value)


def _plain(value: int | float) -> str:
    """Return the shortest text of a number that reads back as the same number."""
    text = repr(value)
    return text.removesuffix(".0")


def _decimal(value: int, factor: int, digits_max: int) -> str | None:
    """Return value/factor as a decimal text if that is exact within `digits_max` digits."""
    scaled, rest = divmod(abs(value) * 10**digits_max, factor)
    if rest:
        return None
    whole, fraction = divmod(scaled, 10**digits_max)
    text = f"{whole}.{fraction:0{digits_max}d}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 else text


def _format_time(value: int) -> str:
    if value == 0:
        return "0 s"
    for unit in ("h", "min"):
        if value % _TIME[unit] == 0 and abs(value) >= 2 * _TIME[unit]:
            return f"{value // _TIME[unit]} {unit}"
    for unit, digits in (("s", 9), ("ms", 6), ("us", 3)):
        if abs(value) >= _TIME[unit]:
            return f"{_decimal(value, _TIME[unit], digits)} {unit}"
    return f"{value} ns"


def _format_bytes(value: int) -> str:
    for unit in ("TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "kB"):
        text = _decimal(value, _BYTES[unit], 2) if abs(value) >= _BYTES[unit] else None
        if text is not None:
            return f"{text} {unit}"
    return f"{value} B"


def _format_clock(value: int) -> str:
    for unit in ("GHz", "MHz"):
        if abs(value) >= _CLOCK[unit]:
            return f"{_decimal(value, _CLOCK[unit], 6)} {unit}"
    return f"{value} kHz"


def rough_bytes(value: int) -> str:
    """Return a size as data sheets have it ("71.92 GB"), rounded down: what it says fits."""
    for unit in ("TB", "GB", "MB", "kB"):
        if value >= _BYTES[unit]:
            return f"{_decimal(value * 100 // _BYTES[unit], 100, 2)} {unit}"
    return f"{value} B"


def two_digits(value: float) -> str:
    """Return about two digits, and never a power of ten: a sentence is no table."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:.2g}"


def _format_bytes_per_s(value: float) -> str:
    for unit in ("GB/s", "MB/s", "kB/s"):
        factor = float(_BYTES_PER_S[unit])
        text = f"{value / factor:.10g} {unit}"
        if abs(value) >= factor and parse_quantity(text, "bytes_per_s") == value:
            return text
    return f"{_plain(value)} B/s"
