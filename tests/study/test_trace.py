"""Traces hold what happened, exactly: requests and their times, CPU time, transactions."""

import shutil
import subprocess
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from sim.fs.super import O_CREAT, O_DIRECT, O_RDWR
from sim.machine import Machine, simulate
from sim.scenario import Scenario
from sim.study.blktrace import MAGIC, BlkTrace, rwbs
from sim.study.perfetto import Perfetto
from sim.study.timeline import PATTERNS, Timeline
from sim.study.trace import NothingTracedError, Trace, record_trace
from sim.tools.parse import parse_diskstats
from tests.study.traces import PerfettoTrace, blktrace, merged, of_track, perfetto
from tests.user.servers import EXT3, MS, scenario

FROM_NS = 100 * MS
TO_NS = 400 * MS
END_NS = 500 * MS
DISK = 'disk.sda = {{ profile = "sas-15k", write_cache = {cache}, scheduler = "deadline" }}\n'
FLASH = 'disk.sda = { profile = "ssd-sata", buffer_protected = false }\n'
RAM = 'disk.sda = { device = "ram", capacity = "4 GiB", latency = "2 ms", scheduler = "none" }\n'
MOUNT = 'mount."/" = {{ type = "{fs}", device = "sda" }}\n'
# plug of the queue; barriers; plug of the task and flushes; multi-queue; XFS
SERVERS = {
    "2.6.16": (EXT3, "2.6.16"),
    "2.6.33": (DISK.format(cache="true") + MOUNT.format(fs="ext3"), "2.6.33"),
    "3.2": (DISK.format(cache="true") + MOUNT.format(fs="ext4"), "3.2"),
    "6.1": (FLASH + MOUNT.format(fs="ext4"), "6.1"),
    "xfs": (RAM + MOUNT.format(fs="xfs"), "5.4"),
}
every_server = pytest.mark.parametrize("server", SERVERS)


def server_of(name: str, *sets: str) -> Scenario:
    machine, kernel = SERVERS[name]
    one = scenario(machine=machine, sets=(f'machine.kernel="{kernel}"', *sets), duration="1 s")
    run = replace(one.run, duration_ns=END_NS)
    return replace(one, run=run, measure=replace(one.measure, interval_ns=100 * MS))


def start_programs(machine: Machine) -> None:
    """Start four writers that make files durable, and two readers past the page cache."""
    if "/cold" not in machine._prepared:
        machine._prepared["/cold"] = machine.vfs.prepare_file("/cold", 16 << 20)

    def writer(sys):
        number = 0
        while True:
            number += 1
            sys.probe("work__start")
            sys.compute(150_000)
            fd = yield from sys.open(f"/{sys.name}.{number}", O_CREAT | O_RDWR)
            yield from sys.write(fd, 40_960)
            yield from sys.fsync(fd)
            yield from sys.close(fd)
            sys.probe("work__done")

    def reader(sys):
        chance = sys.stream("places")
        fd = yield from sys.open("/cold", O_RDWR | O_DIRECT)
        while True:
            yield from sys.pread(fd, 8192, 8192 * chance.randrange(2048))
            sys.compute(50_000)

    for number in range(4):
        machine.kernel.start(f"writer{number}", "writer", writer)
    for number in range(2):
        machine.kernel.start(f"reader{number}", "reader", reader)


class Recorded:
    """A run of which a time was recorded."""

    def __init__(self, folder: Path, name: str, *sets: str) -> None:
        self.folder = folder
        self.scenario = server_of(name, *sets)
        machines: list[Machine] = []
        path = folder / "trace.pftrace"
        with path.open("wb") as file:

            def watch(machine: Machine) -> None:
                machines.append(machine)
                start_programs(machine)
                takers = [Perfetto(machine, file), BlkTrace(machine, folder)]
                self.trace = Trace(machine, takers, FROM_NS, TO_NS)

            self.result = simulate(self.scenario, 1, watch=watch)
            machines[0].tracer.stop()
            self.trace.finish(machines[0].calendar.now)
        self.perfetto: PerfettoTrace = perfetto(path)

    def requests(self, disk: str = "sda") -> int:
        """Return how many reads, writes and discards /proc/diskstats counts in that time."""
        at = {sample.t_ns: sample.text("diskstats") for sample in self.result.samples}
        first, last = (
            next(row for row in parse_diskstats(at[t_ns]) if row.name == disk)
            for t_ns in (FROM_NS, TO_NS)
        )
        return (last.reads - first.reads) + (last.writes - first.writes)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a run of a server; made once."""
    known: dict[str, Recorded] = {}

    def of(name: str) -> Recorded:
        if name not in known:
            known[name] = Recorded(tmp_path_factory.mktemp("trace"), name)
        return known[name]

    return of


# --- Looking


@every_server
def test_looking_changes_nothing_that_is_simulated(recorded, server: str) -> None:
    unseen = simulate(server_of(server), 1, watch=start_programs)
    assert recorded(server).result.digest() == unseen.digest()


def test_what_is_later_than_the_time_is_not_simulated(tmp_path: Path) -> None:
    calendars = []

    def make_takers(machine: Machine) -> list[BlkTrace]:
        calendars.append(machine.calendar)
        start_programs(machine)
        return [BlkTrace(machine, tmp_path)]

    traced = record_trace(server_of("2.6.16"), FROM_NS, TO_NS, make_takers)
    assert calendars[0].now == traced.to_ns == TO_NS
    assert traced.requests["sda"] > 0


def test_a_run_that_ended_before_the_time_is_told() -> None:
    short = server_of("2.6.16")
    short = replace(short, run=replace(short.run, until="now", after_ns=0))

    def make_takers(machine: Machine) -> list[BlkTrace]:
        machine.mark("init", "now", 0)
        return []

    with pytest.raises(NothingTracedError, match="ended at 0 s"):
        record_trace(short, FROM_NS, TO_NS, make_takers)


# --- Requests


@every_server
def test_requests_are_those_that_diskstats_counts(recorded, server: str) -> None:
    one = recorded(server)
    counted = one.requests()
    assert counted > 20
    assert one.trace.requests["sda"] == pytest.approx(counted, abs=ORDERED[server])
    ends = [e for e in merged(one.folder, "sda") if e.letter == "C"]
    flushes = [e for e in ends if e.action >> 18 & 1 and not e.action >> 17 & 1]
    assert len(ends) - len(flushes) == one.trace.requests["sda"]


# A barrier or a flush sequence counts when it is over, its data are complete before.
ORDERED = {"2.6.16": 0, "2.6.33": 1, "3.2": 1, "6.1": 1, "xfs": 0}


@every_server
def test_each_request_that_ends_is_drawn_in_the_drive(recorded, server: str) -> None:
    one = recorded(server)
    drawn = [s for s in of_track(one.perfetto, "disk sda/drive") if s.end_ns is not None]
    moved = [s for s in drawn if not s.name.startswith("FN")]
    ends = [e for e in merged(one.folder, "sda") if e.letter == "C"]
    empty = [e for e in ends if e.action >> 17 & 1 and not e.bytes]  # only wanted a flush
    assert len(moved) == one.trace.requests["sda"] - len(empty)


def issued_and_ended(folder: Path) -> list[tuple[int, int]]:
    """Return when requests were issued and completed, of those that did both in the time."""
    under_way = defaultdict(list)
    pairs = []
    for event in merged(folder, "sda"):
        if event.letter == "D":
            under_way[event.sector, event.bytes].append(event.time_ns)
        elif event.letter == "C" and under_way[event.sector, event.bytes]:
            pairs.append((under_way[event.sector, event.bytes].pop(0), event.time_ns))
    return pairs


def test_a_request_takes_as_long_as_the_device_does(recorded) -> None:
    """By hand: the device takes 2 ms for each request, and one at a time."""
    pairs = issued_and_ended(recorded("2.6.16").folder)
    assert len(pairs) > 100
    assert {end_ns - start_ns for start_ns, end_ns in pairs} == {2 * MS}


def test_a_request_takes_as_long_as_the_arm_does(tmp_path: Path) -> None:
    """D2C is what the drive's own tracepoint says: command, seek, rotation and transfer.

    The drive takes one request at a time; some reads are in its buffer already.
    """
    arm = Arm()

    def make_takers(machine: Machine) -> list[BlkTrace]:
        start_programs(machine)
        return [BlkTrace(machine, tmp_path), arm]

    sets = ("machine.disk.sda.queue_depth=1", "machine.disk.sda.write_cache=false")
    one = server_of("2.6.33", *sets)
    record_trace(one, 0, TO_NS, make_takers)
    took_ns = {start_ns: end_ns - start_ns for start_ns, end_ns in issued_and_ended(tmp_path)}
    last_ns = max(took_ns)
    moved_ns = {start_ns: ns for start_ns, ns in arm.accesses_ns.items() if start_ns <= last_ns}
    assert len(moved_ns) > 100
    assert {start_ns: took_ns[start_ns] for start_ns in moved_ns} == moved_ns


class Arm:
    """Takes when each access of a disk's arm begins, and how long it takes."""

    NAMES = frozenset(("disk_access",))

    def __init__(self) -> None:
        self.accesses_ns: dict[int, int] = {}

    def before(self, record) -> None: ...

    def begin(self, now_ns: int) -> None: ...

    def take(self, record) -> None:
        self.accesses_ns[record.when_ns] = sum(record.args[2:])

    def finish(self, now_ns: int) -> None: ...


@every_server
def test_no_two_things_overlap_on_a_track(recorded, server: str) -> None:
    """Slices of a track lie one after the other or within each other, and all in the time."""
    for one in recorded(server).perfetto.slices:
        assert FROM_NS <= one.start_ns <= (one.end_ns or TO_NS) <= TO_NS
        if one.track.startswith(("disk", "journal")):
            assert one.depth == 0


@every_server
def test_counters_end_with_what_there_is(tmp_path: Path, server: str) -> None:
    machines = []
    with (tmp_path / "t").open("wb") as file:

        def make_takers(machine: Machine) -> list[Perfetto]:
            machines.append(machine)
            start_programs(machine)
            return [Perfetto(machine, file)]

        record_trace(server_of(server), FROM_NS, TO_NS, make_takers)
    [machine] = machines
    [disk] = machine.disks
    last = {name: values[-1][1] for name, values in perfetto(tmp_path / "t").counters.items()}
    assert last["disk sda/sda: in the drive"] == disk.in_driver
    flushes = disk.ordered.slotless
    held = disk.requests.allocated() - disk.in_driver
    assert abs(last["disk sda/sda: waiting"] - held) <= flushes + ORDERED[server]
    assert last["dirty"] == machine.vm.nr_dirty * 4096
    assert last["running or blocked tasks"] == machine.load.active()


# --- blktrace's form


@every_server
def test_events_of_a_cpu_are_numbered_and_in_order(recorded, server: str) -> None:
    for path in recorded(server).folder.glob("*.blktrace.*"):
        events = blktrace(path)
        assert {event.magic for event in events} == {MAGIC}
        assert {event.cpu for event in events} == {int(path.suffix[1:])}
        assert {event.device for event in events} == {8 << 20}
        numbered = [event.sequence for event in events if event.letter != "n"]
        assert numbered == list(range(1, len(numbered) + 1))
        times = [event.time_ns for event in events]
        assert times == sorted(times) and times[0] >= FROM_NS and times[-1] <= TO_NS
        assert events[0].pdu.startswith(b"iotwin ")


@every_server
def test_a_bio_is_queued_once_and_becomes_or_joins_a_request(recorded, server: str) -> None:
    events = merged(recorded(server).folder, "sda")
    sectors = Counter()
    for event in events:
        sectors[event.letter] += event.bytes // 512
    assert sectors["Q"] == sectors["G"] + sectors["M"] + sectors["F"] > 0
    assert sectors["C"] <= sectors["D"] + 2048  # what was in the drive when the time began
    number = Counter(event.letter for event in events)
    assert number["Q"] == number["G"] + number["M"] + number["F"]


@every_server
def test_every_process_that_does_something_has_a_name(recorded, server: str) -> None:
    folder = recorded(server).folder
    assert {event.pid for event in merged(folder, "sda")} - {0} <= set(named_by(folder))


def named_by(folder: Path) -> dict[int, str]:
    """Return the names that notes give, by pid."""
    notes = [e for path in folder.glob("*.blktrace.*") for e in blktrace(path)]
    return {
        e.pid: e.pdu.rstrip(b"\0").decode()
        for e in notes
        if e.letter == "n" and e.action & 0xFF == 0
    }


def test_writers_and_readers_are_named(recorded) -> None:
    names = set(named_by(recorded("2.6.16").folder).values())
    assert {"kjournald", "writer", "reader"} <= names


@pytest.mark.parametrize(
    ("op", "flags", "sectors", "letters"),
    [
        (0, 0, 8, "R"),
        (0, 1, 8, "RS"),
        (1, 0, 8, "W"),
        (1, 1, 8, "WS"),
        (1, 1 | 16 | 32, 8, "FWFS"),
        (2, 16, 0, "FN"),
        (3, 0, 8, "D"),
    ],
)
def test_letters_are_the_kernel_s(op: int, flags: int, sectors: int, letters: str) -> None:
    """blk_fill_rwbs: F for a flush first, the direction, F for FUA, S for synchronous."""
    assert rwbs(op, flags, sectors) == letters


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: blktrace)")
    return found


@every_server
def test_blkparse_counts_the_same_requests(recorded, server: str) -> None:
    one = recorded(server)
    command = [tool("blkparse"), "-q", "-i", "sda", "-D", str(one.folder), "-f", "%a %d %n\n"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in shown.splitlines()]
    ended = [line for line in lines if line and line[0] == "C" and line[1] != "FN"]
    assert len(ended) == one.trace.requests["sda"]


def test_blkparse_misses_nothing(recorded) -> None:
    one = recorded("3.2")
    command = [tool("blkparse"), "-i", "sda", "-D", str(one.folder)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Skips: 0 forward" in shown
    assert "writer" in shown


def test_btt_computes_the_device_s_time(recorded, tmp_path: Path) -> None:
    """D2C of a device of constant latency: 2 ms, whichever it is."""
    one = recorded("2.6.16")
    merged_by_time = tmp_path / "sda.bin"
    parse = [tool("blkparse"), "-q", "-i", "sda", "-D", str(one.folder), "-O", "-d"]
    subprocess.run([*parse, str(merged_by_time)], capture_output=True, check=True)
    shown = subprocess.run(
        [tool("btt"), "-i", str(merged_by_time)], capture_output=True, text=True, check=True
    ).stdout
    [row] = [line.split() for line in shown.splitlines() if line.startswith("D2C")]
    assert [float(value) for value in row[1:4]] == pytest.approx([0.002] * 3, abs=1e-6)


# --- Tasks


def free_of_interrupts() -> tuple[str, ...]:
    return tuple(f'machine.syscall.{name}="0 ns"' for name in ("interrupt", "packet_interrupt"))


@pytest.mark.parametrize("server", ["2.6.16", "6.1"])
def test_a_task_runs_as_long_as_it_is_charged(tmp_path: Path, server: str) -> None:
    """Without interrupts: utime + stime of each task, to the nanosecond."""
    machines = []
    with (tmp_path / "t").open("wb") as file:

        def make_takers(machine: Machine) -> list[Perfetto]:
            machines.append(machine)
            start_programs(machine)
            return [Perfetto(machine, file)]

        record_trace(server_of(server, *free_of_interrupts()), 0, TO_NS, make_takers)
    [machine] = machines
    machine.sched.update()
    ran = perfetto(tmp_path / "t").running_ns(TO_NS)
    tasks = machine.sched.processes.tasks.values()
    charged = {task.pid: task.utime_ns + task.stime_ns for task in tasks}
    assert sum(charged.values()) > MS
    assert {pid: ran[pid] for pid in charged} == charged


def test_with_interrupts_running_time_is_what_the_cpus_were_not_idle(tmp_path: Path) -> None:
    """user + system + the interrupts that came while a task ran; the others are idle time's."""
    machines = []
    with (tmp_path / "t").open("wb") as file:

        def make_takers(machine: Machine) -> list[Perfetto]:
            machines.append(machine)
            start_programs(machine)
            return [Perfetto(machine, file)]

        record_trace(server_of("2.6.16"), 0, TO_NS, make_takers)
    ran = perfetto(tmp_path / "t").running_ns(TO_NS)
    times = machines[0].sched.cpu_times
    charged = sum(cpu.user_ns + cpu.system_ns + cpu.nice_ns for cpu in times)
    interrupts = sum(cpu.softirq_ns for cpu in times)
    busy = sum(ns for pid, ns in ran.items() if pid)
    assert interrupts > 0
    assert charged <= busy <= charged + interrupts


@every_server
def test_every_task_has_a_state_from_the_first_moment_on(recorded, server: str) -> None:
    trace = recorded(server).perfetto
    at_once = {s.prev_pid for s in trace.switches if s.now_ns == FROM_NS}
    at_once |= {s.next_pid for s in trace.switches if s.now_ns == FROM_NS}
    assert set(trace.names) <= at_once
    assert {"writer", "reader"} <= set(trace.names.values())


@every_server
def test_a_blocked_task_says_where(recorded, server: str) -> None:
    trace = recorded(server).perfetto
    asleep = [(s.now_ns, s.prev_pid) for s in trace.switches if s.prev_state == 2]
    assert asleep
    assert [(b.now_ns, b.pid) for b in trace.blocked] == asleep
    assert all(one.where for one in trace.blocked)


def test_transactions_are_those_of_explain(recorded) -> None:
    """Each has the beginning and the end that the timeline of `explain` gives it."""
    timeline = Timeline()

    def watch(machine: Machine) -> None:
        start_programs(machine)
        machine.tracer.start(*PATTERNS, sink=timeline.take)

    simulate(server_of("2.6.16"), 1, watch=watch)
    timeline.finish(END_NS)
    expected = {
        (one.kind.removesuffix("()"), one.pid, one.start_ns, one.end_ns)
        for one in timeline.transactions
        if one.start_ns > FROM_NS and one.end_ns <= TO_NS - 5 * MS
    }
    drawn = {
        (s.name, int(s.track.split()[1]), s.start_ns, s.end_ns)
        for s in recorded("2.6.16").perfetto.slices
        if s.track.startswith(("writer", "reader"))
    }
    assert len(expected) > 100
    assert expected <= drawn


def test_a_transaction_encloses_its_calls(recorded) -> None:
    slices = recorded("2.6.16").perfetto.slices
    depths = {one.name: one.depth for one in slices if one.track.startswith("writer")}
    assert depths == {"work": 0, "open": 1, "write": 1, "fsync": 1, "close": 1}


@pytest.mark.parametrize(("server", "name"), [("2.6.16", "commit "), ("xfs", "log write ")])
def test_commits_of_the_journal_are_drawn(recorded, server: str, name: str) -> None:
    drawn = list(of_track(recorded(server).perfetto, "journal of sda"))
    assert len(drawn) > 10
    assert all(one.name.startswith(name) for one in drawn)
