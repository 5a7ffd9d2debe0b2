"""RAID 5's choice: what it reads before it writes is enough for the new parity, and least."""

import operator
import random
from functools import reduce
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.block.bio import READ, WRITE, Bio
from sim.block.part_stat import DiskStats
from sim.drivers.md.dm import IoAcct, Remaining, nothing
from sim.drivers.md.raid5 import Share, Stripes, reads_for_read, reads_for_write
from sim.engine.calendar import Calendar


def stripes(count, parity, full, partial=(), uptodate=()):
    """Return one stripe with these members written, in whole or in part."""
    run = Stripes(0, 1, parity)
    run.touched = set(full) | set(partial)
    run.overwritten = set(full)
    run.uptodate = set(uptodate)
    return run


@pytest.mark.parametrize(
    ("count", "written", "reads"),
    [
        (3, 1, {1}),  # the other one: reconstruct-write
        (4, 1, {1, 2}),  # two each way: reconstruct-write
        (5, 1, {0, 4}),  # old data and old parity: read-modify-write
        (8, 1, {0, 7}),
        (8, 3, {3, 4, 5, 6}),
        (8, 7, set()),  # all of it
    ],
)
def test_the_kernel_takes_the_way_with_fewer_reads(count, written, reads):
    run = stripes(count, count - 1, range(written))
    assert reads_for_write(run, [True] * count) == reads


def test_what_is_in_memory_is_not_read_again():
    run = stripes(5, 4, {0}, uptodate={0, 4})
    assert reads_for_write(run, [True] * 5) == set()


def test_writing_beside_a_lost_member_modifies_the_parity():
    in_sync = [True, True, True, False]
    in_sync[1] = False
    in_sync[3] = True
    assert reads_for_write(stripes(4, 3, {0}), in_sync) == {0, 3}


def test_writing_a_lost_member_reconstructs_the_parity():
    assert reads_for_write(stripes(5, 4, {1}), [True, False, True, True, True]) == {0, 2, 3}


def test_a_lost_member_is_read_from_all_the_others():
    run = Stripes(0, 1, 4)
    remaining = Remaining(
        Bio(READ, 0, 8, nothing), [(0, 8, 1)], IoAcct(DiskStats("x", 0, 0)), Calendar()
    )
    run.shares = [Share(remaining, False, 1, 0, 8, 0)]
    assert reads_for_read(run, [True, False, True, True, True]) == {0, 2, 3, 4}
    assert reads_for_read(run, [True] * 5) == {1}


@given(st.data())
def test_what_is_read_is_enough_for_the_new_parity(data):
    """Contents are random numbers: the parity by the chosen way is that of the new data."""
    count = data.draw(st.integers(3, 8))
    members = range(count)
    parity = data.draw(st.sampled_from(members))
    lost = data.draw(st.sampled_from([None, *members]))
    datas = [m for m in members if m != parity]
    touched = data.draw(st.sets(st.sampled_from(datas), min_size=1))
    full = data.draw(st.sets(st.sampled_from(sorted(touched))))
    uptodate = data.draw(st.sets(st.sampled_from(members)))
    run = stripes(count, parity, full, touched - full, uptodate)
    reads = reads_for_write(run, [m != lost for m in members])
    assert lost not in reads and not reads & uptodate

    draw = random.Random(1)
    old = {m: draw.getrandbits(64) for m in datas}
    old[parity] = reduce(operator.xor, (old[m] for m in datas))
    known = {m: old[m] for m in reads | uptodate}
    if lost is not None and set(members) - {lost} <= set(known):
        known[lost] = reduce(operator.xor, (old[m] for m in members if m != lost))
    half = 2**32
    new = {m: draw.getrandbits(64) for m in full}
    for m in touched - full:  # the upper half stays: it has to be known
        new[m] = known[m] // half * half + draw.getrandbits(32)
    after = [new.get(m, old[m]) for m in datas]
    expected = reduce(operator.xor, after)
    if all(m in new or m in known for m in datas):
        computed = reduce(operator.xor, (new.get(m, known.get(m, 0)) for m in datas))
    elif parity == lost:
        return  # Nothing to write it to.
    else:
        computed = known[parity]
        for m in touched:
            computed ^= known[m] ^ new[m]
    assert computed == expected


@given(st.lists(st.tuples(st.integers(0, 31), st.integers(1, 8)), min_size=1, max_size=8))
def test_splitting_a_run_keeps_every_share(pieces):
    stats = DiskStats("x", 0, 0)
    run = Stripes(0, 32, 3)
    bio = Bio(WRITE, 0, 32 * 8, nothing)
    remaining = Remaining(bio, [(0, 256, 1)], IoAcct(stats), Calendar())
    run.add(Share(remaining, True, 0, 0, 256, 0))
    runs = [run]
    for page, _ in pieces:
        whole = next((r for r in runs if r.first < page < r.last), None)
        if whole is not None:
            runs.append(whole.split(page))
    ranges = sorted((s.sector, s.end) for r in runs for s in r.shares)
    assert ranges[0][0] == 0 and ranges[-1][1] == 256
    assert all(low[1] == high[0] for low, high in pairwise(ranges))
    assert all(r.overwritten == {0} for r in runs)


def test_two_halves_of_a_page_overwrite_it():
    remaining = Remaining(
        Bio(WRITE, 0, 8, nothing), [(0, 8, 1)], IoAcct(DiskStats("x", 0, 0)), Calendar()
    )
    run = Stripes(0, 1, 3)
    run.add(Share(remaining, True, 0, 0, 3, 0))
    assert run.overwritten == set()
    run.add(Share(remaining, True, 0, 3, 8, 0))
    assert run.overwritten == {0}
