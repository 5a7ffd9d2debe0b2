"""The documents as a site: every page is in its contents once; lessons lack their solutions."""

from pathlib import Path

import pytest

from docs.declared import TOP
from docs.pages import FRONT, INDEX, Page
from docs.site import LISTS, chapters, contents, files, from_elsewhere, student_copy


def entries(text: str) -> list[str]:
    """Return what tables of contents list."""
    return [line.removeprefix("/") for line in text.splitlines() if line.startswith("/")]


def test_the_parts_of_a_list_are_headings_with_their_links() -> None:
    page = Page(
        INDEX, "# All\n\n## Why\n\n- [a](why/a.md#top), [b](../b.md)\n\n## How\n\n[c](c.md)"
    )
    assert list(chapters(page)) == [
        ("", []),
        ("All", []),
        ("Why", ["docs/why/a.md", "b.md"]),
        ("How", ["docs/c.md"]),
    ]


def test_a_page_belongs_to_the_first_list_that_links_to_it() -> None:
    lists = {
        INDEX: Page(INDEX, "## Learn\n\n[one](one.md), [one](one.md), [more](../more/README.md)"),
        "more/README.md": Page("more/README.md", "[one](../docs/one.md), [two](two.md), [x](x.py)"),
    }
    pages = frozenset({"docs/one.md", "more/README.md", "more/two.md"})
    made = contents(lists, pages)
    assert entries(made[FRONT]) == ["docs/README", "docs/one", "more/README"]
    assert ":caption: Learn\n" in made[FRONT]
    assert entries(made["more/README.md"]) == ["more/two"]


def test_every_page_of_the_project_is_in_the_contents_once() -> None:
    lists = {name: Page(name, (TOP / name).read_text(encoding="utf-8")) for name in LISTS}
    listed = [one for text in contents(lists, files(TOP)).values() for one in entries(text)]
    wanted = sorted(str(Path(name).with_suffix("")) for name in files(TOP) if name != FRONT)
    assert sorted(listed) == wanted


def test_a_lesson_is_shown_without_its_solutions() -> None:
    pytest.importorskip("jupytext")
    lesson = '# %% [markdown]\n# Ask\n\n# %% tags=["solution"]\nanswer = 42\n\n# %%\nprint(1)\n'
    cells = student_copy(lesson).cells
    assert [one.source for one in cells] == ["Ask", "print(1)"]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (
            '<script defer src="https://a.example/x.js"></script>',
            ["p.html: https://a.example/x.js"],
        ),
        ("<link rel='stylesheet' href='//b.example/y.css'>", ["p.html: //b.example/y.css"]),
        ('<a href="https://a.example/">told, not loaded</a><img src="z.png">', []),
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(
    tmp_path: Path, page: str, found: list[str]
) -> None:
    (tmp_path / "p.html").write_text(page, encoding="utf-8")
    assert list(from_elsewhere(tmp_path)) == found
