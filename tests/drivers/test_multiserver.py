"""A station of servers: parallel service, flushes, and what serves it that forgets."""

import random
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.block.bio import FLUSH, READ, WRITE
from sim.drivers.multiserver import GAINING_MAX, Multiserver, MultiserverParams, Station

US = 1000
SECTORS = 8
SERVICE_NS = 70 * US
REFILL_NS = 230 * US
LIFE_NS = 4500 * US


def station(**changes) -> Station:
    """Return one server of 70 us a read, without spread; what is said is changed."""
    told = {
        "servers": 1,
        "read_ns": SERVICE_NS,
        "write_ns": SERVICE_NS,
        "sigma": 0.0,
        "read_rate_bytes_per_s": 0.0,
        "write_rate_bytes_per_s": 0.0,
        "refill_ns": REFILL_NS,
        "cache_life_ns": LIFE_NS,
    }
    found = Station(MultiserverParams(**(told | changes)))
    found.attach(random.Random(1).random)
    return found


def due(idle_ns):
    return REFILL_NS * (1 - exp(-idle_ns / LIFE_NS))


@pytest.mark.parametrize("op", [READ, WRITE])
@pytest.mark.parametrize("idle_ns", [100 * US, 1_000 * US, 4_500 * US, 50_000 * US])
def test_a_request_takes_longer_the_longer_nothing_was_under_way(op, idle_ns):
    one = station()
    last = one.accept(op, SECTORS, 10_000 * US, 0)
    now_ns = last + idle_ns
    assert one.accept(op, SECTORS, now_ns, 0) == pytest.approx(
        now_ns + due(idle_ns) + SERVICE_NS, abs=1
    )


def test_those_that_come_meanwhile_wait_with_the_first():
    one = station(servers=2)
    begin_ns = 10_000 * US
    ends = [one.accept(READ, SECTORS, begin_ns + late, 0) for late in (0, 10)]
    assert ends[0] == ends[1] == pytest.approx(begin_ns + due(begin_ns) + SERVICE_NS, abs=1)


def test_a_flush_waits_for_it_too():
    one = station(flush_ns=20 * US)
    told = 10_000 * US + due(10_000 * US) + 20 * US
    assert one.accept(FLUSH, 0, 10_000 * US, 0) == pytest.approx(told, abs=1)


@given(st.lists(st.integers(0, 3_000 * US), min_size=1, max_size=30), st.integers(1, 4))
def test_without_a_refill_idle_time_changes_nothing(gaps, servers):
    """Neither with a life that is far longer."""
    none = station(servers=servers, refill_ns=0)
    never = station(servers=servers, cache_life_ns=10**18)
    now_ns = 0
    for gap_ns in gaps:
        now_ns += gap_ns
        assert none.accept(READ, SECTORS, now_ns, 0) == never.accept(READ, SECTORS, now_ns, 0)


@given(st.lists(st.integers(0, 3_000 * US), min_size=1, max_size=30), st.integers(1, 4))
def test_nobody_overtakes_those_who_waited_with_the_first(gaps, servers):
    """All have one service time: they end in the order in which they came, none before it."""
    one = station(servers=servers)
    now_ns, last_ns = 0, 0
    for gap_ns in gaps:
        now_ns += gap_ns
        done_ns = one.accept(READ, SECTORS, now_ns, 0)
        assert done_ns >= max(last_ns, now_ns + SERVICE_NS)
        last_ns = done_ns


@given(st.floats(-1, 1), st.integers(1, 40))
def test_of_those_that_come_together_each_gains_by_those_before_it(gain, count):
    """The k-th takes S / k^gain, one after the other."""
    one = station(refill_ns=0, queue_gain=gain)
    ends = [one.accept(READ, SECTORS, 0, 0) for _ in range(count)]
    told = sum(SERVICE_NS * number**-gain for number in range(1, count + 1))
    assert ends[-1] == pytest.approx(told, abs=count)
    assert ends == sorted(ends)
    assert one.accept(READ, SECTORS, ends[-1], 0) == ends[-1] + SERVICE_NS


@pytest.mark.parametrize("number", [1, 2, 8, 32])
def test_customers_who_always_wait_are_served_as_often_as_their_number_gains(number):
    """Each comes again at once: n are there, and a request takes S / n^gain."""
    one, gain, count = station(refill_ns=0, queue_gain=0.31), 0.31, 4000
    waiting = [one.accept(READ, SECTORS, 0, 0) for _ in range(number)]
    for _ in range(count):
        waiting.append(one.accept(READ, SECTORS, waiting.pop(0), 0))
    assert waiting[-1] / count == pytest.approx(SERVICE_NS * number**-gain, rel=0.02)


@pytest.mark.parametrize("rate_per_s", [500, 1000, 2000, 5000])
def test_an_asked_device_answers_sooner_as_the_exceptional_first_service_has_it(rate_per_s):
    """M/G/1 with an exceptional first service (Welch, 1964).

    With moments b, b2 of a service and b1, b12 of a first one, r the rate, all in ns: a request
    waits for r (b12 - b2) / (2 (1 - r (b - b1))) + r b2 / (2 (1 - r b)); a share (1 - r b) / (1 - r
    (b - b1)) is first. With a = r life an idle time leaves e^(-t / life): a / (1 + a) on average,
    a / (2 + a) its square.
    """
    rate = rate_per_s / 1e9
    a = rate * LIFE_NS
    more = REFILL_NS / (1 + a)
    more2 = REFILL_NS**2 * (1 - 2 * a / (1 + a) + a / (2 + a))
    b, b2 = SERVICE_NS, SERVICE_NS**2
    b1 = b + more
    b12 = b2 + 2 * b * more + more2
    idle = (1 - rate * b) / (1 - rate * b + rate * b1)
    delay = rate * (b12 - b2) / (2 * (1 - rate * (b - b1))) + rate * b2 / (2 * (1 - rate * b))
    told = idle * b1 + (1 - idle) * b + delay
    one, draw, now_ns, total, count = station(), random.Random(7), 0.0, 0, 200_000
    for _ in range(count):
        now_ns += draw.expovariate(rate)
        total += one.accept(READ, SECTORS, int(now_ns), 0) - int(now_ns)
    assert total / count == pytest.approx(told, rel=0.01)


TURN_NS = 8_333 * US


def arm(**changes) -> Station:
    """Return one server over platters, whose other requests take 70 us."""
    return station(refill_ns=0, turn_ns=TURN_NS, **changes)


@given(st.integers(1, 40_000 * US))
def test_a_write_that_goes_on_waits_until_its_place_comes_round(gap_ns):
    one = arm()
    last = one.accept(WRITE, SECTORS, 0, 1000)
    done = one.accept(WRITE, SECTORS, last + gap_ns, 1000 + SECTORS)
    assert (done - last) % TURN_NS == 0
    assert 0 < done - last - gap_ns <= TURN_NS


@given(
    st.lists(st.tuples(st.sampled_from([READ, WRITE]), st.integers(0, 3), st.integers(0, 20_000)))
)
def test_without_a_turn_places_change_nothing(requests):
    with_places, without = station(), station()
    now_ns = 0
    for op, place, gap_us in requests:
        now_ns += gap_us * US
        found = with_places.accept(op, SECTORS, now_ns, place * SECTORS)
        assert found == without.accept(op, SECTORS, now_ns, 0)


@pytest.mark.parametrize(
    ("op", "sector", "gap_ns"),
    [
        (READ, 1000 + SECTORS, 300 * US),  # what it read ahead, a drive has in its buffer
        (WRITE, 1000, 300 * US),  # over what was written: elsewhere
        (WRITE, 1000 + SECTORS, -30 * US),  # there already, and goes on at once
    ],
)
def test_every_other_request_takes_what_was_measured(op, sector, gap_ns):
    one = arm()
    last = one.accept(WRITE, SECTORS, 0, 1000)
    came_ns = last + gap_ns
    assert one.accept(op, SECTORS, came_ns, sector) == max(came_ns, last) + SERVICE_NS


def test_a_flush_moves_no_arm():
    one = arm(flush_ns=50 * US)
    last = one.accept(WRITE, SECTORS, 0, 1000)
    flushed = one.accept(FLUSH, 0, last, 0)
    assert flushed == last + 50 * US
    assert one.accept(WRITE, SECTORS, flushed, 1000 + SECTORS) == last + TURN_NS


def test_a_log_that_is_synced_again_and_again_gets_a_turn_for_each():
    """120 a second at 7200 rpm, 0.1 ms after the one before."""
    one, now_ns, count = arm(), 0, 1000
    for number in range(count):
        now_ns = one.accept(WRITE, SECTORS, now_ns + 100 * US, number * SECTORS)
    assert count * 1e9 / now_ns == pytest.approx(120, rel=0.01)


@pytest.mark.parametrize("logs", [1, 2, 4, 8])
def test_of_so_many_logs_one_write_in_so_many_goes_on(logs):
    """By hand: S = F - (F - T / 2) / n, F of a request elsewhere; gaps are of many turns."""
    elsewhere_ns = 6_000 * US
    one, draw = arm(write_ns=elsewhere_ns), random.Random(3)
    ends, busy_ns, now_ns, count = [0] * logs, 0, 0, 20_000
    for _ in range(count):
        log = draw.randrange(logs)
        now_ns += round(draw.expovariate(1 / 80e6))
        done_ns = one.accept(WRITE, SECTORS, now_ns, 10**7 * log + ends[log])
        ends[log] += SECTORS
        busy_ns += done_ns - now_ns
        now_ns = done_ns
    told_ns = elsewhere_ns - (elsewhere_ns - TURN_NS / 2) / logs
    assert busy_ns / count == pytest.approx(told_ns, rel=0.02)


def test_a_better_drive_turns_faster_and_a_transfer_is_added():
    """By hand: half of 8.333 ms, and 4 KiB at 1 MB/s, halved as well."""
    one = arm(service_scale=0.5, write_rate_bytes_per_s=1e6)
    last = one.accept(WRITE, SECTORS, 0, 1000)
    done = one.accept(WRITE, SECTORS, last + 100 * US, 1000 + SECTORS)
    assert done - last == pytest.approx((TURN_NS + 4_096 * US) / 2, abs=2)


def test_of_several_servers_none_is_an_arm():
    refused = Multiserver.refusal(MultiserverParams(servers=2, turn_ns=TURN_NS))
    assert "got 2 (accepted: servers = 1, or turn = 0 s)" in refused
    assert not Multiserver.refusal(MultiserverParams(servers=1, turn_ns=TURN_NS))


ANSWERED_NS = 100 * US
MS = 1000 * US


def cached(**changes) -> Station:
    """Return an arm of 10 ms that answers writes from a cache of 1 MiB."""
    told = {"read_ns": 10 * MS, "write_ns": 10 * MS, "flush_ns": 50 * US, "refill_ns": 0}
    told |= {"cache_bytes": 1 << 20, "cache_write_ns": ANSWERED_NS, "cache_gain": 0.0}
    return station(**(told | changes))


def test_a_write_ends_when_it_is_in_the_cache_and_a_read_then_waits_for_it():
    one = cached()
    assert one.accept(WRITE, SECTORS, 0, 1000) == ANSWERED_NS
    assert one.accept(READ, SECTORS, 4 * MS, 0) == 20 * MS


def test_reads_go_before_what_is_in_the_cache():
    """The first of the writes is under way when two reads come; the second waits for both."""
    one = cached()
    for place in (1000, 2000):
        one.accept(WRITE, SECTORS, 0, place)
    assert [one.accept(READ, SECTORS, 1 * MS, 0) for _ in range(2)] == [20 * MS, 30 * MS]
    assert one.accept(READ, SECTORS, 35 * MS, 0) == 50 * MS


def test_what_is_in_the_cache_is_answered_from_it():
    one = cached()
    one.accept(WRITE, SECTORS, 0, 1000)
    one.accept(WRITE, SECTORS, 0, 2000)
    assert one.accept(READ, SECTORS, 1 * MS, 2000) == 1 * MS + ANSWERED_NS
    assert one.accept(READ, SECTORS, 1 * MS, 1996) == 20 * MS


def test_a_flush_ends_when_all_is_written_and_reads_go_before_it():
    """By hand: the first of three is written until 10 ms, then come two reads; the flush has said
    30 ms, and the next read pays for both."""
    one = cached()
    for place in (1000, 2000, 3000):
        one.accept(WRITE, SECTORS, 0, place)
    flushed = one.accept(FLUSH, 0, 2 * MS, 0)
    assert flushed == 30 * MS + 50 * US
    assert [one.accept(READ, SECTORS, 3 * MS, 0) for _ in range(2)] == [20 * MS, 30 * MS]
    assert one.accept(READ, SECTORS, 35 * MS, 0) == flushed + 30 * MS


def test_a_read_during_a_flush_waits_for_reads_that_were_there_before_it():
    one = cached()
    assert one.accept(READ, SECTORS, 0, 0) == 10 * MS
    one.accept(WRITE, SECTORS, 0, 1000)
    flushed = one.accept(FLUSH, 0, 0, 0)
    assert flushed == 20 * MS + 50 * US
    assert one.accept(READ, SECTORS, 1 * MS, 0) == 20 * MS  # before the write, which has not begun
    assert one.accept(READ, SECTORS, 2 * MS, 0) == 30 * MS


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), max_size=60))
def test_over_a_busy_time_all_of_the_work_is_done(requests):
    """Whoever comes when all of it can be over waits for nobody."""
    one, now_ns, work_ns = cached(cache_bytes=1 << 30), 0, 0
    for number, (op, gap_ms) in enumerate(requests):
        now_ns += gap_ms * MS
        if op == 2:
            one.accept(FLUSH, 0, now_ns, 0)
            work_ns += 50 * US
        else:
            one.accept((READ, WRITE)[op], SECTORS, now_ns, 0 if op == 0 else 1000 * (1 + number))
            work_ns += 10 * MS
    last_ns = one.accept(FLUSH, 0, now_ns, 0)
    assert one.accept(READ, SECTORS, last_ns + work_ns, 0) == last_ns + work_ns + 10 * MS


@pytest.mark.parametrize("op", [WRITE, READ])
def test_during_a_flush_the_cache_answers_as_before(op):
    one = cached()
    one.accept(WRITE, SECTORS, 0, 1000)
    one.accept(WRITE, SECTORS, 0, 2000)
    flushed = one.accept(FLUSH, 0, 0, 0)
    one.accept(WRITE, SECTORS, 1 * MS, 3000)
    assert one.accept(op, SECTORS, 2 * MS, 3000) == 2 * MS + ANSWERED_NS < flushed
    assert one.accept(FLUSH, 0, 3 * MS, 0) == flushed + 10 * MS + 50 * US


def test_a_flush_ends_after_the_answers_before_it():
    """Also of a drive whose cache is no faster than its medium."""
    one = cached(write_ns=50 * US, flush_ns=1 * US)
    answered = one.accept(WRITE, SECTORS, 0, 1000)
    assert one.accept(FLUSH, 0, 0, 0) > answered


def test_a_flush_of_nothing_takes_what_a_flush_takes():
    one = cached()
    one.accept(WRITE, SECTORS, 0, 1000)
    assert one.accept(FLUSH, 0, 20 * MS, 0) == 20 * MS + 50 * US


def test_what_adjoins_is_written_as_one():
    one = cached(write_rate_bytes_per_s=SECTORS * 512 * 1000)  # 1 ms for each write
    for number in range(4):
        one.accept(WRITE, SECTORS, 0, 1000 + number * SECTORS)
    assert one.accept(FLUSH, 0, 0, 0) == 14 * MS + 50 * US


def test_a_full_cache_answers_when_there_is_room():
    one = cached(cache_bytes=2 * SECTORS * 512)
    ends = [one.accept(WRITE, SECTORS, 0, 1000 * number) for number in range(5)]
    told = [0, 0, 10 * MS, 20 * MS, 30 * MS]
    assert ends == [ANSWERED_NS + begin_ns for begin_ns in told]


def test_what_is_being_written_still_takes_room():
    one = cached(cache_bytes=2 * SECTORS * 512)
    for place in (1000, 2000):
        one.accept(WRITE, SECTORS, 0, place)
    assert one.accept(WRITE, SECTORS, 4 * MS, 3000) == 10 * MS + ANSWERED_NS
    assert one.accept(WRITE, SECTORS, 21 * MS, 4000) == 21 * MS + ANSWERED_NS


def test_many_in_the_cache_are_written_sooner_where_many_gain():
    """By hand: four, three, two and one lie in the cache: S / sqrt(n) each; a read takes S."""
    one = cached(cache_gain=0.5)
    for number in range(4):
        one.accept(WRITE, SECTORS, 0, 1000 * number)
    told = sum(10 * MS * number**-0.5 for number in (4, 3, 2, 1))
    flushed = one.accept(FLUSH, 0, 0, 0)
    assert flushed == pytest.approx(told + 50 * US, abs=4)
    assert one.accept(READ, SECTORS, flushed, 0) == flushed + 10 * MS


def test_of_more_places_than_were_ever_in_a_queue_no_more_is_gained():
    one = cached(cache_gain=0.4)
    for number in range(100):
        one.accept(WRITE, SECTORS, 0, 1000 * number)
    counted = [min(number, GAINING_MAX) for number in range(100, 0, -1)]
    told = sum(10 * MS * number**-0.4 for number in counted)
    assert one.accept(FLUSH, 0, 0, 0) == pytest.approx(told + 50 * US, abs=200)


@given(
    st.lists(
        st.tuples(st.sampled_from([READ, WRITE, FLUSH]), st.integers(0, 40), st.integers(0, 30)),
        max_size=40,
    ),
)
def test_what_was_answered_is_in_the_cache_or_under_way_or_has_its_place(requests):
    """Nothing is lost: after a flush nothing is unsafe, before it nothing that nobody wrote."""
    one, now_ns, flushed_ns = cached(cache_bytes=64 * 512), 0, 0
    since_flush: set[int] = set()
    before: set[int] = set()  # what was unsafe, of which nothing may be forgotten
    for op, place, gap_ms in requests:
        now_ns += gap_ms * MS
        sector = place * SECTORS
        own = set() if op == FLUSH else set(range(sector, sector + SECTORS))
        done_ns = one.accept(op, len(own), now_ns, sector)
        assert done_ns > now_ns
        unsafe = {at for start, end in one.unsafe_runs(now_ns) for at in range(start, end)}
        if now_ns >= flushed_ns:
            assert unsafe <= since_flush | own
        if op == WRITE:
            assert own <= unsafe
            since_flush |= own
        if gap_ms == 0:
            assert before <= unsafe  # nothing gets to its place in no time
        if op == FLUSH:
            flushed_ns, since_flush = done_ns, set()
        before = unsafe
    end_ns = one.accept(FLUSH, 0, now_ns, 0)
    assert not one.unsafe_runs(end_ns)


@pytest.mark.parametrize("write_ms", [0, 6, 10])
def test_reads_wait_for_what_is_written_as_a_queue_with_two_classes_has_it(write_ms):
    """W = (40 S^2 + 32 S_w^2) / 2 / (1 - 40 S), the first class of two (Cobham, 1954)."""
    reads_per_s, writes_per_s, count = 40, 32, 60_000
    one, draw = cached(write_ns=max(1, write_ms * MS), cache_bytes=1 << 30), random.Random(5)
    now_ns, waited_ns, reads = 0.0, 0, 0
    for number in range(count):
        now_ns += draw.expovariate((reads_per_s + writes_per_s) / 1e9)
        if draw.random() < writes_per_s / (reads_per_s + writes_per_s):
            one.accept(WRITE, SECTORS, int(now_ns), 1000 * (1 + number))
        else:
            waited_ns += one.accept(READ, SECTORS, int(now_ns), 0) - int(now_ns) - 10 * MS
            reads += 1
    told_ms = (reads_per_s * 10**2 + writes_per_s * write_ms**2) / 1000 / 2 / (1 - 0.4)
    assert waited_ns / reads / MS == pytest.approx(told_ms, rel=0.04)


def test_without_a_cache_nothing_of_it_is_asked():
    one, other = station(), station(cache_write_ns=7 * MS)
    for number in range(20):
        told = (WRITE, SECTORS, number * 40 * US, number)
        assert one.accept(*told) == other.accept(*told)


def test_a_cache_is_no_larger_than_the_drive():
    refused = Multiserver.refusal(
        MultiserverParams(capacity_bytes=1 << 30, cache_bytes=1 << 31, servers=1)
    )
    assert refused == "cache: larger than the drive, got 2 GiB (accepted: up to 1 GiB)"


def test_a_cache_has_one_server():
    refused = Multiserver.refusal(MultiserverParams(servers=2, cache_bytes=1 << 20))
    assert "got 2 (accepted: servers = 1, or cache = 0 B)" in refused
