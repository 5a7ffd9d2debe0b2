"""Gathering copies: each bio of a run ends once, when the last copy of its last sector has."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sim.block.bio import WRITE, Bio
from sim.block.part_stat import DiskStats
from sim.drivers.md.dm import IoAcct, Remaining
from sim.engine.calendar import Calendar


@given(
    start=st.integers(0, 50),
    size=st.integers(1, 9),
    count=st.integers(1, 12),
    copies=st.integers(1, 3),
    data=st.data(),
)
def test_each_bio_ends_with_its_last_copy(start, size, count, copies, data):
    ended = []
    whole = []
    bio = Bio(WRITE, start, size * count, whole.append, None, count)
    bio.end_part = lambda _bio, sector, bios: ended.extend(
        (sector - start) // size + i for i in range(bios)
    )
    stats = DiskStats("md0", 9, 0)
    remaining = Remaining(bio, [(start, start + size * count, copies)], IoAcct(stats), Calendar())
    pieces = []
    for _ in range(copies):
        at = start
        while at < start + size * count:
            length = data.draw(st.integers(1, start + size * count - at))
            pieces.append((at, length))
            at += length
    left = Counter(s for at, length in pieces for s in range(at, at + length))
    for at, length in data.draw(st.permutations(pieces)):
        left.subtract(range(at, at + length))
        last = remaining.ended(at, length)
        complete = [
            i for i in range(count) if not any(left[start + i * size + s] for s in range(size))
        ]
        assert sorted(ended) == complete
        assert last == (len(complete) == count)
    assert whole == [bio]
    assert (stats.writes, stats.write_sectors, stats.in_flight) == (count, size * count, 0)
