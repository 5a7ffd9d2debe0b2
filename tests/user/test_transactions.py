"""The laws of queues hold for transactions, on whatever they wait for."""

import math
from itertools import pairwise
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.machine import Machine
from sim.tools.parse import parse_diskstats
from tests.user.logs import RUN_S, one_by_one, run_logs
from tests.user.servers import TMPFS, S, boot, run_for, values_of

# One request at a time, whose length alone is its time: 64 KiB in 5 ms.
SERVER = """\
[machine.disk.sda]
device = "multiserver"
capacity = "4 GiB"
servers = 1
sigma = 0
read = "1 us"
write = "1 us"
read_rate = "13.1072 MB/s"
scheduler = "noop"
queue.max = "4 MiB"
[machine.mount."/"]
type = "ext3"
device = "sda"
"""
READS = {"reads": 1, "read_size": '"64 KiB"', "direct": "true", "variation": '"exponential"'}


def transactions(**params: object) -> str:
    """Return a class of transactions as a process of a scenario."""
    lines = [f"{key} = {value}" for key, value in params.items()]
    return "\n".join(["[process.class]", 'program = "transactions"', *lines])


def closed(customers: int, **params: object) -> str:
    """Return a closed class."""
    return transactions(concurrency=customers, **params)


def open_stream(rate: float, **params: object) -> str:
    """Return an open class with workers enough."""
    return transactions(arrivals='"open"', rate=f'"{rate} /s"', **{"concurrency": 64} | params)


def run(text: str, seconds: float = 60, **machine: object) -> Machine:
    """Run it on the server of exponential reads, unless another is named."""
    where = {"machine": SERVER} | machine
    return run_for(boot(text, duration="10 min", **where), seconds)


def times_s(machine: Machine) -> list[float]:
    """Return the response times of the transactions."""
    return [float(value) / S for value in values_of(machine, "transaction_ns")]


def closed_mva(customers: int, demands_s: list[float], think_s: float) -> tuple[float, float]:
    """Return throughput and response time by exact mean-value analysis."""
    queues = [0.0] * len(demands_s)
    rate = response = 0.0
    for n in range(1, customers + 1):
        times = [demand * (1 + queue) for demand, queue in zip(demands_s, queues, strict=True)]
        response = sum(times)
        rate = n / (think_s + response)
        queues = [rate * time for time in times]
    return rate, response


@pytest.mark.parametrize("customers", [1, 4, 12])
def test_a_closed_class_on_one_exponential_disk_is_as_mean_value_analysis_says(
    customers: int,
) -> None:
    machine = run(closed(customers, think_time='"20 ms"', **READS))
    rate, response_s = closed_mva(customers, [0.005], 0.02)
    times = times_s(machine)
    assert len(times) / 60 == pytest.approx(rate, rel=0.04)
    assert fmean(times) == pytest.approx(response_s, rel=0.06)


def test_a_closed_class_on_disk_and_cpu_is_as_mean_value_analysis_says() -> None:
    """The CPU shares itself out, so that exponential times there keep the product form."""
    machine = run(closed(6, user='"4 ms"', think_time='"10 ms"', **READS), cpus=1)
    rate, _response = closed_mva(6, [0.005, 0.004], 0.01)
    assert len(times_s(machine)) / 60 == pytest.approx(rate, rel=0.05)


def test_an_open_stream_on_an_exponential_disk_is_m_m_1() -> None:
    times = times_s(run(open_stream(120, **READS), seconds=120))
    assert fmean(times) == pytest.approx(0.005 / (1 - 120 * 0.005), rel=0.08)


@pytest.mark.parametrize("rate", [5.0, 80.0])
def test_an_open_stream_is_carried_out_at_its_rate(rate: float) -> None:
    done = len(times_s(run(open_stream(rate, **READS))))
    assert abs(done - 60 * rate) < 4 * math.sqrt(60 * rate)


def test_transactions_beyond_the_workers_wait_for_one() -> None:
    """M/D/1 by workers, not by a device: half the time of one worker is 10 ms of computing."""
    text = open_stream(50, concurrency=1, user='"10 ms"')
    times = times_s(run(text, machine=SERVER, sets=TMPFS))
    assert fmean(times) == pytest.approx(0.010 * (1 + 0.5 / (2 * (1 - 0.5))), rel=0.06)


def test_the_utilisation_law_holds_at_the_disk() -> None:
    machine = run(open_stream(100, **READS))
    stats = machine.disks[0].stats
    machine.read_proc()
    assert stats.io_ticks_ns / 60 / S == pytest.approx(stats.reads / 60 * 0.005, rel=0.05)


def test_the_utilisation_law_holds_at_the_cpus() -> None:
    machine = run(open_stream(100, user='"8 ms"', system='"3 ms"'), sets=TMPFS)
    done = len(times_s(machine))
    busy = machine.sched.cpu_times
    machine.read_proc()
    assert sum(cpu.user_ns for cpu in busy) / S == pytest.approx(done * 0.008, rel=0.01)
    assert sum(cpu.system_ns for cpu in busy) / S == pytest.approx(done * 0.003, rel=0.05)


def test_littles_law_holds_over_the_customers() -> None:
    times = times_s(run(closed(8, think_time='"50 ms"', **READS)))
    rate = len(times) / 60
    assert rate * (fmean(times) + 0.05) == pytest.approx(8, rel=0.03)


def test_arrivals_do_not_depend_on_the_server() -> None:
    """Common random numbers: a slow server meets the stream that a fast one meets."""
    begins = []
    for user in ("1 ms", "12 ms"):
        machine = boot(open_stream(40, user=f'"{user}"', concurrency=3), sets=TMPFS)
        run_for(machine, 20)
        ends = [r.t_ns for r in machine.records if r.name == "transaction_ns"]
        spent = [int(v) for v in values_of(machine, "transaction_ns")]
        begins.append(sorted(end - time for end, time in zip(ends, spent, strict=True))[:500])
    assert begins[0] == begins[1]


@given(
    reads=st.floats(0, 3),
    writes=st.floats(0, 3),
    fsyncs=st.floats(0, 1),
    pattern=st.sampled_from(["append", "random", "sequential"]),
    variation=st.sampled_from(["constant", "exponential"]),
    read_pattern=st.sampled_from(["random", "sequential"]),
    size=st.integers(512, 200_000),
)
@settings(max_examples=25, deadline=None)
def test_any_class_runs_and_leaves_the_machine_consistent(
    reads: float,
    writes: float,
    fsyncs: float,
    pattern: str,
    variation: str,
    read_pattern: str,
    size: int,
) -> None:
    text = closed(
        3,
        reads=reads,
        writes=writes,
        fsyncs=fsyncs,
        write_pattern=f'"{pattern}"',
        variation=f'"{variation}"',
        read_pattern=f'"{read_pattern}"',
        think_time='"5 ms"',
        read_size=size,
        write_size=size,
        working_set='"4 MiB"',
        write_area='"4 MiB"',
        write_files=2,
        user='"0.1 ms"',
    )
    assert times_s(run_for(boot(text), 0.5))


def test_the_mean_number_of_reads_may_be_a_fraction() -> None:
    machine = run(open_stream(50, **READS | {"reads": 1.3, "variation": '"constant"'}))
    done = len(times_s(machine))
    assert machine.disks[0].stats.reads / done == pytest.approx(1.3, rel=0.05)


def test_sequential_reads_go_on_where_the_last_one_ended() -> None:
    text = closed(1, reads=1, read_size='"64 KiB"', read_pattern='"sequential"', direct="true")
    machine = boot(text, machine=SERVER, trace=True)
    run_for(machine, 1)
    places = [r.args[2] for r in machine.tracer.records() if r.name == "block_rq_issue"][2:]
    steps = [after - before for before, after in pairwise(places)]
    assert steps.count(128) > 0.9 * len(steps)


def test_writes_that_are_written_back_at_once_reach_the_device_without_a_flusher() -> None:
    asked = [
        run_for(
            boot(closed(1, writes=4, write_size='"64 KiB"', writeback=share, think_time='"0.5 s"')),
            4,
        )
        for share in (0, 1)
    ]
    none, all_of_it = (machine.devices["sda"].stats.write_sectors for machine in asked)
    done = len(times_s(asked[1]))
    assert none == 0
    assert all_of_it >= (done - 1) * 4 * 128


@pytest.mark.parametrize(("share", "commits"), [(0.0, 0.2), (1.0, 10.0)])
def test_an_fsync_is_a_commit_of_the_journal(share: float, commits: float) -> None:
    text = closed(1, writes=1, fsyncs=share, think_time='"80 ms"')
    machine = run_for(boot(text), 30)
    journal = machine.vfs.file_system_of("/").info.journal  # type: ignore[attr-defined]
    assert journal.nr_commits / 30 == pytest.approx(commits, rel=0.25)


@pytest.mark.parametrize(("file_system", "writes"), [("ext4", 5), ("xfs", 3)])
def test_an_fsync_of_a_directory_is_a_commit_without_data(file_system: str, writes: int) -> None:
    """By hand: the data, and of each commit two requests on ext4, one on XFS."""
    text = closed(1, writes=1, fsyncs=1, directory_fsyncs=1, think_time='"80 ms"')
    sets = (
        "machine.kernel=6.1",
        "machine.disk.sda.scheduler=none",
        f'machine.mount."/".type={file_system}',
    )
    seconds = 30
    machine = run_for(boot(text, sets=sets), seconds)
    done = len(times_s(machine))
    row = next(iter(parse_diskstats(machine.proc.read("diskstats"))))
    own = 0.4 * seconds  # of what commits by itself
    assert row.writes == pytest.approx(writes * done, rel=0.1, abs=own)


@pytest.mark.parametrize(("datasync", "least", "most"), [("false", 0.8, 1.2), ("true", 0.1, 0.3)])
def test_fdatasync_of_what_is_there_needs_no_commit(
    datasync: str, least: float, most: float
) -> None:
    """An overwrite changes times alone, which ext3 notes in seconds: an fsync commits each.

    After fdatasync the journal's own timer writes them, every 5 s.
    """
    text = closed(
        1,
        writes=1,
        fsyncs=1,
        datasync=datasync,
        write_pattern='"sequential"',
        write_area='"16 MiB"',
        write_unit='"4 KiB"',
        write_size='"8 KiB"',
        variation='"constant"',
        think_time='"80 ms"',
    )
    sets = ("machine.kernel=6.1", "machine.disk.sda.scheduler=none")
    machine = run_for(boot(text, sets=sets), 30)
    journal = machine.vfs.file_system_of("/").info.journal  # type: ignore[attr-defined]
    assert least <= journal.nr_commits / 30 <= most


def test_workers_of_one_file_share_its_commits() -> None:
    """While one waits for a commit the others write; the next commit is for all of them.

    To 4.2, ext3's own code holds the inode's lock for the whole fsync. Its owner is back for the
    next fsync before the waiter that it woke is there, so each commit is for one.
    """

    def done(workers: int, kernel: str) -> int:
        machine = boot(closed(workers, writes=1, fsyncs=1), sets=(f"machine.kernel={kernel}",))
        return len(times_s(run_for(machine, 10)))

    assert 1.5 * done(1, "4.18") < done(8, "4.18") < 8 * done(1, "4.18")
    assert done(8, "3.2") < 1.5 * done(1, "3.2")


@pytest.mark.parametrize("files", [1, 3])
def test_there_are_as_many_files_as_were_asked_for(files: int) -> None:
    machine = run_for(boot(closed(6, writes=1, write_files=files, think_time='"9 ms"')), 1)
    names = machine.vfs.prepare_directory("/").entries
    assert len([name for name in names if name.startswith("log")]) == files


def test_a_stream_of_rate_zero_has_no_transactions() -> None:
    assert times_s(run_for(boot(open_stream(0)), 2)) == []


def test_background_leaves_no_records() -> None:
    machine = run_for(boot(closed(1, user='"5 ms"', counted="false"), sets=TMPFS), 2)
    assert times_s(machine) == []
    assert sum(cpu.user_ns for cpu in machine.sched.cpu_times) > 1.9 * S


def test_the_warm_up_is_marked_once() -> None:
    machine = run_for(boot(closed(4, user='"1 ms"', warm_up='"2 s"', think_time='"9 ms"')), 4)
    assert [r.t_ns / S for r in machine.records if r.name == "warmed_up"] == [
        pytest.approx(2, 0.01)
    ]


def test_a_rate_alone_makes_a_stream_and_none_makes_customers() -> None:
    """Nobody who gives a rate means 64 customers who come back at once; one read takes 5 ms."""
    machine = run(transactions(rate='"50 /s"', concurrency=64, **READS))
    assert len(times_s(machine)) == pytest.approx(50 * 60, rel=0.06)
    machine = run(transactions(concurrency=1, **READS))
    assert len(times_s(machine)) == pytest.approx(200 * 60, rel=0.06)


@given(rate=st.floats(2, 50), scale=st.floats(0.2, 3))
@settings(max_examples=10, deadline=None)
def test_a_load_scale_is_a_multiple_of_an_open_stream(rate: float, scale: float) -> None:
    scaled = run(open_stream(rate, load_scale=scale), 30)
    plain = run(open_stream(rate * scale), 30)
    assert len(times_s(scaled)) == pytest.approx(len(times_s(plain)), abs=1)


@pytest.mark.parametrize(("customers", "scale", "left"), [(8, 0.5, 4), (3, 0.5, 2), (1, 0.1, 1)])
def test_a_load_scale_is_a_multiple_of_customers_but_one_is_left(
    customers: int, scale: float, left: int
) -> None:
    scaled, plain = closed(customers, load_scale=scale, **READS), closed(left, **READS)
    assert times_s(run(scaled, 5)) == times_s(run(plain, 5))


def test_other_cpus_take_a_multiple_of_both_cpu_times() -> None:
    slow = closed(1, user='"2 ms"', system='"1 ms"', cpu_scale=3)
    same = closed(1, user='"6 ms"', system='"3 ms"')
    assert times_s(run(slow, 2)) == times_s(run(same, 2))


def test_a_service_scale_is_a_multiple_of_latency_and_transfer() -> None:
    half = SERVER.replace("servers = 1", "servers = 1\nservice_scale = 0.5")
    mean_s = fmean(times_s(run(closed(1, **READS), 30, machine=half)))
    assert mean_s == pytest.approx(fmean(times_s(run(closed(1, **READS), 30))) / 2, rel=0.1)


def written_by_5_s(**params: object) -> list[float]:
    """Return the writes of each 5 s from 40 s on, of 20 small writes a second."""
    text = open_stream(
        20,
        writes=1,
        write_size='"4 KiB"',
        write_pattern='"random"',
        write_area='"64 MiB"',
        **params,
    )
    where = SERVER.replace("ext3", "ext4")  # ext3 writes data at each commit of its journal
    machine = boot(text, machine=where, duration="10 min", sets=("machine.kernel=2.6.32",))
    seen = []
    for end in range(40, 115, 5):
        run_for(machine, end - machine.calendar.now / S)
        seen.append(machine.devices["sda"].stats.writes)
    return [float(after - before) for before, after in pairwise(seen)]


def test_files_written_in_turn_leave_one_after_the_other_and_one_file_all_at_once() -> None:
    """30 s after it became dirty; 5 s of 20 writes a second are 100."""
    at_once, in_turn = written_by_5_s(), written_by_5_s(write_files=8, write_turn='"5 s"')
    assert sum(1 for one in at_once if one < 10) > len(at_once) / 2
    assert max(at_once) > 400
    assert all(50 < one < 160 for one in in_turn)
    assert fmean(in_turn) == pytest.approx(100, rel=0.1)


@given(mean=st.floats(1, 20))
@settings(max_examples=5, deadline=None)
def test_whole_pages_need_no_reads_and_are_as_many_as_was_asked(mean: float) -> None:
    """Where pages are written in part, what is left of them is read first."""
    size = f'"{round(mean * 4096)} B"'
    text = open_stream(
        200,
        writes=1,
        write_size=size,
        write_pattern='"random"',
        write_area='"1 GiB"',
        variation='"exponential"',
        writeback=1,
    )
    machine = run(text.replace("writeback", 'write_unit = "4 KiB"\nwriteback'), 30)
    stats = machine.devices["sda"].stats
    assert stats.reads < 20  # of the file system's own blocks
    sectors = stats.write_sectors / len(times_s(machine))
    assert sectors / 8 == pytest.approx(mean, rel=0.1)
    if mean > 2:
        parts = run(text, 10).devices["sda"].stats
        assert parts.reads > 100


def test_direct_writes_are_waited_for_one_by_one_and_nothing_is_cached() -> None:
    """Four customers, each with a file, at a server of 5 ms: 200 a second, each after 20 ms."""
    text = closed(
        4,
        writes=1,
        write_direct="true",
        write_size='"64 KiB"',
        write_unit='"4 KiB"',
        write_pattern='"random"',
        write_area='"512 MiB"',
        write_files=4,
    )
    machine = run(text, 20, machine=SERVER.replace("read_rate", "write_rate"))
    times = times_s(machine)
    assert len(times) / 20 == pytest.approx(200, rel=0.02)
    assert fmean(times) == pytest.approx(0.020, rel=0.02)
    assert machine.devices["sda"].stats.writes == pytest.approx(len(times), rel=0.03)


@pytest.mark.parametrize("together", [1, 4])
def test_groups_keep_the_rate_and_leave_the_device_idle_between_them(together: int) -> None:
    """All side by side: util = 1 - exp(-(X / n) R), for service times that do not vary."""
    side_by_side = SERVER.replace("servers = 1", "servers = 64").replace("13.1072 MB/s", "0 B/s")
    side_by_side = side_by_side.replace('read = "1 us"', 'read = "5 ms"')
    machine = run(open_stream(100, **READS, together=together), 100, machine=side_by_side)
    assert len(times_s(machine)) / 100 == pytest.approx(100, rel=0.08)
    busy = machine.devices["sda"].stats.io_ticks_ns / S / 100
    assert busy == pytest.approx(1 - math.exp(-100 / together * 0.005), rel=0.12)


@pytest.mark.parametrize("arrivals", [{"concurrency": 4}, {"rate": '"100 /s"', "concurrency": 64}])
def test_nothing_comes_before_the_start_and_then_what_came_without_one(
    arrivals: dict[str, object],
) -> None:
    """A stream draws the same gaps, only later: its first seconds are those without a start."""
    late = run(transactions(start='"20 s"', **READS | arrivals), 30)
    assert min(one.t_ns for one in late.records if one.name == "transaction_ns") > 20 * S
    at_once = times_s(run(transactions(**READS | arrivals), 10))
    assert len(at_once) > 500
    # A worker that has not slept yet answers some microseconds earlier.
    assert times_s(late)[:500] == pytest.approx(at_once[:500], abs=50e-6)


TURN_S, ELSEWHERE_S = 0.008333, 0.006
ARM = f"""\
[machine.disk.sda]
device = "multiserver"
capacity = "4 GiB"
servers = 1
sigma = 0
turn = "{1e6 * TURN_S} us"
write = "{1e3 * ELSEWHERE_S} ms"
write_rate = "0 B/s"
flush = "20 us"
scheduler = "noop"
[machine.mount."/"]
type = "ext4"
device = "sda"
commit = "1000 s"  # what changes besides the data: not while it is measured
"""
LOGS = {
    "writes": 1,
    "write_size": '"8 KiB"',
    "write_pattern": '"sequential"',
    "write_area": '"16 MiB"',
    "fsyncs": 1,
    "datasync": "true",
}


@pytest.mark.parametrize("arrivals", ["open", "closed"])
@pytest.mark.parametrize("files", [1, 2, 4])
def test_of_so_many_logs_one_write_in_so_many_goes_on_where_the_last_ended(
    arrivals: str, files: int
) -> None:
    """Each is written in sequence, by chance in turn: S = F - (F - T / 2) / n.

    Seldom enough that two hardly meet: one that comes meanwhile would miss its place by nearly T.
    """
    if arrivals == "open":
        text = open_stream(4, write_files=files, **LOGS)
    else:
        text = closed(files, write_files=8, think_time=f'"{250 * files} ms"', **LOGS)
    machine = run(text, 300, machine=ARM)
    done = len(times_s(machine))
    assert done / 300 == pytest.approx(4, rel=0.1)
    told_s = ELSEWHERE_S - (ELSEWHERE_S - TURN_S / 2) / files
    busy_s = machine.devices["sda"].stats.io_ticks_ns / S
    assert busy_s / done == pytest.approx(told_s, rel=0.05)


def log_of(rate: float, *, group: bool = True, files: int = 1) -> tuple[float, dict[str, float]]:
    """Return how many transactions a second are carried out by logs whose sync takes 10 ms.

    And the disk's columns.
    """
    device = one_by_one("50 us", "9950 us") + "sigma = 0\n"
    result, disk = run_logs(device, rate=rate, group=group, files=files, from_s=2)
    done = sum(mark.t_ns > 2 * S for mark in result.marks("transaction_ns"))
    return done / (RUN_S - 2), disk


@pytest.mark.parametrize(("rate", "syncs"), [(16, 15.8), (32, 30.6), (100, 73.1), (250, 96.8)])
def test_one_sync_is_of_all_who_came_during_the_last(rate: float, syncs: float) -> None:
    """By hand, of 10 ms each: f = 1 / (S + e^(-X S) / X). All are carried out, and none twice."""
    done, disk = log_of(rate)
    assert done == pytest.approx(rate, rel=0.08)
    assert disk["f_per_s"] == pytest.approx(syncs * done / rate, rel=0.03)
    assert disk["write_bytes_per_s"] == pytest.approx(8192 * done, rel=0.03)


def test_without_it_each_syncs_for_itself_and_writes_wait_for_the_flushes_of_others() -> None:
    done, alone = log_of(32, group=False)
    _done, in_turn = log_of(32)
    assert alone["f_per_s"] > in_turn["f_per_s"]
    assert alone["f_per_s"] <= 1.02 * done
    assert alone["w_await_ms"] > in_turn["w_await_ms"] + 0.5


def test_each_of_several_logs_has_a_turn_of_its_own() -> None:
    """Of two logs a flush of one may be under way when the other writes."""
    _done, one = log_of(60)
    _done, two = log_of(60, files=2)
    assert two["w_await_ms"] > one["w_await_ms"] + 0.5
