"""A page of HTML that needs nothing but itself: elements, and a document with its own policy.

Models: one file that is mailed, opened from a disk, and kept.
Linux counterpart: none. HTML Living Standard; Content Security Policy Level 3 (hashes, 'none').
Invariants: all text becomes text: elements are a tree, and the standard library's serialiser
 escapes what is in it; only script and style are raw, and they come from this package alone. The
 policy names each of them by its hash, and allows nothing else: no address, no inline attribute.
Left out: a language of templates; the tree says the same in fewer words, and cannot forget to
 escape.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Final
from xml.etree import ElementTree

from sim.report.tables import Table

Element = ElementTree.Element
Content = Element | str | None

_NUMBER_MAX: Final = 30  # characters of a cell that is kept on one line
DOCTYPE: Final = "<!DOCTYPE html>\n"
# What no page may have as text: control characters but for tab and end of line, half characters.
_CONTROL: Final = dict.fromkeys(
    (*range(9), 11, 12, *range(13, 32), *range(127, 160), *range(0xD800, 0xE000)), "\ufffd"
)


def element(tag: str, *content: Content, **attributes: str) -> Element:
    """Return an element; `class_` and `aria_label` are the attributes class and aria-label."""
    made = Element(tag)
    for name, value in attributes.items():
        made.set(name.rstrip("_").replace("_", "-"), value.translate(_CONTROL))
    return add(made, *content)


def add(to: Element, *content: Content) -> Element:
    """Append texts and elements; return the element."""
    for one in content:
        if isinstance(one, str):
            text = one.translate(_CONTROL)
            if len(to):
                to[-1].tail = (to[-1].tail or "") + text
            else:
                to.text = (to.text or "") + text
        elif one is not None:
            to.append(one)
    return to


def document(
    title: str, body: Iterable[Content], *, style: str, scripts: Iterable[str], data: object
) -> str:
    """Return a page; `data` is what the scripts find as JSON in the element "data"."""
    code = [_raw("script", text) for text in scripts]
    rules = _raw("style", style)
    page = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=_policy(code, rules)),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("link", rel="icon", href="data:,"),
            element("title", title),
            rules,
        ),
        element("body", *body, _json(data), *code),
        lang="en",
    )
    return DOCTYPE + ElementTree.tostring(page, encoding="unicode", method="html") + "\n"


def _policy(scripts: Iterable[Element], style: Element) -> str:
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(_hash(one.text or '') for one in scripts)}",
            f"style-src {_hash(style.text or '')}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _raw(tag: str, text: str) -> Element:
    """Return a script or a style, which is not escaped: it must not end its element itself."""
    assert f"</{tag}" not in text.lower()
    made = Element(tag)
    made.text = text
    return made


def _json(data: object) -> Element:
    """Return data as JSON in which no element can begin or end."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    made = Element("script", {"type": "application/json", "id": "data"})
    made.text = text.replace("<", "\\u003c")
    return made


# -- Parts of a page


def section(name: str, title: str, *content: Content) -> Element:
    """Return a section with its heading, which a link #name leads to."""
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, *content, id=name, aria_labelledby=f"{name}-title")


def html_table(table: Table, caption: str) -> Element:
    """Return a table; what is wider than the page scrolls in a region that the keyboard reaches.

    The first cell of a row is its heading. The caption stands above: inside it would be as narrow
    as the table.
    """
    heads = [
        element("th", one.heading, scope="col", **_number(one.is_number)) for one in table.columns
    ]
    rows = [
        element(
            "tr",
            *(
                element("td", cell, **_number(column.is_number and len(cell) <= _NUMBER_MAX))
                if at
                else element("th", cell, scope="row")
                for at, (cell, column) in enumerate(zip(row, table.columns, strict=True))
            ),
        )
        for row in table.rows
        if any(row)
    ]
    inside = element(
        "table",
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
        aria_label=caption,
    )
    return element(
        "div",
        element("p", caption, class_="caption"),
        element("div", inside, class_="scroll", role="region", aria_label=caption, tabindex="0"),
    )


def text_block(text: str, name: str) -> Element:
    """Return text whose columns are set, in a region of a name."""
    return element("pre", text, class_="scroll", role="region", aria_label=name, tabindex="0")


def items(lines: Iterable[Content]) -> Element:
    """Return a list."""
    return element("ul", *(element("li", one) for one in lines))


def folded(summary: str, *content: Content) -> Element:
    """Return what is shown when the reader asks for it."""
    return element("details", element("summary", summary), *content)


def _number(is_number: bool) -> dict[str, str]:
    return {"class_": "number"} if is_number else {}
