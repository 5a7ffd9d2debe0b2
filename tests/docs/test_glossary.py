"""The glossary: in order, short, and linked to where it says something."""

import re

from docs.pages import all_pages

NAME = "docs/reference/glossary.md"
TEXT = all_pages()[NAME].text
TERMS = re.findall(r"^## (.*)\n\n(.*?)(?=\n\n##|\Z)", TEXT, re.MULTILINE | re.DOTALL)


def test_terms_are_in_alphabetical_order() -> None:
    names = [name.lower() for name, _text in TERMS]
    assert names == sorted(set(names))


def test_a_term_is_explained_in_a_few_sentences_of_few_words() -> None:
    for name, text in TERMS:
        sentences = re.split(r"(?<=[.:;])\s", text)
        assert 1 <= len(sentences) <= 6, name
        assert max(len(one.split()) for one in sentences) <= 40, name


def test_every_link_to_a_term_meets_one() -> None:
    anchors = all_pages()[NAME].anchors
    linked = {
        target.partition("#")[2]
        for page in all_pages().values()
        for _line, target in page.links()
        if "glossary.md#" in target
    }
    assert linked
    assert linked <= anchors
