"""Runs of fio with a job file of their own: what is simulated, and under which names it is told."""

import json

import pytest

from calibration.validate.compare import validate, validate_run
from calibration.validate.describe import Unsupported, describe
from calibration.validate.fio_jobs import fio_jobs, fio_run, measured_fio_result
from calibration.validate.machine import FS_DIRECTORY, build
from calibration.validate.parts import rig_parts
from calibration.validate.rigs import LOOP
from sim.machine import Machine
from sim.study.laboratory import Laboratory
from tests.calibration.validate.test_description import HDD, QUEUE, run

JOBS = """
[global]
runtime=1
time_based=1
[reader]
filename=DEV
ioengine=psync
direct=1
rw=randread
bs=4k
[log]
directory=DIR
ioengine=sync
rw=write
bs=8k
size=1m
fdatasync=1
"""
EXT4 = {"type": "ext4", "proc_mounts": "DEV /mnt/rig/fs ext4 rw,relatime 0 0"}
DISK = {"params": HDD, "queue": QUEUE, "fs": EXT4}


@pytest.fixture
def directory(tmp_path):
    """Return a function that writes a run with a job file and returns its directory."""

    def write(job, **more):
        workload = {"type": "fio", "job": job, "params": {"seconds": 1}}
        content = run(workload=workload, disk=DISK, **more)
        (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
        return tmp_path

    return write


def test_every_job_is_told_under_the_names_of_the_index(directory):
    recorded = {
        "name": "reader",
        "read": {"iops": 70.0, "lat_mean_ms": 14.0, "clat_p99_ms": 25.0},
    }
    synced = {"name": "log", "fsync": {"mean_ms": 20.0, "p99_ms": 40.0}}
    measured = measured_fio_result([recorded, synced])
    row = validate_run(directory(JOBS), seed=1)
    found = row.predicted["result"]
    assert set(found) == {
        "reader read iops",
        "reader read ms",
        "reader read p99 ms",
        "log write iops",
        "log write ms",
        "log write p99 ms",
        "log sync ms",
        "log sync p99 ms",
    }
    assert set(measured) < set(found)
    # One read and one commit at a time share an arm that needs 13 ms for a random place.
    assert 10 < found["reader read iops"] < 70
    assert found["reader read iops"] * found["reader read ms"] == pytest.approx(1000, rel=0.1)


def test_device_and_directory_stand_for_those_of_the_rig(directory):
    description = describe(directory(JOBS))
    file = fio_jobs(description, LOOP, "/mnt")
    assert [job.params.filename for job in file.jobs] == ["/dev/loop0", "/mnt/log.0.0"]


def test_an_option_that_is_not_read_is_told(directory):
    description = describe(directory("[a]\nfilename=DEV\nverify=md5\n"))
    with pytest.raises(Unsupported, match="'verify' is not modelled"):
        fio_jobs(description, LOOP, "/mnt")


def test_runs_that_differ_in_their_jobs_alone_are_simulated_apart(tmp_path):
    short = "[a]\nfilename=DEV\nruntime=100ms\ntime_based=1\ndirect=1\nrw=randread\n"
    folders = []
    for depth in (1, 4):
        job = f"{short}ioengine=libaio\niodepth={depth}\n"
        folders.append(tmp_path / str(depth))
        folders[-1].mkdir()
        content = run(workload={"type": "fio", "job": job, "params": {}})
        (folders[-1] / "run.json").write_text(json.dumps(content), encoding="utf-8")
    alone, queued = validate(folders, 1, Laboratory())
    assert queued.predicted["aqu_sz"] > 2 * alone.predicted["aqu_sz"]


def test_fio_lets_the_jobs_of_the_rig_go_when_it_has_started(directory):
    description = describe(directory(JOBS))
    with rig_parts():
        machine = Machine(build(description, seed=1), 1)
    file = fio_jobs(description, LOOP, FS_DIRECTORY)
    fio = fio_run(machine, file, LOOP)
    machine.run_until(1_000_000_000)
    wall_ms, user_ms, _ = LOOP.fio_start
    for job in fio.results():
        assert job.stat.begin_ns / 1e6 == pytest.approx(wall_ms, abs=30)
    assert fio.session.start_user_ns == user_ms * 1e6
