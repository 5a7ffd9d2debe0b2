"""ICMP echo, and programs of the server that talk to each other."""

import pytest

from sim.net.nic import NicParams
from sim.sched.task import Blocking
from sim.syscall import Sys
from tests.user.servers import MS, boot, run_for, run_program, values_of

PING = '[process.ping]\nprogram = "ping"\nvia = "lan"\ninterval = "0.1 s"'
SLEEPY = '[machine.cpuidle]\ntable = "haswell"\n'
RAM = (
    '[machine.disk.sda]\ndevice = "ram"\ncapacity = "4 GiB"\n'
    '[machine.mount."/"]\ntype = "ext3"\ndevice = "sda"\n'
)
US = 1_000


def ping_us(machine: str, *sets: str) -> float:
    """Return the last ping's time."""
    booted = run_for(boot(PING, machine=RAM + machine, sets=sets), 2)
    return float(values_of(booted, "ping_ns")[-1]) / US


def test_a_ping_is_two_ways_and_an_interrupt() -> None:
    wire_us = 2 * (154 * 8 / 1000)  # 64 bytes and headers at 1 Gbit/s
    assert ping_us("") == pytest.approx(2 * 100 + wire_us + 3, abs=0.1)


def test_the_exit_latency_of_an_idle_state_adds_to_a_ping() -> None:
    awake = ping_us(SLEEPY, "machine.cpuidle.max_cstate=0")
    assert ping_us(SLEEPY) - awake == pytest.approx(133)
    assert ping_us(SLEEPY, "machine.cpuidle.max_cstate=2") - awake == pytest.approx(10)
    assert awake == ping_us("")


def test_the_pinging_hosts_own_cpu_wakes_too() -> None:
    assert ping_us("", 'process.ping.own_wake="60 us"') - ping_us("") == pytest.approx(60)


def test_a_guests_packets_pass_its_card_and_its_host() -> None:
    """Two ways through the host, the exits of what comes in."""
    nic = NicParams(model="e1000")
    more = 2 * nic.delay_ns() + nic.exits_ns()
    assert ping_us('[machine.nic]\nmodel = "e1000"\n') - ping_us("") == pytest.approx(more / US)


def test_a_card_that_waits_for_more_packets_delays_those_that_follow_and_costs_less() -> None:
    """Eight hosts ping 1 ms after the last answer: all are in the next interrupt, 10 ms later."""
    lone = [ping_us(f'[machine.nic]\ncoalesce = "{wait}"\n') for wait in ("0 us", "10 ms")]
    assert lone[0] == lone[1]
    flood = PING.replace("0.1 s", "1 ms") + "\ncount = 8"
    figures = []
    for wait in ("0 us", "10 ms"):
        machine = RAM + f'[machine.nic]\nmodel = "e1000"\ncoalesce = "{wait}"\n'
        booted = run_for(boot(flood, machine=machine), 2)
        times = [float(value) / US for value in values_of(booted, "ping_ns")]
        softirq_ns = sum(cpu.softirq_ns for cpu in booted.sched.cpu_times)
        mean_us = sum(times) / len(times)
        figures.append((mean_us, booted.sched.nr_interrupts, softirq_ns / len(times)))
    (plain_us, interrupts, cost_ns), (late_us, fewer, less_ns) = figures
    assert plain_us < 700
    assert late_us == pytest.approx(9000, rel=0.02)
    assert fewer <= 201 < interrupts / 5
    assert less_ns < cost_ns / 3


def test_two_programs_of_the_server_talk_through_localhost() -> None:
    machine = boot(machine=RAM, sets=('machine.nic.localhost="1 ms"',))
    heard = []

    def server(sys: Sys) -> Blocking[None]:
        listener = yield from sys.listen(99, 5)
        connection = yield from sys.accept(listener)
        heard.append((yield from sys.recv(connection)))
        yield from sys.send(connection, 10, "answer")

    def client(sys: Sys) -> Blocking[None]:
        yield from sys.fork("server", server)
        yield from sys.sleep(MS)
        connection = yield from sys.connect("localhost", 99)
        assert connection is not None
        began_ns = sys.clock_ns()
        yield from sys.send(connection, 10, "question")
        heard.append((yield from sys.recv(connection)))
        assert 2 * MS < sys.clock_ns() - began_ns < 2.2 * MS

    run_program(machine, client)
    assert heard == ["question", "answer"]


def test_nobody_listens_at_localhost_either() -> None:
    def client(sys: Sys) -> Blocking[None]:
        assert (yield from sys.connect("localhost", 98)) is None

    run_program(boot(machine=RAM), client)
