"""syslogd writes each line once; random_reader reads exactly what it was asked to."""

import pytest

from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.toml.errors import ScenarioError
from tests.user.servers import TMPFS, boot, run_for, run_program, times_of, values_of

SYSLOGD = '[process.syslogd]\nprogram = "syslogd"\n'


def reader(**params: object) -> str:
    """Return a random_reader as a process of a scenario."""
    lines = [f"{key} = {value}" for key, value in params.items()]
    return "\n".join(['[process.reader]\nprogram = "random_reader"\nfile_size = "1 MiB"', *lines])


def log_size(lines: list[int], more: str = "") -> int:
    """Send lines of these sizes; return the size of the log afterwards."""
    machine = boot(SYSLOGD + more)

    def program(sys: Sys) -> Blocking[None]:
        for size in lines:
            yield from sys.syslog("mail", size)

    run_program(machine, program, seconds=2)
    return machine.vfs.prepare_directory("/var/log").entries["mail"].size  # type: ignore[index]


def test_syslogd_writes_each_line_once() -> None:
    assert log_size([180, 200, 20] * 30) == 30 * 400


def test_a_sender_waits_for_syslogd_beyond_ten_lines() -> None:
    """As every sender on such a server: a slow syslogd holds all programs up."""
    machine = boot(SYSLOGD + 'line_user = "10 ms"')
    sent: list[int] = []

    def program(sys: Sys) -> Blocking[None]:
        for _ in range(31):
            yield from sys.syslog("mail", 100)
            sent.append(machine.calendar.now)

    run_program(machine, program, seconds=1)
    assert sent[9] < 1_000_000
    assert sent[30] == pytest.approx(21 * 10e6, rel=0.2)


def test_without_syslogd_a_line_is_lost_and_nobody_waits() -> None:
    machine = boot()
    sent: list[int] = []

    def program(sys: Sys) -> Blocking[None]:
        for _ in range(31):
            yield from sys.syslog("mail", 100)
            sent.append(machine.calendar.now)

    run_program(machine, program, seconds=1)
    assert len(sent) == 31 and sent[30] < 1_000_000
    assert "mail" not in machine.vfs.prepare_directory("/var/log").entries


def test_syslogd_with_sync_commits_for_each_line() -> None:
    machine = boot(SYSLOGD + "sync = true")

    def program(sys: Sys) -> Blocking[None]:
        for _ in range(5):
            yield from sys.syslog("mail", 100)
            yield from sys.sleep(100_000_000)

    run_program(machine, program, seconds=1)
    fs = machine.vfs.file_system_of("/")
    assert fs.info.journal.nr_commits == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize("reads", [1, 57])
def test_random_reader_reads_the_device_once_a_block(reads: int) -> None:
    machine = run_for(boot(reader(reads=reads)), 3)
    assert values_of(machine, "reads_done") == [reads]
    stats = machine.disks[0].stats
    assert (stats.reads, stats.read_sectors) == (reads, 8 * reads)


def on(kernel: str) -> list[str]:
    """Return what puts the server on a kernel with multi-queue disks."""
    return [f'machine.kernel = "{kernel}"', 'machine.disk.sda.scheduler = "none"']


@pytest.mark.parametrize("reads", [1, 7, 57])
def test_random_reader_with_several_in_flight_reads_as_many(reads: int) -> None:
    """Neighbours that are submitted together are one request (blk_attempt_plug_merge)."""
    text = reader(reads=reads, depth=8)
    machine = run_for(boot(text, sets=on("6.1")), 3)
    assert values_of(machine, "reads_done") == [reads]
    stats = machine.disks[0].stats
    assert (stats.reads + stats.read_merges, stats.read_sectors) == (reads, 8 * reads)


def test_random_reader_with_several_in_flight_needs_io_uring() -> None:
    with pytest.raises(ScenarioError, match=r"Linux 5\.0 has no such depth") as refused:
        boot(reader(reads=1, depth=8), sets=on("5.0"))
    assert "from 5.1" in str(refused.value)


def test_random_reader_reads_larger_blocks_whole() -> None:
    machine = run_for(boot(reader(reads=10, block_size='"64 KiB"')), 3)
    assert machine.disks[0].stats.read_sectors == 10 * 128


def test_random_reader_through_the_page_cache_reads_no_block_twice() -> None:
    machine = run_for(boot(reader(reads=5000, direct="false")), 10)
    assert values_of(machine, "reads_done") == [5000]
    # Each of 256 pages once, the inode's block before, and what is read around a page with it.
    assert machine.disks[0].stats.read_sectors * 512 < 1.1 * 2**20


def test_random_reader_thinks_between_reads() -> None:
    machine = run_for(boot(reader(reads=200, think_time='"10 ms"')), 5)
    assert times_of(machine, "reads_done")[0] == pytest.approx(200 * 0.012, rel=0.15)


def test_two_random_readers_read_at_different_places() -> None:
    text = reader(reads=300) + "\ncount = 2"
    machine = boot(text, trace=True)
    run_for(machine, 3)
    places = [r.args[2] for r in machine.tracer.records() if r.name == "block_rq_issue"]
    assert len(places) == 600
    assert len(set(places)) > 200  # of 256; the same stream twice would pair them up
    assert places[0::2] != places[1::2]


def test_a_file_on_tmpfs_is_read_without_a_disk() -> None:
    machine = run_for(boot(reader(reads=50, direct="false"), sets=TMPFS), 1)
    assert values_of(machine, "reads_done") == [50]
    assert machine.disks[0].stats.reads + machine.disks[0].stats.in_flight == 0
