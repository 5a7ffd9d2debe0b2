"""How fio starts its jobs: all of a group at once, when all are there; then those that wait."""

import pytest

from sim.machine import Machine
from sim.scenario import load
from sim.scenario.fio_file import read_fio_text
from sim.study.fio_run import FioRun, load_machine, run_fio
from sim.user.fio import READ, WRITE

MACHINE = """\
title = "A disk that takes 1 ms a request"
[machine]
kernel = "6.1"
cpus = 2
memory = "1 GiB"
[machine.disk.sda]
device = "ram"
capacity = "4 GiB"
latency = "1 ms"
queue_depth = 8
[machine.mount."/"]
type = "ext4"
device = "sda"
[process.fio]
program = "fio"
count = 0
[run]
duration = "1 h"
"""
POLL_S = 0.1
MS = 1_000_000


@pytest.fixture(name="jobs")
def jobs_(tmp_path):
    """Return a function that runs a job file and gives back what each job counted."""
    path = tmp_path / "m.toml"
    path.write_text(MACHINE)

    def jobs(text):
        result = run_fio(load(str(path)), read_fio_text(text, tmp_path / "j.fio"))
        return [job.stat for job in result.jobs], result.ended_ns / 1e9

    return jobs


READS = "[global]\nfilename=/x\nsize=1m\nrw=randread\nthinktime=1000\n"


def test_all_jobs_of_a_group_begin_100_ms_after_the_last_is_there(jobs):
    stats, _ = jobs(READS + "[job]\nnumjobs=6\n")
    begun_s = [stat.begin_ns / 1e9 for stat in stats]
    assert min(begun_s) == pytest.approx(POLL_S, abs=0.01)
    assert max(begun_s) - min(begun_s) < 0.005


def test_the_end_is_seen_within_10_ms(jobs):
    stats, ended_s = jobs(READS + "[job]\n")
    assert 0 < ended_s - stats[0].end_ns / 1e9 <= 0.021


def test_a_delay_counts_from_the_start_of_fio(jobs):
    """fio 3.33 with this file (strace): b opens its file 1.0 s after a, whenever a has ended."""
    stats, _ = jobs(READS + "[a]\n[b]\nstonewall\nstartdelay=1\n")
    assert (stats[1].begin_ns - stats[0].begin_ns) / 1e9 == pytest.approx(1.0, abs=0.02)


def test_a_stonewall_is_looked_over_every_100_ms(jobs):
    """fio 3.33 (strace): a job of 0.4 to 0.5 s, and the next one begins 0.707 s after it began.

    Here a takes 256 ms. fio sees at 0.3 s that it has ended. It looks again at 0.4 s, forks b, and
    lets it go at 0.5 s.
    """
    stats, _ = jobs(READS.replace("thinktime=1000", "thinktime=0") + "[a]\n[b]\nstonewall\n")
    assert stats[0].run_ns / 1e9 == pytest.approx(0.256, rel=0.05)
    assert (stats[1].begin_ns - stats[0].begin_ns) / 1e9 == pytest.approx(0.5, abs=0.02)


def test_what_a_later_job_drops_from_memory_is_in_its_time(jobs):
    """64 MiB are dirty. Who opens the file next has them written first (invalidate)."""
    stats, _ = jobs(
        "[global]\nfilename=/x\nbs=64k\nsize=64m\n"
        "[first]\nrw=write\noverwrite=1\n[then]\nrw=randread\nbs=4k\nsize=4k\nstonewall\n"
    )
    written_s = 64 / 1024 * 1024 / 8 * 0.001  # 1 MiB a request, 8 at a time
    first, then = stats
    assert first.directions[WRITE].total_ios == 1024
    assert then.directions[READ].total_ios == 1
    assert then.run_ns / 1e9 > written_s
    assert then.directions[READ].clat.mean < 2e6


@pytest.mark.parametrize("engine", ["psync", "libaio", "io_uring"])
def test_a_job_whose_time_is_up_when_it_has_opened_its_file_does_one_operation(jobs, engine):
    """fio asks whether time is left, then opens the file for the first operation (do_io, get_io_u).

    64 MiB are dirty, which takes 8 ms to write, and the job has 5 ms.
    """
    stats, _ = jobs(
        "[global]\nfilename=/x\nbs=64k\nsize=64m\n[first]\nrw=write\noverwrite=1\n"
        f"[then]\nstonewall\nrw=randread\nioengine={engine}\niodepth=4\n"
        "runtime=5ms\ntime_based\n"
    )
    then = stats[1]
    assert then.directions[READ].total_ios == 1
    assert then.run_ns / 1e9 > 64 / 8 * 0.001


R5 = """\
[global]
filename=/data/testfile
norandommap
size=256M
bs=4K
ioengine=psync
group_reporting
direct=0
runtime=40ms
time_based
rw=randwrite
[one]
numjobs=1
[four]
stonewall
numjobs=4
"""
NVME = """\
title = "An NVMe drive"
[machine]
kernel = "6.8"
cpus = 8
memory = "8 GiB"
[machine.disk.nvme0n1]
profile = "ssd-nvme"
scheduler = "none"
[machine.disk.sda]
profile = "sata-7200"
[machine.mount."/"]
type = "ext4"
device = "sda"
[machine.mount."/data"]
type = "ext4"
device = "nvme0n1"
"""


def test_four_writers_whose_40_ms_go_by_while_they_open_the_file(tmp_path):
    """What one job dirties in 40 ms, the next ones have to write before they begin (invalidate).

    The 7000 dirty pages lie at random, so that nearly each is a request, and one task sends them.
    Writeback throttling lets four be in flight. The drive answers after 20 us, and the interrupts
    of the four take 34 us of this processor of 2005: 13.4 us a request, while the first job dirtied
    a page in 5.7 us. So it takes twice the 40 ms. On Linux, too: eight may be in flight where
    nobody reads, which the twin leaves out (wbt.py), and 8 requests take 20 + 66 us, 11 us each.
    Meanwhile the other three jobs wait for the page that the first one holds (folio_lock). Then
    the time is up, and each does the one operation for which it had opened the file.
    """
    path = tmp_path / "m.toml"
    path.write_text(NVME)
    scenario = load_machine(str(path), seed=1, sets=())
    machine = Machine(scenario, scenario.seed)
    run = FioRun(machine, read_fio_text(R5, tmp_path / "j.fio"))
    waits = []
    while not run.has_ended:
        machine.run_until(machine.calendar.now + MS)
        four = [job.stat for job in run.results()[1:]]
        if all(stat.begin_ns and not stat.run_ns for stat in four):
            tasks = machine.sched.processes.tasks.values()
            waits.append(sorted(task.wchan for task in tasks if task.comm == "fio"))
    one, *four = [job.stat for job in run.results()]
    fio = "schedule_timeout"  # It looks every 10 ms whether they have ended.
    assert waits and all(found == ["rq_qos_wait", fio, *["sync_page"] * 3] for found in waits)
    requests = machine.devices["nvme0n1"].stats.writes
    assert 0.8 * one.directions[WRITE].total_ios < requests < one.directions[WRITE].total_ios
    for stat in four:
        assert stat.run_ns == pytest.approx(requests * 13_400, rel=0.05)
        assert stat.directions[WRITE].total_ios == 1


def test_a_file_that_cannot_be_made_ends_its_job_alone(jobs):
    stats, _ = jobs(
        "[global]\nsize=1m\n[bad]\nfilename=/none/x\nrw=write\n[good]\nfilename=/y\nrw=write\n"
    )
    assert [stat.error for stat in stats] == [2, 0]
    assert stats[1].directions[WRITE].total_ios == 256
