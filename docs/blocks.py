"""Generated blocks in pages: found, and filled.

Models: a form with blanks.
Invariants: what stands outside the markers is never changed; a block that is not closed, or is
 declared nowhere, is a mistake with its line.

    <!-- generated: NAME -->
    ...
    <!-- end -->
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_BEGIN: Final = re.compile(r"^<!-- generated: ([\w-]+) -->$")
_END: Final = "<!-- end -->"


class BlockError(ValueError):
    """A page whose markers do not fit together."""


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A block of a page: its name, its lines (from 0, markers left out), its text."""

    name: str
    first: int
    end: int
    text: str


def placed_blocks(page: str, where: str) -> list[Placed]:
    """Return the generated blocks of a page; raise BlockError."""
    found = []
    name, begin = "", 0
    lines = page.split("\n")
    for number, line in enumerate(lines):
        match = _BEGIN.match(line)
        if match and name:
            raise BlockError(f"{where}:{number + 1}: block '{name}' of line {begin} is not closed")
        if match:
            name, begin = match[1], number + 1
        elif line == _END:
            if not name:
                raise BlockError(f"{where}:{number + 1}: '{_END}' closes no block")
            text = "".join(one + "\n" for one in lines[begin:number])
            found.append(Placed(name=name, first=begin, end=number, text=text))
            name = ""
    if name:
        raise BlockError(f"{where}:{begin}: block '{name}' is not closed")
    return found


def filled(page: str, where: str, text_of: Callable[[str], str]) -> str:
    """Return the page with every block filled anew; raise BlockError."""
    lines = page.split("\n")
    for block in reversed(placed_blocks(page, where)):
        lines[block.first : block.end] = text_of(block.name).split("\n")[:-1]
    return "\n".join(lines)
