"""How fio starts its jobs: all of a group at once, when all are there; then those that wait."""

import pytest

from sim.scenario import load
from sim.scenario.fio_file import read_fio_text
from sim.study.fio_run import run_fio
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


def test_a_file_that_cannot_be_made_ends_its_job_alone(jobs):
    stats, _ = jobs(
        "[global]\nsize=1m\n[bad]\nfilename=/none/x\nrw=write\n[good]\nfilename=/y\nrw=write\n"
    )
    assert [stat.error for stat in stats] == [2, 0]
    assert stats[1].directions[WRITE].total_ios == 256
