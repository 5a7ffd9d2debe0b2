"""`iotwin fio` with rw=trim and randtrim: what is discarded, what the drive gains, refusals."""

import errno
import json

import pytest

from tests.cli.fio_command import run_fio

MACHINE = """\
title = "An SSD for trims"
[machine]
kernel = "5.10"
cpus = 2
memory = "1 GiB"
disk.sda = { device = "ssd", capacity = "512 MiB" }
disk.sdb = { device = "hdd", capacity = "10 GiB" }
[machine.mount."/"]
type = "tmpfs"
"""


@pytest.fixture(name="run")
def run_(tmp_path):
    """Return a function that runs a job file and gives back its JSON."""

    def run(job):
        return json.loads(run_fio(tmp_path, MACHINE, job, "--output-format=json").stdout)

    return run


@pytest.mark.parametrize("rw", ["trim", "randtrim"])
@pytest.mark.parametrize("engine", ["psync", "libaio"])
def test_every_block_is_trimmed_once(run, rw, engine):
    found = run(f"[t]\nfilename=/dev/sda\nrw={rw}\nbs=1m\nsize=64m\nioengine={engine}\niodepth=4\n")
    [job] = found["jobs"]
    assert (job["trim"]["total_ios"], job["trim"]["io_bytes"]) == (64, 64 << 20)
    assert (job["read"]["total_ios"], job["write"]["total_ios"]) == (0, 0)
    assert job["trim"]["clat_ns"]["mean"] > 100_000  # trim, of the profile


WRITES = (
    "rw=randwrite\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nnorandommap\n"
    "ramp_time=500ms\nruntime=1\ntime_based\n"
)


def test_a_trimmed_drive_writes_faster(run):
    """Full, its cleaner moves pages for each scattered write; half of it trimmed, few."""
    steady = f"[w]\nfilename=/dev/sda\n{WRITES}"
    trim = "[t]\nfilename=/dev/sda\nrw=trim\nbs=64m\nsize=50%\n"
    trimmed = f"{trim}[w]\nstonewall\nfilename=/dev/sda\n{WRITES}"
    full = run(steady)["jobs"][-1]["write"]["iops"]
    fresh = run(trimmed)["jobs"][-1]["write"]["iops"]
    assert fresh > 1.5 * full


def test_a_drive_that_knows_no_discard_refuses(run):
    [job] = run("[t]\nfilename=/dev/sdb\nrw=trim\nbs=1m\nsize=64m\n")["jobs"]
    assert job["error"] == errno.EOPNOTSUPP
