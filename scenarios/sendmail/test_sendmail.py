"""sendmail: what it makes durable when, and how it behaves under load."""

import pytest

from tests.user.mail import (
    blast,
    commits,
    daemon_children,
    mail_server,
    process,
    queue_files,
    raise_load,
    run_to_mark,
)
from tests.user.servers import TMPFS, S, boot, run_for, times_of, values_of


@pytest.mark.parametrize(("super_safe", "expected"), [(True, 2), (False, 0)])
def test_super_safe_commits_df_and_qf_before_the_250(super_safe: bool, expected: int) -> None:
    machine = mail_server(blast(), super_safe=super_safe)
    run_to_mark(machine, "message_accepted")
    assert commits(machine) == expected
    df, qf = queue_files(machine)
    assert (df[:2], qf[:2]) == ("df", "qf")
    assert df[2:] == qf[2:]
    assert len(df) == 16  # as 8.13's: eight characters of time and number, six of the pid


@pytest.mark.parametrize(("requires_dir_fsync", "expected"), [(True, 2), (False, 0)])
def test_each_unlink_is_followed_by_an_fsync_of_the_directory(
    requires_dir_fsync: bool, expected: int
) -> None:
    machine = mail_server(blast(), requires_dir_fsync=requires_dir_fsync)
    run_to_mark(machine, "message_accepted")
    before = commits(machine)
    run_to_mark(machine, "message_delivered")
    assert commits(machine) - before == expected


def test_delivered_messages_leave_an_empty_queue_directory() -> None:
    machine = run_for(mail_server(blast(20, 4)), 10)
    assert len(times_of(machine, "message_delivered")) == 20
    assert queue_files(machine) == []
    assert daemon_children(machine) == 0


def test_a_message_that_nobody_takes_stays_in_the_queue() -> None:
    machine = run_for(mail_server(blast(2), relay_port=26), 5)
    assert len(times_of(machine, "message_deferred")) == 2
    assert [name[:2] for name in queue_files(machine)] == ["df", "df", "qf", "qf"]


def test_a_slow_next_host_delays_no_sender() -> None:
    fast, slow = (
        times_of(run_for(mail_server(blast(5), accept=accept), 20), "storm_end")
        for accept in ("1 ms", "2 s")
    )
    assert slow[0] < 1.2 * fast[0]


def test_on_tmpfs_nothing_reaches_a_disk() -> None:
    machine = run_for(mail_server(blast(20, 4), machine={"sets": TMPFS}), 10)
    assert len(times_of(machine, "message_delivered")) == 20
    stats = machine.disks[0].stats
    assert stats.reads + stats.writes + stats.in_flight == 0


@pytest.mark.parametrize(("size", "mark"), [("8 KiB", "queued"), ("7 KiB", "delivered")])
def test_at_queue_la_messages_of_low_priority_are_only_queued(size: str, mark: str) -> None:
    """Load 16, QueueLA 1: priority above 600000 / 16 = 37500; 30000 for the recipient + size."""
    client = blast(3, start="6 s", message_size=size)
    machine = mail_server(client, queue_la=1, refuse_la=100)
    raise_load(machine, 200, until_s=9)
    run_for(machine, 9)
    assert machine.read_proc().text("loadavg").startswith("16.")
    assert [len(times_of(machine, f"message_{name}")) for name in ("queued", "delivered")] == (
        [3, 0] if mark == "queued" else [0, 3]
    )
    assert len(queue_files(machine)) == (6 if mark == "queued" else 0)


def test_at_refuse_la_the_port_closes_for_multiples_of_15_s_and_opens_again() -> None:
    client = blast(0, arrivals="open", rate="5 msg/s")
    machine = mail_server(client, refuse_la=12, queue_la=100)
    raise_load(machine, 200, until_s=8)
    run_for(machine, 80)
    closed, reopened = (
        next(
            r.t_ns / S
            for r in machine.records
            if (r.name, r.value) == ("port_open", value) and r.t_ns > S
        )
        for value in (0, 1)
    )
    assert 5 < closed < 6  # the first look after the load average's first update
    assert (reopened - closed) / 15 == pytest.approx(round((reopened - closed) / 15), abs=0.01)
    assert float(machine.read_proc().text("loadavg").split()[0]) < 12
    refused = times_of(machine, "connection_refused")
    assert all(closed < time < reopened + 0.1 for time in refused)
    accepted = times_of(machine, "message_accepted")
    assert not [time for time in accepted if closed + 2 < time < reopened]
    assert len([time for time in accepted if time > reopened]) > 50


@pytest.mark.parametrize(("tasks", "ports"), [(143, [1]), (145, [1, 0])])
def test_the_load_is_rounded_to_the_nearest_whole(tasks: int, ports: list[int]) -> None:
    """After one sample of N tasks it is N (1 - 1884 / 2048): 11.45 and 11.61; RefuseLA is 12."""
    machine = mail_server(blast(start="6 s"), refuse_la=12, queue_la=100)
    raise_load(machine, tasks, until_s=8)
    run_for(machine, 8)
    assert values_of(machine, "port_open") == ports


def test_a_queue_run_delivers_the_smallest_first() -> None:
    sizes = [9000, 20_000, 12_000]
    clients = "\n".join(
        process(
            f"client{size}",
            "smtp_sender",
            via="lan",
            target="sendmail",
            messages=1,
            start=f"{6 + 0.2 * number} s",
            message_size=f"{size} B",
        )
        for number, size in enumerate(sizes)
    )
    options = {"queue_la": 1, "refuse_la": 100, "queue_interval": "60 s"}
    machine = boot(
        "\n".join(
            [
                process("syslogd", "syslogd"),
                process("sendmail", "sendmail", **options),
                process("relay", "smtp_relay", via="lan"),
                clients,
            ]
        ),
        uses=["sendmail/program.py"],
    )
    raise_load(machine, 200, until_s=9)
    run_for(machine, 400)
    assert values_of(machine, "message_queued") == sizes
    assert values_of(machine, "message_delivered") == sorted(sizes)


def test_an_idle_port_closes_within_5_s_of_the_load() -> None:
    machine = mail_server(blast(start="60 s"), refuse_la=12, queue_la=100)
    raise_load(machine, 200, until_s=8)
    run_for(machine, 11)
    assert values_of(machine, "port_open") == [1, 0]
    assert 5 < times_of(machine, "port_open")[1] <= 10.1  # the average is new at 5 s


def test_a_queue_run_delivers_what_the_load_left_in_the_queue() -> None:
    client = blast(3, start="6 s", message_size="8 KiB")
    machine = mail_server(client, queue_la=1, refuse_la=100, queue_interval="30 s")
    raise_load(machine, 200, until_s=9)
    run_for(machine, 29)
    assert len(times_of(machine, "message_queued")) == 3
    assert not times_of(machine, "message_delivered")
    run_for(machine, 400)
    delivered = times_of(machine, "message_delivered")
    assert len(delivered) == 3
    assert max(delivered) - min(delivered) < 6  # one run, one after the other
    assert queue_files(machine) == []


def test_a_queue_run_leaves_what_the_load_forbids() -> None:
    """Six queue runs at a load of 16 and more deliver nothing, one at a lower load all."""
    client = blast(3, start="6 s", message_size="64 KiB")
    machine = mail_server(client, queue_la=2, refuse_la=1000, queue_interval="8 s")
    raise_load(machine, 200, until_s=60)
    run_for(machine, 60)
    assert len(times_of(machine, "message_queued")) == 3
    assert not times_of(machine, "message_delivered")
    run_for(machine, 400)
    assert len(times_of(machine, "message_delivered")) == 3


def test_without_q_nothing_is_tried_again() -> None:
    client = blast(3, start="6 s", message_size="8 KiB")
    machine = mail_server(client, queue_la=1, refuse_la=100, queue_interval="0 s")
    raise_load(machine, 200, until_s=9)
    run_for(machine, 400)
    assert not times_of(machine, "message_delivered")
    assert len(queue_files(machine)) == 6


def test_a_queue_run_comes_while_the_port_is_refused() -> None:
    """What a load of 16 left in the queue goes out at a load of 7, at which the port is closed."""
    client = blast(6, start="4 s", think_time="0.5 s", message_size="64 KiB")
    machine = mail_server(client, queue_la=9, refuse_la=5, queue_interval="40 s")
    raise_load(machine, 200, until_s=9)
    raise_load(machine, 7, until_s=200)
    run_for(machine, 190)
    assert times_of(machine, "message_queued")
    assert len(times_of(machine, "message_delivered")) == 6
    assert values_of(machine, "port_open") == [1, 0]


def test_a_queue_run_leaves_alone_what_another_process_delivers() -> None:
    machine = mail_server(blast(40, 4), accept="700 ms", queue_interval="1 s")
    run_for(machine, 60)
    assert len(times_of(machine, "message_delivered")) == 40
    assert not times_of(machine, "message_deferred")
    assert queue_files(machine) == []


def test_an_open_session_goes_on_while_the_port_is_closed() -> None:
    client = blast(100, 2, start="4 s", think_time="0.5 s")
    machine = mail_server(client, refuse_la=12, queue_la=100)
    raise_load(machine, 200, until_s=40)
    run_for(machine, 40)
    assert values_of(machine, "port_open")[:1] == [1]
    assert len(times_of(machine, "message_accepted")) == 100


def test_never_more_than_max_daemon_children_sessions() -> None:
    machine = mail_server(blast(12, 6, messages_per_session=2), max_daemon_children=2)
    most = 0
    while machine.calendar.now < 100 * S and not times_of(machine, "storm_end"):
        machine.run_until(machine.calendar.now + S // 50)
        most = max(most, daemon_children(machine))
    assert most == 2
    assert times_of(machine, "connection_refused")
    assert times_of(machine, "storm_end")


def test_at_delay_la_each_of_four_commands_waits_a_second() -> None:
    """EHLO, MAIL, RCPT, DATA; the text is no command. The daemon is in select() at 8 s."""
    machine = mail_server(blast(1, start="8 s"), delay_la=1, refuse_la=100, queue_la=100)
    raise_load(machine, 200, until_s=20)
    run_for(machine, 20)
    assert times_of(machine, "message_accepted")[0] == pytest.approx(8 + 4, abs=0.2)


def test_at_delay_la_one_connection_a_second_is_accepted() -> None:
    machine = mail_server(blast(4, 4, start="8 s"), delay_la=1, refuse_la=100, queue_la=100)
    raise_load(machine, 200, until_s=30)
    run_for(machine, 20)
    accepted = times_of(machine, "message_accepted")
    assert accepted == pytest.approx([12, 13, 14, 15], abs=0.3)


def test_load_limits_follow_the_number_of_cpus_by_default() -> None:
    """RefuseLA is 12 x CPUs: at load 16 one CPU refuses, two do not."""
    open_ports = []
    for cpus in (1, 2):
        client = blast(0, arrivals="open", rate="5 msg/s")
        machine = mail_server(client, machine={"cpus": cpus})
        raise_load(machine, 200, until_s=6)
        run_for(machine, 7)
        open_ports.append(values_of(machine, "port_open")[-1])
    assert open_ports == [0, 1]
