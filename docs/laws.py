"""What holds for every page: links lead somewhere, no page is lost, no table of results is typed.

Models: a proofreader.
Invariants: each law yields its complaints as "page:line: what", in the order of the pages.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from docs.blocks import placed_blocks
from docs.declared import TOP
from docs.pages import FRONT, INDEX, Page, resolved

_ELSEWHERE: Final = re.compile(r"^[a-z]+:")  # https:, mailto:
_NUMBER: Final = re.compile(r"^[~<>+-]*\d[\d.,]*(\s|%|$|[a-zA-Z])")
# Before a table that a test makes again and compares with the page.
_TESTED: Final = re.compile(r"^<!-- tested: (tests/\S+\.py) -->$")
_NUMBERS_OF_RESULTS: Final = 3  # numbers in a line, lines in a block of text


def broken_links(pages: Mapping[str, Page], top: Path = TOP) -> Iterator[str]:
    """Yield links to files and headings that are not there."""
    for page in pages.values():
        for line, target in page.links():
            if _ELSEWHERE.match(target):
                continue
            path, _hash, anchor = target.partition("#")
            name = resolved(page.name, path) if path else page.name
            if not (top / name).exists():
                yield f"{page.name}:{line}: no file {name} (link to {target})"
            elif anchor and anchor not in _anchors_of(name, pages, top):
                yield f"{page.name}:{line}: no heading #{anchor} in {name}"


def _anchors_of(name: str, pages: Mapping[str, Page], top: Path) -> frozenset[str]:
    if name in pages:
        return pages[name].anchors
    if not name.endswith(".md"):
        return frozenset()
    return Page(name, (top / name).read_text(encoding="utf-8")).anchors


def unreachable(pages: Mapping[str, Page]) -> Iterator[str]:
    """Yield pages that no chain of links from the index or the front page leads to."""
    found: set[str] = set()
    left = [INDEX, FRONT]
    while left:
        name = left.pop()
        if name in found or name not in pages:
            continue
        found.add(name)
        left += [
            resolved(name, target.partition("#")[0])
            for _line, target in pages[name].links()
            if not _ELSEWHERE.match(target)
        ]
    yield from (f"{name}: no link from {INDEX} leads here" for name in pages if name not in found)


def typed_results(pages: Mapping[str, Page], top: Path = TOP) -> Iterator[str]:
    """Yield tables that are mostly numbers, and texts of numbers, outside generated blocks."""
    for page in pages.values():
        made = [(block.first, block.end) for block in placed_blocks(page.text, page.name)]
        complaint = "results that no run backs: declare them in docs/tables.toml"
        for table in page.tables():
            cells = [cell for row in table.rows for cell in row[1:] if cell]
            numbers = sum(bool(_NUMBER.match(cell.strip("*` "))) for cell in cells)
            is_made = _is_within(table.line, made) or _is_tested(page, table.line, top)
            if not is_made and cells and 2 * numbers > len(cells):
                yield f"{page.name}:{table.line}: a table of {complaint}"
        for line, info, content in page.fences():
            rows = [row for row in content.splitlines() if _numbers_in(row)]
            is_text = info in ("", "text")
            if is_text and not _is_within(line, made) and len(rows) >= _NUMBERS_OF_RESULTS:
                yield f"{page.name}:{line}: a text of {complaint}"


def _is_tested(page: Page, line: int, top: Path) -> bool:
    """Return whether the two lines above name a test that knows this page."""
    above = page.text.splitlines()[max(line - 3, 0) : line - 1]
    for found in filter(None, map(_TESTED.match, above)):
        test = top / found.group(1)
        return test.is_file() and page.name in test.read_text(encoding="utf-8")
    return False


def _numbers_in(row: str) -> bool:
    """Return whether a line is one of numbers."""
    words = row.split()
    numbers = sum(bool(_NUMBER.match(word)) for word in words)
    return numbers >= _NUMBERS_OF_RESULTS and 2 * numbers > len(words)


def _is_within(line: int, blocks: list[tuple[int, int]]) -> bool:
    return any(first < line <= end for first, end in blocks)
