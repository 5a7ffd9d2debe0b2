"""When what is sent over a link arrives."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.engine.calendar import Calendar
from sim.net.link import HEADER_BYTES, MSS_BYTES, Link, Wire


def make_wire(latency_ns: int = 1000, rate: int = 1_000_000_000) -> Wire:
    return Wire(Calendar(), latency_ns, rate)


def test_a_packet_takes_its_length_over_the_rate_and_the_latency() -> None:
    assert make_wire().transmit(100) == 100 + HEADER_BYTES + 1000


def test_packets_queue_for_the_wire_but_share_the_latency() -> None:
    wire = make_wire()
    first = wire.transmit(100)
    assert wire.transmit(100) == first + 100 + HEADER_BYTES


def test_each_segment_has_a_header() -> None:
    wire = make_wire()
    wire.transmit(3 * MSS_BYTES + 1)
    assert (wire.packets, wire.bytes) == (4, 3 * MSS_BYTES + 1 + 4 * HEADER_BYTES)


@given(st.lists(st.integers(0, 100_000), min_size=1), st.integers(1, 10**10))
def test_a_busy_wire_carries_its_rate(sizes: list[int], rate: int) -> None:
    wire = make_wire(latency_ns=0, rate=rate)
    last = [wire.transmit(size) for size in sizes][-1]
    exact_ns = wire.bytes * 1_000_000_000 / rate
    assert exact_ns * (1 - 1e-12) <= last <= exact_ns * (1 + 1e-12) + len(sizes)


def test_the_directions_of_a_link_do_not_disturb_each_other() -> None:
    link = Link(Calendar(), "lan", latency_ns=10, rate_bytes_per_s=1e9)
    alone = link.inbound.transmit(1000)
    assert link.outbound.transmit(1000) == alone


def test_a_link_refuses_what_no_link_has() -> None:
    with pytest.raises(ValueError, match="lan: latency of -1 ns"):
        Link(Calendar(), "lan", latency_ns=-1, rate_bytes_per_s=1e9)
    with pytest.raises(ValueError, match=r"lan: rate of 0\.0 B/s"):
        Link(Calendar(), "lan", latency_ns=0, rate_bytes_per_s=0.0)


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 5000)), min_size=1, max_size=30),
    st.integers(1, 2000),
)
def test_a_card_interrupts_once_in_a_while_and_keeps_no_packet_for_longer(
    sent: list[tuple[int, int]], coalesce_ns: int
) -> None:
    plain, moderated = make_wire(), make_wire()
    moderated.coalesce_ns = coalesce_ns
    seen = []
    for gap_ns, size in sent:
        for wire in (plain, moderated):
            wire.calendar.run_until(wire.calendar.now + gap_ns)
        arrival_ns = plain.transmit(size)
        seen.append(moderated.transmit(size))
        assert arrival_ns <= seen[-1] < arrival_ns + coalesce_ns
    assert seen == sorted(seen)
    instants = sorted(set(seen))
    gaps = [later - one for one, later in pairwise(instants)]
    assert all(gap >= coalesce_ns for gap in gaps)


def test_an_interrupt_tells_of_what_comes_with_it() -> None:
    """A packet that arrives at the very time of an interrupt waits for no other."""
    wire = make_wire(latency_ns=0)
    each = 100 + HEADER_BYTES
    wire.coalesce_ns = 2 * each
    assert [wire.transmit(100) for _ in range(3)] == [2 * each, 2 * each, 4 * each]
