"""dd's command line as a process of a scenario.

Models: the operands of dd, as far as the program `dd` does them.
Linux counterpart: coreutils src/dd.c scanargs, parse_integer; "info coreutils dd".
Invariants: an operand, flag or suffix that is not understood raises ToolUsageError with what is
 allowed and the nearest name; nothing is ignored.
Left out: ibs, obs, cbs, status, if and of left away (a terminal and a pipe).
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sim.registry import did_you_mean
from sim.toml.layers import Layer, Table, read_table
from sim.tools.usage import ToolUsageError

PROCESS: Final = "typed-dd"  # the process it is in the scenario
_OPERANDS: Final = ("if", "of", "bs", "count", "skip", "seek", "iflag", "oflag", "conv")
_MULTIPLIERS: Final[Mapping[str, int]] = {
    "": 1,
    "c": 1,
    "w": 2,
    "b": 512,
    **{prefix: 1024**n for n, prefix in enumerate("KMGT", start=1)},
    **{f"{prefix}B": 1000**n for n, prefix in enumerate("KMGT", start=1)},
    **{f"{prefix}iB": 1024**n for n, prefix in enumerate("KMGT", start=1)},
    "k": 1024,
    "kB": 1000,
}
_FLAGS: Final[Mapping[str, Mapping[str, str]]] = {  # operand -> flag -> parameter
    "iflag": {"direct": "input_direct", "nocache": "input_nocache"},
    "oflag": {"direct": "output_direct", "sync": "output_sync", "dsync": "output_dsync"},
    "conv": {"fsync": "fsync", "fdatasync": "fdatasync", "notrunc": "notrunc"},
}


def dd_layer(argv: Sequence[str], start_ns: int) -> Table:
    """Return the operands as a table to lay over a scenario, which then runs until dd ends."""
    values: dict[str, str | int | bool] = {"program": "dd"}
    for word in argv:
        operand, equals, given = word.partition("=")
        if not equals or operand not in _OPERANDS:
            raise _refused(f"unrecognized operand {word!r}", operand, _OPERANDS)
        if operand in _FLAGS:
            values |= dict.fromkeys(_flags(operand, given), True)
        else:
            key, read = _READ[operand]
            values[key] = read(operand, given)
    for operand in ("if", "of"):
        if operand not in values:
            raise ToolUsageError("dd", f"'{operand}=' is missing: no terminal here", "if= and of=")
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    text = "\n".join(
        [
            f'[process.{PROCESS}]\nstart = "{start_ns} ns"',
            *lines,
            f'[run]\nduration = "100000 h"\nuntil = "{PROCESS}.dd_done"\nafter = 0',
        ]
    )
    return read_table(text, "dd's command line", Layer.FIT)


def _refused(problem: str, given: str, known: Sequence[str]) -> ToolUsageError:
    return ToolUsageError("dd", problem + did_you_mean(given, known), ", ".join(known))


def _flags(operand: str, given: str) -> list[str]:
    known = _FLAGS[operand]
    for flag in given.split(","):
        if flag not in known:
            raise _refused(f"{operand}={given}: invalid flag {flag!r}", flag, tuple(known))
    return [known[flag] for flag in given.split(",")]


def _text(operand: str, given: str) -> str:
    if not given.startswith("/"):
        raise ToolUsageError("dd", f"{operand}={given}: no path", "a path from /")
    return given


def _number(operand: str, given: str) -> int:
    """Return dd's number: factors joined by x, each with its suffix (1M, 2x512, 1kB)."""
    product = 1
    for factor in given.split("x"):
        found = re.fullmatch(r"(\d+)([A-Za-z]*)", factor)
        if found is None or found[2] not in _MULTIPLIERS:
            allowed = f"digits and one of {', '.join(filter(None, _MULTIPLIERS))}"
            raise ToolUsageError("dd", f"{operand}={given}: invalid number", allowed)
        product *= int(found[1]) * _MULTIPLIERS[found[2]]
    return product


def _positive(operand: str, given: str) -> int:
    number = _number(operand, given)
    if number < 1:
        raise ToolUsageError("dd", f"{operand}={given}: invalid number", "1 or more")
    return number


def _bytes(operand: str, given: str) -> str:
    return f"{_positive(operand, given)} B"


_READ: Final[Mapping[str, tuple[str, Callable[[str, str], str | int]]]] = {
    "if": ("if", _text),
    "of": ("of", _text),
    "bs": ("bs", _bytes),
    "count": ("blocks", _positive),
    "skip": ("skip", _number),
    "seek": ("seek", _number),
}
