"""What a command line asked of a tool, and how a wrong one is refused.

Models: the `INTERVAL [COUNT]` tail that iostat and vmstat share, and one-letter options, alone, in
clusters, or with a value.
Linux counterpart: the argument loops of sysstat iostat.c:main and procps vmstat.c:main; getopt(3).
Invariants: what a tool would not understand, or what this one leaves out, raises ToolUsageError
with what is allowed; nothing is ignored.
Left out: a count without an interval.
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


def parse_letters(
    tool: str, arguments: Sequence[str], *, flags: str, valued: str, allowed: str
) -> dict[str, str]:
    """Return the options given: their values, "" for those that take none (getopt)."""
    found: dict[str, str] = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word.startswith("--") or len(word) < 2:
            raise ToolUsageError(tool, f"unknown argument {word!r}", allowed)
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in flags:
                found[letter] = ""
            elif letter not in valued:
                raise ToolUsageError(tool, f"unknown option '-{letter}'", allowed)
            else:
                found[letter] = letters or (words.pop(0) if words else "")
                letters = ""
    return found


def positive(tool: str, letter: str, word: str, allowed: str) -> int:
    """Return the whole number after an option."""
    if not word.isdecimal() or not int(word):
        raise ToolUsageError(tool, f"-{letter} needs a whole number, not {word!r}", allowed)
    return int(word)


def parse_sampling(tool: str, numbers: Sequence[str], allowed: str) -> Sampling:
    """Return the sampling asked by the trailing `[INTERVAL [COUNT]]` of a command line."""
    values = [int(word) for word in numbers if word.isdecimal()]
    others = [word for word in numbers if not word.isdecimal()]
    if others or len(values) > 2:
        raise ToolUsageError(tool, f"unknown argument {(others or numbers[2:])[0]!r}", allowed)
    if 0 in values:
        raise ToolUsageError(tool, "interval and count must be at least 1", allowed)
    if not values:
        return ONCE
    return Sampling(interval_s=values[0], count=values[1] if len(values) == 2 else None)
