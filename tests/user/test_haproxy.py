"""A load balancer: whom it hands requests to, and what its queue is worth."""

from statistics import fmean

import pytest

from sim.machine import Machine
from tests.user.servers import MS, boot, run_for, values_of
from tests.user.test_web import RAM

CLIENTS = """
[process.clients]
program = "web_clients"
via = "lan"
rate = "%s /s"
duration = "%d s"
"""


def balancer(**params: object) -> str:
    """Return the balancer as a process of a scenario."""
    lines = [f"{key} = {value}" for key, value in params.items()]
    return "\n".join(['[process.balancer]\nprogram = "haproxy"', *lines]) + "\n"


def upstream(number: int, user: str = "20 ms", workers: int = 4) -> str:
    """Return a web service behind it."""
    return (
        f'[process.web{number}]\nprogram = "web_service"\nport = {8000 + number}\nuser = "{user}"\n'
        f"workers = {workers}\ncache_queries = 0\ndatabase_queries = 0\n"
    )


def run(processes: str, *, rate: object = 20, seconds: int = 10, cpus: int = 4) -> Machine:
    clients = CLIENTS % (rate, seconds)
    return run_for(boot(clients + processes, machine=RAM, cpus=cpus), seconds + 4)


def ttfb_ms(machine: Machine) -> float:
    return fmean(float(value) for value in values_of(machine, "ttfb_ns")) / MS


def test_a_page_through_the_balancer_takes_its_cpu_and_two_more_ways() -> None:
    direct = ttfb_ms(run(upstream(-7920), rate=4))
    behind = ttfb_ms(run(balancer() + upstream(1) + upstream(2), rate=4))
    assert 0.05 < behind - direct < 1


def shares(machine: Machine) -> list[float]:
    """Return which part of the CPU time each upstream's workers had."""
    used: dict[str, int] = {}
    for record in machine.records:
        assert record.name != "web_failed"
    for task in machine.sched.processes.tasks.values():
        if task.comm in ("web_service", "web"):
            top = task if task.parent is None else task.parent
            used[str(top.pid)] = used.get(str(top.pid), 0) + task.utime_ns
    total = sum(used.values())
    return [value / total for value in used.values()]


def test_round_robin_gives_each_the_same() -> None:
    machine = run(balancer(upstreams=3) + upstream(1) + upstream(2) + upstream(3), rate=30)
    assert shares(machine) == pytest.approx([1 / 3] * 3, abs=0.02)


def test_least_connections_spares_the_slow_one() -> None:
    """Pages of 20 ms and of 120: by turns, the slow one with one worker would be 120 % busy."""
    servers = upstream(1, workers=1) + upstream(2, "120 ms", workers=1)
    times = {
        how: ttfb_ms(run(balancer(balance=f'"{how}"') + servers, rate=20, seconds=20))
        for how in ("roundrobin", "leastconn")
    }
    assert times["leastconn"] < times["roundrobin"] / 5


def test_of_like_servers_one_queue_is_worth_as_much_as_turns() -> None:
    """Pages of 20 ms at 80 %: M/D/2 waits for 0.9 of them, E2/D/1 (every second arrival) for 1."""
    servers = upstream(1, workers=1) + upstream(2, workers=1)
    for most, waiting in ((1, 0.9), (1000, 1.0)):
        machine = run(balancer(upstream_max=most) + servers, rate=80, seconds=60)
        assert ttfb_ms(machine) == pytest.approx(21.8 + 20 * waiting, rel=0.15)
        assert (most == 1) == bool(values_of(machine, "balancer_queued_ns"))


def test_who_waits_for_an_upstream_has_it_in_the_order_of_arrival() -> None:
    machine = run(balancer(upstreams=1, upstream_max=1) + upstream(1), rate=45, seconds=8)
    came_ns = [
        record.t_ns - int(record.value)
        for record in machine.records
        if record.name == "balancer_queued_ns"
    ]
    assert len(came_ns) > 100
    assert came_ns == sorted(came_ns)


def test_an_upstream_that_is_down_is_passed_over_and_nobody_notices() -> None:
    machine = run(balancer(upstreams=3) + upstream(1) + upstream(3), rate=20)
    assert not values_of(machine, "web_failed")
    assert len(values_of(machine, "ttfb_ns")) > 150


def test_without_any_upstream_everybody_is_turned_away() -> None:
    machine = run(balancer(), rate=10, seconds=4)
    assert not values_of(machine, "ttfb_ns")
    assert len(values_of(machine, "web_failed")) > 20
    assert len(values_of(machine, "balancer_unavailable")) > 20
