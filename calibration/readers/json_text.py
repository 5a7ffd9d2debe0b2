"""Find JSON documents in a text, whole, malformed or cut.

Models: the reader who closes in his mind the brackets that are missing at the end of a page.
Linux counterpart: none.
Invariants: what is taken from a cut document was complete in it: only values that end in a bracket
are kept before the brackets are closed; a document that was mended says so.
Left out: documents that do not begin at the beginning of a line.

Known faults of tools that are mended: a comma before a closing bracket (iostat -o JSON interrupted,
sysstat 11.5.1 to 12.1.3) or after an opening one (`-y`, to 12.1.4), bare nan and inf (C's printf).
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

_BEGIN: Final = re.compile(r"^[{\[]", re.MULTILINE)
_DECODER: Final = json.JSONDecoder()
# Strings are matched first so that nothing is mended inside them.
_FAULT: Final = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*")|(?P<comma>,)(?=[,\s]*[}\]])|(?P<nan>-?\b(?:nan|inf)\b)'
    r"|(?P<many>,)(?=\s*,)|(?P<open>[{\[])\s*,"
)
_CLOSING: Final = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document and where it stands: positions in the text; what had to be mended, or ""."""

    content: Any
    begin: int
    end: int
    mended: str = ""


def find_documents(text: str) -> list[Document]:
    """Return what may be documents, in their order; a line in brackets may look like one too."""
    found: list[Document] = []
    for match in _BEGIN.finditer(text):
        if not found or match.start() >= found[-1].end:
            document = _document_at(text, match.start())
            if document is not None:
                found.append(document)
    return found


def _document_at(text: str, begin: int) -> Document | None:
    try:
        content, end = _DECODER.raw_decode(text, begin)
        return Document(content=content, begin=begin, end=end)
    except ValueError as error:
        return _mended(text, begin, str(error))


def _mended(text: str, begin: int, why: str) -> Document | None:
    """Return a document without the known faults, or as much of it as is complete."""
    end = _end_of(text, begin)
    sound = _FAULT.sub(_sound, text[begin:end])
    try:
        content, _ = _DECODER.raw_decode(sound)
        return Document(content=content, begin=begin, end=end, mended=f"mended JSON ({why})")
    except ValueError:
        pass
    content = _salvaged(sound)
    if content is None:
        return None
    return Document(
        content=content,
        begin=begin,
        end=end,
        mended=f"cut JSON ({why}): what was complete before is kept",
    )


def _sound(found: re.Match[str]) -> str:
    """Return what stands for a fault; strings stay."""
    if found["string"] or found["open"]:
        return found["string"] or found["open"]
    return "null" if found["nan"] is not None else ""


def _end_of(text: str, begin: int) -> int:
    """Return the position behind the bracket that closes the first one, or the end of the text."""
    for position, depth, _ in _brackets(text, begin):
        if not depth:
            return position + 1
    return len(text)


def _salvaged(text: str) -> Any:
    """Return the longest document of complete values; None if there is none."""
    places = [(position, stack) for position, _, stack in _brackets(text, 0) if stack]
    for position, stack in reversed([p for p in places if text[p[0]] in "}]"][-3:]):
        closing = "".join(_CLOSING[bracket] for bracket in reversed(stack))
        try:
            return json.loads(text[: position + 1] + closing)
        except ValueError:
            continue  # not JSON up to there either
    return None


_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]]', re.DOTALL)


def _brackets(text: str, begin: int) -> list[tuple[int, int, str]]:
    """Return the position of each bracket, with the depth and the open brackets behind it."""
    found = []
    stack = ""
    for token in _TOKEN.finditer(text, begin):
        bracket = token[0]
        if bracket in _CLOSING:
            stack += bracket
        elif bracket in ("}", "]"):
            stack = stack[:-1]
        else:
            continue
        found.append((token.start(), len(stack), stack))
        if not stack:
            break
    return found
