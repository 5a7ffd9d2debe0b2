"""Reading a page as strictly as can be without a browser: its tree, policy and addresses."""

import base64
import hashlib
import re
from html.parser import HTMLParser

VOID = {"br", "hr", "img", "input", "link", "meta"}
RAW = ("script", "style")


class Page(HTMLParser):
    """A page's elements; `wrong` says what is not well-formed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.raw: list[tuple[str, dict[str, str], str]] = []  # scripts and styles with their text
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if len(found) < len(attrs):
            self.wrong.append(f"<{tag}> has an attribute twice")
        self.elements.append((tag, found))
        if tag in RAW:
            self.raw.append((tag, found, ""))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.wrong.append(f"</{tag}> closes {self._open[-1:]}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in RAW:
            tag, attributes, text = self.raw[-1]
            self.raw[-1] = tag, attributes, text + data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All text that a reader sees, blanks as one."""
        return " ".join(" ".join(self.texts).split())

    @property
    def policy(self) -> dict[str, list[str]]:
        """The page's own policy: what each directive allows."""
        [found] = [
            attributes["content"]
            for tag, attributes in self.elements
            if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
        ]
        words = [directive.split() for directive in found.split(";")]
        return {name: allowed for name, *allowed in words}

    def ids(self) -> list[str]:
        """Return the ids in their order."""
        return [attributes["id"] for _tag, attributes in self.elements if "id" in attributes]

    def addresses(self) -> list[str]:
        """Return all that the page would ask for, or leads to."""
        found = [
            value
            for _tag, attributes in self.elements
            for name, value in attributes.items()
            if name in ("src", "href", "action", "data", "srcset", "poster", "xlink:href")
        ]
        for tag, _attributes, text in self.raw:
            if tag == "style":
                found += re.findall(r"url\(([^)]*)\)|@import\s+(\S+)", text)
        return found


def hash_of(text: str) -> str:
    """Return the word by which a policy allows a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
