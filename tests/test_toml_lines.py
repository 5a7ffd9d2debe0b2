"""The line map agrees with tomllib about what is there, and with the text about where."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.toml.lines import LineMap, Path, key_positions, split_key

EXAMPLE = """\
# a comment = not a key
title = "A = b # c"
long = \"\"\"
[not.a.table]
x = 1 \\\"\"\" still\"\"\"
[machine]
cpus = 4   # four
disk.sdb = { profile = "sas-15k", "odd.key" = [1, 2, { deep = true }] }
list = [
  "a", # first
  'b',
]
[machine.mount."/var/spool"]
type = "ext3"
[[point]]
x = 1
[[point]]
x = 2
[point.sub]
y = 1979-05-27T07:32:00Z
"""


def paths_of(tree: object, path: Path = ()) -> set[Path]:
    """Return all key paths of a tree as tomllib gives it."""
    found: set[Path] = {path} if path else set()
    items: list[tuple[str | int, object]] = []
    if isinstance(tree, dict):
        items = list(tree.items())
    if isinstance(tree, list):
        items = list(enumerate(tree))
    for key, value in items:
        found |= paths_of(value, (*path, key))
    return found


def test_every_path_of_the_tree_has_a_position() -> None:
    assert set(key_positions(EXAMPLE)) == paths_of(tomllib.loads(EXAMPLE))


@pytest.mark.parametrize(
    ("path", "line", "col", "value"),
    [
        (("title",), 2, 1, '"A = b # c"'),
        (("machine", "cpus"), 7, 1, "4"),
        (("machine", "disk"), 8, 1, "disk"),
        (("machine", "disk", "sdb", "profile"), 8, 14, '"sas-15k"'),
        (("machine", "disk", "sdb", "odd.key", 2, "deep"), 8, 56, "true"),
        (("machine", "list", 1), 11, 3, "'b'"),
        (("machine", "mount", "/var/spool"), 13, 16, '"/var/spool"'),
        (("point", 1, "x"), 18, 1, "2"),
        (("point", 1, "sub", "y"), 20, 1, "1979-05-27T07:32:00Z"),
    ],
)
def test_a_key_stands_where_it_is_written(path: Path, line: int, col: int, value: str) -> None:
    lines = LineMap(EXAMPLE)
    position = key_positions(EXAMPLE)[path]
    assert lines.line_col(position.key.start) == (line, col)
    assert EXAMPLE[position.value.start : position.value.end] == value


def test_a_line_is_returned_without_its_end() -> None:
    lines = LineMap("a = 1\r\nb = 2\n")
    assert [lines.line_text(number) for number in (1, 2, 3, 9)] == ["a = 1", "b = 2", "", ""]


def test_a_dotted_key_is_split_at_dots_outside_quotes() -> None:
    assert split_key('machine.mount."/var/a.b".type') == ("machine", "mount", "/var/a.b", "type")
    with pytest.raises(ValueError, match="not a dotted key"):
        split_key("machine..cpus")
    with pytest.raises(ValueError, match="not a dotted key"):
        split_key("a = 1\nb")


NAMES = st.text("abz_-09", min_size=1, max_size=4) | st.sampled_from(["/var", "a.b", 'q"', "é", ""])
VALUES = st.recursive(
    st.integers(-5, 5) | st.booleans() | st.text("ab \"'#=[]{}\\\n,", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)
BLANKS = st.sampled_from(["", " ", "\t", "  "])


def basic_string(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def inline(value: object) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return basic_string(value)
    if isinstance(value, list):
        return "[" + ", ".join(inline(item) for item in value) + "]"
    if isinstance(value, dict):
        inner = ", ".join(f"{basic_string(k)} = {inline(v)}" for k, v in value.items())
        return "{ " + inner + " }"
    return str(value)


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=3), BLANKS)
def test_any_document_is_mapped_completely(tree: dict[str, dict[str, object]], blank: str) -> None:
    text = ""
    for header, table in tree.items():
        text += f"{blank}[{blank}{basic_string(header)}{blank}]{blank}# {{ = ]\n\n"
        for key, value in table.items():
            text += f"{blank}{basic_string(key)}{blank}={blank}{inline(value)}{blank}# x = '\n"
    parsed = tomllib.loads(text)
    positions = key_positions(text)
    assert parsed == tree
    assert set(positions) == paths_of(parsed)
    for path, position in positions.items():
        if isinstance(path[-1], str):
            written = text[position.key.start : position.key.end]
            assert tomllib.loads(f"{written} = 0") == {path[-1]: 0}


@given(VALUES)
def test_a_value_s_span_is_its_text(value: object) -> None:
    text = f"key = {inline(value)}  # end\nnext = 1\n"
    span = key_positions(text)[("key",)].value
    assert text[span.start : span.end] == inline(value)
