"""Front ends: slots, batches of completions, limits by kernel, costs."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import FLUSH, READ, WRITE
from sim.drivers.frontend import Frontend
from sim.drivers.ram import Ram, RamParams
from sim.drivers.xen_blkfront import XenBlkfrontParams
from sim.registry import lookup, names
from sim.scenario import ScenarioError
from sim.syscall import O_CREAT, O_WRONLY
from tests.block.disks import Rig
from tests.drivers.loads import bytes_per_s, closed_loop, per_s
from tests.drivers.test_ssd import Alone
from tests.user.servers import boot, run_program

US = 1000
KIB = 2  # sectors
FREE = {"backend_ns": 0, "notify_ns": 0}


def ram(latency_us=100, depth=1024):
    return Ram(RamParams(latency_ns=latency_us * US, queue_depth=depth))


def xen(device=None, **changes):
    return Frontend(XenBlkfrontParams(**changes), device or ram())


def any_of(name, device=None):
    entry = lookup("frontend", name)
    return entry.cls(entry.params(), device or ram())


@pytest.mark.parametrize("name", names("frontend"))
def test_a_front_end_hands_every_request_back_once(name):
    alone = Alone(any_of(name, ram(depth=3)))
    draw = random.Random(1)
    asked = []

    def ask():
        op = draw.choice((READ, WRITE, FLUSH))
        asked.append(alone.submit(op, draw.randrange(10_000), 0 if op == FLUSH else 8))

    for number in range(200):
        alone.calendar.post_at(number * 50 * US, lambda _: ask(), None)
    alone.calendar.run()
    assert sorted(map(id, asked)) == sorted(map(id, alone.ended))


@pytest.mark.parametrize("name", names("frontend"))
def test_a_front_end_has_no_more_in_flight_than_slots(name):
    front = any_of(name)
    rig = Rig(front, nr_requests=500)
    rig.tracer.start("block_rq_*")
    for number in range(300):
        rig.read(7 * number)
    rig.disk.unplug()
    rig.run()
    in_flight = most = 0
    for record in rig.tracer.records():
        in_flight += {"block_rq_issue": 1, "block_rq_complete": -1}.get(record.name, 0)
        most = max(most, in_flight)
    assert most == front.queue_depth


def test_the_ring_of_32_is_what_limits_a_fast_device():
    """32 slots over 1 ms: 32,000 a second, however many are asked for."""
    rig = closed_loop(xen(ram(1000), **FREE), READ, 100, 4000)
    assert per_s(rig) == pytest.approx(32_000, rel=0.01)


def test_the_device_behind_never_has_more_than_its_depth():
    """A device of depth 1 and 0.1 ms does 10,000 a second behind a ring of 32."""
    rig = closed_loop(xen(ram(100, depth=1), **FREE), READ, 32, 2000)
    assert per_s(rig) == pytest.approx(10_000, rel=0.01)


def test_emulated_ide_does_one_after_the_other():
    """80 us of processing, 100 us of device, 30 us until the interrupt."""
    rig = closed_loop(any_of("ide-emulated"), READ, 32, 1000)
    assert per_s(rig) == pytest.approx(1e6 / 210, rel=0.01)


def test_the_back_end_processes_one_request_at_a_time():
    rig = closed_loop(xen(backend_ns=50 * US, notify_ns=0), READ, 32, 2000)
    assert per_s(rig) == pytest.approx(20_000, rel=0.01)


def interrupts(front, requests):
    """Return how many interrupts bring so many requests that were submitted at once."""
    alone = Alone(front)
    for number in range(requests):
        alone.submit(READ, 8 * number, 8)
    alone.calendar.run()
    assert front.coalesces
    return len(set(alone.ended.values()))


def test_one_interrupt_brings_all_that_is_done_by_then():
    assert interrupts(xen(**FREE), 20) == 1
    assert interrupts(xen(backend_ns=10 * US, notify_ns=45 * US), 20) == 4
    assert interrupts(xen(backend_ns=10 * US, notify_ns=5 * US), 20) == 20


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 32), st.integers(0, 100), st.integers(0, 100))
def test_there_are_no_more_interrupts_than_requests(count, backend_us, notify_us):
    front = xen(backend_ns=backend_us * US, notify_ns=notify_us * US)
    assert 1 <= interrupts(front, count) <= count


# -- In a scenario

DISK = 'disk.xvda = {{ device = "{device}", {more} }}\n'
ROOT = 'mount."/" = { type = "ext3", device = "xvda" }'


def server(kernel, more, device="ram"):
    sets = [f'machine.kernel="{kernel}"']
    return boot(machine=DISK.format(device=device, more=more) + ROOT, sets=sets)


@pytest.mark.parametrize(
    ("kernel", "front", "kib", "segments"),
    [
        ("3.10", "xen-blkfront", 44, 11),
        ("3.11", "xen-blkfront", 128, 32),
        ("2.6.32", "virtio-blk", 504, 126),
        ("2.6.32", "ide-emulated", 128, 128),
    ],
)
def test_limits_flow_into_the_queue(kernel, front, kib, segments):
    machine = server(kernel, f'frontend = "{front}"')
    queue = machine.disks[0].params
    assert (queue.max_bytes, queue.max_segments) == (kib * 1024, segments)
    told = {p.path: p.source for p in machine.scenario.parameters}
    assert told["machine.disk.xvda.queue.max_segments"] == f"derived: limit of {front}"


def test_a_sequential_stream_comes_in_requests_of_44_kib():
    """A user of 3.10 sees 88 sectors a request, as EBS's own advice on kernels says."""
    rig = Rig(xen(ram(1000)), max_bytes=44 * 1024, max_segments=11)
    rig.read(0, 880)
    rig.disk.unplug()
    rig.run()
    lengths = [pages for _, pages in rig.issued()]
    assert max(lengths) == 11
    assert lengths.count(11) > 0.85 * len(lengths)


def test_a_queue_cannot_be_given_longer_requests_than_the_front_end_takes():
    with pytest.raises(ScenarioError, match="takes no more") as caught:
        server("3.2", 'frontend = "xen-blkfront", queue.max_segments = 128')
    assert "up to 11" in str(caught.value)


def test_an_unknown_front_end_is_told_with_the_nearest():
    with pytest.raises(ScenarioError, match="did you mean 'virtio-blk'"):
        server("3.2", 'frontend = "virtio-blok"')


def test_parameters_of_a_front_end_need_one():
    with pytest.raises(ScenarioError, match="for a disk with a frontend"):
        server("3.2", "front.slots = 16")


def test_parameters_of_a_front_end_can_be_set():
    machine = server("3.2", 'frontend = "xen-blkfront", front.slots = 16')
    assert machine.disks[0].driver.queue_depth == 16


@pytest.mark.parametrize("name", names("frontend"))
def test_a_server_writes_through_a_front_end(name):
    machine = server("3.2", f'frontend = "{name}"')

    def program(sys):
        fd = yield from sys.open("/a", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 3_000_000)
        yield from sys.fsync(fd)

    run_program(machine, program, seconds=3)
    stats = machine.disks[0].stats
    assert stats.write_sectors * 512 >= 3_000_000
    most = machine.disks[0].params.max_bytes // 512
    assert 0.9 * 3_000_000 / 512 / stats.writes <= most
    machine.check()


def test_emulated_ide_costs_more_cpu_than_virtio():
    """The same 3 MB: an exit to user space for every register against one to the kernel."""
    spent = {}
    for name in ("ide-emulated", "virtio-blk"):
        machine = server("3.2", f'frontend = "{name}", queue.max_bytes = 4096')

        def program(sys):
            fd = yield from sys.open("/a", O_WRONLY | O_CREAT)
            yield from sys.write(fd, 3_000_000)
            yield from sys.fsync(fd)

        run_program(machine, program, seconds=3)
        times = machine.sched.cpu_times
        spent[name] = sum(cpu.total_ns() - cpu.idle_ns - cpu.iowait_ns for cpu in times)
    requests = 3_000_000 / 4096
    per_request_us = (spent["ide-emulated"] - spent["virtio-blk"]) / requests / US
    assert 50 < per_request_us < 120  # 72 - 3, and fewer interrupts with virtio


def test_volumes_of_a_server_share_their_instances_path():
    disks = "\n".join(
        f'disk.{name} = {{ device = "ebs-gp2", frontend = "xen-blkfront", '
        f'instance = "m3.xlarge ebs-optimized" }}'
        for name in ("xvda", "xvdb")
    )
    machine = boot(machine=disks + '\nmount."/" = { type = "ext3", device = "xvda" }')
    paths = {id(disk.driver._device._path) for disk in machine.disks}
    assert len(paths) == 1


def test_longer_requests_are_worth_it():
    """1 ms each way whatever the length: 44 KiB at a time is a third of 128 KiB."""
    rates = [
        bytes_per_s(closed_loop(xen(ram(1000)), READ, 32, 500, sectors=kib * KIB))
        for kib in (44, 128)
    ]
    assert rates[1] / rates[0] == pytest.approx(128 / 44, rel=0.05)
