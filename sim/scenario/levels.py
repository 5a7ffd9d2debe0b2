"""[slo]: what is asked of a server's figures, as it is written.

Models: the page of a contract that says "95 of 100 mails are accepted within a second".
Linux counterpart: none.
Invariants: every level keeps its place, so that a mistake in it can be shown there.
Left out: whether a figure is there and what it comes to (sim.study.levels): which figures a
 scenario has is known where they are computed.

    [slo]
    accept_p95_ms = "< 1 s"
    load1_peak = ["< 12", "< 20 in 95 % of runs"]

On the command line a level is one text: --slo 'accept_p95_ms < 1 s'.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sim.toml.errors import Place, Problem, ScenarioError
from sim.toml.layers import Leaf, Table
from sim.toml.reading import Reading

EXAMPLES: Final = '"< 1 s", "> 10", "< 12 in 90 % of runs", "= 0 in 95 % of runs"'
_OPTION: Final = re.compile(r"\s*([^<>=\s]+)\s*([<>=].*)")


@dataclass(frozen=True)
class LevelText:
    """A level as given: of which figure, in which words, and where both stand."""

    figure: str
    words: str
    key: Place
    at: Place


def read_levels(reading: Reading, root: Table) -> tuple[LevelText, ...]:
    """Return the levels of [slo]."""
    return tuple(_levels(reading, reading.table(root, (), "slo"), ""))


def _levels(reading: Reading, table: Table, path: str) -> Iterator[LevelText]:
    for name, child in table.children.items():
        figure = f"{path}{name}"
        if isinstance(child, Table):  # the name of a figure of a disk has dots
            yield from _levels(reading, child, f"{figure}.")
            continue
        for words in _words(child):
            if isinstance(words, str):
                yield LevelText(figure, words, child.key, child.at)
            else:
                message = f"slo.{figure}: expected a level, or a list of levels"
                reading.error(child.at, message, allowed=EXAMPLES)


def _words(leaf: Leaf) -> list[object]:
    return leaf.value if isinstance(leaf.value, list) else [leaf.value]


def read_option(text: str) -> LevelText:
    """Return the level of one --slo; raise ScenarioError."""
    file = f"--slo {text!r}"
    found = _OPTION.fullmatch(text)
    if found is None:
        place = Place(file, 0, 1, len(text), text)
        allowed = "'FIGURE < VALUE', such as 'accept_p95_ms < 1 s'"
        raise ScenarioError([Problem(place, "not a level", "", allowed)])
    key, at = (Place(file, 0, found.start(i) + 1, len(found[i].rstrip()), text) for i in (1, 2))
    return LevelText(found[1], found[2], key, at)
