"""What a command line asked of a tool, and how a wrong one is refused.

Models: the `INTERVAL [COUNT]` tail that iostat and vmstat share, and one-letter options.
Linux counterpart: the argument loops of sysstat iostat.c:main and procps vmstat.c:main.
Invariants: what a tool would not understand, or what this one leaves out, raises ToolUsageError
with what is allowed; nothing is ignored.
Left out: long options; a count without an interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class ToolUsageError(ValueError):
    """A command line that the tool does not take; `allowed` says what it takes."""

    def __init__(self, tool: str, problem: str, allowed: str) -> None:
        super().__init__(f"{tool}: {problem}; allowed: {allowed}")
        self.tool = tool
        self.problem = problem
        self.allowed = allowed


@dataclass(frozen=True, slots=True)
class Sampling:
    """When the tool reads /proc: at once, then every `interval_s`, `count` times in all.

    `interval_s` None: once. `count` None: until stopped.
    """

    interval_s: int | None
    count: int | None


ONCE = Sampling(interval_s=None, count=1)


def split_clusters(words: Iterable[str]) -> list[str]:
    """Return the words with `-xtc` taken apart into `-x -t -c`; other words unchanged."""
    flat: list[str] = []
    for word in words:
        is_cluster = word.startswith("-") and not word.startswith("--") and len(word) > 2
        flat += [f"-{letter}" for letter in word[1:]] if is_cluster else [word]
    return flat


def parse_sampling(tool: str, numbers: Sequence[str], allowed: str) -> Sampling:
    """Return the sampling asked by the trailing `[INTERVAL [COUNT]]` of a command line."""
    values = [int(word) for word in numbers if word.isdecimal()]
    if len(values) != len(numbers) or len(values) > 2:
        raise ToolUsageError(tool, f"unknown argument {' '.join(numbers)!r}", allowed)
    if 0 in values:
        raise ToolUsageError(tool, "interval and count must be at least 1", allowed)
    if not values:
        return ONCE
    return Sampling(interval_s=values[0], count=values[1] if len(values) == 2 else None)
