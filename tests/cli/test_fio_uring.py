"""`iotwin fio` with ioengine=io_uring: laws, batches, what a release or a device does not have."""

import json

import pytest

from tests.cli.fio_command import run_fio

MACHINE = """\
title = "A disk that takes 2 ms a request, one at a time, and an NVMe drive"
[machine]
kernel = "6.1"
cpus = 4
memory = "1 GiB"
[machine.disk.sda]
device = "ram"
capacity = "1 GiB"
latency = "2 ms"
queue_depth = 1
[machine.disk.nvme0n1]
device = "nvme"
capacity = "1 GiB"
poll_queues = 1
[machine.mount."/"]
type = "ext4"
device = "nvme0n1"
"""
DISK = "[job]\nioengine=io_uring\nfilename=/dev/sda\ndirect=1\nrw=randread\n"
DRIVE = "[job]\nioengine=io_uring\nfilename=/dev/nvme0n1\ndirect=1\nrw=randread\nsize=2m\n"


@pytest.fixture(name="run")
def run_(tmp_path):
    """Return a function that runs a job file and gives back the result of the command."""

    def run(text, *arguments):
        return run_fio(tmp_path, MACHINE, text, *arguments)

    return run


@pytest.fixture(name="job")
def job_(run):
    """Return a function that runs a job file and gives back its job of the JSON."""

    def job(text):
        result = run(text, "--output-format=json")
        assert result.exit_code == 0, result.output
        [found] = json.loads(result.stdout)["jobs"]
        assert found["error"] == 0
        return found

    return job


@pytest.mark.parametrize("option", ["", "iodepth_batch=4\niodepth_batch_complete=2\n"])
@pytest.mark.parametrize("depth", [1, 8])
def test_littles_law_holds(job, depth, option):
    """Throughput x latency = operations in flight; the disk of 2 ms does 500 a second."""
    found = job(DISK + f"iodepth={depth}\nruntime=1\ntime_based\n{option}")["read"]
    assert found["iops"] == pytest.approx(500, rel=0.03)
    assert found["iops"] * found["lat_ns"]["mean"] / 1e9 == pytest.approx(depth, rel=0.15)


@pytest.mark.parametrize(
    "option",
    [
        "fixedbufs\nregisterfiles\nnonvectored=1\n",
        "hipri\n",
        "sqthread_poll\n",
        "sqthread_poll\nsqthread_poll_cpu=3\nhipri\n",
        "iodepth_batch_submit=8\niodepth_batch_complete_min=0\n",
        "iodepth_batch=0\niodepth_low=2\niodepth_batch_complete_max=16\n",
    ],
)
def test_every_block_is_read_once_however_it_is_asked_for(job, option):
    found = job(DRIVE + f"iodepth=16\n{option}")
    assert (found["read"]["total_ios"], found["read"]["io_bytes"]) == (512, 2 << 20)
    for name in ("iodepth_level", "iodepth_submit", "iodepth_complete"):
        assert sum(found[name].values()) == pytest.approx(100, abs=1)


def test_a_batch_is_submitted_with_one_call(job):
    found = job(DRIVE + "iodepth=16\niodepth_batch=16\niodepth_batch_complete=16\n")
    assert found["iodepth_submit"]["16"] == found["iodepth_complete"]["16"] == 100


def test_polling_costs_the_cpu_and_saves_the_interrupt(job):
    plain, polled = (job(DRIVE + option) for option in ("", "hipri\n"))
    assert polled["sys_cpu"] > 90 > plain["sys_cpu"]
    assert polled["read"]["clat_ns"]["mean"] < plain["read"]["clat_ns"]["mean"]


@pytest.mark.parametrize("rw", ["randread", "randwrite", "write"])
def test_jobs_through_the_page_cache_are_done(job, rw):
    text = f"[job]\nioengine=io_uring\nfilename=/x\nsize=1m\niodepth=8\nrw={rw}\nfsync=32\n"
    found = job(text)
    assert sum(found[kind]["total_ios"] for kind in ("read", "write")) == 256
    assert found["sync"]["total_ios"] == (0 if rw == "randread" else 256 // 32 - 1)


@pytest.mark.parametrize(
    ("kernel", "option", "line", "told"),
    [
        ("5.0", "", 2, ("Linux 5.0 has no io_uring", "got io_uring", "from 5.1")),
        ("5.5", "nonvectored=1\n", 7, ("Linux 5.5 has no nonvectored", "got 1", "from 5.6")),
        ("6.1", "sqthread_poll\nsqthread_poll_cpu=4\n", 8, ("no such CPU", "got 4", "0 to 3")),
    ],
)
def test_what_the_release_lacks_is_told_with_its_place(run, kernel, option, line, told):
    result = run(DRIVE + option, "--set", f"machine.kernel={kernel}")
    assert result.exit_code != 0
    assert f"j.fio:{line}:" in result.output
    for part in told:
        assert part in result.output


def test_a_device_that_is_not_polled_refuses_hipri(run):
    result = run(DISK + "size=1m\nhipri\n")
    assert result.exit_code != 0
    assert "j.fio:7:" in result.output
    assert "hipri: sda has no queues that are polled" in result.output
