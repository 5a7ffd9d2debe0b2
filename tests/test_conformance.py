"""What every class of the registry must do: a new one is covered here without a new test.

The suites of tests/block and tests/drivers say what a certain elevator or disk does; this one says
what holds for all devices, elevators, file systems, programs and profiles
(tests/test_scenarios_run.py: for all scenarios).
"""

import errno
import random
import sys
from collections import Counter
from dataclasses import fields
from typing import get_type_hints

import pytest

from sim.block.bio import BIO_BARRIER, BIO_SYNC, FLUSH, READ, WRITE, Request
from sim.block.driver import Driver
from sim.block.elevator import Elevator, ElevatorQueue, no_cgroup
from sim.drivers.disk import profile_names
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.machine import Machine
from sim.param import params_of
from sim.registry import KINDS, Entry, lookup, names
from sim.scenario.cases import use_all
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDONLY, O_WRONLY, Sys
from sim.units import DIMS, parse_quantity
from tests.block.disks import MS, PAGE, Rig, ram
from tests.user.servers import EXT3, S, boot, run_for, run_program

EXAMPLES = {  # of any other dimension: a bare 1
    "bool": True,
    "text": "x",
    "time_ns": "1 s",
    "rate_per_s": "1 /s",
    "bytes_per_s": "1 B/s",
    "clock_khz": "1 GHz",
}
use_all()
ENTRIES = [lookup(kind, name) for kind in KINDS for name in names(kind)]


def of(kind: str) -> list[str]:
    """Return the names of a kind."""
    return [entry.name for entry in ENTRIES if entry.kind == kind]


def by_name(entry: Entry) -> str:
    return f"{entry.kind}-{entry.name}"


@pytest.mark.parametrize("entry", ENTRIES, ids=by_name)
def test_it_says_what_it_is_and_whence_its_numbers_are(entry: Entry) -> None:
    assert entry.doc and "\n" not in entry.doc
    assert sys.modules[entry.cls.__module__].__doc__
    assert entry.params.__doc__
    for param in params_of(entry.params):
        assert param.source and param.doc, param.name
        assert param.dim in DIMS


@pytest.mark.parametrize("entry", ENTRIES, ids=by_name)
def test_a_parameter_has_the_type_that_its_values_are_read_as(entry: Entry) -> None:
    """A compiled class takes no other: a rate for a field of int ends the run."""
    hints = get_type_hints(entry.params)
    for param in params_of(entry.params):
        read_as = type(parse_quantity(EXAMPLES.get(param.dim, 1), param.dim))
        assert hints[param.name] in (read_as, read_as | None), param.name


# -- Devices, without a queue above them.


def device(name: str, write_cache: bool = False) -> Driver:
    """Make a device; with a write cache if it can have one, or else told that it has."""
    entry = lookup("device", name)
    has_one = write_cache and any(param.name == "write_cache" for param in params_of(entry.params))
    made: Driver = entry.cls(entry.params(**({"write_cache": True} if has_one else {})))
    made.write_cache = made.write_cache or write_cache
    return made


def serve(driver: Driver, count: int, seed: int = 1) -> list[tuple[int, int]]:
    """Keep the device full of random requests; return (end in ns, number) as they ended."""
    calendar = Calendar()
    draw = random.Random(seed)
    numbers: dict[int, int] = {}
    ended: list[tuple[int, int]] = []
    submitting = [False]

    def submit() -> None:
        number = len(numbers)
        op = FLUSH if number % 20 == 19 else draw.choice((READ, WRITE))
        length = 0 if op == FLUSH else PAGE * draw.randint(1, 64)
        sector = draw.randrange(driver.capacity_sectors - length)
        request = Request(op, sector, length, calendar.now)
        request.started = True
        requests.append(request)
        numbers[id(request)] = number
        submitting[0] = True
        driver.submit(request)
        submitting[0] = False

    def complete(request: Request) -> None:
        assert not submitting[0], "complete() before submit() returned"
        ended.append((calendar.now, numbers[id(request)]))
        if len(numbers) < count:
            submit()

    requests: list[Request] = []
    driver.attach("sdx", calendar, Streams(seed), complete)
    for _ in range(min(driver.queue_depth, 40)):
        submit()
    calendar.run()
    return ended


@pytest.mark.parametrize("name", of("device"))
def test_a_device_hands_every_request_back_once(name: str) -> None:
    ended = serve(device(name), 400)
    assert sorted(number for _, number in ended) == list(range(400))


@pytest.mark.parametrize("name", of("device"))
def test_a_device_takes_the_same_times_with_the_same_chance(name: str) -> None:
    assert serve(device(name), 200) == serve(device(name), 200)


@pytest.mark.parametrize("write_cache", [False, True])
@pytest.mark.parametrize("name", of("device"))
def test_a_device_under_a_queue_never_has_more_than_its_depth(name: str, write_cache: bool) -> None:
    driver = device(name)
    driver.write_cache = (write_cache and name == "ram") or driver.write_cache
    rig = Rig(driver)
    rig.tracer.start("block_rq_*")
    draw = random.Random(1)
    for number in range(120):
        flags = BIO_BARRIER if number % 30 == 29 else 0
        rig.write(draw.randrange(10_000), flags=flags)
    rig.disk.unplug()
    rig.run()
    assert len(rig.ended) == 120
    in_flight = most = 0
    for record in rig.tracer.records():
        in_flight += {"block_rq_issue": 1, "block_rq_complete": -1}.get(record.name, 0)
        most = max(most, in_flight)
    assert in_flight == 0
    assert 0 < most <= driver.queue_depth


# -- Elevators, by themselves.


TAGGED = ("bfq", "kyber", "mq-deadline", "none")  # of multi-queue devices


class Queue:
    """A queue that only asks: its elevator's timer runs, and whoever is to be asked is asked."""

    def __init__(self, elevator: Elevator) -> None:
        self.calendar = Calendar()
        self.elevator = elevator
        elevator.attach(
            ElevatorQueue(
                self.calendar,
                rotational=True,
                timeout=elevator.timeout,
                schedule_run=lambda: None,
                start_queueing=lambda: None,
                ioprio=lambda pid: 4,
                dev="8:0",
                blkcg=no_cgroup,
            )
        )

    def take(self, most: int) -> list[Request]:
        """Serve up to `most` requests, a millisecond each, waiting where the elevator does."""
        served: list[Request] = []
        while len(served) < most and self.calendar.now < 100 * S:
            request = self.elevator.next(self.calendar.now)
            if request is not None:
                self.elevator.started(request)
                served.append(request)
            self.calendar.run_until(self.calendar.now + MS)
            if request is not None:
                self.elevator.completed(request)
        return served


def elevator(name: str) -> Elevator:
    entry = lookup("elevator", name)
    made: Elevator = entry.cls(entry.params())
    return made


def mixed_requests(count: int) -> list[Request]:
    """Return requests of reads and writes, synchronous or not, of a few processes."""
    draw = random.Random(1)
    made = []
    for number in range(count):
        request = Request(draw.choice((READ, WRITE)), 1000 * number, PAGE, 0)
        request.sync = request.op == READ or draw.random() < 0.5
        request.task_id = draw.randint(1, 4)
        made.append(request)
    draw.shuffle(made)
    return made


@pytest.mark.parametrize("name", of("elevator"))
def test_an_elevator_gives_every_request_once(name: str) -> None:
    queue = Queue(elevator(name))
    requests = mixed_requests(60)
    for request in requests:
        queue.elevator.insert(request)
    served = queue.take(60)
    assert Counter(map(id, served)) == Counter(map(id, requests))
    assert queue.elevator.next(queue.calendar.now) is None


@pytest.mark.parametrize("name", of("elevator"))
def test_an_elevator_drains_what_it_has_not_given_yet(name: str) -> None:
    queue = Queue(elevator(name))
    requests = mixed_requests(40)
    for request in requests:
        queue.elevator.insert(request)
    served = queue.take(15) + queue.elevator.drain(queue.calendar.now)
    assert Counter(map(id, served)) == Counter(map(id, requests))


@pytest.mark.parametrize("op", [READ, WRITE], ids=["read", "write"])
@pytest.mark.parametrize("name", of("elevator"))
def test_nobody_starves_behind_a_crowd(name: str, op: int) -> None:
    """A process reads without pause at the disk's beginning; another asks once, at its end."""
    # One queue's elevator has the device to itself; several queues' have tags by its depth.
    rig = Rig(ram(queue_depth=16 if name in TAGGED else 1), elevator(name))
    rig.tracer.stop()
    draw = random.Random(1)
    lone = rig.bio(op, 200_000, pid=2)

    def read_again(_: object) -> None:
        if rig.calendar.now < 20 * S:
            bio = rig.bio(READ, draw.randrange(10_000), pid=1)
            bio.end_io = read_again
            rig.disk.submit_bio(bio)
            rig.disk.unplug()

    for _ in range(8):
        read_again(None)
    rig.at(S, rig.disk.submit_bio, lone)
    rig.run()
    ended_s = next(when for when, bio in rig.ended if bio is lone) / S
    assert ended_s < 1 + 7  # deadline lets a write wait for 5 s


@pytest.mark.parametrize("name", [name for name in of("elevator") if name != "none"])
def test_merges_lose_no_sector(name: str) -> None:
    """Forty neighbours behind a busy driver, in random order: fewer requests, the same sectors.

    Without an elevator there is nowhere to merge: the driver takes each at once.
    """
    rig = Rig(ram(latency_ns=50 * MS, queue_depth=24 if name in TAGGED else 1), elevator(name))
    pages = list(range(40))
    random.Random(1).shuffle(pages)
    flags = BIO_SYNC if name in TAGGED else 0  # asynchronous ones may not have all tags
    rig.write(5000)
    rig.disk.unplug()
    for page in pages:
        rig.write(page, flags=flags)
    rig.run()
    stats = rig.stats
    assert stats.write_sectors == 41 * PAGE
    assert stats.writes < 41
    assert sorted(page + n for page, count in rig.issued() for n in range(count))[:40] == sorted(
        pages
    )


# -- File systems.

SMALL_DISK = EXT3.replace("4 GiB", "64 MiB").replace("2 ms", "0.1 ms")


NEEDS = {  # a host that exports it
    "nfs": (
        'machine.mount."/".server="filer"',
        'machine.mount."/".capacity="64 MiB"',
        'link.lan.latency="0.1 ms"',
        'process.filer.program="nfsd"',
        'process.filer.via="lan"',
    )
}


def mounted(name: str) -> Machine:
    """Boot a machine whose root is such a file system (one without a device leaves it idle)."""
    sets = [f'machine.mount."/".type="{name}"', *NEEDS.get(name, ())]
    return boot(machine=SMALL_DISK, sets=sets)


@pytest.mark.parametrize("name", of("filesystem"))
def test_a_file_is_made_written_synced_renamed_read_and_removed(name: str) -> None:
    machine = mounted(name)

    def program(sys: Sys) -> Blocking[None]:
        yield from sys.mkdir("/d")
        fd = yield from sys.open("/d/a", O_WRONLY | O_CREAT)
        assert (yield from sys.write(fd, 100_000, chunk=4096)) == 100_000
        yield from sys.fsync(fd)
        assert (yield from sys.pwrite(fd, 10, 200_000)) == 10
        yield from sys.fdatasync(fd)
        yield from sys.close(fd)
        yield from sys.rename("/d/a", "/b")
        fd = yield from sys.open("/b", O_RDONLY)
        assert (yield from sys.read(fd, 1_000_000)) == 200_010
        assert (yield from sys.read(fd, 1)) == 0
        yield from sys.unlink("/b")
        assert (yield from sys.pread(fd, 100, 0)) == 100  # while it is open
        yield from sys.close(fd)
        directory = yield from sys.open("/d", O_RDONLY)
        yield from sys.fsync(directory)
        yield from sys.close(directory)

    free = machine.vfs.file_system_of("/").statfs()
    run_program(machine, program, seconds=40)
    fs = machine.vfs.file_system_of("/")
    assert fs.check() == []
    assert fs.statfs().files_free == free.files_free - 1  # the directory


@pytest.mark.parametrize("name", of("filesystem"))
def test_what_is_not_there_is_enoent(name: str) -> None:
    def program(sys: Sys) -> Blocking[None]:
        for call in (
            sys.open("/none"),
            sys.open("/none/a", O_WRONLY | O_CREAT),
            sys.unlink("/none"),
            sys.rename("/none", "/a"),
        ):
            with pytest.raises(FileNotFoundError):
                yield from call

    run_program(mounted(name), program)


@pytest.mark.parametrize("name", of("filesystem"))
def test_a_full_file_system_says_so_and_has_its_space_back_afterwards(name: str) -> None:
    machine = mounted(name)
    fs = machine.vfs.file_system_of("/")
    free = fs.statfs().blocks_free
    refusals: list[int | None] = []

    def program(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/big", O_WRONLY | O_CREAT)
        try:
            while (yield from sys.write(fd, 1 << 20)):
                pass
        except OSError as error:
            refusals.append(error.errno)
        yield from sys.close(fd)
        assert fs.statfs().blocks_free < free // 20
        yield from sys.unlink("/big")

    run_program(machine, program, seconds=60)
    assert refusals == [errno.ENOSPC]
    assert fs.check() == []
    assert fs.statfs().blocks_free >= free - 2  # the root directory may have grown


def test_a_file_system_without_a_device_is_mounted_without_one() -> None:
    machine = boot(machine='mount."/" = { type = "tmpfs", size = "16 MiB" }')
    assert machine.disks == []
    assert machine.vfs.file_system_of("/").statfs().blocks * 4096 == 16 << 20


# -- Programs, profiles.


@pytest.mark.parametrize("name", of("program"))
def test_a_machine_with_the_program_boots_and_runs(name: str) -> None:
    entry = lookup("program", name)
    outside = getattr(entry.cls, "runs", None) == "outside"
    via = 'via = "lan"\n' if outside else ""
    named = [one.name for one in params_of(entry.params) if one.names_host]
    hosts = [one.default for one in fields(entry.params) if one.name in named]
    others = "".join(f'[process.{host}]\nprogram = "smtp_relay"\nvia = "lan"\n' for host in hosts)
    release = ".".join(map(str, max(entry.since or (0,), (2, 6, 16))))
    sets = [f'machine.kernel="{release}"', 'machine.disk.sda.capacity="64 GiB"']
    # Customers that never think would send a million transactions of a microsecond.
    if any(one.name == "think_time_ns" for one in params_of(entry.params)):
        sets.append('process.it.think_time="10 ms"')
    machine = run_for(boot(f'{others}[process.it]\nprogram = "{name}"\n{via}', sets=sets), 2)
    assert machine.calendar.now == 2 * S


@pytest.mark.parametrize("name", profile_names())
def test_a_machine_with_the_disk_boots_and_every_number_of_it_has_a_source(name: str) -> None:
    disk = f'disk.sda = {{ profile = "{name}" }}\nmount."/" = {{ type = "ext3", device = "sda" }}'
    machine = boot(machine=disk)
    listed = [p for p in machine.scenario.parameters if p.path.startswith("machine.disk.sda.")]
    assert len(listed) > 5
    assert [p.path for p in listed if not p.source or not p.doc or p.dim not in DIMS] == []

    def program(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/a", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 10_000)
        yield from sys.fsync(fd)

    run_program(machine, program, seconds=3)
    assert machine.disks[0].stats.writes > 0
