"""From blocks of a file to blocks of the device."""

from hypothesis import given
from hypothesis import strategies as st

from sim.fs.ext4.ext4 import DIRECT_BLOCKS, DOUBLE, MIDDLE, TRIPLE, BlockMap, leaf_of, uppers_of


def test_the_first_twelve_blocks_need_no_indirect_block() -> None:
    assert [leaf_of(block) for block in (0, 11, 12, 1035, 1036)] == [-1, -1, 0, 0, 1]


def test_chains_of_indirect_blocks_grow_with_the_file() -> None:
    assert uppers_of(0) == ()
    assert uppers_of(1) == uppers_of(1024) == (DOUBLE,)
    assert uppers_of(1025) == (TRIPLE, MIDDLE)
    assert uppers_of(1025 + 1024) == (TRIPLE, MIDDLE + 1)


def test_adjacent_blocks_become_one_run() -> None:
    blocks = BlockMap()
    blocks.insert(0, 100, 5)
    blocks.insert(5, 105, 5)
    assert blocks.pieces(0, 10) == [(100, 10)]


def test_holes_are_minus_one() -> None:
    blocks = BlockMap()
    blocks.insert(4, 100, 2)
    assert blocks.pieces(0, 10) == [(-1, 4), (100, 2), (-1, 4)]


def test_indirect_blocks_go_with_what_they_map() -> None:
    blocks = BlockMap()
    blocks.insert(0, 100, DIRECT_BLOCKS)
    blocks.leaves[0] = 200
    blocks.leaves[1] = 201
    blocks.uppers[DOUBLE] = 202
    assert blocks.unmap_indirect(13) == [201, 202]
    assert blocks.unmap_indirect(12) == [200]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 6), st.booleans()), max_size=40),
    st.integers(0, 70),
    st.integers(0, 70),
)
def test_a_map_agrees_with_a_dictionary(
    steps: list[tuple[int, int, bool]], start: int, end: int
) -> None:
    blocks, model, free = BlockMap(), dict[int, int](), 1000
    for at, count, insert in steps:
        if insert and not any(block in model for block in range(at, at + count)):
            blocks.insert(at, free, count)
            model.update({at + i: free + i for i in range(count)})
            free += count + at % 2
        elif not insert:
            freed = blocks.unmap_from(at)
            gone = sorted(model.pop(block) for block in list(model) if block >= at)
            assert sorted(block for a, b in freed for block in range(a, b)) == gone
    found = [
        block + i if block >= 0 else -1
        for block, count in blocks.pieces(start, end)
        for i in range(count)
    ]
    assert found == [model.get(block, -1) for block in range(start, end)]
    assert [blocks.block_of(block) for block in range(start, end)] == found
