"""The reference of the model: what each file of the kernel model says of itself, as Markdown.

Models: a book about the kernel whose chapters are the folders of `sim/`.
Invariants: nothing is written twice: a chapter (docs/reference/model/NAME.md) holds a marker in
 place of which the site shows the opening texts of the folder's files. A file of the model says
 what it models, what its counterpart is, what always holds, and what it leaves out.

    <!-- model: sim/block -->

Left out: classes and functions, whose texts are in the sources.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docs.declared import TOP

FOLDERS: Final = ("engine", "sched", "block", "drivers", "net", "mm", "fs", "user")
LEFT_OUT: Final = "Left out"
# Tables, and what is of Python and not of Linux: there is nothing that they could leave out.
NOTHING_LEFT_OUT: Final = frozenset(
    {
        "sim/block/features.py",
        "sim/drivers/features.py",
        "sim/drivers/md/features.py",
        "sim/engine/garbage.py",
        "sim/fs/errors.py",
        "sim/fs/proc/counters.py",
        "sim/mm/drop_caches.py",
        "sim/sched/features.py",
        "sim/sched/sched_class.py",
    }
)
_MARKER: Final = re.compile(r"^<!-- model: (\S+) -->$", re.MULTILINE)
# A part of an opening text: its name at a line's beginning, perhaps with a remark in brackets.
_PART: Final = re.compile(r"([A-Z][a-z]+(?: \w+)*(?: \(.*?\))?[:.])(?: |$)")
_PARTS: Final = (
    "Models",
    "Linux counterpart",
    "Counterpart",
    "Invariants",
    LEFT_OUT,
    "Theory",
    "Theory of operation",
    "By hand",
    "Estimate",
    "Hand estimate",
)
# What each file says, and the parts of an opening text that say it.
_ASKED: Final = {
    "what it models": ("Models", "Theory"),
    "what its counterpart is": ("Linux counterpart", "Counterpart"),
    "what always holds": ("Invariants",),
    "what is left out": (LEFT_OUT,),
}


def opening_text(path: Path) -> str:
    """Return a source file's docstring; "" if it has none."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def source_files(folder: str, top: Path = TOP) -> list[Path]:
    """Return the source files of a folder of the model and of its folders, but for __init__."""
    return sorted(path for path in (top / folder).rglob("*.py") if path.name != "__init__.py")


def too_short(folder: str, top: Path = TOP) -> Iterator[str]:
    """Yield the files that do not say enough of themselves, and what they lack."""
    for path in source_files(folder, top):
        name = path.relative_to(top).as_posix()
        text = opening_text(path)
        if name in NOTHING_LEFT_OUT:
            continue
        if "\n" not in text:
            yield f"{name}: its opening text is no more than a line"
            continue
        for question, parts in _ASKED.items():
            if not any(f"\n{part}" in text for part in parts):
                yield f"{name}: does not say {question} ('{parts[0]}: ...')"


def filled_chapter(page: str, top: Path = TOP) -> str:
    """Return a page with its marker replaced by the texts of the folder that it names."""
    return _MARKER.sub(lambda found: _folder_text(found[1], top), page)


def _folder_text(folder: str, top: Path) -> str:
    parts = [as_markdown(opening_text(top / folder / "__init__.py"))]
    for path in source_files(folder, top):
        heading, _line, rest = opening_text(path).partition("\n")
        name = path.relative_to(top / folder).as_posix()
        parts.append(f"## `{name}`\n\n{as_markdown(heading)}\n\n{as_markdown(rest.strip())}")
    return "\n\n".join(parts)


def as_markdown(text: str) -> str:
    """Return an opening text as Markdown: its parts as paragraphs with bold names."""
    lines: list[str] = []
    for line in text.replace("<", "\\<").split("\n"):
        found = _PART.match(line)
        if found and found[1].partition(" (")[0].rstrip(":.") in _PARTS:
            line = f"\n**{found[1]}**{line[found.end(1) :]}"
        elif line.startswith(" - ") and lines and not lines[-1].startswith((" - ", "   ")):
            line = f"\n{line}"  # a list begins
        lines.append(line)
    return "\n".join(lines)
