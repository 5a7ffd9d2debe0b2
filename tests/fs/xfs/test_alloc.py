"""Free space: what is nearest, what is busy, what both trees hold, which records are written."""

from hypothesis import given
from hypothesis import strategies as st

from sim.fs.features import features
from sim.fs.xfs.alloc import FreeSpace, Tree, chunk_mask, place_near
from sim.fs.xfs.params import XfsParams, make_geometry

GEOMETRY = make_geometry(
    XfsParams(crc=True, inode_size_bytes=512, agcount=4), 1 << 30, features((6, 18))
)
SIZE = 60


def space(*extents: tuple[int, int]) -> FreeSpace:
    """Return a group of which only these extents are free."""
    made = FreeSpace(GEOMETRY, 0, GEOMETRY.ag_blocks)
    for start, end in extents:
        made.give(start, end)
    made.take_touched()
    return made


def allocate(made: FreeSpace, goal: int, want: int, **how: bool) -> tuple[int, int]:
    return made.allocate(goal, want, for_data=True, around_busy=True, **how)


def test_a_file_goes_to_the_nearest_extent_that_is_long_enough() -> None:
    made = space((10, 16), (24, 1000))
    assert allocate(made, 16, 2) == (10, 12)  # As recorded: block 10 for inodes in block 16,
    assert allocate(made, 16, 3) == (12, 15)
    assert allocate(made, 16, 2) == (24, 26)  # one block is too short for two.
    assert allocate(made, 16, 1) == (15, 16)


def test_what_follows_the_block_before_is_taken_as_it_is() -> None:
    made = space((100, 200))
    assert allocate(made, 150, 8) == (150, 158)
    assert allocate(made, 158, 8) == (158, 166)


def test_data_begin_an_extent_before_the_goal_and_other_blocks_end_it() -> None:
    assert place_near(10, 20, 30, 4, True) == 10
    assert place_near(10, 20, 30, 4, False) == 16
    assert place_near(40, 60, 30, 4, False) == 40
    assert place_near(10, 60, 30, 4, True) == 30


def test_the_longest_piece_is_taken_when_none_is_long_enough() -> None:
    made = space((10, 14), (50, 59), (70, 72))
    assert allocate(made, 10, 100) == (50, 59)


def test_a_freed_extent_is_not_taken_before_it_is_in_the_log() -> None:
    made = space((10, 20))
    assert allocate(made, 10, 10) == (10, 20)
    made.free(10, 20)
    assert allocate(made, 10, 1) == (-1, -1)
    made.settle(10, 20)
    assert allocate(made, 10, 1) == (10, 11)


def test_an_old_kernel_is_given_busy_blocks() -> None:
    made = space((10, 20))
    made.take(10, 20)
    made.free(10, 20)
    assert made.allocate(10, 4, for_data=True, around_busy=False) == (10, 14)


def test_chunks_of_inodes_are_aligned_to_their_size() -> None:
    made = space((10, 100))
    assert made.allocate_aligned(24, 8) == 24
    assert made.allocate_aligned(24, 8) in (16, 32)
    assert made.by_place.count == 90 - 16


def test_only_the_chunks_of_changed_records_are_logged() -> None:
    assert chunk_mask(0, 127) == 1
    assert chunk_mask(100, 300) == 0b111
    tree = Tree(1, 56, 8)
    touched: list[tuple[int, int]] = []
    tree.touch(touched, 30, 30, 40)  # bytes 296 to 303, and the header
    assert touched == [(1, 0b101)]


def test_a_tree_of_more_records_than_a_block_holds_takes_blocks() -> None:
    made = space((1000, 9000))
    for at in range(1000, 3000, 2):
        made.take(at, at + 1)
    assert len(made.bno.blocks) > 1 and len(made.cnt.blocks) > 1
    assert made.grown
    owned = made.blocks + 1000 + len(made.bno.blocks) + len(made.cnt.blocks) - 2
    assert owned == 8000


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, SIZE - 1), st.integers(1, 9), st.booleans()),
        max_size=50,
    )
)
def test_free_space_agrees_with_a_set_and_both_orders_with_each_other(
    steps: list[tuple[bool, int, int, bool]],
) -> None:
    made, free, given_out = space((0, SIZE)), set(range(SIZE)), list[tuple[int, int]]()
    for take, goal, want, for_data in steps:
        if take:
            start, end = made.allocate(goal, want, for_data=for_data, around_busy=True)
            if start < 0:
                assert not free
                continue
            assert 0 < end - start <= want and set(range(start, end)) <= free
            free -= set(range(start, end))
            given_out.append((start, end))
        elif given_out:
            start, end = given_out.pop(goal % len(given_out))
            made.free(start, end)
            made.settle(start, end)
            free |= set(range(start, end))
        pieces = list(made.by_place)
        assert {block for low, high in pieces for block in range(low, high)} == free
        assert made.longest() == max((high - low for low, high in pieces), default=0)


@given(st.sets(st.integers(0, SIZE - 1)), st.integers(0, SIZE - 1), st.integers(1, 5))
def test_no_extent_long_enough_is_nearer_than_the_one_taken(
    taken: set[int], goal: int, want: int
) -> None:
    made = space((0, SIZE))
    for block in sorted(taken):
        made.take(block, block + 1)
    places = [
        place_near(low, high, goal, want, True) for low, high in made.by_place if high - low >= want
    ]
    start, end = allocate(made, goal, want)
    if places:
        assert end - start == want
        assert abs(start - goal) == min(abs(at - goal) for at in places)
    else:
        assert end - start < want
