"""The documents as a site (`python3 bootstrap.py docs`): Sphinx, with the project's top as source.

Models: a book with a table of contents, made of the pages as they are.
Invariants: a page stands on the site under its path in the checkout, so a link that is right there
 is right here. The site's contents are the links of the pages that are lists of pages, in their
 order; a page that no list names is a warning, and with `-W` a failure. A lesson is shown as a
 student gets it, with the outputs of its cells. They are kept in build/lessons until a source of
 the twin changes. No page loads anything from elsewhere.
Left out: the solutions of lessons, which `bootstrap.py lesson N --solutions` shows.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bootstrap import TOP, digest_of, source_files
from docs.model import filled_chapter
from docs.pages import FRONT, INDEX, Page, resolved
from sim.lesson.copies import notebook_from, without_solutions

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# Pages that are lists of pages; a page belongs to the first that links to it.
LISTS: Final = (
    INDEX,
    "docs/reference/model/README.md",
    "notebooks/README.md",
    "scenarios/README.md",
)
PAGES: Final = (
    FRONT,
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "docs/*.md",
    "docs/**/*.md",
    "notebooks/README.md",
    "notebooks/[0-9]*.py",
    "scenarios/README.md",
    "scenarios/*/README.md",
)
# Where the outputs of lessons are kept; those that other sources have made are of no use.
LESSONS_CACHE: Final = TOP / "build" / "lessons" / digest_of(source_files())[:12]
# What a page loads by itself: scripts, styles, pictures; an <a> does not.
_LOADED: Final = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']((?:https?:)?//[^"']+)"""
)


def chapters(page: Page) -> Iterator[tuple[str, list[str]]]:
    """Yield the headings of a page, each with the files below it that its part links to."""
    heading, found = "", list[str]()
    for before, token in zip([None, *page.tokens], page.tokens, strict=False):
        if before is not None and before.type == "heading_open":
            yield heading, found
            heading, found = token.content, []
        for child in token.children or ():
            if child.type == "link_open":
                found.append(resolved(page.name, str(child.attrGet("href")).partition("#")[0]))
    yield heading, found


def contents(lists: Mapping[str, Page], pages: frozenset[str]) -> dict[str, str]:
    """Return the tables of contents that each list of pages has at its end, as Markdown.

    The index and what it links to stand on the front page: what the site shows at its side.
    """
    taken = {FRONT, INDEX}
    texts = {}
    for name, page in lists.items():
        trees = [_tree("", [INDEX])] if name == INDEX else []
        for heading, linked in chapters(page):
            mine = [one for one in dict.fromkeys(linked) if one in pages and one not in taken]
            taken.update(mine)
            if mine:
                trees.append(_tree(heading if name == INDEX else "", mine))
        texts[FRONT if name == INDEX else name] = "\n".join(trees)
    return texts


def _tree(caption: str, names: list[str]) -> str:
    told = f":caption: {caption}\n" if caption else ""
    entries = "".join(f"/{_document(name)}\n" for name in names)
    return f"\n```{{toctree}}\n:hidden:\n{told}\n{entries}```\n"


def _document(name: str) -> str:
    """Return how Sphinx names a file."""
    return Path(name).with_suffix("").as_posix()


def from_elsewhere(site: Path) -> Iterator[str]:
    """Yield page and address of all that a browser would fetch from another host."""
    for path in sorted(site.rglob("*.html")):
        for address in _LOADED.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: {address}"


def student_copy(text: str) -> Any:
    """Return a lesson's text as a notebook without its solutions."""
    return without_solutions(notebook_from(text))


def files(top: Path) -> frozenset[str]:
    """Return the files that are pages of the site."""
    found = (path for pattern in PAGES for path in top.glob(pattern))
    return frozenset(path.relative_to(top).as_posix() for path in found)


def setup(app: "Sphinx") -> dict[str, Any]:
    """Let lists of pages end with contents, and chapters on the model hold the sources' texts."""
    top = Path(app.srcdir)
    lists = {name: Page(name, (top / name).read_text(encoding="utf-8")) for name in LISTS}
    texts = {_document(name): text for name, text in contents(lists, files(top)).items()}

    def add_contents(_app: "Sphinx", document: str, source: list[str]) -> None:
        source[0] = filled_chapter(source[0]) + texts.get(document, "")

    def refuse_elsewhere(app: "Sphinx", error: Exception | None) -> None:
        found = [] if error else list(from_elsewhere(Path(app.outdir)))
        if found:
            raise RuntimeError("loaded from elsewhere: " + "; ".join(found))

    app.connect("source-read", add_contents)
    app.connect("build-finished", refuse_elsewhere)
    return {"parallel_read_safe": True}
