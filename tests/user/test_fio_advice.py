"""fio's fadvise_hint: what a buffered job tells the kernel, and what the disk then reads."""

import errno

import pytest

from sim.syscall import O_RDONLY, POSIX_FADV_RANDOM
from tests.user.servers import RAM_DISK, boot, run_for, run_program, values_of

DEVICE = RAM_DISK + '[machine.mount."/"]\ntype = "tmpfs"'
MIB = 1 << 20
PAGES = 512  # 2 MiB


def disk_after(rw, hint, kernel="4.9", size_mib=2):
    """Return the counters of a disk that a job has gone through once, buffered, by pages."""
    options = f'rw = "{rw}"\ndirect = false\nnorandommap = false\nsize = "{size_mib} MiB"'
    job = f'[process.fio]\nprogram = "fio"\nfilename = "/dev/sda"\n{options}'
    if hint is not None:
        job += f'\nfadvise_hint = "{hint}"'
    machine = boot(job, machine=DEVICE, sets=[f'machine.kernel = "{kernel}"'])
    run_for(machine, 5)
    assert values_of(machine, "fio_done") == [size_mib * MIB // 4096]
    return machine.devices["sda"].stats


@pytest.mark.parametrize("kernel", ["2.6.16", "2.6.32", "2.6.34", "4.9"])
@pytest.mark.parametrize("hint", [None, "1", "random"])
def test_a_job_at_random_reads_page_by_page_what_it_asks_for(kernel, hint):
    stats = disk_after("randread", hint, kernel)
    assert (stats.reads, stats.read_sectors) == (PAGES, PAGES * 8)


@pytest.mark.parametrize("kernel", ["2.6.32", "4.9"])
@pytest.mark.parametrize("hint", ["0", "sequential"])
def test_one_that_does_not_say_so_reads_ahead_where_pages_near_are_in_memory(kernel, hint):
    assert disk_after("randread", hint, kernel).reads < PAGES


@pytest.mark.parametrize("hint, pages", [("0", 32), ("1", 64), (None, 64), ("sequential", 64)])
def test_a_job_in_sequence_has_windows_of_128_or_256_kib(hint, pages):
    """16 MiB are 128 windows or 64, and the first ones are smaller."""
    stats = disk_after("read", hint, size_mib=16)
    assert stats.reads == pytest.approx(16 * 256 / pages, abs=6)


def test_a_job_in_sequence_may_say_that_it_is_at_random():
    assert disk_after("read", "random").reads == PAGES


def test_advice_that_nobody_knows_is_refused():
    """Nothing in the twin asks for POSIX_FADV_WILLNEED (3); who does is told so."""
    machine = boot(machine=DEVICE)
    seen = []

    def program(sys):
        fd = yield from sys.open("/dev/sda", O_RDONLY)
        yield from sys.fadvise(fd, POSIX_FADV_RANDOM)
        try:
            yield from sys.fadvise(fd, 3)
        except OSError as error:
            seen.append(error.errno)

    run_program(machine, program)
    assert seen == [errno.EINVAL]


def pages_written(rw, engine, options):
    """Let a buffered job overwrite 2 MiB for 30 ms; return (operations, pages on the disk)."""
    job = f'''[process.fio]
program = "fio"
filename = "/dev/sda"
rw = "{rw}"
ioengine = "{engine}"
direct = false
size = "2 MiB"
runtime = "30 ms"
time_based = true
{options}'''
    device = DEVICE.replace("noop", "none")
    machine = boot(job, machine=device, sets=['machine.kernel = "6.18"'])
    run_for(machine, 1)
    [done] = values_of(machine, "fio_done")
    return done, machine.devices["sda"].stats.write_sectors // 8


@pytest.mark.parametrize("rw", ["write", "randwrite"])
@pytest.mark.parametrize("engine", ["psync", "io_uring"])
def test_a_buffered_job_writes_its_file_before_each_further_pass(rw, engine):
    """fio's loop_cache_invalidate, far below all limits; the close of a device writes the rest."""
    done, written = pages_written(rw, engine, "norandommap = false")
    assert done > 4 * PAGES
    assert written == done


@pytest.mark.parametrize("option", ["invalidate = false", "norandommap = true"])
def test_one_that_does_not_invalidate_or_has_no_passes_writes_when_it_closes(option):
    done, written = pages_written("randwrite", "psync", option)
    assert done > 4 * PAGES
    assert written == PAGES
