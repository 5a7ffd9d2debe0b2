"""Where each key and value of a TOML text stands.

Models: the positions that tomllib throws away, so that an error can point at a key or a value.
Linux counterpart: none.
Invariants: for every text that tomllib accepts, the map's paths are the paths of tomllib's tree
 (array elements by index), and the text at a key's span is that key as written. A table that
 several headers or dotted keys mention stands where it is first mentioned.
Left out: checking. The text has gone through tomllib before; the scanner relies on it.
"""

import bisect
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Final

Path = tuple[str | int, ...]
TEXT_MAX: Final = 1 << 20  # characters; the longest scenario that comes along has 20,000
PARTS_MAX: Final = 32  # of a dotted key; the deepest that means anything has 7


class TooMuch(ValueError):
    """A text that is longer, or a key that is deeper, than any that means something."""


def check_bounds(text: str) -> None:
    """Raise TooMuch for a text that would take time and memory out of proportion."""
    if len(text) > TEXT_MAX:
        raise TooMuch(f"{len(text):,} characters (at most {TEXT_MAX:,} are read)")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > PARTS_MAX and any(map(_is_deep, line.split("="))):
            raise TooMuch(f"line {number}: a key of more than {PARTS_MAX} parts")


def _is_deep(key: str) -> bool:
    """Tell whether there are more than PARTS_MAX parts with a dot between; "....." has none."""
    parts = [part.strip() for part in key.split("#")[0].split(".")]
    return len(parts) > PARTS_MAX and all(parts) and not any(" " in part for part in parts[1:-1])


@dataclass(frozen=True)
class Span:
    """A stretch of the text: offset of its first character, and the one after its last."""

    start: int
    end: int


@dataclass(frozen=True)
class Position:
    """Where a key is written, and its value (for a table from a header, the key again)."""

    key: Span
    value: Span


class LineMap:
    """Offset -> line and column, both from 1."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0]
        self._starts += [i + 1 for i, letter in enumerate(text) if letter == "\n"]

    def line_col(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """Return a line without its end; "" past the last."""
        if not 1 <= line <= len(self._starts):
            return ""
        end = self.text.find("\n", self._starts[line - 1])
        return self.text[self._starts[line - 1] : None if end < 0 else end].rstrip("\r")


def key_positions(text: str) -> dict[Path, Position]:
    """Return the position of every key path of a valid TOML text."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.found


@cache
def split_key(text: str) -> tuple[str, ...]:
    """Return the parts of a dotted key such as `machine.mount."/var"`; ValueError if it is none."""
    check_bounds(text)
    try:
        tree: object = tomllib.loads(f"{text} = 0\n")
    except tomllib.TOMLDecodeError:
        raise ValueError(f"not a dotted key: {text}") from None
    parts: list[str] = []
    while isinstance(tree, dict):
        if len(tree) != 1:
            raise ValueError(f"not a dotted key: {text}")
        part, tree = next(iter(tree.items()))
        parts.append(part)
    return tuple(parts)


class _Scanner:
    """One pass over the text; `at` is the offset of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, Position] = {}
        self._array_lengths: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self._skip_blank():
            if self.text.startswith("[[", self.at):
                table = self._header(2)
            elif self.text[self.at] == "[":
                table = self._header(1)
            else:
                self._key_value(table)

    def _header(self, brackets: int) -> Path:
        """Read [a.b] or [[a.b]]; return the path of the table that follows."""
        self.at += brackets
        parts = self._dotted_key()
        self._skip_space()
        self.at += brackets
        path: Path = ()
        for part, span in parts[:-1]:
            path = self._mention((*path, part), span)
        part, span = parts[-1]
        path = (*path, part)
        if brackets == 1:
            return self._mention(path, span)
        self.found.setdefault(path, Position(span, span))
        index = self._array_lengths.get(path, 0)
        self._array_lengths[path] = index + 1
        path = (*path, index)
        self.found[path] = Position(span, span)
        return path

    def _mention(self, path: Path, span: Span) -> Path:
        """Note a table; return its path, that of the last element if it is an array of tables."""
        self.found.setdefault(path, Position(span, span))
        if path in self._array_lengths:
            return (*path, self._array_lengths[path] - 1)
        return path

    def _key_value(self, table: Path) -> None:
        parts = self._dotted_key()
        path = table
        for part, span in parts[:-1]:
            path = self._mention((*path, part), span)
        name, key = parts[-1]
        path = (*path, name)
        self._skip_space()
        self.at += 1  # the equals sign
        self._skip_space()
        start = self.at
        self._value(path)
        self.found[path] = Position(key, Span(start, self.at))

    def _dotted_key(self) -> list[tuple[str, Span]]:
        parts = []
        while True:
            self._skip_space()
            start = self.at
            if self.text[start] in "\"'":
                self._string()
            else:
                self._run_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
            written = self.text[start : self.at]
            parts.append((split_key(written)[0], Span(start, self.at)))
            self._skip_space()
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def _value(self, path: Path) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self._string()
        elif first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\r\n":
                self.at += 1
            while self.text[self.at - 1] in " \t":
                self.at -= 1

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while self._skip_blank() and self.text[self.at] != "]":
            start = self.at
            self._value((*path, index))
            span = Span(start, self.at)
            self.found[(*path, index)] = Position(span, span)
            index += 1
            self._skip_blank()
            if self.text[self.at] == ",":
                self.at += 1
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while self._skip_blank() and self.text[self.at] != "}":
            self._key_value(path)
            self._skip_blank()
            if self.text[self.at] == ",":
                self.at += 1
        self.at += 1

    def _string(self) -> None:
        quote = self.text[self.at]
        if self.text.startswith(quote * 3, self.at):
            self._long_string(quote)
            return
        self.at += 1
        while self.text[self.at] != quote:
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += 1

    def _long_string(self, quote: str) -> None:
        self.at += 3
        while not self.text.startswith(quote * 3, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += 3
        while self.text.startswith(quote, self.at):  # up to two quotes may precede the closing ones
            self.at += 1

    def _skip_space(self) -> None:
        self._run_of(" \t")

    def _run_of(self, letters: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in letters:
            self.at += 1

    def _skip_blank(self) -> bool:
        """Skip spaces, line ends and comments; True if something follows."""
        while True:
            self._run_of(" \t\r\n")
            if self.at >= len(self.text):
                return False
            if self.text[self.at] != "#":
                return True
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
