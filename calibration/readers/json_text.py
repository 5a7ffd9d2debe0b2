"""Find JSON documents in a text, whole, malformed or cut.

Models: the reader who closes in his mind the brackets that are missing at the end of a page.
Linux counterpart: none.
Invariants: what is taken from a cut document was complete in it: only values that end in a bracket
are kept before the brackets are closed; a document that was mended says so; looking for documents
takes time in proportion to the text: what looks like one and is none is looked at as often as
_FAILED_MAX allows.
Left out: documents that do not begin at the beginning of a line; documents larger or deeper than
`intake` allows: they are told.

Known faults of tools that are mended: a comma before a closing bracket (iostat -o JSON interrupted,
sysstat 11.5.1 to 12.1.3) or after an opening one (`-y`, to 12.1.4), bare nan and inf (C's printf).
"""

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from calibration.readers.intake import DEPTH_MAX, DIGITS_MAX, DOCUMENT_MAX, MIB

_BEGIN: Final = re.compile(r"^[{\[]", re.MULTILINE)
# Possessive, as strings may be long. They are matched first so that nothing is mended inside them.
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_FAULT: Final = re.compile(
    rf"(?P<string>{_STRING})|(?P<nan>-?\b(?:nan|inf)\b)|(?P<open>[{{\[]\s*+)?,[,\s]*+", re.DOTALL
)
_TOKEN: Final = re.compile(rf"{_STRING}|[{{}}\[\]]", re.DOTALL)
_CLOSING: Final = {"{": "}", "[": "]"}
_MENDED_MAX: Final = 4 * MIB  # characters of a document that is mended: a second of looking
_FAILED_MAX: Final = 4 * MIB  # characters looked at in vain, in one text, and
_LOOKS: Final = 4  # looks at each of them
_HEAD: Final = 256  # characters that show most of what is no document
_WORD: Final = 16  # of their last ones may belong to a value that goes on
_LONG: Final = re.compile(rf"[0-9]{{{DIGITS_MAX + 1}}}")
_TRIES: Final = 3  # last brackets that a cut document is closed behind


def _whole(digits: str) -> int | float:
    """Return a whole number; one of more digits than any counter has as what is near it."""
    return int(digits) if len(digits) <= DIGITS_MAX else float(digits)


_QUICK: Final = json.JSONDecoder()
_CAREFUL: Final = json.JSONDecoder(parse_int=_whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document and where it stands: positions in the text; what had to be mended, or "".

    `refused` says why it has no content: it is more than is read.
    """

    content: Any
    begin: int
    end: int
    mended: str = ""
    refused: str = ""


def find_documents(text: str) -> list[Document]:
    """Return what may be documents, in their order; a line in brackets may look like one too."""
    found: list[Document] = []
    failed = 0
    for match in _BEGIN.finditer(text):
        if not found or match.start() >= found[-1].end:
            document, looked_at = _document_at(text, match.start())
            if document is not None:
                found.append(document)
                continue
            failed += looked_at
            if failed > min(_FAILED_MAX, _LOOKS * len(text) + MIB // 16):
                break
    return found


def _document_at(text: str, begin: int) -> tuple[Document | None, int]:
    """Return a document, and how much of the text was looked at in vain."""
    if len(text) - begin > DOCUMENT_MAX and _end_of(text, begin) - begin > DOCUMENT_MAX:
        why = f"has more than {DOCUMENT_MAX // MIB} million characters"
        return _refused(text, begin, begin + DOCUMENT_MAX, why)
    try:
        content, end = _decoded(text, begin)
    except RecursionError:
        return _refused(text, begin, _end_of(text, begin), f"is deeper than {DEPTH_MAX} brackets")
    except ValueError as error:
        return _mended(text, begin, str(error))
    return Document(content=content, begin=begin, end=end), 0


def _decoded(text: str, begin: int = 0) -> tuple[Any, int]:
    """Return a document and where it ends; ValueError, RecursionError.

    Most of what looks like one ("[2026-11-26 10:00:00] ...") is none after a few characters. These
    are tried alone, as an error counts the lines of all the text before it.
    """
    head = text[begin : begin + _HEAD]
    if len(head) == _HEAD:
        try:
            _QUICK.raw_decode(head)
        except json.JSONDecodeError as error:
            if error.pos < _HEAD - _WORD and not error.msg.startswith("Unterminated"):
                raise
    content, end = _QUICK.raw_decode(text, begin)
    if _LONG.search(text, begin, end):
        return _CAREFUL.raw_decode(text, begin)
    return content, end


def _refused(text: str, begin: int, end: int, why: str) -> tuple[Document, int]:
    told = f"JSON that {why}: give a part of it"
    end = len(text) if (line := text.find("\n", end)) < 0 else line
    return Document(content=None, begin=begin, end=max(end, begin + 1), refused=told), 0


def _mended(text: str, begin: int, why: str) -> tuple[Document | None, int]:
    """Return a document without the known faults, or as much of it as is complete."""
    end = _end_of(text, begin)
    if end - begin > _MENDED_MAX:
        return None, end - begin
    sound = _FAULT.sub(_sound, text[begin:end])
    try:
        content, _ = _decoded(sound)
    except (ValueError, RecursionError):
        content = _salvaged(sound)
        mended = f"cut JSON ({why}): what was complete before is kept"
    else:
        mended = f"mended JSON ({why})"
    if content is None:
        return None, end - begin
    return Document(content=content, begin=begin, end=end, mended=mended), 0


def _sound(found: re.Match[str]) -> str:
    """Return what stands for a fault; strings stay."""
    if found["string"] or found["open"]:
        return found["string"] or found["open"]
    if found["nan"] is not None:
        return "null"
    return "" if found.string[found.end() : found.end() + 1] in ("}", "]") else ","


def _end_of(text: str, begin: int) -> int:
    """Return the position behind the bracket that closes the first one, or the end of the text.

    It need not be exact where more has been seen than is read.
    """
    for position, stack in _brackets(text, begin):
        if not stack:
            return position + 1
        if position - begin > DOCUMENT_MAX:
            break
    return len(text)


def _salvaged(text: str) -> Any:
    """Return the longest document of complete values; None if there is none."""
    last: deque[int] = deque(maxlen=_TRIES)
    last.extend(p for p, stack in _brackets(text, 0) if stack and text[p] in "}]")
    kept = set(last)
    opened = {p: "".join(stack) for p, stack in _brackets(text, 0) if p in kept}
    for position in reversed(last):
        closing = "".join(_CLOSING[bracket] for bracket in reversed(opened[position]))
        try:
            return _decoded(text[: position + 1] + closing)[0]
        except (ValueError, RecursionError):
            continue  # not JSON up to there either
    return None


def _brackets(text: str, begin: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the position of each bracket, with the brackets that are open behind it."""
    stack: list[str] = []
    for token in _TOKEN.finditer(text, begin):
        bracket = token[0]
        if bracket in _CLOSING:
            stack.append(bracket)
        elif bracket in ("}", "]"):
            del stack[-1:]
        else:
            continue
        yield token.start(), stack
        if not stack:
            break
