"""The rigs' own programs: what their namesakes in C do, by laws that can be computed by hand."""

import pytest

from calibration.validate.parts import rig_parts
from tests.user.servers import EXT3, RAM_DISK, S, boot, run_for, values_of

TMPFS = '[machine.mount."/"]\ntype = "tmpfs"'


@pytest.fixture(autouse=True)
def parts():
    """Have the rigs' parts in the registry."""
    with rig_parts():
        yield


# --- cpuburn

DEVICE = RAM_DISK + '[machine.mount."/"]\ntype = "tmpfs"'  # 2 ms a request, one at a time


def test_a_reader_that_computes_keeps_disk_and_cpu_in_turns():
    process = (
        '[process.r]\nprogram = "rig_cpuburn"\nfilename = "/dev/sda"\nruntime = "2 s"\n'
        'read_user = "3 ms"'
    )
    machine = run_for(boot(process, machine=DEVICE), 3)
    assert values_of(machine, "cpuburn_reads")[0] == pytest.approx(2 / 5e-3, rel=0.02)


# --- mailq


def test_a_mail_queue_keeps_so_many_messages_and_makes_each_durable():
    process = '[process.q]\nprogram = "mailq"\nkeep = 3\nmessages = 20\ncount = 2\nruntime = "30 s"'
    machine = run_for(boot(process, machine=EXT3), 40)
    assert values_of(machine, "mailq_done") == [20, 20]
    left = machine.vfs.prepare_directory("/var/spool/mailq").entries
    assert len(left) == 2 * 3 and all(name.startswith("qf.") for name in left)
    assert len(values_of(machine, "mailq_fsync_ns")) == 40


def test_a_mail_queue_on_tmpfs_ends_when_its_time_is_up():
    process = '[process.q]\nprogram = "mailq"\nruntime = "50 ms"'
    machine = run_for(boot(process, machine=TMPFS), 1)
    [done] = [record.t_ns for record in machine.records if record.name == "mailq_done"]
    assert done == pytest.approx(0.05 * S, rel=0.01)


# --- pcread


def pcread(**params):
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in params.items()]
    return "\n".join(['[process.r]\nprogram = "pcread"\nfilename = "/f"', *lines])


def hit_ratio(machine):
    return sum(values_of(machine, "pcread_hits")) / sum(values_of(machine, "pcread_reads"))


def test_every_read_hits_once_the_whole_file_was_read():
    process = pcread(file_size="64 KiB", alpha=0.0, warm_reads=400, runtime="1 s")
    assert hit_ratio(run_for(boot(process, machine=EXT3), 60)) == 1.0


def test_without_popularity_the_hit_ratio_is_what_is_cached_of_the_file():
    process = pcread(file_size="40 MiB", alpha=0.0, warm_reads=1000, runtime="2 s", hit="0.1 ms")
    machine = boot(process, machine=EXT3)
    while not values_of(machine, "pcread_warm"):
        machine.run_until(machine.calendar.now + S)
    cached = machine.vm.nr_file / (40 * 256)
    run_for(machine, 10)
    assert hit_ratio(machine) == pytest.approx(cached, abs=0.06)


def test_children_begin_together_and_share_one_disk_evenly():
    process = pcread(
        file_size="400 MiB",
        alpha=0.0,
        procs=4,
        warm_reads=40,
        gate="2 s",
        runtime="3 s",
        hit="0.1 ms",
    )
    machine = run_for(boot(process, machine=EXT3), 60)
    at_ns = {record.name: record.t_ns for record in machine.records}
    assert at_ns["pcread_begun"] - at_ns["pcread_warm"] == pytest.approx(2 * S, rel=0.01)
    ends = [r.t_ns - at_ns["pcread_begun"] for r in machine.records if r.name == "pcread_reads"]
    assert ends == [pytest.approx(3 * S, rel=0.05)] * 4
    reads = values_of(machine, "pcread_reads")
    assert min(reads) > 0.8 * max(reads)


def test_popular_pages_are_read_more_often_than_others():
    even = pcread(file_size="40 MiB", alpha=0.0, warm_reads=1000, runtime="2 s", hit="0.1 ms")
    skewed = pcread(file_size="40 MiB", alpha=1.0, warm_reads=1000, runtime="2 s", hit="0.1 ms")
    ratios = [hit_ratio(run_for(boot(p, machine=EXT3), 60)) for p in (even, skewed)]
    assert ratios[1] > ratios[0] + 0.2


# --- memtouch


@pytest.mark.parametrize("touches", [0, 8])
def test_memtouch_without_cpu_time_ends_when_its_table_is_full(touches):
    process = (
        '[process.m]\nprogram = "memtouch"\nsize = "4 MiB"\nprocs = 2\ntransactions = 2000\n'
        f'transaction_user = "0 us"\ntouches = {touches}'
    )
    machine = run_for(boot(process, machine=TMPFS), 10)
    assert values_of(machine, "memtouch_tx") == [1000, 1000]
    # Two CPU-bound processes on the CPUs there are; each touch costs, and each look at the clock.
    assert max(values_of(machine, "memtouch_ns")) >= 1000 * (50 + touches * 100)


# --- smtp_load

USES = ("sendmail/program.py",)
SERVER = """\
[process.syslogd]
program = "syslogd"
[process.relay]
program = "smtp_relay"
via = "lan"
[process.sendmail]
program = "sendmail"
mailer = "local"
"""
CLIENT = """\
[process.client]
program = "smtp_load"
via = "lan"
rate = "20 msg/s"
duration = "30 s"
"""


def test_all_that_arrives_is_accepted_and_delivered_by_a_server_that_keeps_up():
    machine = run_for(boot(SERVER + CLIENT, machine=TMPFS, uses=USES), 40)
    [accepted] = values_of(machine, "mail_load_end")
    assert accepted == pytest.approx(600, abs=75)  # three standard deviations
    assert len(values_of(machine, "message_delivered")) == accepted
    assert not machine.vfs.prepare_directory("/var/spool/mqueue").entries


def test_nobody_tries_for_ever_at_a_port_that_nobody_opens():
    closed = SERVER.replace("[process.sendmail]", "[process.sendmail]\ncount = 0")
    machine = run_for(boot(closed + CLIENT, machine=TMPFS, uses=USES), 40)
    [end] = [record for record in machine.records if record.name == "mail_load_end"]
    assert end.value == 0
    assert 30 * S <= end.t_ns <= 33 * S


# --- A sendmail whose mailer fails


def test_a_message_that_its_mailer_refuses_for_now_stays_with_a_new_control_file():
    """df, qf, and tf renamed to qf: three creates, two files left, nothing delivered."""
    server = SERVER.replace('program = "sendmail"', 'program = "failing_sendmail"')
    client = CLIENT.replace('"smtp_load"', '"smtp_sender"').partition("rate")[0]
    client += 'target = "sendmail"\narrivals = "closed"\nmarks_storm = true\nmessages = 2\n'
    machine = run_for(boot(server + client, machine=TMPFS, uses=USES), 20)
    assert len(values_of(machine, "message_deferred")) == 2
    assert not values_of(machine, "message_delivered")
    left = machine.vfs.prepare_directory("/var/spool/mqueue").entries
    assert sorted(name[:2] for name in left) == ["df", "df", "qf", "qf"]
