"""What holds for every page: broken links, lost pages and typed results are found."""

from pathlib import Path

from docs.laws import broken_links, typed_results, unreachable
from docs.pages import FRONT, INDEX, Page


def pages(**texts: str) -> dict[str, Page]:
    """Return an index, a front page that is empty, and pages of docs by their names."""
    names = {FRONT: "", INDEX: texts.pop("index", "")}
    names |= {f"docs/{name}.md": text for name, text in texts.items()}
    return {name: Page(name, text) for name, text in names.items()}


def write(folder: Path, given: dict[str, Page]) -> None:
    for page in given.values():
        path = folder / page.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.text, encoding="utf-8")


def test_a_link_to_a_missing_file_is_found(tmp_path: Path) -> None:
    given = pages(index="[a](a.md), [b](b.md)", a="# A")
    write(tmp_path, given)
    assert list(broken_links(given, tmp_path)) == [
        "docs/README.md:1: no file docs/b.md (link to b.md)"
    ]


def test_a_link_to_a_missing_heading_is_found(tmp_path: Path) -> None:
    given = pages(
        index="[one](a.md#one-and-two)\n\n[three](a.md#three)",
        a="# One, and two\n\n## `One` and two",
    )
    write(tmp_path, given)
    assert list(broken_links(given, tmp_path)) == [
        "docs/README.md:3: no heading #three in docs/a.md"
    ]


def test_a_picture_must_be_there_and_other_sites_need_not(tmp_path: Path) -> None:
    given = pages(index="![storm](storm.png) [kernel](https://kernel.org) [up](../README.md)")
    write(tmp_path, given)
    assert [one.split(": ")[1] for one in broken_links(given, tmp_path)] == [
        "no file docs/storm.png (link to storm.png)"
    ]


def test_a_page_that_no_link_leads_to_is_found() -> None:
    given = pages(index="[a](a.md)", a="[b](b.md#there)", b="# There", lost="[a](a.md)")
    assert list(unreachable(given)) == ["docs/lost.md: no link from docs/README.md leads here"]


RESULTS = "| what if | load |\n| --- | --- |\n| disk | 36.9 (34 .. 39) |\n| tmpfs | ~2.8 |\n"


def test_a_typed_table_of_results_is_found_and_a_generated_one_is_not() -> None:
    given = pages(a=f"# A\n\n{RESULTS}", b=f"<!-- generated: storm -->\n{RESULTS}<!-- end -->\n")
    [complaint] = typed_results(given)
    assert complaint.startswith("docs/a.md:3: a table of results that no run backs")


def test_a_table_of_words_is_no_result() -> None:
    text = "| key | what | since |\n|---|---|---|\n| `rate` | IOPS of a volume | 2.6 |\n"
    assert not list(typed_results(pages(a=text)))


def test_a_typed_text_of_numbers_is_found() -> None:
    rows = "sdb 183.80 3.78 42.10 1.06\n" * 3
    [complaint] = typed_results(pages(a=f"```\n{rows}```\n"))
    assert complaint.startswith("docs/a.md:1: a text of results")
    assert not list(typed_results(pages(a=f"```console\n$ iostat\n{rows}```\n")))


def test_a_table_that_a_test_makes_again_is_no_typed_result(tmp_path: Path) -> None:
    text = f"# A\n\n<!-- tested: tests/test_a.py -->\n\n{RESULTS}"
    assert len(list(typed_results(pages(a=text), tmp_path))) == 1  # There is no such test.
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text("PAGE = 'docs/b.md'\n", encoding="utf-8")
    assert len(list(typed_results(pages(a=text), tmp_path))) == 1  # It knows nothing of the page.
    (tmp_path / "tests/test_a.py").write_text("PAGE = 'docs/a.md'\n", encoding="utf-8")
    assert not list(typed_results(pages(a=text), tmp_path))
