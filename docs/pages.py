"""The documents as a parser sees them: headings, links, fences, tables.

Models: a reader who follows every link and types every command.
Invariants: a page is parsed as CommonMark with tables (markdown-it); anchors of headings are made
 as GitHub makes them.
Left out: HTML.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from docs.declared import TOP

FRONT: Final = "README.md"
INDEX: Final = "docs/README.md"
GUIDES: Final = "docs/how-to/add-"  # how pages begin that put files into the project itself
_PARSER: Final = MarkdownIt("commonmark").enable("table")
_PROMPT: Final = "$ "
_GOES_ON: Final = "> "


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A command as a page shows it, with the output below it ("" where none is shown)."""

    page: str
    line: int
    command: str
    output: str


@dataclass(frozen=True, kw_only=True)
class ShownFile:
    """A file that a page shows in full under its name."""

    page: str
    line: int
    name: str
    content: str


@dataclass(frozen=True, kw_only=True)
class ShownTable:
    """A table of a page: where, and the cells below the headings."""

    line: int
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Page:
    """One document; `name` is its path from the top of the project."""

    name: str
    text: str

    @property
    def changes_project(self) -> bool:
        """Whether the page's files go into the project, and its commands try it."""
        return self.name.startswith(GUIDES)

    @cached_property
    def tokens(self) -> list[Token]:
        """The page, parsed."""
        return _PARSER.parse(self.text)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """The anchors of its headings."""
        found: dict[str, int] = {}
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            if before.type == "heading_open":
                anchor = _anchor(_words(token))
                found[anchor] = found.get(anchor, 0) + 1
        return frozenset(
            anchor if number == 0 else f"{anchor}-{number}"
            for anchor, count in found.items()
            for number in range(count)
        )

    def links(self) -> Iterator[tuple[int, str]]:
        """Yield line and target of every link and picture."""
        for token in self.tokens:
            for child in token.children or ():
                target = child.attrGet("href" if child.type == "link_open" else "src")
                if child.type in ("link_open", "image") and target is not None:
                    yield _line(token), str(target)

    def fences(self) -> Iterator[tuple[int, str, str]]:
        """Yield line, info string and content of every fenced or indented block of code."""
        for token in self.tokens:
            if token.type in ("fence", "code_block"):
                yield _line(token), token.info.strip(), token.content

    def commands_and_files(self) -> Iterator[Shown | ShownFile]:
        """Yield what a reader types and saves, in the page's order.

        A fence ```console has commands behind `$ `; one such as ```toml mine.toml is a file.
        """
        for line, info, content in self.fences():
            words = info.split()
            if words[:1] == ["console"]:
                yield from _commands(self.name, line, content)
            elif len(words) == 2:
                yield ShownFile(page=self.name, line=line, name=words[1], content=content)

    def tables(self) -> Iterator[ShownTable]:
        """Yield the tables."""
        rows: list[tuple[str, ...]] = []
        row: list[str] = []
        line = 0
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            if token.type == "table_open":
                rows, line = [], _line(token)
            elif token.type == "tr_open":
                row = []
            elif before.type == "td_open":
                row.append(token.content)
            elif token.type == "tr_close" and row:
                rows.append(tuple(row))
            elif token.type == "table_close":
                yield ShownTable(line=line, rows=tuple(rows))


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 0


def _words(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _commands(page: str, line: int, content: str) -> Iterator[Shown]:
    """Yield the commands of one fence; a line that ends with a backslash goes on below."""
    command: str | None = None
    output: list[str] = []
    begin = line
    for number, text in enumerate(content.splitlines(), start=line + 1):
        if text.startswith(_PROMPT):
            if command is not None:
                yield Shown(page=page, line=begin, command=command, output="".join(output))
            # It is the same command whether or not the virtual environment is on the path.
            typed = text.removeprefix(_PROMPT)
            command = typed.replace(".venv/bin/iotwin", "iotwin")
            output, begin = [], number
        elif command is not None and command.endswith("\\") and not output:
            command = command[:-1].rstrip() + " " + text.removeprefix(_GOES_ON).strip()
        else:
            output.append(text + "\n")
    if command is not None:
        yield Shown(page=page, line=begin, command=command, output="".join(output))


def resolved(page: str, target: str) -> str:
    """Return the path from the top that a link of a page leads to."""
    parts: list[str] = []
    for part in [*Path(page).parent.parts, *Path(target).parts]:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def all_pages(top: Path = TOP) -> dict[str, Page]:
    """Return README.md, CONTRIBUTING.md and the pages of docs, by name."""
    paths = [top / FRONT, top / "CONTRIBUTING.md", *sorted((top / "docs").rglob("*.md"))]
    return {
        name: Page(name, path.read_text(encoding="utf-8"))
        for path in paths
        if path.is_file()
        for name in [path.relative_to(top).as_posix()]
    }
