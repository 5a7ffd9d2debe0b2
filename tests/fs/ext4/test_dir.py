"""Which block a directory entry is in."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.fs.ext4.dir import BLOCK_BYTES, DirectoryBlocks, entry_bytes


def test_an_entry_takes_8_bytes_and_its_name_in_fours() -> None:
    assert [entry_bytes(name) for name in ("a", "abcd", "abcde", "dfl4K9Nb001234")] == [
        12,
        12,
        16,
        24,
    ]


def test_a_new_name_goes_into_the_first_gap() -> None:
    blocks = DirectoryBlocks(indexed=False)
    names = [f"df{number:012d}" for number in range(400)]
    for name in names:
        blocks.add(name)
    assert blocks.blocks() == 3
    blocks.remove(names[0])
    assert blocks.add("qf000000000000").modified == [0]


def test_a_linear_search_for_a_missing_name_reads_every_block() -> None:
    blocks = DirectoryBlocks(indexed=False)
    for number in range(400):
        blocks.add(f"df{number:012d}")
    assert blocks.scan("nothing") == 3


def test_the_second_block_of_an_indexed_directory_comes_with_two_leaves() -> None:
    blocks = DirectoryBlocks(indexed=True)
    number = 0
    while not blocks.missing_blocks(f"df{number:012d}"):
        blocks.add(f"df{number:012d}")
        number += 1
    assert blocks.missing_blocks(f"df{number:012d}") == 2
    change = blocks.add(f"df{number:012d}")
    assert change.modified == [0, 1, 2]
    assert blocks.blocks() == 3


@settings(max_examples=40, deadline=None)
@given(
    st.booleans(),
    st.lists(st.tuples(st.booleans(), st.integers(0, 120), st.integers(1, 250)), max_size=200),
)
def test_entries_fit_into_their_blocks_and_appends_are_foretold(
    indexed: bool, steps: list[tuple[bool, int, int]]
) -> None:
    blocks = DirectoryBlocks(indexed)
    names: dict[int, str] = {}
    for add, key, length in steps:
        if add and key not in names:
            names[key] = str(key).rjust(length, "x")
            expected = blocks.blocks() + blocks.missing_blocks(names[key])
            blocks.add(names[key])
            assert blocks.blocks() == expected
        elif not add and key in names:
            blocks.remove(names.pop(key))
        assert set(blocks.block_of) == set(names.values())
        assert max(blocks.used) <= BLOCK_BYTES
        fixed = BLOCK_BYTES if blocks.leaves else 24
        assert sum(blocks.used) == fixed + sum(entry_bytes(name) for name in names.values())
