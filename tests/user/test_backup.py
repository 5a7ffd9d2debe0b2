"""Backups: how long a copy takes, freely and at a limited rate."""

import pytest

from tests.user.servers import EXT3, S, boot, run_for, times_of, values_of

BACKUP = """
[process.backup]
program = "backup"
source = "/source"
size = "20 MiB"
destination = "/copy"
"""


def test_a_backup_copies_every_byte_and_says_how_long_it_took():
    machine = run_for(boot(BACKUP, machine=EXT3), 30)
    assert values_of(machine, "backup_done") == [20 * 2**20]
    assert machine.vfs.file_system_of("/").root.directory()["copy"].size == 20 * 2**20


def test_a_limited_backup_takes_its_time():
    machine = run_for(boot(BACKUP, machine=EXT3, sets=['process.backup.rate="1 MiB/s"']), 30)
    [seconds] = [float(ns) / S for ns in values_of(machine, "backup_ns")]
    assert seconds == pytest.approx(20, rel=0.01)
    assert times_of(machine, "backup_done") == [pytest.approx(20, rel=0.01)]
