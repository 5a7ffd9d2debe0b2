"""smtp_load offers its rate, tries again, and gives up when the time is up; a local mailer runs."""

import pytest

from tests.user.servers import S, boot, run_for, values_of

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
TMPFS = '[machine.mount."/"]\ntype = "tmpfs"'


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
