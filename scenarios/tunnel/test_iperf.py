"""Bulk transfers: a stream carries a window a round trip, until the link is full."""

import pytest

from sim.machine import simulate
from sim.net.link import HEADER_BYTES, MSS_BYTES
from sim.scenario import load
from sim.study.metrics import compute_metrics
from sim.units import parse_quantity
from tests.user.mail import process
from tests.user.servers import S, boot, run_for, times_of, values_of

USES = ("tunnel/iperf.py",)
PAYLOAD = MSS_BYTES / (MSS_BYTES + HEADER_BYTES)  # of what the link carries


def bytes_per_s(
    window: str,
    latency: str,
    rate: str = "10 Gbit/s",
    streams: int = 1,
    seconds: int = 4,
    **given: object,
) -> float:
    """Return what streams of a window carry over a link, by the receiver's account."""
    processes = "\n".join(
        (
            f'[link.tunnel]\nlatency = "{latency}"\nrate = "{rate}"',
            process("sink", "iperf_server", via="tunnel"),
            process(
                "client",
                "iperf_client",
                host="sink",
                streams=streams,
                duration=f"{seconds} s",
                **given,
            ),
        )
    )
    machine = boot(
        processes,
        cpus=4,
        uses=USES,
        sets=(
            f'machine.tcp.window="{window}"',
            "machine.tcp.moderate_rcvbuf=false",  # iperf -w: a program that says its buffer
            'machine.tcp.wmem_max="8 MiB"',
            'machine.syscall.packet="0.1 us"',
            'machine.syscall.packet_interrupt="0 us"',
        ),
    )
    run_for(machine, seconds + 5)
    received = [int(value) for value in values_of(machine, "transfer_bytes")]
    assert len(received) == streams
    return sum(received) / (times_of(machine, "transfer_bytes")[-1] - 1)


@pytest.mark.parametrize("window", ["64 KiB", "256 KiB", "1 MiB"])
@pytest.mark.parametrize("latency", ["5 ms", "20 ms", "50 ms"])
@pytest.mark.parametrize("streams", [1, 3])
def test_throughput_is_window_over_round_trip_while_the_link_has_room(
    window: str, latency: str, streams: int
) -> None:
    round_trip_s = 2 * float(parse_quantity(latency, "time_ns")) / S
    seconds = round(120 * round_trip_s) + 1
    found = bytes_per_s(window, latency, length="16 KiB", streams=streams, seconds=seconds)
    expected = streams * float(parse_quantity(window, "bytes")) / round_trip_s
    # A start-up of some round trips, a last buffer that waits.
    assert found == pytest.approx(expected, rel=0.07)


@pytest.mark.parametrize("streams", [1, 2, 8])
def test_a_full_link_is_all_there_is_whatever_the_number_of_streams(streams: int) -> None:
    found = bytes_per_s("4 MiB", "10 ms", rate="100 Mbit/s", streams=streams)
    assert found == pytest.approx(12.5e6 * PAYLOAD, rel=0.04)


def test_more_streams_carry_more_until_the_link_is_full() -> None:
    """64 KiB in 20 ms are 26 Mbit/s: four fill 100 Mbit/s."""
    rates = [
        bytes_per_s("64 KiB", "10 ms", rate="100 Mbit/s", streams=n, length="16 KiB")
        for n in (1, 2, 3, 6)
    ]
    one = rates[0]
    assert rates[1] == pytest.approx(2 * one, rel=0.05)
    assert rates[2] == pytest.approx(3 * one, rel=0.05)
    assert rates[3] == pytest.approx(12.5e6 * PAYLOAD, rel=0.04)


def test_a_long_way_does_not_close_the_window_of_a_stream_that_is_never_idle() -> None:
    """Slow start takes longer than the 200 ms after which an idle connection begins anew."""
    found = bytes_per_s("1 MiB", "40 ms", rate="350 Mbit/s", seconds=10)
    assert found == pytest.approx(2**20 / 0.080, rel=0.1)


def test_every_byte_sent_arrives() -> None:
    machine = boot(
        "\n".join(
            (
                process("sink", "iperf_server", via="lan"),
                process("client", "iperf_client", host="sink", duration="0.5 s", length="100 KiB"),
            )
        ),
        uses=USES,
    )
    run_for(machine, 3)
    [received] = values_of(machine, "transfer_bytes")
    assert int(received) > 0 and int(received) % 102_400 == 0


def test_a_host_where_nobody_listens_is_an_error_told() -> None:
    processes = (
        process("sink", "iperf_server", via="lan"),
        process("client", "iperf_client", host="sink", port=5002),
    )
    machine = run_for(boot("\n".join(processes), uses=USES), 3)
    assert values_of(machine, "stdout") == ["connect to sink port 5002 failed\n"]


@pytest.mark.parametrize(
    ("what_if", "mbit_per_s"),
    [(None, 350), ("four_streams", 350), ("second_tunnel", 700), ("small_window", 26)],
)
def test_the_case_is_a_full_tunnel_that_only_another_tunnel_widens(
    what_if: str | None, mbit_per_s: float
) -> None:
    scenario = load("tunnel", what_if=what_if)
    found = compute_metrics(simulate(scenario, 10), scenario.measure)["transfer_bytes_per_s"]
    assert found * 8e-6 == pytest.approx(mbit_per_s, rel=0.05)
