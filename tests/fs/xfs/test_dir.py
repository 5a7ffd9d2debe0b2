"""Directories: their form by the number of names, and that no byte is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.fs.features import features
from sim.fs.xfs.dir import BLOCK, LEAF, LEAF_START, SHORTFORM, XfsDir, hash_name
from sim.fs.xfs.params import XfsParams, make_geometry
from sim.sched.version import KernelVersion

V5 = make_geometry(XfsParams(crc=True, inode_size_bytes=512), 1 << 30, features((6, 18)))
V4 = make_geometry(XfsParams(), 1 << 30, features((2, 6, 16)))


def filled(count: int, geometry=V5) -> XfsDir:  # type: ignore[no-untyped-def]
    made = XfsDir(geometry, True)
    for number in range(count):
        made.add(f"qf{number:06d}")
    return made


def test_a_few_names_are_in_the_inode_a_hundred_in_a_block_more_have_leaves() -> None:
    assert [filled(count).form for count in (0, 20, 21, 100, 400)] == [
        SHORTFORM,
        SHORTFORM,
        BLOCK,
        BLOCK,
        LEAF,
    ]
    assert filled(12, V4).form == BLOCK  # Inodes of 256 bytes hold ten such names.


def test_a_small_directory_is_logged_with_its_inode_alone() -> None:
    change = filled(5).add("one-more")
    assert change.local and not change.touched and not change.new_blocks


def test_a_name_in_a_block_touches_its_entry_its_hash_and_the_header() -> None:
    change = filled(50).add("one-more")
    assert not change.local and {block for block, _ in change.touched} == {0}
    changed = 0
    for _, mask in change.touched:
        changed |= mask
    assert changed & 1 and changed & 1 << 31 and changed.bit_count() <= 6


def test_hashes_get_a_block_of_their_own_far_behind() -> None:
    made = filled(300)
    assert made.form == LEAF and LEAF_START in made.blocks() and made.data_blocks() == 2
    assert filled(3000).leaves > 1


def test_a_name_of_up_to_four_letters_is_its_own_hash() -> None:
    """By hand: 'a' is 97, 'b' 98, ...; seven bits to the left for each letter that follows."""
    assert hash_name(b"") == 0
    assert hash_name(b"a") == 97
    assert hash_name(b"ab") == 97 << 7 ^ 98
    assert hash_name(b"abcd") == 97 << 21 ^ 98 << 14 ^ 99 << 7 ^ 100
    rotated = hash_name(b"abcd")
    assert hash_name(b"abcde") == (rotated << 7 & 0xFFFFFFFF | rotated >> 25) ^ 101


def touched_leaves(names: list[str]) -> set[int]:
    """Return the leaves that some names more are entered in, in a directory of 3000."""
    made = filled(3000)
    assert made.leaves > 4
    blocks: set[int] = set()
    for name in names:
        blocks |= {block for block, _ in made.add(name).touched}
    return {block for block in blocks if LEAF_START <= block < LEAF_START + made.leaves}


def test_names_that_differ_in_their_last_letters_are_logged_in_few_leaves() -> None:
    assert len(touched_leaves([f"qf0030{number:02d}" for number in range(40)])) <= 2
    assert len(touched_leaves([f"{number * 7919:08d}"[::-1] for number in range(40)])) > 2


@pytest.mark.parametrize(("kernel", "first"), [((5, 3), True), ((5, 4), False)])
def test_a_name_goes_into_the_first_hole_to_5_3_and_into_the_last_one_from_5_4_on(
    kernel: KernelVersion, first: bool
) -> None:
    made = XfsDir(V5, features(kernel).searches_back)
    for number in range(3000):
        made.add(f"qf{number:06d}")
    holed = [block for block, _ in made.remove("qf000005").touched if block < LEAF_START]
    touched = {block for block, _ in made.add("qf999999").touched if block < LEAF_START}
    assert touched == (set(holed) if first else {made.data_blocks() - 1})


def test_an_emptied_directory_is_in_its_inode_again() -> None:
    made = filled(700)
    freed = []
    for number in range(700):
        freed += made.remove(f"qf{number:06d}").freed_blocks
    assert made.form == SHORTFORM and made.blocks() == [] and made.local_bytes() == 6
    assert LEAF_START in freed and 0 in freed


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 400), st.integers(1, 60)), max_size=400))
def test_blocks_taken_less_blocks_freed_are_the_blocks_there_are(
    steps: list[tuple[bool, int, int]],
) -> None:
    made, names, blocks = XfsDir(V5, True), dict[str, None](), set[int]()
    for add, number, length in steps:
        name = f"{number}".ljust(length, "x")
        if add and name not in names:
            names[name] = None
            change = made.add(name)
        elif not add and names:
            change = made.remove(names.popitem()[0])
        else:
            continue
        assert not blocks & set(change.new_blocks)
        blocks |= set(change.new_blocks)
        assert {block for block, _ in change.touched} <= blocks
        assert set(change.freed_blocks) <= blocks
        blocks -= set(change.freed_blocks)
        assert sorted(made.blocks()) == sorted(blocks)
        assert made.names().keys() == names.keys()
        assert made.check() == []
