"""mkfs: what is discarded, what is written, and what that costs on a flash drive and on a disk."""

import errno

import pytest

from sim.machine import simulate
from sim.scenario import load

GIB = 1 << 30
MIB = 1 << 20
SERVER = """\
title = "mkfs on a second drive"
[machine]
kernel = "5.10"
cpus = 2
memory = "1 GiB"
disk.sdb = { DISK }
[machine.mount."/"]
type = "tmpfs"
[process.mkfs]
program = "mkfs"
OPTIONS
[run]
duration = "10 min"
until = "mkfs_done"
[measure]
interval = "10 s"
families = ["mkfs"]
"""
SSD = 'profile = "ssd-sata", capacity = "64 GiB"'
DISK = 'profile = "sata-7200", capacity = "64 GiB"'


@pytest.fixture(name="mkfs")
def mkfs_(tmp_path):
    """Return a function that makes a file system and returns what mkfs told."""

    def run(disk=SSD, options="", kernel="5.10"):
        text = SERVER.replace("DISK", disk).replace("OPTIONS", options)
        path = tmp_path / "server.toml"
        path.write_text(text.replace('"5.10"', f'"{kernel}"'))
        result = simulate(load(str(path)), 1)
        return {record.name: record.value for record in result.records}

    return run


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_the_whole_device_is_discarded_unless_told_not_to(mkfs, kind):
    assert mkfs(options=f'type = "{kind}"')["mkfs_discarded"] == 64 * GIB
    assert mkfs(options=f'type = "{kind}"\ndiscard = false')["mkfs_discarded"] == 0


def test_a_disk_that_knows_no_discards_is_made_all_the_same(mkfs):
    told = mkfs(DISK)
    assert told["mkfs_discarded"] == 0
    assert told["mkfs_written"] > 256 * MIB  # the journal


def test_inode_tables_are_a_sixtyfourth_of_the_device(mkfs):
    lazy, eager = mkfs(), mkfs(options="lazy_itable_init = false")
    assert eager["mkfs_written"] - lazy["mkfs_written"] == 64 * GIB // 64
    assert eager["mkfs_ns"] > 2 * lazy["mkfs_ns"]


def test_a_journal_that_is_left_as_it_is_leaves_little_to_write(mkfs):
    told = mkfs(options="lazy_journal_init = true")
    assert told["mkfs_written"] < MIB


def test_a_device_that_is_not_there_is_told(mkfs):
    assert mkfs(options='device = "/dev/sdz"')["mkfs_errno"] == errno.ENOENT


def test_through_a_front_end_that_passes_no_discards_nothing_is_discarded(mkfs):
    front = SSD + ', frontend = "virtio-blk"'
    assert mkfs(front, kernel="4.20")["mkfs_discarded"] == 0
    assert mkfs(front, kernel="5.0")["mkfs_discarded"] == 64 * GIB
