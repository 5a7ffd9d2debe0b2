"""Emulated disks: their profile's service times, flushes, caches, credits, and the ways to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.validate.emulated_disk import (
    Slowdisk,
    SlowdiskArmParams,
    SlowdiskSlotParams,
    SlowdiskVolumeParams,
)
from sim.block.bio import FLUSH, READ, WRITE, Request
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.sched.core import Sched
from sim.sched.cpuidle import CpuidleParams
from sim.sched.init import sched_init
from sim.sched.params import SchedParams
from sim.sched.version import kernel_version
from tests.drivers.drives import await_ms, random_reads, reads_per_s

US, MS, S = 1_000, 1_000_000, 1_000_000_000
PAGE = 8  # sectors


def serve(device, requests):
    """Submit (at ns, op, sector, sectors); return when each ended, in the order given."""
    calendar = Calendar()
    ended = {}
    device.attach("sdx", calendar, Streams(1), lambda r: ended.setdefault(id(r), calendar.now))
    made = [(at, Request(*what, at)) for at, *what in requests]
    for at, request in made:
        calendar.post(at, device.submit, request)
    calendar.run()
    return [ended[id(request)] for _, request in made]


def arm(**changes):
    return Slowdisk(SlowdiskArmParams(**changes))


def test_random_reads_take_overhead_seek_half_a_turn_and_transfer():
    """0.1 + 0.8 + 15.2 x 8/15 (mean root of the distance of two places) + 4.17 + 0.05 ms."""
    rig = random_reads(arm(), in_flight=1, count=4000)
    assert await_ms(rig) == pytest.approx(13.2, rel=0.02)


def test_a_disk_that_hurries_takes_a_microsecond_until_it_is_slowed_down():
    device = Slowdisk(SlowdiskArmParams())
    calendar = Calendar()
    ended = []
    device.attach("sdx", calendar, Streams(1), lambda _: ended.append(calendar.now))
    device.hurry()
    calendar.post(0, device.submit, Request(READ, 4_000_000, PAGE, 0))
    calendar.run()
    assert ended == [US]
    device.slow_down()
    device.submit(Request(READ, 4_000_000, PAGE, US))
    calendar.run()
    assert ended[1] > 5 * MS


@pytest.mark.parametrize("share, seek_ms", [(1.0, 16.0), (0.25, 8.4)])
def test_without_chance_a_seek_over_the_disk_takes_what_the_formula_says(share, seek_ms):
    """0.1 + 0.8 + 15.2 * root of the part of a stroke + half a turn + a page, ms."""
    device = arm(rotation="half", stroke_share=share)
    last = device.capacity_sectors - PAGE
    near, far = serve(device, [(0, READ, 0, PAGE), (S, READ, last, PAGE)])
    assert near / MS == pytest.approx(0.1512, abs=0.001)
    assert (far - S) / MS == pytest.approx(0.1512 + seek_ms + 8.333 / 2, abs=0.01)


def test_one_arm_serves_no_faster_with_a_queue():
    alone, queued = (reads_per_s(random_reads(arm(), depth, 2000)) for depth in (1, 16))
    assert queued == pytest.approx(alone, rel=0.03)


@pytest.mark.parametrize("policy", ["sstf", "clook"])
def test_a_policy_shortens_seeks(policy):
    fifo, chosen = (
        reads_per_s(random_reads(arm(policy=name), 16, 2000)) for name in ("fifo", policy)
    )
    assert chosen > 1.2 * fifo


def test_a_sequential_write_waits_for_its_place_only_when_it_comes_late():
    sequential_ns = 100 * US + 51_200  # overhead, 4 KiB at 80 MB/s
    first, early, late = serve(
        arm(),
        [
            (0, WRITE, 0, PAGE),
            (sequential_ns + 400 * US, WRITE, PAGE, PAGE),
            (20 * MS, WRITE, 2 * PAGE, PAGE),
        ],
    )
    assert first == sequential_ns  # the head stands at sector 0
    assert early == first + 400 * US + sequential_ns
    turn_ns = 60 * S / 7200
    gap_ns = 20 * MS - early
    assert late == pytest.approx(20 * MS + turn_ns - gap_ns % turn_ns + sequential_ns, abs=2)


def test_a_cached_write_ends_at_once_and_a_flush_after_the_platter():
    write, flush = serve(
        arm(write_cache_bytes=16_000_000), [(0, WRITE, 4_000_000, PAGE), (MS, FLUSH, 0, 0)]
    )
    assert write == 100 * US + 13_653  # 4 KiB at 300 MB/s
    assert flush > 5 * MS


def test_slots_work_side_by_side():
    """Little: 4 slots of 341 us."""
    rig = random_reads(Slowdisk(SlowdiskSlotParams(sigma=0.2)), in_flight=8, count=8000)
    assert reads_per_s(rig) == pytest.approx(4 / 341e-6, rel=0.02)


def test_a_flush_ends_after_all_slots():
    *writes, flush = serve(
        Slowdisk(SlowdiskSlotParams(sigma=0.0)),
        [(0, WRITE, PAGE * n, PAGE) for n in range(3)] + [(1, FLUSH, 0, 0)],
    )
    assert flush == max(writes) + 50 * US


def test_a_volume_runs_at_its_burst_rate_until_its_credits_are_gone():
    """100 credits, 10 earned a second, spent at 50 a second: 125 operations; then 10 a second."""
    device = Slowdisk(
        SlowdiskVolumeParams(credits=100.0, base_per_s=10.0, burst_per_s=50.0, sigma=0.0)
    )
    ended = sorted(serve(device, [(0, READ, PAGE * n, PAGE) for n in range(160)]))
    assert ended[99] == pytest.approx(2 * S, rel=0.01)
    assert ended[159] - ended[140] == pytest.approx(1.9 * S, rel=0.01)


def test_a_volume_moves_no_more_than_its_pipe():
    device = Slowdisk(SlowdiskVolumeParams(pipe_bytes_per_s=1e6, burst_per_s=1e6, sigma=0.0))
    ended = serve(device, [(0, READ, 2048 * n, 2048) for n in range(5)])
    assert max(ended) == pytest.approx(5 * 2**20 / 1e6 * S, rel=0.01)


def test_the_guests_driver_takes_a_page_at_a_time_and_ends_a_bulk_together():
    """What comes while the first is served is one bulk: both end when the last of them is done."""
    page_ns = 100 * US + 51_200 + 20 * US  # overhead, transfer, round trip
    turn_ns = 40 * US
    first, second, third = serve(
        arm(under="ubd", ubd_turn_ns=turn_ns),
        [(0, READ, 0, 2 * PAGE), (MS // 10, READ, 2 * PAGE, PAGE), (MS // 5, READ, 3 * PAGE, PAGE)],
    )
    assert first == 2 * page_ns + turn_ns
    assert second == third == first + 2 * page_ns


def test_a_flush_of_the_guest_costs_the_turn_alone_and_ends_with_its_bulk():
    page_ns = 100 * US + 51_200 + 20 * US
    alone, *bulk = serve(
        arm(under="ubd", ubd_turn_ns=40 * US),
        [(0, FLUSH, 0, 0), (MS, READ, 0, PAGE), (MS, FLUSH, 0, 0), (MS, READ, PAGE, PAGE)],
    )
    assert alone == 40 * US
    assert bulk == [MS + page_ns + 40 * US] + [MS + 2 * page_ns + 40 * US] * 2


def test_the_guest_is_interrupted_once_for_a_bulk():
    """One goes at once, the other four while that is served."""
    assert arm(under="ubd").coalesces and not arm(under="loop").coalesces
    ended = serve(arm(under="ubd"), [(0, WRITE, page * PAGE, PAGE) for page in range(5)])
    assert len(set(ended)) == 2


def test_the_guests_thread_waits_now_and_then_for_a_cpu_of_the_host():
    """Half of the pages are followed by 1 ms on average: 1 s for 2000 of them, beside the path."""
    count = 2000
    pages = [(0, READ, PAGE * number, PAGE) for number in range(count)]
    plain, busy = (
        max(serve(arm(under="ubd", ubd_stall_share=share, ubd_stall_ns=MS), pages))
        for share in (0.0, 0.5)
    )
    assert busy - plain == pytest.approx(count * 0.5 * MS, rel=0.1)


operations = st.tuples(st.integers(0, 3 * MS), st.sampled_from([READ, WRITE, FLUSH]))


@given(st.lists(operations, max_size=20))
def test_a_loop_device_ends_requests_in_the_order_in_which_an_arm_serves_them(gaps):
    """One thread replies; a flush overtakes nothing."""
    calendar = Calendar()
    sched = Sched(calendar, 2, kernel_version("6.18"))
    device = arm(under="loop")
    ended = []
    device.attach("loop0", calendar, Streams(1), ended.append)
    device.start(sched)
    at_ns = 0
    made = []
    for gap_ns, op in gaps:
        at_ns += gap_ns
        made.append(Request(op, 4096 * len(made), PAGE, at_ns))
        calendar.post(at_ns, device.submit, made[-1])
    calendar.run_until(at_ns + 2 * S)
    assert ended == made


@pytest.mark.parametrize("spin_us, late_us", [(0, 40), (15, 25), (50, 0)])
def test_the_emulator_is_awake_before_a_reply_is_due(spin_us, late_us):
    """A halted CPU needs 40 us to come back, less what the spin hides; a switch takes 2 us."""

    def ended_ns(hardware):
        calendar = Calendar()
        sched = sched_init(
            calendar,
            1,
            kernel_version("6.18"),
            SchedParams(),
            Tracer(calendar),
            Streams(1),
            hardware,
        )
        ends = []
        params = {"loop_spin_ns": spin_us * US, "sigma": 0.0, "read_ns": MS, "servers": 1}
        device = Slowdisk(SlowdiskSlotParams(under="loop", **params))
        device.attach("loop0", calendar, Streams(1), lambda request: ends.append(calendar.now))
        device.start(sched)
        calendar.post(S, device.submit, Request(READ, 0, PAGE, S))
        calendar.run_until(2 * S)
        return ends[0]

    halting = ended_ns({"cpuidle": CpuidleParams(table="haltpoll", exit_scale=40)})
    assert halting - ended_ns({}) == pytest.approx(late_us * US, abs=2 * US)
