"""Log-ins: what they wait for."""

import pytest

from tests.user.servers import EXT3, S, boot, run_for, values_of

SSHD = '[process.sshd]\nprogram = "sshd"\nrate = "2 /s"\n[process.syslogd]\nprogram = "syslogd"\n'
USES = ("nfs_backup/sshd.py",)


def test_on_an_idle_machine_a_login_is_its_cpu_time():
    machine = run_for(boot(SSHD, machine=EXT3, cpus=8, uses=USES), 30)
    seconds = [float(ns) / S for ns in values_of(machine, "login_ns")]
    assert 30 < len(seconds) < 90
    assert sorted(seconds)[len(seconds) // 2] == pytest.approx(0.065, rel=0.1)


def test_files_that_left_the_page_cache_are_read_again():
    """8 MiB in 60 files of 137 KiB, 2 ms a request: two requests a file."""
    machine = boot(SSHD, machine=EXT3, cpus=8, uses=USES, sets=['process.sshd.rate="0.1 /s"'])
    run_for(machine, 5)
    for mapping in list(machine.vm.mappings):
        mapping.invalidate_clean(0, 1 << 40)
    run_for(machine, 60)
    longest = max(float(ns) / S for ns in values_of(machine, "login_ns"))
    assert longest == pytest.approx(0.06 + 120 * 0.002, rel=0.1)
