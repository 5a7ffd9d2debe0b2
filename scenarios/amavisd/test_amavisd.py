"""A mail server with a content filter: no message is lost on the way through it."""

import pytest

from sim.machine import Machine, simulate
from sim.scenario import load
from sim.study.metrics import compute_metrics
from tests.user.mail import process
from tests.user.servers import S, boot, run_for, times_of, values_of

USES = ("amavisd/amavisd.py", "amavisd/postfix.py")


def server(
    scanner: str = "clamscan", *, cpus: int = 2, messages: int = 6, **params: object
) -> Machine:
    """Boot Postfix with its filter, whose signatures load in half a second; send it messages."""
    quick = {"load_user": "0.5 s", "spam_user": "0.1 s", "unpacked": "0 B", "scanner": scanner}
    filter_processes = params.get("max_servers", 2)
    processes = [
        process("syslogd", "syslogd"),
        process("postfix", "postfix", filter_processes=filter_processes),
        process("amavisd", "amavisd", **(quick | params)),
        process("clamd", "clamd", load_user="0.5 s", unpacked="0 B", count=int(scanner == "clamd")),
        process("relay", "smtp_relay", via="lan", accept="20 ms"),
        process(
            "clients",
            "smtp_sender",
            via="lan",
            target="postfix",
            messages=messages,
            concurrency=messages,
            start="2 s",
        ),
    ]
    return boot("\n".join(processes), uses=USES)


def names_in(machine: Machine, directory: str) -> list[str]:
    entries = machine.vfs.prepare_directory(directory).entries
    assert entries is not None
    return sorted(entries)


@pytest.mark.parametrize("scanner", ["clamscan", "clamd"])
def test_each_message_is_filtered_and_delivered_once_and_leaves_nothing_behind(
    scanner: str,
) -> None:
    machine = run_for(server(scanner), 30)
    for mark in ("message_accepted", "message_filtered", "message_delivered", "message_delay_ns"):
        assert len(times_of(machine, mark)) == 6, mark
    assert not times_of(machine, "message_deferred")
    assert names_in(machine, "/var/spool/postfix") == []
    for directory in names_in(machine, "/var/amavis/tmp"):
        assert names_in(machine, f"/var/amavis/tmp/{directory}") == []


def test_at_any_moment_an_accepted_message_is_in_the_queue_or_delivered() -> None:
    machine = server(messages=20)
    for _ in range(60):
        run_for(machine, 0.25)
        accepted, filtered, delivered = (
            len(times_of(machine, f"message_{state}"))
            for state in ("accepted", "filtered", "delivered")
        )
        # A queue file is there before the 250, and for a moment on both sides of the filter.
        in_queue = len(names_in(machine, "/var/spool/postfix"))
        assert in_queue >= accepted - delivered >= accepted - filtered - 2


def test_a_signature_load_for_each_message_or_one_in_all() -> None:
    for scanner, loads in (("clamscan", 6), ("clamd", 1)):
        machine = run_for(server(scanner), 30)
        assert len(values_of(machine, "signatures_cpu_ns")) == loads


@pytest.mark.parametrize("children", [1, 2, 4])
def test_departures_are_cpus_over_cpu_time_until_there_are_fewer_children_than_cpus(
    children: int,
) -> None:
    """X = min(children, CPUs) / (load + scan + spam + the rest): 2 CPUs here."""
    machine = run_for(server(messages=30, max_servers=children), 60)
    times = times_of(machine, "message_filtered")
    cpu_s = sum(cpu.user_ns + cpu.system_ns for cpu in machine.sched.cpu_times) / S
    assert len(times) == 30
    rate = len(times) / (times[-1] - 2)
    assert rate == pytest.approx(min(children, 2) / (cpu_s / 30), rel=0.12)


def test_a_child_makes_room_for_another_after_its_share_of_messages() -> None:
    machine = run_for(server(max_requests=2, max_servers=1), 30)
    forked = [t for t in machine.sched.processes.tasks.values() if t.comm == "amavisd"]
    assert len(forked) == 2  # the parent and one child
    assert len(times_of(machine, "message_delivered")) == 6
    assert max(task.pid for task in forked) > 20  # not the first one


def test_mail_waits_for_a_clamd_that_is_still_loading() -> None:
    machine = server("clamd", clamd_port=3311)  # where nobody listens
    run_for(machine, 10)
    assert times_of(machine, "message_accepted") and not times_of(machine, "message_filtered")


def test_without_a_filter_the_next_host_takes_mail_at_once() -> None:
    processes = "\n".join(
        (
            process("postfix", "postfix", filter_port=0),
            process("relay", "smtp_relay", via="lan", accept="20 ms"),
            process("clients", "smtp_sender", via="lan", target="postfix", messages=5, start="1 s"),
        )
    )
    machine = run_for(boot(processes, uses=USES), 5)
    assert len(times_of(machine, "message_delivered")) == 5
    assert len(times_of(machine, "message_delay_ns")) == 5


def test_what_nobody_takes_is_tried_again() -> None:
    processes = "\n".join(
        (
            process("postfix", "postfix", filter_port=0, relay_port=26, retry="3 s"),
            process("relay", "smtp_relay", via="lan"),
            process("clients", "smtp_sender", via="lan", target="postfix", messages=1, start="1 s"),
        )
    )
    machine = run_for(boot(processes, uses=USES), 11)
    assert len(times_of(machine, "message_deferred")) == 4  # at 1, 4, 7 and 10 s
    assert len(names_in(machine, "/var/spool/postfix")) == 1


def busy_hour(what_if: str | None) -> dict[str, float]:
    """Return the figures of the case's busiest quarter of an hour."""
    sets = [
        'run.duration="15 min"',
        'measure.interval="1 min"',
        "process.clients.first_hour=10",
    ]
    scenario = load("amavisd", what_if=what_if, sets=sets)
    return compute_metrics(simulate(scenario, 4), scenario.measure)


def test_the_case_loading_signatures_fills_the_cpus_and_a_resident_scanner_frees_them() -> None:
    before, after = busy_hour(None), busy_hour("clamd")
    assert before["cpu_full_time_pct"] > 70
    assert after["cpu_full_time_pct"] == 0
    assert before["signatures_cpu_pct"] > 85
    assert after["cpu.busy_pct"] < 0.3 * before["cpu.busy_pct"]
    assert after["load1"] < 0.5 * before["load1"]
    assert after["anonymous_mib_peak"] < 0.6 * before["anonymous_mib_peak"]


def test_the_case_has_the_same_signatures_in_both_scanners() -> None:
    params = {p.path: p.value for p in load("amavisd", what_if="clamd").parameters}
    for key in ("main", "daily", "unpacked", "load_user", "engine", "scan_user"):
        assert params[f"process.amavisd.{key}"] == params[f"process.clamd.{key}"], key
