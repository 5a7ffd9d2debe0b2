"""The disk's laws: what a request costs, what is lost and saved by turning platters."""

import random

import pytest

from sim.block.bio import BIO_SYNC, READ, WRITE, Bio
from sim.drivers.hdd import Hdd, HddParams
from tests.block.disks import MS, PAGE, Rig
from tests.drivers.drives import await_ms, drive, random_reads, reads_per_s


def hdd(**changes):
    return Hdd(HddParams(**changes))


def one_after_the_other(rig, bios, gap_ns=0):
    """Submit each bio when the one before has ended; return how long each took (ns)."""
    took = []
    begun = []

    def submit(_=None):
        if bios:
            bio = bios.pop(0)
            bio.end_io = ended
            begun.append(rig.calendar.now)
            rig.disk.submit_bio(bio)
            rig.disk.unplug()

    def ended(bio):
        took.append(rig.calendar.now - begun.pop())
        rig.calendar.post(gap_ns, submit, None)

    submit()
    rig.run()
    return took


@pytest.mark.parametrize(
    "name, overhead_ms, seek_ms, turn_ms",
    [("sas-15k", 0.1, 3.5, 4.0), ("sas-10k", 0.2, 4.0, 6.0), ("sata-7200", 0.2, 8.5, 8.333)],
)
def test_a_random_read_costs_overhead_seek_half_a_turn_and_transfer(
    name, overhead_ms, seek_ms, turn_ms
):
    rig = random_reads(drive(name, queue_depth=1), in_flight=1, count=6000)
    transfer_ms = 4096 / 60e6 * 1e3
    # Zones: sectors crowd outside, so random sectors lie nearer than random cylinders: -3 %.
    expected = overhead_ms + seek_ms + turn_ms / 2 + transfer_ms
    assert await_ms(rig) == pytest.approx(expected, rel=0.03)


def test_a_write_settles_for_longer_where_the_arm_has_moved():
    draw = random.Random(1)
    rig = Rig(hdd(write_settle_ns=MS, read_ahead=False, write_cache=False))
    places = [draw.randrange(10_000_000) for _ in range(2000)]
    reads = one_after_the_other(rig, [Bio(READ, place, PAGE, None) for place in places])
    writes = one_after_the_other(rig, [Bio(WRITE, place, PAGE, None) for place in places])
    # Waits are uniform over a turn of 4 ms: each mean has a standard error of 0.03 ms.
    assert sum(writes) / 2000 - sum(reads) / 2000 == pytest.approx(MS, abs=0.15 * MS)


def test_rotational_waits_are_uniform():
    device = hdd(
        seek_track_ns=0,
        seek_average_ns=0,
        seek_full_ns=0,
        head_switch_ns=0,
        overhead_ns=0,
        read_ahead=False,
    )
    rig = random_reads(device, in_flight=1, count=5000)
    # A turn takes 4 ms, the mean of 5000 waits has a standard error of 0.016 ms.
    assert await_ms(rig) == pytest.approx(2.0 + 0.04, abs=0.06)


@pytest.mark.parametrize(
    "name, depth, low, high",
    [
        ("sas-15k", 1, 172, 186),
        ("sas-15k", 32, 340, 395),
        ("sata-7200", 1, 74, 82),
        ("sata-7200", 4, 96, 115),
        ("sata-7200", 16, 138, 155),
        ("sata-7200", 31, 155, 177),
    ],
)
def test_queueing_in_the_drive_gains_what_such_drives_gain(name, depth, low, high):
    rig = random_reads(drive(name), in_flight=depth, count=3000)
    assert low <= reads_per_s(rig) <= high


def test_first_come_first_served_gains_nothing():
    rig = random_reads(drive("sas-15k", order="fifo"), in_flight=16, count=3000)
    assert reads_per_s(rig) == pytest.approx(1e3 / 5.6, rel=0.04)


def test_no_command_waits_for_ever():
    rig = Rig(hdd(age_limit_ns=100 * MS))
    far = rig.bio(READ, rig.disk.capacity_sectors // PAGE - 1)
    ends = []
    far.end_io = lambda bio: ends.append(rig.calendar.now)

    def near(bio=None):
        if rig.calendar.now < 400 * MS:
            bio = rig.bio(READ, (rig.calendar.now * 7919) % 5000)
            bio.end_io = near
            rig.disk.submit_bio(bio)
            rig.disk.unplug()

    for _ in range(16):
        near()
    rig.disk.submit_bio(far)
    rig.run()
    assert ends[0] < 130 * MS


def test_a_sequential_write_that_comes_late_waits_a_turn():
    rig = Rig(hdd(read_ahead=False))
    bios = [rig.bio(WRITE, page) for page in range(20)]
    took = one_after_the_other(rig, bios, gap_ns=50_000)
    # Overhead and gap are less than a turn of 4 ms: each write starts just after its place.
    assert all(3.5 * MS < time <= 4 * MS for time in took[1:])


def test_writes_that_wait_in_the_drive_lose_no_turn():
    rig = Rig(hdd(queue_depth=4))
    for page in range(8):
        rig.write(128 * page, 128, flags=0)
    rig.run()
    seconds = rig.stats.io_ticks_ns / 1e9
    assert rig.stats.write_sectors * 512 / seconds > 80e6


def test_sequential_reads_run_at_the_media_rate():
    rig = Rig(hdd())
    bios = [rig.bio(READ, 32 * number, 1, pages=32) for number in range(300)]
    took = one_after_the_other(rig, bios)
    # 128 KiB at 125 MB/s: 1.05 ms.
    assert sum(took[1:]) / len(took[1:]) / MS == pytest.approx(1.05, rel=0.03)


def test_without_read_ahead_each_sequential_read_loses_a_turn():
    rig = Rig(hdd(read_ahead=False))
    bios = [rig.bio(READ, page) for page in range(50)]
    took = one_after_the_other(rig, bios)
    assert sum(took[1:]) / len(took[1:]) / MS == pytest.approx(4.0, rel=0.02)


def test_what_was_read_ahead_is_served_from_the_buffer():
    rig = Rig(hdd())
    bios = [rig.bio(READ, 0), rig.bio(READ, 1)]
    took = one_after_the_other(rig, bios, gap_ns=2 * MS)
    assert took[1] < 0.2 * MS


def test_a_write_makes_the_buffer_forget():
    rig = Rig(hdd())
    bios = [rig.bio(READ, 0, pages=4), rig.bio(WRITE, 2), rig.bio(READ, 0)]
    took = one_after_the_other(rig, bios, gap_ns=1 * MS)
    assert took[2] > 0.5 * MS


def test_two_streams_have_segments_of_their_own():
    rig = Rig(hdd())
    bios = []
    for number in range(40):
        bios.append(rig.bio(READ, number))
        bios.append(rig.bio(READ, 1_000_000 + number))
    took = one_after_the_other(rig, bios, gap_ns=1 * MS)
    # Read on for 1 ms at 125 MB/s: some thirty pages are in the buffer when it comes back.
    assert sum(time < 0.2 * MS for time in took) > 60


def test_writes_settle_longer():
    same = {"read_ahead": False, "overhead_ns": 0}
    rig = Rig(hdd(**same))
    far = rig.disk.capacity_sectors // PAGE - 1
    device = rig.disk.driver
    there = device.seek.ns(device.geometry.cylinders - 1)
    times = []
    for op in (READ, WRITE):
        rig = Rig(hdd(**same))
        took = one_after_the_other(rig, [rig.bio(op, far, flags=BIO_SYNC)])
        times.append(took[0])
    assert times[0] >= there - 0.1 * MS
    # Both wait for the same sector: later settling costs nothing or a turn.
    assert times[1] - times[0] in (0, 4 * MS)


def test_the_phase_of_the_platter_is_the_only_chance():
    def times(seed):
        rig = random_reads(drive("sas-15k"), in_flight=4, count=300, seed=seed)
        return rig.calendar.now

    assert times(1) == times(1)
    assert times(1) != times(2)


def access_ns(device, *bios, gap_ns=20 * MS):
    """Return how long each takes, after a first request that puts the arm at cylinder 0."""
    first = Bio(WRITE, 0, PAGE, lambda bio: None, BIO_SYNC)
    return one_after_the_other(Rig(device), [first, *bios], gap_ns)[1:]


def sync(op, sector, sectors=PAGE):
    return Bio(op, sector, sectors, lambda bio: None, BIO_SYNC)


def test_over_a_slow_interface_a_read_ends_with_its_last_byte():
    far = 100_000_000
    [fast] = access_ns(hdd(read_ahead=False), sync(READ, far, 64))
    [slow] = access_ns(hdd(read_ahead=False, interface_rate_bytes_per_s=5e6), sync(READ, far, 64))
    medium_ns = 64 * 512 / 97e6 * 1e9
    assert slow - fast == pytest.approx(64 * 512 / 5e6 * 1e9 - medium_ns, rel=0.02)


def test_a_write_waits_for_its_data_only_as_long_as_the_medium_would_outrun_the_interface():
    far, turn_ns = 100_000_000, 4 * MS
    [fast] = access_ns(hdd(), sync(WRITE, far, 64))
    for rate in (50e6, 5e6, 1e6):
        [slow] = access_ns(hdd(interface_rate_bytes_per_s=rate), sync(WRITE, far, 64))
        turns = (slow - fast) / turn_ns
        assert turns == round(turns)
        assert slow >= 64 * 512 / rate * 1e9
    assert turns > 0


def test_an_interface_as_fast_as_the_medium_costs_nothing():
    for op in (READ, WRITE):
        took = [
            access_ns(hdd(interface_rate_bytes_per_s=rate), sync(op, 100_000_000, 64))
            for rate in (126e6, 3e9)
        ]
        assert took[0] == took[1]


def test_starting_the_arm_costs_only_those_who_need_it():
    without, delayed = (
        access_ns(hdd(positioning_overhead_ns=ns), sync(READ, 80_000_000), sync(READ, 80_000_008))
        for ns in (0, MS)
    )
    assert delayed[0] - without[0] in (0, 4 * MS)  # The sector comes round when it does.
    assert delayed[1] == without[1]


def test_a_drive_that_reads_on_arrival_has_what_lies_before_the_request():
    start = next(
        sector
        for sector in range(80_000_000, 90_000_000, 97)
        if hdd().geometry.sectors_before(sector, 4 * MS) > 600
    )
    bios = [[sync(READ, start), sync(READ, start - 8)] for _ in range(2)]
    missed = access_ns(hdd(), *bios[0])
    found = access_ns(hdd(read_on_arrival=True), *bios[1])
    assert found[0] == missed[0]
    assert found[1] < 200_000 < missed[1]
