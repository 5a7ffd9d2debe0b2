"""Generated blocks: found, filled, and refused where the markers do not fit together."""

import pytest

from docs.blocks import BlockError, filled, placed_blocks

PAGE = """\
# A

<!-- generated: one -->
old
<!-- end -->

text

<!-- generated: two -->
<!-- end -->
"""


def test_blocks_are_filled_and_nothing_else_changes() -> None:
    page = filled(PAGE, "a.md", lambda name: f"| {name} |\n")
    assert page == PAGE.replace("old\n", "| one |\n").replace("two -->\n", "two -->\n| two |\n")
    assert [block.text for block in placed_blocks(page, "a.md")] == ["| one |\n", "| two |\n"]
    assert filled(page, "a.md", lambda name: f"| {name} |\n") == page


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("<!-- generated: one -->\n", "a.md:1: block 'one' is not closed"),
        (
            "<!-- generated: one -->\n<!-- generated: two -->\n<!-- end -->",
            "a.md:2: block 'one' of line 1 is not closed",
        ),
        ("\n<!-- end -->\n", "a.md:2: '<!-- end -->' closes no block"),
    ],
)
def test_markers_that_do_not_fit_are_refused(page: str, complaint: str) -> None:
    with pytest.raises(BlockError, match=complaint):
        placed_blocks(page, "a.md")
