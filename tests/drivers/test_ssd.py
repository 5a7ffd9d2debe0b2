"""SATA, SAS and NVMe drives: their laws, their steady state, their data sheets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.block.bio import FLUSH, READ, WRITE, Request
from sim.drivers.nvme import Nvme, NvmeParams
from sim.drivers.ssd import Ssd, SsdParams
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from tests.drivers.drives import await_ms, drive
from tests.drivers.loads import bytes_per_s, closed_loop, per_s

US = 1000
KIB = 2  # sectors
IDEAL = {
    "command_ns": 0,
    "read_overhead_ns": 0,
    "write_overhead_ns": 0,
    "queue_depth": 64,
    "interface_rate_bytes_per_s": 1e15,
    "channel_rate_bytes_per_s": 1e15,
    "capacity_bytes": 1 << 30,
    "read_page_ns": 100 * US,
    "program_ns": 1000 * US,
    "erase_ns": 0,
    "read_spread_percent": 0.0,
    "program_spread_percent": 0.0,
    "flush_programs": 0,
}


def ideal(**changes):
    """Return a drive whose dies are all that takes time: 0.1 ms a read, 1 ms a page written."""
    return Ssd(SsdParams(**(IDEAL | changes)))


class Alone:
    """A device without a queue above it."""

    def __init__(self, device):
        self.calendar = Calendar()
        self.ended = {}
        device.attach("sdb", self.calendar, Streams(1), self._end)
        self.device = device

    def _end(self, request):
        self.ended[request] = self.calendar.now

    def submit(self, op, sector=0, sectors=8, task_id=0):
        request = Request(op, sector, sectors, self.calendar.now)
        request.task_id = task_id
        self.device.submit(request)
        return request

    def at(self, when_ns, *args):
        self.calendar.post_at(when_ns, lambda _: self.submit(*args), None)


# -- Laws


@pytest.mark.parametrize("dies", [1, 4, 16])
def test_n_dies_reach_n_reads_per_read_time_at_depth_n_in_order(dies):
    """Each page on another die; a page is 16 KiB. Stripes begin on another die: some wait."""
    device = ideal(dies=dies, channels=dies)
    rig = closed_loop(device, READ, dies, 100 * dies, sectors=16 * KIB, in_order=True)
    assert per_s(rig) == pytest.approx(dies / 100e-6, rel=0.05)


def test_two_reads_of_one_die_take_turns_and_of_two_dies_go_together():
    alone = Alone(ideal(dies=2, channels=2, read_page_ns=100 * US))
    same = [alone.submit(READ, 0, 8), alone.submit(READ, 16, 8)]  # of one page
    other = alone.submit(READ, 16 * KIB, 8)  # the next page
    alone.calendar.run()
    assert [round(alone.ended[read] / US) for read in (*same, other)] == [100, 200, 100]


@pytest.mark.parametrize("depth", [1, 3, 8, 20])
def test_littles_law(depth):
    rig = closed_loop(ideal(dies=8, channels=8), READ, depth, 4000)
    assert per_s(rig) * await_ms(rig) / 1e3 == pytest.approx(depth, rel=0.01)
    # Constant times are better than exponential ones, for which this is exact.
    assert depth / (depth + 7) * 8 / 100e-6 * 0.99 <= per_s(rig) <= min(depth, 8) / 100e-6


def test_a_channel_carries_one_page_at_a_time():
    """16 dies on one channel of 40.96 MB/s: 4 KiB take it for 0.1 ms, whatever the dies could."""
    device = ideal(dies=16, channels=1, channel_rate_bytes_per_s=40.96e6)
    assert per_s(closed_loop(device, READ, 16, 1000)) == pytest.approx(10_000, rel=0.02)


def test_the_link_carries_one_transfer_at_a_time():
    device = ideal(dies=16, channels=16, interface_rate_bytes_per_s=40.96e6)
    assert per_s(closed_loop(device, READ, 16, 1000)) == pytest.approx(10_000, rel=0.02)


def test_a_long_read_is_spread_over_the_dies():
    alone = Alone(ideal(dies=8, page_bytes=4096))
    long = alone.submit(READ, 0, 64)
    alone.calendar.run()
    assert alone.ended[long] == pytest.approx(100 * US, abs=3)


def test_writes_in_order_go_at_the_dies_rate():
    """8 dies x 16 KiB a millisecond: 131 MB/s."""
    device = ideal(dies=8, used_percent=0.0, buffer_bytes=1 << 20)
    rig = closed_loop(device, WRITE, in_flight=8, count=2000, sectors=128 * KIB, in_order=True)
    assert bytes_per_s(rig) == pytest.approx(8 * 16384 / 1e-3, rel=0.03)


def test_scattered_writes_of_a_full_drive_go_at_that_over_the_amplification():
    device = ideal(dies=32, spare_percent=28.0, buffer_bytes=1 << 20, read_page_ns=0)
    rig = closed_loop(device, WRITE, in_flight=60, count=40_000)
    expected = 32 * 16384 / 1e-3 / device.flash.ftl.amplification
    assert device.flash.ftl.amplification == pytest.approx(2.5, rel=0.05)
    assert bytes_per_s(rig) == pytest.approx(expected, rel=0.05)


def test_one_die_does_the_cleaners_work_too():
    device = ideal(dies=1, channels=1, buffer_bytes=1 << 18, read_page_ns=0)
    rig = closed_loop(device, WRITE, in_flight=60, count=3000)
    expected = 16384 / 1e-3 / device.flash.ftl.amplification
    assert bytes_per_s(rig) == pytest.approx(expected, rel=0.05)


def test_a_flush_holds_while_reads_delay_one_of_two_batches():
    """Two batches, the earlier behind a long read: the flush of the earlier waits for it."""
    alone = Alone(ideal(dies=2, channels=2, buffer_protected=False, used_percent=0.0))
    for number in range(20):
        alone.submit(READ, 80_000 + 64 * number, 8)
    write = alone.submit(WRITE, 0, 32)
    flush = alone.submit(FLUSH, 0, 0)
    later = [alone.submit(WRITE, 3200 + 32 * number, 32) for number in range(3)]
    alone.calendar.run()
    assert alone.ended[flush] >= alone.ended[write] + 1000 * US + 10 * 100 * US
    assert all(alone.ended[request] < alone.ended[flush] for request in later)


def test_the_rate_drops_when_a_fresh_drive_has_been_filled():
    """Scattered writes over three times the capacity: at first A = 1, at last the steady state."""
    small = {"capacity_bytes": 64 << 20, "used_percent": 0.0, "spare_percent": 20.0}
    first = closed_loop(ideal(buffer_bytes=2 << 20, **small), WRITE, 60, 10_000)
    device = ideal(buffer_bytes=2 << 20, **small)
    whole = closed_loop(device, WRITE, 60, 60_000)
    assert device.flash.ftl.amplification > 2.5
    assert bytes_per_s(whole) < 0.6 * bytes_per_s(first)


# -- The buffer


def test_a_write_is_done_when_the_buffer_has_it():
    alone = Alone(ideal())
    write = alone.submit(WRITE)
    alone.calendar.run()
    assert alone.ended[write] <= 1


def test_a_full_buffer_makes_writes_wait_for_programming():
    """A buffer of two pages and one die of 1 ms a page: the fourth page waits for the second."""
    alone = Alone(ideal(dies=1, buffer_bytes=32 * 1024, used_percent=0.0, page_bytes=16 * 1024))
    done = [alone.submit(WRITE, number * 32, 32) for number in range(4)]
    alone.calendar.run()
    assert [round(alone.ended[request] / 1e6) for request in done] == [0, 0, 1, 2]


def test_a_write_longer_than_the_buffer_has_it_to_itself():
    alone = Alone(ideal(dies=1, buffer_bytes=32 * 1024, used_percent=0.0, page_bytes=16 * 1024))
    before = alone.submit(WRITE, 0, 32)
    longer = alone.submit(WRITE, 32, 128)
    after = alone.submit(WRITE, 160, 32)
    alone.calendar.run()
    ended_ms = [round(alone.ended[request] / 1e6) for request in (before, longer, after)]
    assert ended_ms == [0, 1, 4]  # once the page before it is in flash; once three of its four are


@pytest.mark.parametrize(("protected", "ms"), [(True, 0.05), (False, 2.05)])
def test_a_flush_waits_for_flash_unless_the_buffer_is_protected(protected, ms):
    alone = Alone(ideal(dies=1, buffer_protected=protected, used_percent=0.0))
    alone.submit(WRITE, 0, 24 * KIB)  # one page and a half
    flush = alone.submit(FLUSH, 0, 0)
    alone.calendar.run()
    assert alone.ended[flush] / 1e6 == pytest.approx(ms, abs=0.01)


def test_a_flush_does_not_wait_for_what_comes_after_it():
    alone = Alone(ideal(dies=1, buffer_protected=False, used_percent=0.0))
    alone.submit(WRITE, 0, 16 * KIB)
    flush = alone.submit(FLUSH, 0, 0)
    for number in range(1, 9):
        alone.submit(WRITE, number * 16 * KIB, 16 * KIB)
    alone.calendar.run()
    assert alone.ended[flush] / 1e6 == pytest.approx(1.05, abs=0.01)


@given(
    writes=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 100)), min_size=1, max_size=30),
    cut_us=st.integers(0, 20_000),
)
def test_a_power_cut_takes_the_latest_writes_that_no_batch_has_brought_to_flash(writes, cut_us):
    """One page a millisecond: so many writes as that fills are safe, the rest are not."""
    alone = Alone(ideal(dies=1, buffer_protected=False, used_percent=0.0, page_bytes=16 * 1024))
    for page, sectors in writes:
        alone.submit(WRITE, page * 128, sectors)
    written = [
        sector for page, sectors in writes for sector in range(page * 128, page * 128 + sectors)
    ]
    alone.calendar.run_until(cut_us * US)
    unsafe = [s for start, end in alone.device.unsafe_runs() for s in range(start, end)]
    batches = cut_us // 1000
    whole_pages = len(written) // 32
    assert unsafe == written[min(batches, whole_pages) * 32 :]


def test_after_a_flush_a_power_cut_takes_nothing_that_was_written_before_it():
    alone = Alone(ideal(dies=2, buffer_protected=False, used_percent=0.0))
    alone.submit(WRITE, 0, 40)
    flush = alone.submit(FLUSH, 0, 0)
    alone.calendar.run_until(100 * US)
    assert alone.device.unsafe_runs() == [(0, 40)]
    alone.calendar.run()
    assert flush in alone.ended
    assert alone.device.unsafe_runs() == []


def test_capacitors_leave_a_power_cut_nothing():
    alone = Alone(ideal(dies=1, buffer_protected=True, used_percent=0.0))
    alone.submit(WRITE, 0, 40)
    assert alone.device.unsafe_runs() == []


def test_reads_wait_for_programming_at_most_twice():
    """However much the buffer holds: two batches are with the dies, no more."""
    alone = Alone(ideal(dies=1, channels=1, used_percent=0.0))
    for number in range(500):
        alone.submit(WRITE, number * 128, 128)
    alone.at(10_000 * US + 1, READ, 0, 8)
    alone.calendar.run()
    read_ns = next(ns for request, ns in alone.ended.items() if request.op == READ)
    assert read_ns - 10_000 * US <= 2 * 1000 * US + 100 * US


def test_a_million_scattered_writes_keep_no_object_each():
    device = ideal(dies=64, buffer_bytes=1 << 20, capacity_bytes=100 << 30)
    closed_loop(device, WRITE, in_flight=32, count=20_000)
    flash = device.flash
    assert not flash._waiting and not flash._flushes
    assert len(flash.ftl._valid) < 1024 and len(flash.ftl._map._masks) == 1600


# -- NVMe


def nvme(**changes):
    changes = {"capacity_bytes": 1 << 30, "command_ns": 10 * US, "read_page_ns": 0} | changes
    return Nvme(NvmeParams(**changes))


def test_queues_are_served_in_turn():
    """A task that fills its queue with a hundred commands holds another's up by two at most."""
    alone = Alone(nvme(queues=2))
    for number in range(100):
        alone.submit(READ, 8 * number, 8, task_id=0)
    lone = alone.submit(READ, 8000, 8, task_id=1)
    alone.calendar.run()
    before_it = sum(ns < alone.ended[lone] for ns in alone.ended.values())
    assert before_it <= 2


def test_one_queue_is_served_in_order():
    alone = Alone(nvme(queues=1, channel_rate_bytes_per_s=1e15))
    asked = [alone.submit(READ, 8 * number, 8, task_id=number) for number in range(20)]
    alone.calendar.run()
    assert sorted(asked, key=alone.ended.__getitem__) == asked


def test_reads_and_writes_have_lanes_of_their_own():
    rates = {"read_lanes_bytes_per_s": 4.096e6, "write_lanes_bytes_per_s": 4.096e6}
    alone = Alone(nvme(command_ns=0, read_overhead_ns=0, write_overhead_ns=0, **rates))
    read, write = alone.submit(READ), alone.submit(WRITE, 800)
    alone.calendar.run()
    assert alone.ended[read] / 1e6 == pytest.approx(1.0, abs=0.05)
    assert alone.ended[write] / 1e6 == pytest.approx(1.0, abs=0.05)


# -- Data sheets. Rates that a parameter was fitted to test the arithmetic, the others the model.


def small_buffer(name, **changes):
    return drive(name, buffer_bytes=4 << 20, **changes)


@pytest.mark.parametrize(
    ("name", "reads", "writes", "reading", "writing"),
    [
        ("ssd-sata", 75_000, 32_000, 500e6, 365e6),
        ("ssd-sas", 56_000, 24_000, 495e6, 385e6),
        ("ssd-nvme", 460_000, 175_000, 2800e6, 2000e6),  # 175,000: nothing was fitted to it
    ],
)
def test_a_drive_reaches_the_rates_of_its_data_sheet(name, reads, writes, reading, writing):
    deep = 32 if name != "ssd-nvme" else 400
    assert per_s(closed_loop(drive(name), READ, deep, 20_000)) == pytest.approx(reads, rel=0.05)
    steady = closed_loop(small_buffer(name), WRITE, 64, 30_000)
    assert per_s(steady) == pytest.approx(writes, rel=0.06)
    read = closed_loop(drive(name), READ, 32, 4000, sectors=128 * KIB, in_order=True)
    assert bytes_per_s(read) == pytest.approx(reading, rel=0.03)
    as_new = small_buffer(name, used_percent=0.0)
    written = closed_loop(as_new, WRITE, 32, 3000, sectors=512 * KIB, in_order=True)
    assert bytes_per_s(written) == pytest.approx(writing, rel=0.03)


@pytest.mark.parametrize(
    ("name", "op", "us"),
    [("ssd-sata", READ, 110), ("ssd-sata", WRITE, 65), ("ssd-nvme", WRITE, 20)],
)
def test_a_lone_request_takes_the_latency_of_the_data_sheet(name, op, us):
    rig = closed_loop(drive(name), op, 1, 500)
    assert 1e6 / per_s(rig) == pytest.approx(us, rel=0.04)
