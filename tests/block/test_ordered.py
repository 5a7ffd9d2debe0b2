"""Barriers and flushes: what waits for what."""

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, BIO_FUA, FLUSH, WRITE
from sim.block.deadline import Deadline, DeadlineParams
from tests.block.disks import MS, PAGE, Rig, ram


def steps(rig):
    """Return what the driver was given, in order: pages, or "flush"."""
    return ["flush" if r.args[1] == FLUSH else r.args[2] // PAGE for r in rig.tracer.records()]


def flush(rig):
    bio = rig.bio(WRITE, 0, 1, BIO_FLUSH)
    bio.nr_sectors = bio.size = 0
    assert rig.disk.submit_bio(bio)
    return bio


def test_a_barrier_waits_for_all_before_it_and_holds_all_after_it():
    rig = Rig(ram(queue_depth=32), Deadline(DeadlineParams()))
    for page in (500, 300):
        rig.write(page)
    rig.write(400, flags=BIO_BARRIER)
    for page in (100, 200):
        rig.write(page)
    rig.run()
    times = {page: time for time, page, _ in rig.issue_times()}
    assert times[300] == times[500] == 0
    assert times[400] == 1 * MS
    assert min(times[100], times[200]) >= 2 * MS


def test_with_a_write_cache_a_barrier_is_flush_write_flush():
    rig = Rig(ram(queue_depth=32, write_cache=True))
    rig.write(1)
    rig.write(2, flags=BIO_BARRIER)
    rig.write(3)
    rig.run()
    assert steps(rig) == [1, "flush", 2, "flush", 3]
    ends = {bio.sector // PAGE: time for time, bio in rig.ended}
    assert (ends[1], ends[2]) == (1 * MS, 4 * MS)


def test_barriers_follow_each_other():
    rig = Rig(ram(queue_depth=32, write_cache=True))
    for page in (1, 2, 3):
        rig.write(page, flags=BIO_BARRIER)
    rig.run()
    assert steps(rig) == ["flush", 1, "flush", "flush", 2, "flush", "flush", 3, "flush"]


def test_a_barrier_counts_as_one_write_and_its_flushes_do_not():
    rig = Rig(ram(write_cache=True))
    rig.write(1, flags=BIO_BARRIER)
    rig.run()
    assert (rig.stats.writes, rig.stats.write_sectors, rig.stats.write_ns) == (1, 8, 3 * MS)


def test_flush_and_fua_do_not_drain():
    rig = Rig(ram(queue_depth=32, write_cache=True))
    rig.write(1)
    rig.disk.unplug()
    rig.write(2, flags=BIO_FLUSH | BIO_FUA)
    rig.run()
    assert rig.issue_times()[0][0] == rig.issue_times()[1][0] == 0
    assert steps(rig) == [1, "flush", 2, "flush"]


def test_flushes_around_a_write_are_counted_as_the_device_executes_them():
    rig = Rig(ram(queue_depth=32, write_cache=True))
    rig.write(1)
    rig.disk.unplug()
    rig.write(2, flags=BIO_FLUSH | BIO_FUA)
    rig.run()
    assert (rig.stats.flushes, rig.stats.writes) == (2, 2)


def test_flushes_wanted_meanwhile_share_the_next_one():
    rig = Rig(ram(queue_depth=32, write_cache=True))
    for _ in range(5):
        flush(rig)
    rig.run()
    assert steps(rig) == ["flush", "flush"]
    assert sorted(time for time, _ in rig.ended) == [1 * MS] + 4 * [2 * MS]
    assert (rig.stats.flushes, rig.stats.flush_ns) == (2, 2 * MS)  # those executed


def test_without_a_write_cache_a_flush_is_nothing():
    rig = Rig(ram(write_cache=False))
    flush(rig)
    assert rig.ended == []  # never from inside submit_bio
    rig.calendar.run()
    assert (steps(rig), [time for time, _ in rig.ended]) == ([], [0])


def test_without_a_write_cache_fua_is_an_ordinary_write():
    rig = Rig(ram(write_cache=False))
    rig.write(1, flags=BIO_FLUSH | BIO_FUA)
    rig.run()
    assert steps(rig) == [1]


def test_no_bio_joins_a_barrier():
    rig = Rig(ram(queue_depth=1))
    rig.write(1)
    rig.write(2, flags=BIO_BARRIER)
    rig.write(3)
    rig.run()
    assert (steps(rig), rig.stats.write_merges) == ([1, 2, 3], 0)


def test_a_flush_waits_for_the_data_of_anothers_sequence_and_shares_the_flush_after_it():
    """Conditions C1 to C3 of block/blk-flush.c (2.6.39)."""
    rig = Rig(ram(queue_depth=32, write_cache=True))
    rig.write(2, flags=BIO_FLUSH | BIO_FUA)
    rig.calendar.run_until(1 * MS + 1)  # Its data are on their way now.
    for _ in range(3):
        flush(rig)
    rig.run()
    assert steps(rig) == ["flush", 2, "flush"]
    assert {time for time, bio in rig.ended} == {3 * MS}


def test_a_flush_does_not_wait_for_data_longer_than_five_seconds():
    rig = Rig(ram(latency_ns=7000 * MS, queue_depth=32, write_cache=True))
    rig.write(2, flags=BIO_FUA)
    rig.calendar.run_until(MS)
    flush(rig)
    rig.calendar.run_until(6000 * MS)
    flush(rig)
    rig.calendar.run_until(6500 * MS)
    assert steps(rig) == [2, "flush"]


def test_a_flush_without_data_counts_as_a_write_of_no_sectors():
    rig = Rig(ram(write_cache=True))
    flush(rig)
    rig.run()
    stats = rig.stats
    assert (stats.writes, stats.write_sectors, stats.write_ns, stats.flushes) == (1, 0, MS, 1)


def drive_with_fua():
    """Return a drive whose volatile cache a write can pass by."""
    device = ram(queue_depth=32, write_cache=True)
    device.fua = True
    return device


def test_a_drive_that_knows_fua_needs_no_flush_after_the_write():
    """block/blk-flush.c blk_flush_policy(): PREFLUSH and DATA, no POSTFLUSH."""
    rig = Rig(drive_with_fua())
    rig.write(1)
    rig.disk.unplug()
    rig.write(2, flags=BIO_FLUSH | BIO_FUA)
    rig.run()
    assert steps(rig) == [1, "flush", 2]
    assert (rig.stats.flushes, rig.stats.writes) == (1, 2)


def test_fua_alone_is_no_sequence_where_the_drive_knows_it():
    """The write goes at once, and no flush waits for its data (condition C3 is of sequences)."""
    rig = Rig(drive_with_fua())
    rig.write(2, flags=BIO_FUA)
    flush(rig)
    rig.run()
    assert steps(rig) == [2, "flush"]
    assert [time for time, _ in rig.ended] == [1 * MS, 1 * MS]
    assert rig.stats.flushes == 1


def test_the_drive_is_told_of_fua():
    device = drive_with_fua()
    told = []
    submit = device.submit
    device.submit = lambda request: (told.append(request.fua), submit(request))
    rig = Rig(device)
    rig.write(1)
    rig.write(9, flags=BIO_FUA)
    rig.write(5, flags=BIO_FLUSH | BIO_FUA)
    rig.run()
    assert sorted(told) == [False, False, True, True]  # a write and a flush; two with FUA


def test_fua_means_nothing_without_a_volatile_cache():
    device = drive_with_fua()
    device.write_cache = False
    rig = Rig(device)
    rig.write(1, flags=BIO_FUA)
    rig.run()
    assert (steps(rig), rig.disk.takes_fua) == ([1], False)


def test_books_balance_while_only_a_flush_without_data_is_held():
    """A run may end at any time: a bio without data is held, and has no slot."""
    for flag in (BIO_FLUSH, BIO_BARRIER):
        rig = Rig(ram(queue_depth=32, write_cache=True))
        bio = rig.bio(WRITE, 0, 1, flag)
        bio.nr_sectors = bio.size = 0
        rig.disk.submit_bio(bio)
        rig.disk.check()
        assert (rig.disk.bios_held, rig.disk.requests.allocated()) == (1, 0)
        rig.run()
        rig.disk.check()
        assert rig.disk.bios_held == 0
