"""The README is what a stranger reads first: short, with both commands on the first screen."""

import re

from docs.declared import TOP

README = (TOP / "README.md").read_text(encoding="utf-8")
MOST_WORDS = 900  # five minutes of reading
FIRST_LINES = 50  # a page of a browser


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len(README.split()) <= MOST_WORDS


def test_both_commands_stand_on_the_first_page() -> None:
    first = README.splitlines()[:FIRST_LINES]
    assert [line for line in first if line.startswith("$ ")] == ["$ make sendmail", "$ make test"]


def test_there_are_three_doors() -> None:
    doors = README.partition("## Three doors")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\*\*[^*]+\.\*\*", doors, re.MULTILINE)) == 3
