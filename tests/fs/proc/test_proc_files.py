"""Each file of /proc in the format of each kernel version."""

from __future__ import annotations

import pytest

from sim.fs.proc.meminfo import line_names
from sim.sched.version import kernel_version
from tests.fs.proc.proc_counters import (
    NS_PER_S,
    NS_PER_TICK,
    Cpu,
    Disk,
    Machine,
    Memory,
    Process,
    Processes,
    ProcessMemory,
    Swap,
    System,
)

MS = 1_000_000
BUSY = Cpu(5 * NS_PER_TICK, 0, 3 * NS_PER_TICK, 80 * NS_PER_TICK, 12 * NS_PER_TICK)


def disk(name: str = "sda", minor: int = 0) -> Disk:
    return Disk(
        name,
        8,
        minor,
        reads=10,
        read_merges=2,
        read_sectors=80,
        read_ns=41 * MS,
        writes=20,
        write_merges=5,
        write_sectors=160,
        write_ns=83 * MS,
        in_flight=1,
        io_ticks_ns=55 * MS,
        time_in_queue_ns=131 * MS,
        flushes=3,
        flush_ns=7 * MS,
    )


@pytest.mark.parametrize(
    ("release", "columns"),
    [("2.6.16", 8), ("2.6.23", 8), ("2.6.24", 9), ("2.6.32", 9), ("2.6.33", 10), ("6.1", 10)],
)
def test_cpu_lines_have_the_columns_of_their_version(release: str, columns: int) -> None:
    text = Machine(release, cpus=[BUSY, Cpu()]).proc().read("stat")
    guests = " 0" * (columns - 8)
    first = f"cpu  5 0 3 80 12 0 0 0{guests}\ncpu0 5 0 3 80 12 0 0 0{guests}\ncpu1 0 0 0 0 0 0 0 0"
    assert text.startswith(first)


def test_cpu_line_sums_times_before_truncating_them() -> None:
    half = NS_PER_TICK // 2
    text = Machine("2.6.16", cpus=[Cpu(half), Cpu(half)]).proc().read("stat")
    assert text.startswith("cpu  1 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0")


@pytest.mark.parametrize(
    ("release", "ticks"),
    [("2.6.16", 250), ("2.6.25", 0), ("2.6.32", 20 + 5)],
)
def test_intr_counts_the_ticks_of_the_release(release: str, ticks: int) -> None:
    """HZ 250 for a second: the board's clock, later the local timer of a CPU that is busy."""
    busy = Cpu(user_ns=60_000_000, system_ns=20_000_000, idle_ns=920_000_000)
    less = Cpu(irq_ns=20_000_000, idle_ns=900_000_000, iowait_ns=80_000_000)
    text = Machine(release, cpus=[busy, less], system=System(nr_interrupts=7)).proc().read("stat")
    intr = next(line for line in text.splitlines() if line.startswith("intr "))
    assert int(intr.split()[1]) == 7 + ticks


def test_single_counters_of_stat() -> None:
    text = Machine("2.6.16", system=System(1234, 5678, 90, 3, 7)).proc().read("stat")
    intr, *rest = text.splitlines()[3:]
    assert intr == "intr 1234" + " 0" * 224
    assert rest == [
        "ctxt 5678",
        "btime 1242277200",
        "processes 90",
        "procs_running 3",
        "procs_blocked 7",
    ]


@pytest.mark.parametrize(("release", "kinds"), [("2.6.31", 9), ("2.6.32", 10), ("6.1", 10)])
def test_softirq_line_came_with_2_6_31(release: str, kinds: int) -> None:
    assert "softirq" not in Machine("2.6.30").proc().read("stat")
    assert Machine(release).proc().read("stat").splitlines()[-1] == "softirq 0" + " 0" * kinds


@pytest.mark.parametrize(
    ("release", "row"),
    [
        ("2.6.16", "   8    0 sda 10 2 80 40 20 5 160 80 1 52 128\n"),
        ("2.6.32", "   8       0 sda 10 2 80 40 20 5 160 80 1 52 128\n"),
        ("4.18", "   8       0 sda 10 2 80 40 20 5 160 80 1 52 128 0 0 0 0\n"),
        ("4.19", "   8       0 sda 10 2 80 41 20 5 160 83 1 52 128 0 0 0 0\n"),
        ("5.5", "   8       0 sda 10 2 80 41 20 5 160 83 1 52 131 0 0 0 0 3 7\n"),
    ],
)
def test_disk_rows_have_columns_and_jiffies_of_their_version(release: str, row: str) -> None:
    assert Machine(release, hz=250, disks=[disk()]).proc().read("diskstats") == row


@pytest.mark.parametrize(
    ("release", "row"),
    [
        ("2.6.24", "   8    1 sda1 10 80 20 160\n"),
        ("2.6.25", "   8    1 sda1 10 2 80 40 20 5 160 80 1 52 128\n"),
    ],
)
def test_partition_rows_are_short_until_2_6_24(release: str, row: str) -> None:
    machine = Machine(release, disks=[disk(), disk("sda1", 1)], partitions=frozenset({"sda1"}))
    assert machine.proc().read("diskstats").splitlines(keepends=True)[1] == row


def test_finer_clock_ticks_keep_every_millisecond() -> None:
    row = Machine("2.6.16", hz=1000, disks=[disk()]).proc().read("diskstats").split()
    assert (row[6], row[10], row[12], row[13]) == ("41", "83", "55", "131")


def test_milliseconds_are_printed_modulo_2_to_the_32() -> None:
    old = Disk("sda", io_ticks_ns=(2**32 + 8) * MS)
    assert Machine("2.6.16", disks=[old]).proc().read("diskstats").split()[12] == "8"


def test_disks_are_brought_up_to_now_before_they_are_shown() -> None:
    machine = Machine(disks=[disk()], now_ns=77)
    machine.proc().read("diskstats")
    assert machine.disks[0].updated_at == 77


@pytest.mark.parametrize(
    ("avenrun", "shown"),
    [(0, "0.00"), (2048, "1.00"), (2037, "0.99"), (2038, "1.00"), (75776, "37.00"), (10, "0.00")],
)
def test_load_averages_are_rounded_to_hundredths(avenrun: int, shown: str) -> None:
    machine = Machine()
    machine.load.avenrun = [avenrun, 0, 2048]
    assert machine.proc().read("loadavg") == f"{shown} 0.00 1.00 1/100 4321\n"


@pytest.mark.parametrize(("release", "idle"), [("2.6.16", "90.00"), ("2.6.32", "140.00")])
def test_idle_of_uptime_was_the_boot_cpus_idle_task(release: str, idle: str) -> None:
    cpus = [Cpu(idle_ns=80 * NS_PER_S, iowait_ns=10 * NS_PER_S), Cpu(idle_ns=60 * NS_PER_S)]
    machine = Machine(release, cpus=cpus, now_ns=100 * NS_PER_S + 9_999_999)
    assert machine.proc().read("uptime") == f"100.00 {idle}\n"


MEMINFO_2_6_16 = """\
MemTotal:      1048576 kB
MemFree:        400000 kB
Buffers:         80000 kB
Cached:         400000 kB
SwapCached:          0 kB
Active:         124000 kB
Inactive:       476000 kB
HighTotal:           0 kB
HighFree:            0 kB
LowTotal:      1048576 kB
LowFree:        400000 kB
SwapTotal:     2096116 kB
SwapFree:      1150564 kB
Dirty:            1200 kB
Writeback:         160 kB
Mapped:              0 kB
Slab:            40000 kB
CommitLimit:   2620404 kB
Committed_AS:  1069552 kB
PageTables:          0 kB
VmallocTotal: 34359738367 kB
VmallocUsed:         0 kB
VmallocChunk: 34359738367 kB
HugePages_Total:     0
HugePages_Free:      0
Hugepagesize:     2048 kB
"""


def test_meminfo_of_2_6_16() -> None:
    assert Machine("2.6.16", swaps=[Swap()]).proc().read("meminfo") == MEMINFO_2_6_16


def test_meminfo_of_newer_kernels_has_wider_labels() -> None:
    lines = Machine("6.1", swaps=[Swap()]).proc().read("meminfo").splitlines()
    assert lines[:3] == [
        "MemTotal:        1048576 kB",
        "MemFree:          400000 kB",
        "MemAvailable:     858000 kB",
    ]
    assert "HardwareCorrupted:     0 kB" in lines
    assert "HugePages_Total:       0" in lines
    assert "VmallocTotal:   34359738367 kB" in lines


@pytest.mark.parametrize(
    ("release", "memory", "pages"),
    [
        ("6.1", Memory(), 100_000 - 2_500 + 119_000 - 2_000),
        ("4.4", Memory(), 100_000 - 2_000 + 119_000 - 2_000),
        ("6.1", Memory(nr_file=3_000), 100_000 - 2_500 + 2_000 // 2),
        ("6.1", Memory(nr_free=1_000, nr_file=1_000), 0),
    ],
)
def test_available_memory_leaves_the_reserve_and_the_working_set_of_files(
    release: str, memory: Memory, pages: int
) -> None:
    text = Machine(release, memory=memory).proc().read("meminfo")
    assert f"\nMemAvailable:{pages * 4:>11} kB\n" in text


def test_memory_of_the_kernel_that_never_shrinks_is_not_reclaimable() -> None:
    text = Machine("6.1").proc().read("meminfo")
    assert "\nSlab:              40000 kB\nSReclaimable:          0 kB\n" in text
    assert "\nSUnreclaim:        40000 kB\n" in text


@pytest.mark.parametrize(
    ("name", "since", "before"),
    [
        ("AnonPages", "2.6.18", "2.6.16"),
        ("Active(file)", "2.6.28", "2.6.27"),
        ("Shmem", "2.6.32", "2.6.31"),
        ("MemAvailable", "3.14", "3.13"),
        ("KReclaimable", "4.20", "4.19"),
        ("Zswap", "5.19", "5.18"),
    ],
)
def test_meminfo_lines_appear_with_their_version(name: str, since: str, before: str) -> None:
    assert name in line_names(kernel_version(since))
    assert name not in line_names(kernel_version(before))


def test_vmstat_shows_paging_in_kib() -> None:
    text = Machine("2.6.16", memory=Memory(pgpgin_sectors=961, nr_dirty=7)).proc().read("vmstat")
    assert text.splitlines() == [
        "nr_dirty 7",
        "nr_writeback 40",
        "nr_slab 10000",
        "pgpgin 480",
        "pgpgout 240",
        "pswpin 50",
        "pswpout 25",
        "pgfault 2000",
        "pgmajfault 12",
    ]


@pytest.mark.parametrize(
    ("release", "names"),
    [
        ("2.6.18", ["pgsteal_normal 9", "pgscan_kswapd_normal 5", "pgscan_direct_normal 6"]),
        ("3.5", ["pgsteal_kswapd_normal 4", "pgsteal_direct_normal 5", "allocstall 3"]),
        ("4.8", ["pgsteal_kswapd 4", "pgscan_direct 6", "allocstall_normal 3"]),
        ("5.9", ["workingset_refault_file 8", "workingset_activate_file 7", "pgfree 11"]),
    ],
)
def test_vmstat_counts_reclaim_under_the_names_of_the_release(
    release: str, names: list[str]
) -> None:
    memory = Memory(
        pgscan_kswapd=5,
        pgscan_direct=6,
        pgsteal_kswapd=4,
        pgsteal_direct=5,
        allocstall=3,
        workingset_refault=8,
        workingset_activate=7,
        pgfree=11,
    )
    assert set(names) <= set(Machine(release, memory=memory).proc().read("vmstat").splitlines())


def test_meminfo_parts_file_pages_by_list_since_the_lists_are_split() -> None:
    memory = Memory(nr_active_file=19_000, nr_inactive_file=100_000)
    lines = Machine("6.1", memory=memory).proc().read("meminfo").splitlines()
    assert "Active(file):      76000 kB" in lines
    assert "Inactive(file):   400000 kB" in lines


def test_swaps_as_recorded_by_swapon_on_2_6_32() -> None:
    machine = Machine("2.6.32", swaps=[Swap("/dev/xvdk1", nr_pages=524_030, nr_used=236_388)])
    assert machine.proc().read("swaps") == (
        "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n"
        "/dev/xvdk1                              partition\t2096120\t945552\t-1\n"
    )


def test_swaps_of_newer_kernels_keep_columns_aligned() -> None:
    area = Swap("/swapfile", is_block=False, nr_pages=2_621_440, nr_used=10, prio=-2)
    row = Machine("6.1", swaps=[area]).proc().read("swaps").splitlines()[1]
    assert row == "/swapfile                               file\t\t10485760\t40\t\t-2"


def test_cpuinfo_tells_the_present_clock_of_each_cpu() -> None:
    text = Machine().proc().read("cpuinfo")
    assert text.count("processor\t: ") == 2
    assert "cpu MHz\t\t: 2400.000\n" in text


def test_path_may_begin_with_proc() -> None:
    proc = Machine().proc()
    assert proc.read("/proc/loadavg") == proc.read("loadavg")


def test_unknown_file_is_not_found() -> None:
    with pytest.raises(FileNotFoundError, match="/proc/interrupts: not modelled"):
        Machine().proc().read("interrupts")


def test_snapshot_holds_what_the_tools_read() -> None:
    files = Machine().proc().snapshot()
    assert sorted(files) == ["diskstats", "loadavg", "meminfo", "stat", "uptime", "vmstat"]


@pytest.mark.parametrize("release", ["", "linux", "v6.1"])
def test_release_without_numbers_is_refused(release: str) -> None:
    with pytest.raises(ValueError, match="kernel release"):
        Machine(release).proc()


def test_release_older_than_the_tables_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kernel 2\.4\.20: the oldest is 2\.6\.11"):
        Machine("2.4.20").proc().read("stat")


def with_processes(*processes: Process, release: str = "6.1.0") -> dict[str, str]:
    """Return the snapshot of a machine asked for its processes."""
    table = Processes({process.pid: process for process in processes})
    proc = Machine(release, system=System(processes=table)).proc()
    proc.snapshot_also(["swaps", "processes"])
    return proc.snapshot()


def test_stat_of_a_process_has_its_fields_in_their_places() -> None:
    fields = with_processes(Process())["4000/stat"].split()
    assert len(fields) == 41
    assert fields[:4] == ["4000", "(sh)", "D", "1"]
    assert (fields[13], fields[14]) == ("12", "3")
    assert fields[17:20] == ["25", "5", "1"]
    assert (fields[21], fields[38]) == ("300", "1")


def test_status_of_a_process_names_its_state_and_owner() -> None:
    lines = with_processes(Process())["4000/status"].splitlines()
    assert lines[1] == "State:\tD (disk sleep)"
    assert "Uid:\t0\t0\t0\t0" in lines


def test_memory_of_a_process_is_in_all_three_files_and_what_is_swapped_from_2_6_34_on() -> None:
    for release, swapped in (("2.6.32", False), ("2.6.34", True)):
        table = Processes({4000: Process()})
        machine = Machine(
            release, system=System(processes=table), memory=Memory(mms=(ProcessMemory(),))
        )
        proc = machine.proc()
        proc.snapshot_also(["processes"])
        texts = proc.snapshot()
        assert texts["4000/stat"].split()[22:24] == ["4096000", "600"]
        assert texts["4000/statm"] == "1000 600 0 0 0 1000 0\n"
        assert "VmRSS:\t    2400 kB\n" in texts["4000/status"]
        assert ("VmSwap:\t     600 kB\n" in texts["4000/status"]) is swapped


def test_kernel_threads_have_no_sizes() -> None:
    snapshot = with_processes(Process(comm="kswapd0"))
    assert "VmSize" not in snapshot["4000/status"]
    assert snapshot["4000/statm"] == "0 0 0 0 0 0 0\n"


def test_processes_and_swaps_are_read_only_when_asked_for() -> None:
    assert "swaps" in with_processes()
    assert not {"swaps", "4000/stat"} & Machine().proc().snapshot().keys()
