"""Merging: which bios become one request, and how they are counted."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import BIO_SYNC, READ, WRITE
from sim.sched.core import Sched
from tests.block.disks import PAGE, Rig, ram


def test_half_a_megabyte_of_pages_is_one_request_and_127_merges():
    rig = Rig()
    for page in range(128):
        rig.write(page)
    rig.run()
    assert (rig.issued(), rig.stats.writes, rig.stats.write_merges) == ([(0, 128)], 1, 127)


def test_a_run_is_counted_like_its_bios():
    rig = Rig()
    rig.write(0, 128)
    rig.run()
    assert (rig.stats.writes, rig.stats.write_merges, rig.stats.write_sectors) == (1, 127, 1024)


def test_no_request_exceeds_max_sectors():
    rig = Rig()
    rig.write(0, 300)
    rig.run()
    assert rig.issued() == [(0, 128), (128, 128), (256, 44)]


def test_no_request_exceeds_max_segments():
    rig = Rig(max_segments=10)
    rig.write(0, 25)
    rig.run()
    assert rig.issued() == [(0, 10), (10, 10), (20, 5)]


def test_a_request_that_refused_a_bio_is_left_alone():
    rig = Rig(max_bytes=32 * 1024)
    rig.write(10, 1, pages=6)
    rig.write(16, 1, pages=4)  # Too long for the 2 pages left: REQ_NOMERGE.
    rig.write(9, 1, pages=1)  # Would have fitted.
    rig.run()
    assert rig.issued() == [(10, 6), (16, 4), (9, 1)]


def test_a_request_that_refused_a_bio_in_front_is_left_alone_too():
    rig = Rig(max_bytes=32 * 1024)
    rig.write(10, 1, pages=6)
    rig.write(7, 1, pages=3)  # Too long for the 2 pages left.
    rig.write(16, 1, pages=1)  # Would have fitted.
    rig.run()
    assert rig.issued() == [(10, 6), (7, 3), (16, 1)]


def test_a_filled_gap_leaves_two_requests_that_have_too_many_segments_together():
    rig = Rig(max_segments=4)
    for page in (10, 11, 12, 14, 15):
        rig.write(page)
    rig.write(13)
    rig.run()
    assert rig.issued() == [(10, 4), (14, 2)]


def test_a_bio_before_a_waiting_request_merges_in_front():
    rig = Rig()
    rig.write(10)
    rig.write(9)
    rig.write(8)
    rig.run()
    assert (rig.issued(), rig.stats.write_merges) == ([(8, 3)], 2)


def test_a_filled_gap_makes_one_request_of_two():
    rig = Rig()
    rig.write(0)
    rig.write(2)
    rig.write(1)
    rig.run()
    # The bio counts as merged; that two requests became one does not (2.6.16).
    assert (rig.issued(), rig.stats.writes, rig.stats.write_merges) == ([(0, 3)], 1, 1)


def test_a_front_merge_can_close_a_gap_too():
    rig = Rig()
    rig.write(2)
    rig.write(0)
    rig.write(1)
    rig.run()
    assert rig.issued() == [(0, 3)]


def test_reads_and_writes_do_not_merge():
    rig = Rig()
    rig.write(0)
    rig.read(1)
    rig.run()
    assert rig.issued() == [(0, 1), (1, 1)]


def test_nothing_merges_with_a_request_in_the_driver_or_chosen_for_it():
    rig = Rig(ram(queue_depth=1))
    rig.write(0, flags=BIO_SYNC)  # in the driver
    rig.write(10, flags=BIO_SYNC)  # chosen: the driver is full
    rig.write(20)  # waits
    rig.write(1)
    rig.write(11)
    rig.write(21)
    rig.run()
    assert rig.issued() == [(0, 1), (10, 1), (20, 2), (1, 1), (11, 1)]


def test_awaits_count_from_the_oldest_bio_of_a_request():
    rig = Rig()
    rig.write(0)
    rig.at(2_000_000, rig.write, 1)
    rig.run()
    # Unplugged after 3 ms, served in 1 ms: one request of 4 ms.
    assert (rig.stats.writes, rig.stats.write_ns) == (1, 4_000_000)


runs = st.tuples(
    st.sampled_from([READ, WRITE]),
    st.integers(0, 40),  # stretch of 200 pages
    st.integers(1, 150),  # bios
    st.sampled_from([0, 0, BIO_SYNC]),
    st.integers(0, 3_000_000),  # ns after the one before
)


@settings(max_examples=150, deadline=None)
@given(st.lists(runs, max_size=12, unique_by=lambda run: run[1]), st.sampled_from([1, 2, 32]))
def test_a_run_does_what_its_bios_would_do_one_by_one(runs, depth):
    def play(as_runs):
        rig = Rig(ram(queue_depth=depth))
        time_ns = 0
        for op, stretch, count, flags, later_ns in runs:
            time_ns += later_ns
            page = 200 * stretch
            if as_runs:
                rig.at(time_ns, rig.disk.submit_bio, rig.bio(op, page, count, flags))
            else:
                for single in range(count):
                    bio = rig.bio(op, page + single, 1, flags)
                    rig.at(time_ns, rig.disk.submit_bio, bio)
        rig.run()
        stats = rig.stats
        merges = (stats.read_merges, stats.write_merges)
        return rig.issue_times(), merges, stats.io_ticks_ns, stats.time_in_queue_ns

    assert play(as_runs=True) == play(as_runs=False)


def test_parts_of_a_run_end_with_their_requests():
    rig = Rig()
    parts = []
    bio = rig.bio(WRITE, 0, 200)
    bio.end_part = lambda bio, sector, count: parts.append((sector // PAGE, count))
    assert rig.disk.submit_bio(bio)
    rig.run()
    assert parts == [(0, 128), (128, 72)]


def test_a_bio_longer_than_a_request_goes_in_pieces_and_ends_once():
    rig = Rig()
    rig.write(0, 1, pages=300)
    rig.run()
    assert rig.issued() == [(0, 128), (128, 128), (256, 44)]
    assert [time for time, _ in rig.ended] == [rig.calendar.now]


def test_the_pieces_of_a_long_bio_wait_for_slots():
    rig = Rig(nr_requests=4)
    sched = Sched(rig.calendar, nr_cpus=1, kernel=(2, 6, 16))

    def main(task):
        yield from rig.disk.submit(task, rig.bio(READ, 0, 1, pid=task.pid, pages=128 * 50))

    sched.spawn("reader", main)
    rig.calendar.run_until(1_000_000_000)
    rig.disk.check()
    assert (rig.stats.reads, len(rig.ended)) == (50, 1)
