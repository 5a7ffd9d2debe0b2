"""`iotwin fio`: laws that its figures obey, fio's fields, mistakes, and the same bytes again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from calibration.readers import read_text
from sim.scenario.fio_file import OPTIONS
from tests.cli.fio_command import run_fio

MACHINE = """\
title = "A disk that takes 2 ms a request, one at a time"
[machine]
kernel = "4.9"
cpus = 2
memory = "1 GiB"
[machine.disk.sda]
device = "ram"
capacity = "4 GiB"
latency = "2 ms"
queue_depth = 1
scheduler = "noop"
[machine.disk.sdb]
device = "ram"
capacity = "4 GiB"
latency = "2 ms"
queue_depth = 8
scheduler = "noop"
[machine.mount."/"]
type = "ext3"
device = "sdb"
"""
FIFO = "[job]\nfilename=/dev/sda\ndirect=1\n"


@pytest.fixture(name="run")
def run_(tmp_path):
    """Return a function that runs a job file and gives back exit code, output and diagnostics."""

    def run(text, *arguments, machine=MACHINE):
        return run_fio(tmp_path, machine, text, *arguments)

    return run


@pytest.fixture(name="jobs")
def jobs_(run):
    """Return a function that runs a job file and gives back the jobs of its JSON."""

    def jobs(text):
        result = run(text, "--output-format=json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["jobs"]

    return jobs


# -- Laws.


@pytest.mark.parametrize("depth", [1, 4, 16])
def test_littles_law_holds(jobs, depth):
    """Throughput x latency = operations in flight; and the disk of 2 ms does 500 a second."""
    [job] = jobs(FIFO + f"rw=randread\nioengine=libaio\niodepth={depth}\nruntime=2\ntime_based\n")
    read = job["read"]
    assert read["iops"] == pytest.approx(500, rel=0.02)
    assert read["iops"] * read["lat_ns"]["mean"] / 1e9 == pytest.approx(depth, rel=0.02)


def test_appends_to_a_file_that_fallocate_made_commit_once_a_block(run):
    """Half a block at a time: a block becomes valid with its first half; the next is data alone.

    A write is 2 ms. A sync is data, log and commit block; where the file grows, each time.
    """
    text = "[log]\nfilename=/log\nrw=write\nbs=2k\nsize=200k\nfdatasync=1\nfallocate="
    machine = MACHINE.replace('type = "ext3"', 'type = "ext4"')
    means_ms = {}
    for fallocate in ("native", "keep", "truncate", "none"):
        result = run(text + fallocate + "\n", "--output-format=json", machine=machine)
        [job] = json.loads(result.stdout)["jobs"]
        means_ms[fallocate] = job["sync"]["lat_ns"]["mean"] / 1e6
    assert means_ms["native"] == pytest.approx((6 + 2) / 2, rel=0.1)
    assert means_ms["none"] == pytest.approx(6, rel=0.1)
    assert means_ms["keep"] == pytest.approx(6, rel=0.1)  # The size changes.
    assert means_ms["truncate"] == pytest.approx((6 + 2) / 2, rel=0.1)  # Holes are filled.


def test_jobs_share_a_disk_that_serves_one_at_a_time(jobs):
    text = FIFO + "rw=randread\nruntime=2\ntime_based\ngroup_reporting\nnumjobs="
    for count in (1, 3, 8):
        [job] = jobs(f"{text}{count}\n")
        assert job["read"]["iops"] == pytest.approx(500, rel=0.02)
        assert job["read"]["clat_ns"]["mean"] == pytest.approx(count * 2e6, rel=0.03)


@pytest.mark.parametrize("engine", ["psync", "libaio"])
@pytest.mark.parametrize("option", ["rate_iops=100", "rate=400k"])
def test_a_rate_is_kept(jobs, engine, option):
    [job] = jobs(FIFO + f"rw=randread\nioengine={engine}\nruntime=4\ntime_based\n{option}\n")
    assert job["read"]["iops"] == pytest.approx(100, rel=0.01)


def test_a_rate_above_what_the_disk_does_changes_nothing(jobs):
    [job] = jobs(FIFO + "rw=randread\nruntime=2\ntime_based\nrate_iops=5000\n")
    assert job["read"]["iops"] == pytest.approx(500, rel=0.02)


@pytest.mark.parametrize("rw", ["read", "randread"])
def test_every_block_is_read_once(jobs, rw):
    [job] = jobs(FIFO + f"rw={rw}\nsize=1m\n")
    assert (job["read"]["total_ios"], job["read"]["io_bytes"]) == (256, 2**20)


def test_loops_go_through_the_file_again(jobs):
    [job] = jobs(FIFO + "rw=randread\nsize=256k\nloops=3\n")
    assert job["read"]["total_ios"] == 3 * 64


def test_runtime_and_ramp_time_are_exact(jobs):
    """2 ms an operation: the ramp's are not counted, the last one ends after the time is up."""
    plain, ramped = (
        jobs(FIFO + f"rw=randread\nruntime=1\ntime_based\n{more}")[0]
        for more in ("", "ramp_time=3\n")
    )
    for job in (plain, ramped):
        assert 1000 <= job["read"]["runtime"] <= 1003
        assert job["read"]["total_ios"] == pytest.approx(500, abs=2)
        assert sum(job["iodepth_level"].values()) == pytest.approx(100, abs=0.5)
    assert ramped["ctx"] == pytest.approx(plain["ctx"], rel=0.05)


def test_runtime_ends_a_job_that_is_not_done(jobs):
    [job] = jobs(FIFO + "rw=read\nsize=1g\nruntime=1\n")
    assert 1000 <= job["read"]["runtime"] <= 1003


def test_a_mixture_has_its_share_of_reads(jobs):
    [job] = jobs(FIFO + "rw=randrw\nrwmixread=70\nsize=8m\n")
    reads, writes = job["read"]["total_ios"], job["write"]["total_ios"]
    assert reads + writes == 2048
    assert reads / 2048 == pytest.approx(0.7, abs=0.04)  # 4 standard errors


def test_think_time_is_added_to_each_cycle(jobs):
    [job] = jobs(FIFO + "rw=randread\nruntime=2\ntime_based\nthinktime=3000\n")
    assert job["read"]["iops"] == pytest.approx(1 / 5e-3, rel=0.02)
    [job] = jobs(FIFO + "rw=randread\nsize=400k\nthinktime=3000\nthinktime_blocks=10\n")
    assert job["read"]["runtime"] == pytest.approx(100 * 2 + 10 * 3, rel=0.03)


def test_groups_run_one_after_the_other_and_delays_are_kept(run):
    text = "[global]\nfilename=/dev/sda\ndirect=1\nsize=400k\n[a]\n[b]\nstonewall\nstartdelay=1\n"
    result = run(text, "--output-format=json")
    first, second = json.loads(result.stdout)["jobs"]
    assert (first["groupid"], second["groupid"]) == (0, 1)
    # The delay counts from the start of fio (run_threads), not from the end of the job before.
    assert second["job_start"] - first["job_start"] == pytest.approx(1000, abs=5)


# What fio 3.33 (a Linux 6 machine, a file on ext4) counted for job files of 4 MiB:
# options -> reads, bytes read, writes, bytes written, fsyncs, all syncs, operations by depth in per
# cent of reads and writes (syncs are among the operations).
COUNTED_BY_FIO = {
    "rw=read\nbs=64k\nloops=3": (192, 12582912, 0, 0, 0, 0, {"1": 100}),
    "rw=write\nbs=3k": (0, 0, 1365, 4193280, 0, 0, {"1": 100}),
    "rw=write\nbs=4k\nfsync=10": (0, 0, 1024, 4194304, 102, 102, {"1": 109.960938}),
    "rw=write\nbs=4k\nfsync=16": (0, 0, 1024, 4194304, 63, 63, {"1": 106.152344}),
    "rw=randwrite\nbs=4k\nfdatasync=10\nend_fsync=1": (
        0,
        0,
        1024,
        4194304,
        0,
        102,
        {"1": 109.960938},
    ),
    "rw=write\nend_fsync=1": (0, 0, 1024, 4194304, 0, 0, {"1": 100}),
    "rw=write\nbs=4k\nfsync=16\nioengine=libaio\niodepth=8": (
        0,
        0,
        1024,
        4194304,
        63,
        63,
        {"1": 0.1, "2": 0.195312, "4": 0.390625, "8": 105.46875},
    ),
    "rw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=16": (
        1024,
        4194304,
        0,
        0,
        0,
        0,
        {"1": 0.1, "2": 0.195312, "4": 0.390625, "8": 0.78125, "16": 98.535156},
    ),
    "rw=read\nbs=64k\noffset=25%\nsize=50%\nfilesize=4m": (32, 2097152, 0, 0, 0, 0, {"1": 100}),
    "rw=read\nbs=64k\noffset=75%\nsize=50%\nfilesize=4m": (16, 1048576, 0, 0, 0, 0, {"1": 100}),
}


@pytest.mark.parametrize("options", COUNTED_BY_FIO)
def test_counts_are_those_of_fio_itself(jobs, options):
    [job] = jobs(f"[global]\nfilename=/x\nsize=4m\n[job]\n{options}\n")
    found = [job[way][key] for way in ("read", "write") for key in ("total_ios", "io_bytes")]
    found += [job["sync"]["total_ios"], job["sync"]["lat_ns"]["N"]]
    *counts, depths = COUNTED_BY_FIO[options]
    assert found == counts
    levels = {depth: share for depth, share in job["iodepth_level"].items() if share}
    assert levels == pytest.approx(depths, abs=1e-6)


def test_fsyncs_wait_for_the_disk(jobs):
    [job] = jobs("[job]\nfilename=/x\nrw=write\nsize=1m\nfsync=16\n")
    assert job["sync"]["lat_ns"]["mean"] >= 2e6


def test_rates_hold_for_each_direction_and_not_the_mixture(jobs):
    """fio 3.33 with this job: 199.1 reads and 99.8 writes a second, of a mixture of halves."""
    text = "rw=randrw\nrate_iops=200,100\nruntime=2\ntime_based\nsize=64m\n"
    [job] = jobs(FIFO.replace("sda", "sdb") + text)
    assert job["read"]["iops"] == pytest.approx(200, rel=0.02)
    assert job["write"]["iops"] == pytest.approx(100, rel=0.02)


def test_options_of_a_job_are_those_of_its_section_that_have_a_value(run):
    text = (
        FIFO + "rw=read\nsize=64k\ngroup_reporting\nloops=1\n[other]\nname=x\nfilename=/dev/sdb\n"
    )
    text = "[global]\nbs=4k\ntime_based=0\nstonewall\n" + text + "size=64k\niodepth=16\n"
    result = run(text, "--output-format=json")
    document = json.loads(result.stdout)
    assert document["global options"] == {"bs": "4k", "time_based": "0"}
    first, second = (job["job options"] for job in document["jobs"])
    assert first == {
        "filename": "/dev/sda",
        "direct": "1",
        "rw": "read",
        "size": "64k",
        "loops": "1",
    }
    assert second == {"name": "x", "filename": "/dev/sdb", "size": "64k", "iodepth": "16"}
    assert document["jobs"][1]["latency_depth"] == 16
    assert "fio: x: ioengine is synchronous, iodepth is capped at 1" in result.stderr
    elapsed = {job["elapsed"] for job in document["jobs"]}
    assert elapsed == {1}  # of the whole run, rounded up


@pytest.mark.parametrize("flag", ["sync=1", "sync=dsync"])
def test_synchronous_writes_wait_for_the_disk(jobs, flag):
    [job] = jobs(f"[job]\nfilename=/x\nrw=write\nsize=256k\n{flag}\n")
    assert job["write"]["clat_ns"]["min"] >= 2e6


def test_a_cached_file_is_read_at_the_speed_of_copying(jobs):
    text = "[job]\nfilename=/x\nrw=randread\nsize=1m\nioengine=libaio\n"
    [job] = jobs(text + "loops=20\n")
    assert job["read"]["total_ios"] == 20 * 256
    assert job["read"]["slat_ns"]["mean"] > job["read"]["clat_ns"]["mean"]


def test_shares_and_disks_sum_up(run):
    text = FIFO + "rw=randread\nioengine=libaio\niodepth=4\nsize=2m\n"
    document = json.loads(run(text, "--output-format=json").stdout)
    [job], [disk] = document["jobs"], document["disk_util"]
    assert (disk["name"], disk["read_sectors"]) == ("sda", 4096)
    assert disk["read_ios"] + disk["read_merges"] == 512
    # fio looks at the disk from before it forks the job, which waits 100 ms, until it has seen that
    # the job has ended.
    assert disk["util"] == pytest.approx(100 * 1024 / (1024 + 100 + 10), abs=1)
    for name in ("iodepth_level", "iodepth_submit", "iodepth_complete"):
        assert sum(job[name].values()) == pytest.approx(100, abs=1)
    latencies = [job[f"latency_{unit}"].values() for unit in ("ns", "us", "ms")]
    assert sum(map(sum, latencies)) == pytest.approx(100, abs=0.5)


# -- Fields.

LATENCY = {"min", "max", "mean", "stddev", "N"}
DIRECTION = {
    "io_bytes",
    "io_kbytes",
    "bw_bytes",
    "bw",
    "iops",
    "runtime",
    "total_ios",
    "short_ios",
    "drop_ios",
    "slat_ns",
    "clat_ns",
    "lat_ns",
    "bw_min",
    "bw_max",
    "bw_agg",
    "bw_mean",
    "bw_dev",
    "bw_samples",
    "iops_min",
    "iops_max",
    "iops_mean",
    "iops_stddev",
    "iops_samples",
}
JOB = {
    "jobname",
    "groupid",
    "job_start",
    "error",
    "eta",
    "elapsed",
    "job options",
    "read",
    "write",
    "trim",
    "sync",
    "job_runtime",
    "usr_cpu",
    "sys_cpu",
    "ctx",
    "majf",
    "minf",
    "iodepth_level",
    "iodepth_submit",
    "iodepth_complete",
    "latency_ns",
    "latency_us",
    "latency_ms",
    "latency_depth",
    "latency_target",
    "latency_percentile",
    "latency_window",
}
DISK = {
    "name",
    "read_ios",
    "write_ios",
    "read_sectors",
    "write_sectors",
    "read_merges",
    "write_merges",
    "read_ticks",
    "write_ticks",
    "in_queue",
    "util",
}
TOP = {"fio version", "timestamp", "timestamp_ms", "time", "global options", "jobs", "disk_util"}


def test_the_fields_are_fio_s(run):
    """Those of fio 3.36 (stat.c), and one that says what made the document."""
    document = json.loads(run(FIFO + "rw=randrw\nsize=1m\n", "--output-format=json").stdout)
    [job], [disk] = document["jobs"], document["disk_util"]
    assert set(document) == TOP | {"iotwin"}
    assert set(job) == JOB and set(disk) == DISK
    for direction in ("read", "write", "trim"):
        assert set(job[direction]) == DIRECTION
        assert set(job[direction]["lat_ns"]) == LATENCY
    assert set(job["read"]["clat_ns"]) == LATENCY | {"percentile"}
    assert set(job["trim"]["clat_ns"]) == LATENCY
    assert list(job["read"]["clat_ns"]["percentile"])[-1] == "99.990000"


def test_our_reader_reads_it_back(run):
    text = run(FIFO + "rw=randread\nsize=1m\n", "--output-format=json").stdout
    recording = read_text(text, "x")
    found = {sample.column: sample.value for sample in recording.samples}
    assert found["job_r_per_s"] == pytest.approx(500, rel=0.02)
    assert found["job_r_ms"] == pytest.approx(2.0, rel=0.02)
    assert recording.formats == ("fio",)


def test_the_table_has_the_documents_main_figures(run):
    text = FIFO + "rw=randrw\nsize=1m\n[log]\nfilename=/x\nrw=write\nsize=1m\nfsync=16\n"
    lines = [line.split() for line in run(text).stdout.splitlines()]
    assert lines[0][:5] == ["job", "operation", "IOPS", "MB/s", "mean"]
    assert [line[:2] for line in lines[1:5]] == [
        ["job", "read"],
        ["job", "write"],
        ["log", "write"],
        ["log", "sync"],
    ]
    document = json.loads(run(text, "--output-format=json").stdout)
    read = document["jobs"][0]["read"]
    assert float(lines[1][2]) == pytest.approx(read["iops"], rel=0.01)
    assert float(lines[1][4]) == pytest.approx(read["clat_ns"]["mean"] / 1e6, abs=0.01)
    assert [line[0] for line in lines[5:] if line] == ["disk", "sda", "sdb"]


def test_the_same_seed_gives_the_same_bytes_whatever_the_hashes(tmp_path):
    (tmp_path / "m.toml").write_text(MACHINE)
    (tmp_path / "j.fio").write_text(FIFO + "rw=randrw\nsize=1m\nrandom_distribution=zipf:1.2\n")
    command = [sys.executable, "-m", "sim", "fio", str(tmp_path / "j.fio")]
    command += ["--machine", str(tmp_path / "m.toml"), "--output-format=json"]
    outputs = {
        subprocess.run(
            command, capture_output=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


# -- Mistakes.


def test_a_mistake_in_the_job_file_is_shown_with_its_line(run):
    result = run(FIFO + "iodpeth=4\n")
    assert result.exit_code == 2
    assert (
        "j.fio:4:1: error: fio has no option 'iodpeth' - did you mean 'iodepth'?" in result.output
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[a]\nfilename=/dev/sdc\n", "unknown device '/dev/sdc' - did you mean '/dev/sd"),
        ("[a]\nfilename=/dev/sda\nsize=5g\n", "[a] ends behind the end of /dev/sda"),
        ("[a]\nfilename=/dev/sda\noffset=100%\n", "has less than a block of 4096 B"),
        ("[a]\nfilename=/big\nsize=5g\n", "[a]: no room for /big, got 5368709120 B"),
    ],
)
def test_what_the_machine_cannot_run_is_told(run, text, told):
    result = run(text)
    assert result.exit_code == 2 and told in result.output
    assert "Traceback" not in result.output


def test_a_machine_without_memory_says_what_it_lacks(run):
    result = run(FIFO, machine=MACHINE.replace('memory = "1 GiB"\n', ""))
    assert result.exit_code == 2 and "[machine] lacks 'memory'" in result.output


def test_a_failed_job_is_told_and_the_exit_code_is_1(run):
    text = "[a]\nfilename=/nosuch/x\nsize=1m\nrw=write\n"
    result = run(text)
    assert result.exit_code == 1
    assert "a: err=2: /nosuch/x: No such file or directory" in result.output


def test_a_job_that_did_nothing_has_a_row_of_the_table(run):
    text = "[a]\nfilename=/nosuch/x\nsize=1m\nrw=write\n[b]\nfilename=/x\nsize=1m\nrw=read\n"
    [heading, a, b, *_] = run(text).stdout.splitlines()
    assert a.split() == ["a", "none", "0.00", "0.00"]
    assert b.split()[:2] == ["b", "read"] and len(heading) == len(b)


def test_nothing_is_left_of_an_output_that_cannot_be_made(run, tmp_path):
    result = run(FIFO + "verify=md5\n", "--output", str(tmp_path / "out.json"))
    assert result.exit_code == 2 and not (tmp_path / "out.json").exists()
    assert run(FIFO, "--output", "/nosuch/out.json").exit_code == 2


def test_the_output_goes_to_its_file(run, tmp_path):
    place = tmp_path / "out.json"
    result = run(FIFO + "size=64k\n", "--output-format=json", "--output", str(place))
    assert result.exit_code == 0 and result.stdout == ""
    assert json.loads(place.read_text())["jobs"][0]["read"]["total_ios"] == 16


# -- The page about it.

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "fio-and-dd.md"


def test_the_page_names_every_option_that_is_read():
    text = PAGE.read_text()
    assert [name for name in OPTIONS if f"`{name}" not in text] == []
