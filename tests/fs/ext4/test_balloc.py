"""Which blocks files get."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.fs.ext4.balloc import BLOCKS_PER_GROUP, BlockAllocator, Layout, Window
from sim.fs.ext4.mke2fs import make_layout

LAYOUT = make_layout(512 << 20, inode_ratio_bytes=8192, inode_size_bytes=128)  # 4 groups


def fresh(layout: Layout = LAYOUT) -> BlockAllocator:
    return BlockAllocator(layout)


def test_a_free_goal_is_what_a_file_gets() -> None:
    goal = LAYOUT.groups[1].start + 5000
    assert fresh().allocate(goal, 1, Window()) == (goal, goal + 1)


def test_two_files_at_one_goal_get_windows_of_8_side_by_side() -> None:
    blocks, first, second = fresh(), Window(), Window()
    goal = LAYOUT.groups[0].start + 10000
    got_first = [blocks.allocate(goal, 1, first)[0]]
    got_second = [blocks.allocate(goal, 1, second)[0]]
    for _ in range(3):
        got_first.append(blocks.allocate(got_first[-1] + 1, 1, first)[0])
        got_second.append(blocks.allocate(got_second[-1] + 1, 1, second)[0])
    assert got_first == [goal, goal + 1, goal + 2, goal + 3]
    assert got_second == [goal + 8, goal + 9, goal + 10, goal + 11]


def test_a_window_doubles_when_more_than_half_of_it_was_used() -> None:
    blocks, window = fresh(), Window()
    at = LAYOUT.groups[0].start + 10000
    sizes: list[int] = []
    for _ in range(8 + 16 + 32):
        at = blocks.allocate(at, 1, window)[1]
        if not sizes or sizes[-1] != window.end - window.start:
            sizes.append(window.end - window.start)
    assert sizes == [8, 16, 32]


def window_after(used: int) -> int:
    """Return the size of a file's second window after it used so many blocks of the first 8."""
    blocks, window = fresh(), Window()
    at = LAYOUT.groups[0].start + 10000
    for _ in range(used):
        at = blocks.allocate(at, 1, window)[1]
    blocks.allocate(at + 1000, 1, window)  # Somewhere else: the window moves there.
    return window.end - window.start


def test_a_window_that_moves_grows_only_if_more_than_half_of_it_was_used() -> None:
    assert [window_after(used) for used in (1, 4, 5, 8)] == [8, 8, 16, 16]


def test_a_group_with_no_more_than_half_a_window_free_is_passed_over() -> None:
    """ext3_new_blocks: free_blocks <= windowsz / 2; without a window any free block will do."""
    for free, group_taken in ((4, 2), (5, 1)):
        blocks = fresh()
        full, nearly = LAYOUT.groups[0], LAYOUT.groups[1]
        blocks.groups[0].remove(full.first_data, full.end)
        blocks.groups[1].remove(nearly.first_data + free, nearly.end)
        start, _ = blocks.allocate(full.start + 10, 1, Window())
        assert start == LAYOUT.groups[group_taken].first_data


def test_without_a_window_others_reservations_do_not_matter() -> None:
    blocks, window = fresh(), Window()
    goal = LAYOUT.groups[0].start + 10000
    blocks.allocate(goal, 1, window)
    assert blocks.allocate(goal + 1, 1, None) == (goal + 1, goal + 2)


def test_a_full_group_passes_the_file_on_to_the_next() -> None:
    blocks = fresh()
    group = LAYOUT.groups[0]
    blocks.groups[0].remove(group.first_data, group.end)
    start, _ = blocks.allocate(group.start + 10, 1, Window())
    assert start == LAYOUT.groups[1].first_data


def test_freed_blocks_are_not_used_before_the_commit() -> None:
    blocks = fresh()
    goal = LAYOUT.groups[0].start + 10000
    blocks.allocate(goal, 4, None)
    blocks.free(goal, goal + 4)
    assert blocks.allocate(goal, 1, None) == (goal + 4, goal + 5)
    blocks.release(goal, goal + 4)
    assert blocks.allocate(goal, 4, None) == (goal, goal + 4)


def test_when_only_windows_are_left_they_are_ignored() -> None:
    blocks = fresh()
    holder = Window()
    start, _ = blocks.allocate(LAYOUT.groups[0].start + 10000, 1, holder)
    for runs in blocks.groups:
        for run_start, run_end in list(runs):
            runs.remove(run_start, run_end)
    blocks.groups[0].add(start + 1, start + 2)
    assert blocks.allocate(start, 1, Window()) == (start + 1, start + 2)
    assert blocks.allocate(start, 1, Window()) == (-1, -1)


def test_a_run_ends_with_its_window() -> None:
    blocks = fresh()
    goal = LAYOUT.groups[0].start + 10000
    assert blocks.allocate(goal, 100, Window()) == (goal, goal + 8)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["write", "close", "delete", "commit"]),
            st.integers(0, 5),
            st.integers(1, 40),
            st.integers(0, 3 * BLOCKS_PER_GROUP),
        ),
        max_size=80,
    )
)
def test_allocated_free_and_pending_always_add_up(
    steps: list[tuple[str, int, int, int]],
) -> None:
    blocks = fresh()
    total = blocks.free_total
    windows = [Window() for _ in range(6)]
    owned: list[list[tuple[int, int]]] = [[] for _ in range(6)]
    for what, who, count, goal in steps:
        if what == "write":
            at = owned[who][-1][1] if owned[who] else goal
            owned[who].append(blocks.allocate(at, count, windows[who]))
        elif what == "close":
            blocks.discard_window(windows[who])
        elif what == "delete":
            for start, end in owned[who]:
                blocks.free(start, end)
            owned[who] = []
        else:
            for start, end in list(blocks.pending.items()):
                blocks.release(start, end)
        allocated = [block for runs in owned for run in runs for block in range(*run)]
        assert len(set(allocated)) == len(allocated)
        assert len(allocated) + blocks.free_total + blocks.pending_total == total
        assert blocks.free_total == sum(runs.count for runs in blocks.groups)
        ends = [window.end for window in blocks.windows]
        assert all(e <= s for e, s in zip(ends, blocks.window_starts[1:], strict=False))
