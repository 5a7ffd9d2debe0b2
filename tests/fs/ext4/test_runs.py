"""A set of runs behaves like a set."""

from hypothesis import given
from hypothesis import strategies as st

from sim.fs.ext4.balloc import Runs

SIZE = 40


@given(st.lists(st.tuples(st.booleans(), st.integers(0, SIZE - 1), st.integers(1, 8)), max_size=60))
def test_runs_agree_with_a_plain_set(steps: list[tuple[bool, int, int]]) -> None:
    runs, model = Runs(0, SIZE), set(range(SIZE))
    for remove, start, count in steps:
        wanted = set(range(start, min(start + count, SIZE)))
        if remove and wanted <= model:
            runs.remove(start, min(start + count, SIZE))
            model -= wanted
        elif not remove and not wanted & model:
            runs.add(start, min(start + count, SIZE))
            model |= wanted
        assert {x for a, b in runs.pieces() for x in range(a, b)} == model
        assert runs.total == len(model)
        assert all(b < c for (_, b), (c, _) in zip(runs.pieces(), runs.pieces()[1:], strict=False))


@given(st.sets(st.integers(0, SIZE - 1)), st.integers(0, SIZE), st.integers(0, SIZE))
def test_first_from_finds_the_first_member_and_how_far_its_run_goes(
    members: set[int], at: int, limit: int
) -> None:
    runs = Runs(0, 0)
    for member in members:
        runs.add(member, member + 1)
    inside = sorted(member for member in members if at <= member < limit)
    start, end = runs.first_from(at, limit)
    if not inside:
        assert (start, end) == (-1, -1)
    else:
        assert start == inside[0]
        assert set(range(start, end)) <= set(inside)
        assert end == limit or end not in members
    assert all(runs.has(member) for member in members)
