"""Exim: what is durable when, what the load decides, and that no message is lost or doubled."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.task import Blocking
from sim.study.power_cut import cut_power
from sim.syscall import O_CREAT, O_WRONLY, Sys
from tests.user.exim import (
    FULL,
    blast,
    day,
    exim_scenario,
    exim_server,
    mail_bytes,
    names_in,
    spool_files,
)
from tests.user.mail import commits, raise_load, run_to_mark
from tests.user.servers import S, run_for, times_of, values_of

XFS = ('machine.mount."/".type="xfs"',)


def numbers(machine, *marks: str) -> list[int]:  # type: ignore[no-untyped-def]
    return [len(times_of(machine, f"message_{mark}")) for mark in marks]


# --- reception


@pytest.mark.parametrize(("sync_directory", "expected"), [(True, 3), (False, 2)])
def test_data_header_and_directory_are_durable_before_the_250(
    sync_directory: bool, expected: int
) -> None:
    machine = exim_server(blast(), sync_directory=sync_directory)
    run_to_mark(machine, "message_accepted")
    assert commits(machine) == expected
    assert names_in(machine, "/var/spool/exim4/input") == ["000001-D", "000001-H"]


def test_mailbox_and_journal_are_durable_before_the_files_go() -> None:
    machine = exim_server(blast())
    run_to_mark(machine, "message_accepted")
    before = commits(machine)
    run_to_mark(machine, "message_delivered")
    assert commits(machine) - before == 2


def test_delivered_messages_are_in_their_mailboxes_and_nowhere_else() -> None:
    machine = exim_server(blast(20, 4), mailbox="1 KiB")
    before = mail_bytes(machine)
    run_for(machine, 20)
    assert numbers(machine, "accepted", "delivered") == [20, 20]
    assert spool_files(machine) == []
    assert mail_bytes(machine) - before == sum(values_of(machine, "message_delivered"))  # type: ignore[arg-type]


def test_in_a_maildir_each_message_is_a_file() -> None:
    machine = exim_server(blast(7), mailbox_format="maildir", mailboxes=1)
    run_for(machine, 10)
    assert len(names_in(machine, "/var/mail/user000/new")) == 7
    assert names_in(machine, "/var/mail/user000/tmp") == []


def test_what_is_refused_at_rcpt_reaches_no_disk() -> None:
    machine = exim_server(day(accepted_per_day=0, virus_share=0))
    run_for(machine, 1)
    before = commits(machine)
    run_to_mark(machine, "message_rejected")
    run_for(machine, 1)
    assert commits(machine) == before
    assert spool_files(machine) == []


def test_what_is_refused_at_data_leaves_no_file() -> None:
    client = day(accepted_per_day=0, virus_share=1)
    machine = run_for(exim_server(client, **FULL), 30)
    assert numbers(machine, "accepted")[0] == 0
    assert numbers(machine, "rejected")[0] > 5
    assert spool_files(machine) == []


# --- the load


@pytest.mark.parametrize(("limit", "queued", "delivered"), [(4, 3, 0), (40, 0, 3), (0, 0, 3)])
def test_above_queue_only_load_messages_are_only_queued(
    limit: int, queued: int, delivered: int
) -> None:
    """The load average is 16; 0 is no limit."""
    machine = exim_server(blast(3, start="6 s"), queue_only_load=limit)
    raise_load(machine, 200, until_s=9)
    run_for(machine, 9)
    assert machine.read_proc().text("loadavg").startswith("16.")
    assert numbers(machine, "queued", "delivered") == [queued, delivered]
    assert len(names_in(machine, "/var/spool/exim4/input")) == 2 * queued


def test_a_queue_run_delivers_what_was_only_queued() -> None:
    machine = exim_server(blast(3, start="6 s"), queue_only_load=4, queue_interval="20 s")
    raise_load(machine, 200, until_s=9)
    run_for(machine, 40)
    assert numbers(machine, "queued", "delivered") == [3, 3]
    assert min(times_of(machine, "message_delivered")) > 20
    assert spool_files(machine) == []


def test_a_queue_run_gives_up_above_deliver_queue_load_max() -> None:
    machine = exim_server(
        blast(3, start="6 s"), queue_only_load=4, queue_interval="10 s", deliver_queue_load_max=8
    )
    raise_load(machine, 200, until_s=15)
    run_for(machine, 14)
    assert times_of(machine, "queue_run_abandoned")
    assert numbers(machine, "delivered") == [0]


def test_on_one_connection_only_so_many_messages_are_delivered_at_once() -> None:
    machine = exim_server(blast(7), smtp_accept_queue_per_connection=4)
    run_for(machine, 10)
    assert numbers(machine, "accepted", "queued", "delivered") == [7, 3, 4]


def test_never_more_than_smtp_accept_max_sessions_and_who_is_sent_away_comes_again() -> None:
    bursts = {"burst_share": 1.0, "burst_messages": 12, "burst_spread": "1 ms"}
    client = day(accepted_per_day=300_000, rejected_per_day=0, **bursts)
    machine = exim_server(client, smtp_accept_max=2)
    run_for(machine, 60)
    assert times_of(machine, "client_turned_away")
    accepted, delivered = numbers(machine, "accepted", "delivered")
    assert accepted == delivered > 0
    assert accepted % 12 == 0


def test_above_smtp_load_reserve_clients_are_sent_away() -> None:
    machine = exim_server(blast(1, start="6 s"), smtp_load_reserve=8)
    raise_load(machine, 200, until_s=8)
    run_for(machine, 7)
    assert times_of(machine, "client_turned_away")
    assert numbers(machine, "accepted") == [0]


def test_once_above_queue_only_load_a_connection_only_queues() -> None:
    """The load is 6.2 at the first message, 5.7 at the second, 4 s later; the limit is 6."""
    for per_session, queued in ((0, 2), (1, 1)):
        client = blast(2, start="6 s", think_time="40 s", messages_per_session=per_session)
        machine = exim_server(client, queue_only_load=6)
        raise_load(machine, 100, until_s=7)
        run_for(machine, 60)
        assert numbers(machine, "accepted", "queued") == [2, queued]


def test_a_queue_run_leaves_alone_what_is_still_being_received() -> None:
    """Queue runs every 4 ms: the n-th delivery never begins before n messages are accepted."""
    machine = exim_server(blast(20, 5), queue_interval="4 ms", queue_run_max=50)
    run_for(machine, 20)
    accepted, began = times_of(machine, "message_accepted"), times_of(machine, "delivery_started")
    assert len(accepted) == len(began) == 20
    assert all(before <= after for before, after in zip(accepted, began, strict=True))


def test_no_more_than_queue_run_max_queue_runs_at_a_time() -> None:
    """The mailbox is locked by somebody else: a queue run tries for 27 s, one begins every 5 s."""
    machine = exim_server(
        blast(6, start="6 s"),
        queue_only_load=4,
        queue_interval="5 s",
        queue_run_max=2,
        mailboxes=1,
    )

    def locker(sys: Sys) -> Blocking[None]:
        yield from sys.open("/var/mail/user000.lock", O_WRONLY | O_CREAT)

    machine.kernel.start("locker", "locker", locker)
    raise_load(machine, 200, until_s=9)
    run_for(machine, 30)
    tasks = machine.sched.processes.tasks
    timer = min(pid for pid, task in tasks.items() if task.comm == "exim4")
    assert len(tasks[timer].children) == 2


# --- delivery


def test_two_deliveries_to_one_mailbox_come_after_each_other() -> None:
    machine = exim_server(blast(2, 2), mailboxes=1)
    run_for(machine, 2.5)
    assert numbers(machine, "accepted", "delivered") == [2, 1]
    run_for(machine, 3)
    assert numbers(machine, "delivered") == [2]
    assert names_in(machine, "/var/mail") == ["user000"]


def test_without_its_data_base_a_message_is_deferred_and_stays() -> None:
    machine = exim_server(blast(2), filter="dspam", mysql_port=3307, vocabulary=20_000)
    run_for(machine, 10)
    assert numbers(machine, "accepted", "deferred", "delivered") == [2, 2, 0]
    assert names_in(machine, "/var/spool/exim4/input") == [
        "000001-D",
        "000001-H",
        "000002-D",
        "000002-H",
    ]


def test_a_deferral_is_noted_in_the_retry_data_base() -> None:
    for port, dirty_pages in ((3306, 0), (3307, 1)):
        machine = exim_server(
            blast(1),
            machine={"sets": ('machine.mount."/".data="writeback"',)},
            filter="dspam",
            mysql_port=port,
            vocabulary=20_000,
        )
        run_for(machine, 5)
        entries = machine.vfs.prepare_directory("/var/spool/exim4/db").entries
        assert entries is not None
        assert entries["retry"].mapping.nr_dirty == dirty_pages


def test_dspam_counts_every_message_in_its_data_base() -> None:
    machine = exim_server(blast(4), **FULL)
    run_for(machine, 15)
    assert numbers(machine, "delivered") == [4]
    entries = machine.vfs.prepare_directory("/var/lib/mysql").entries
    assert entries is not None
    grown = entries["dspam_signature_data.data"].size - 20_000 * 6 * 1024
    assert grown == 4 * 6 * 1024


# --- nothing is lost


@settings(max_examples=8)
@given(
    st.integers(0, 1000),
    st.sampled_from([0, 1]),
    st.sampled_from([2, 20]),
    st.booleans(),
    st.sampled_from([(), XFS]),
)
def test_every_message_is_accepted_once_and_then_delivered_or_in_the_queue(
    seed: int, limit: int, sessions: int, full: bool, sets: tuple[str, ...]
) -> None:
    more = FULL if full else {}
    client = day(duration="6 s", accepted_per_day=100_000)
    machine = exim_server(
        client,
        machine={"seed": seed, "sets": sets},
        queue_only_load=limit,
        smtp_accept_max=sessions,
        mailbox="1 KiB",
        **more,
    )
    before = mail_bytes(machine)
    run_for(machine, 60)
    accepted, rejected, delivered = numbers(machine, "accepted", "rejected", "delivered")
    assert accepted and (rejected or not full)
    queued = sorted({name[:6] for name in names_in(machine, "/var/spool/exim4/input")})
    assert accepted == delivered + len(queued)
    headers = [n for n in names_in(machine, "/var/spool/exim4/input") if n.endswith("-H")]
    assert len(headers) == len(queued)
    assert mail_bytes(machine) - before == sum(values_of(machine, "message_delivered"))  # type: ignore[arg-type]


@pytest.mark.parametrize("data", ["ordered", "writeback", "journal"])
@pytest.mark.parametrize("at_s", [2.0, 3.3, 5.1])
def test_a_power_cut_loses_no_message_that_was_accepted(data: str, at_s: float) -> None:
    sets = (f'machine.mount."/".data="{data}"',)
    scenario = exim_scenario(day(accepted_per_day=300_000), given={"sets": sets})
    [cut] = cut_power(scenario, round(at_s * S), 1).cuts
    assert cut.figures["messages_accepted"] > 0
    assert cut.figures["messages_lost"] == 0
    assert cut.figures["damage"] == 0


def test_what_is_delivered_rests_on_its_mailbox() -> None:
    """Accepted = in mailboxes + in the queue + lost: nobody else has taken anything over."""
    scenario = exim_scenario(day(accepted_per_day=300_000))
    [cut] = cut_power(scenario, 6 * S, 1).cuts
    found = cut.figures
    assert found["messages_handed_on"] == 0
    assert found["messages_in_mailboxes"] > 0
    places = ("messages_in_mailboxes", "messages_in_queue", "messages_lost")
    assert found["messages_accepted"] == sum(found[name] for name in places)


@pytest.mark.parametrize("mailbox_format", ["mbox", "maildir"])
def test_mail_that_was_delivered_is_lost_with_a_mailbox_on_tmpfs(mailbox_format: str) -> None:
    """The spool is durable, but its files have gone: nothing brings the message back."""
    sets = ('machine.mount."/var/mail".type="tmpfs"',)
    scenario = exim_scenario(
        day(accepted_per_day=300_000), given={"sets": sets}, mailbox_format=mailbox_format
    )
    [cut] = cut_power(scenario, 6 * S, 1).cuts
    assert cut.figures["messages_in_mailboxes"] == 0
    assert cut.figures["messages_lost"] > 0


@pytest.mark.parametrize("barrier", ["true", "false"])
def test_a_volatile_cache_loses_mail_that_was_accepted_unless_there_are_barriers(
    barrier: str,
) -> None:
    server = f"""\
disk.sda = {{ profile = "sata-7200", write_cache = true }}
mount."/" = {{ type = "ext3", device = "sda", barrier = {barrier} }}
"""
    scenario = exim_scenario(blast(100, 20), given={"machine": server})
    cuts = [cut_power(scenario, at_ms * S // 1000, 1).cuts[0] for at_ms in (1000, 1400, 1800)]
    lost = sum(cut.figures["messages_lost"] for cut in cuts)
    assert lost == 0 if barrier == "true" else lost > 0
