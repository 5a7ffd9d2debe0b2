"""Values of fio's options: amounts, times, pairs, weights, laws.

Models: fio's parameter types "int", "time", "bool", "float" and its lists.
Linux counterpart: fio parse.c (get_mult_bytes, get_mult_time, str_to_decimal), HOWTO "Parameter
 types", 3.36.
Invariants: a text that fio would not take raises FioValueError with what is allowed. With
 kb_base=1024, which is the default, "k" is 1024 and "ki" is 1000: fio keeps its old meaning of k,
 against the standard; with kb_base=1000 it is the other way round.
Left out: arithmetic in parentheses; environment variables.
"""

import re
from collections.abc import Mapping
from typing import Final

_PREFIXES: Final = "kmgtp"
_TIME_NS: Final[Mapping[str, int]] = {
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "msec": 1_000_000,
    "us": 1000,
    "usec": 1000,
}
SECOND: Final = "s"
MICROSECOND: Final = "us"


class FioValueError(ValueError):
    """A value that an option does not take; `allowed` says what it takes."""

    def __init__(self, problem: str, allowed: str) -> None:
        super().__init__(f"{problem} (accepted: {allowed})")
        self.problem = problem
        self.allowed = allowed


def amount(text: str, kb_base: int) -> int:
    """Return a number with fio's suffix: "4k", "1m", "2gib", "512"."""
    found = re.fullmatch(r"(0x[0-9a-f]+|\d+)(?:([kmgtp])(i?)b?|b?)", text.strip().lower())
    if found is None:
        raise FioValueError("no amount", '512, "4k", "1m", "2g"')
    number = int(found[1], 0) if found[1].startswith("0x") else int(found[1])
    if found[2] is None:
        return number
    base = kb_base if not found[3] else 2024 - kb_base
    return int(number * base ** (1 + _PREFIXES.index(found[2])))


def share(text: str) -> float | None:
    """Return the per cent of "20%", None if it is no share."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)%", text.strip())
    if found is None:
        return None
    if not 0 < float(found[1]) <= 100:
        raise FioValueError("a share", "1% to 100%")
    return float(found[1])


def duration_ns(text: str, unit: str) -> int:
    """Return a time, ns; `unit` is that of a bare number."""
    found = re.fullmatch(r"(\d+)([a-z]*)", text.strip().lower())
    if found is None or (found[2] or unit) not in _TIME_NS:
        raise FioValueError("no time", '30, "30s", "10m", "1h", "500ms", "20us"')
    return int(found[1]) * _TIME_NS[found[2] or unit]


def whole(text: str, low: int, high: int) -> int:
    """Return a whole number within bounds."""
    if not re.fullmatch(r"\d+", text.strip()) or not low <= int(text) <= high:
        raise FioValueError("no such number", f"{low} to {high}")
    return int(text)


def boolean(text: str) -> bool:
    """Return a flag: 0 or 1, and 1 where only the option's name is given."""
    words = {"": True, "1": True, "true": True, "0": False, "false": False}
    if text.strip().lower() not in words:
        raise FioValueError("no flag", "0, 1")
    return words[text.strip().lower()]


def amounts(text: str, kb_base: int) -> tuple[int, int]:
    """Return the values for reads and for writes: "4k" for both, "4k,8k", ",8k", "4k,"."""
    parts = text.split(",")
    if len(parts) > 2:
        raise FioValueError("trims have the value of writes", '"4k", "4k,8k"')
    first = amount(parts[0], kb_base) if parts[0].strip() else 0
    if len(parts) == 1:
        return first, first
    return first, amount(parts[1], kb_base) if parts[1].strip() else 0


def weights(text: str, kb_base: int) -> tuple[tuple[int, float], ...]:
    """Return the sizes of a bssplit with their per cents: "4k/60:64k/40"; the rest is shared."""
    allowed = '"4k/60:64k/40", "4k/50:64k:1m"'
    found = []
    for part in text.split(":"):
        size, slash, weight = part.partition("/")
        if slash and not re.fullmatch(r"\d+", weight):
            raise FioValueError("no weight", allowed)
        found.append((amount(size, kb_base), int(weight) if weight else -1))
    told = sum(weight for _, weight in found if weight >= 0)
    open_ones = sum(weight < 0 for _, weight in found)
    if told > 100 or (told < 100 and not open_ones):
        raise FioValueError(f"weights of {told} %", f"100 % in all: {allowed}")
    rest = (100 - told) / open_ones if open_ones else 0.0
    return tuple((size, float(weight) if weight >= 0 else rest) for size, weight in found)


def splits(text: str, kb_base: int) -> tuple[tuple[tuple[int, float], ...], ...]:
    """Return a bssplit for reads and one for writes."""
    parts = [weights(part, kb_base) for part in text.split(",")]
    if len(parts) > 2:
        raise FioValueError("trims have the sizes of writes", "one for reads, one for writes")
    return parts[0], parts[-1]


def law(text: str) -> tuple[str, float]:
    """Return the name and the parameter of a random_distribution."""
    allowed = "random, zipf:THETA (not 1), pareto:H (0 to 1)"
    name, _, given = text.strip().partition(":")
    defaults = {"random": 0.0, "zipf": 1.1, "pareto": 0.2}
    if name not in defaults:
        raise FioValueError(f"'{name}' is not modelled", allowed)
    if not re.fullmatch(r"\d*\.?\d*", given):
        raise FioValueError("no number", allowed)
    value = float(given) if given else defaults[name]
    if (name == "zipf" and (value <= 0 or value == 1)) or (name == "pareto" and not 0 < value < 1):
        raise FioValueError(f"{name} with {value:g}", allowed)
    return name, value
