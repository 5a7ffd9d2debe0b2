"""What caches lose: a read or a write long after the last one takes longer."""

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.scenario import ScenarioError
from sim.sched.caches import CachedPath
from sim.syscall import O_CREAT, O_RDWR
from tests.sched.rig import MS, US, Rig
from tests.user.servers import TMPFS, boot, run_program

LOSES = (
    'machine.vfs.cache_life = "5 ms"',
    'machine.vfs.read_refill = "12 us"',
    'machine.vfs.write_refill = "27 us"',
)


def read(sys, fd):
    return sys.pread(fd, 100, 0)


def write(sys, fd):
    return sys.pwrite(fd, 100, 0)


def longer_us(call, pauses_ns, sets=LOSES, *, beside=None):
    """Return of each pause how long ago the last call was, ms, and how much longer one took, us.

    `beside` is the body of a program that runs on the same CPU.
    """
    machine = boot(cpus=1, machine="", sets=(*TMPFS, *sets))
    calls = []

    def caller(sys):
        fd = yield from sys.open("/file", O_RDWR | O_CREAT)
        yield from write(sys, fd)
        for pause_ns in (0, *pauses_ns):
            if pause_ns:
                yield from sys.sleep(pause_ns)
            for _ in range(2):
                began_ns = sys.clock_ns()
                yield from call(sys, fd)
                calls.append((began_ns, sys.clock_ns() - began_ns))

    if beside is not None:
        machine.kernel.start("beside", "beside", beside)
    run_program(machine, caller)
    warm_ns = calls[1][1]
    return [
        ((began_ns - last_ns) / MS, (took_ns - warm_ns) / US)
        for (last_ns, _), (began_ns, took_ns) in zip(calls[1::2], calls[2::2], strict=False)
    ]


def lost(found, refill_us, life_ms=5):
    """Return what theory says to the pauses of `found`, us, and what was found."""
    expected = [refill_us * (1 - exp(-pause_ms / life_ms)) for pause_ms, _ in found]
    return [us for _, us in found], pytest.approx(expected, abs=0.3)


PAUSES = (MS, 20 * MS)


@pytest.mark.parametrize(("call", "refill_us"), [(read, 12), (write, 27)])
def test_a_call_takes_longer_the_longer_ago_the_last_one_was(call, refill_us):
    """The numbers at the head of caches.py, with a life of 5 ms."""
    found, expected = lost(longer_us(call, PAUSES), refill_us)
    assert found == expected
    assert found == pytest.approx([refill_us * 0.181, refill_us * 0.982], abs=0.3)


@pytest.mark.parametrize("call", [read, write])
def test_without_a_refill_it_takes_as_long_as_ever(call):
    assert [us for _, us in longer_us(call, PAUSES, ())] == [0, 0]


def test_what_was_fetched_is_not_fetched_again_at_once():
    task = Rig().sched.spawn("task", lambda _: iter(()))
    path = CachedPath(27 * US, 5 * MS)
    assert [path.refill_ns(task) for _ in range(3)] == [27 * US, 0, 0]


def computes(sys):
    while True:
        sys.compute(50 * MS)
        yield


def writes(sys):
    fd = yield from sys.open("/other", O_RDWR | O_CREAT)
    while True:
        sys.compute(20 * US)
        yield from write(sys, fd)
        yield


def test_a_program_that_computes_keeps_no_call_warm():
    """A CPU that never halted is as cold as one that did."""
    found, expected = lost(longer_us(write, PAUSES, beside=computes), 27)
    assert found == expected
    assert min(found) > 4


def test_somebody_who_writes_keeps_writes_warm_and_no_reads():
    """Whoever it is: the caches are the CPU's."""
    assert [us for _, us in longer_us(write, PAUSES, beside=writes)] == pytest.approx(
        [0, 0], abs=0.3
    )
    found, expected = lost(longer_us(read, PAUSES, beside=writes), 12)
    assert found == expected
    assert min(found) > 2


def test_each_cpu_has_its_own_caches():
    rig = Rig(2)
    task = rig.sched.spawn("task", lambda _: iter(()))
    path = CachedPath(27 * US, 5 * MS)
    found = []
    for task.cpu in (0, 0, 1, 1, 0):
        found.append(path.refill_ns(task))
    assert found == [27 * US, 0, 27 * US, 0, 0]


@given(st.lists(st.integers(0, 100 * MS), min_size=1, max_size=20))
def test_a_refill_is_never_more_than_all_and_grows_with_the_time(pauses_ns):
    costs = []
    for pause_ns in sorted(pauses_ns):
        rig = Rig()
        task = rig.sched.spawn("task", lambda _: iter(()))
        path = CachedPath(27 * US, 5 * MS)
        path.refill_ns(task)
        rig.calendar.run_until(pause_ns)
        costs.append(path.refill_ns(task))
    assert costs == sorted(costs)
    assert costs[0] >= 0
    assert costs[-1] <= 27 * US


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("cache_life", "0 s", "1 us"),
        ("read_refill", "-1 us", "0"),
        ("write_refill", "1 s", "1 ms"),
    ],
)
def test_what_no_cache_does_is_refused(key, value, allowed):
    with pytest.raises(ScenarioError) as refused:
        boot(machine="", sets=(*TMPFS, f'machine.vfs.{key} = "{value}"'))
    assert f"machine.vfs.{key}" in str(refused.value)
    assert value in str(refused.value)
    assert allowed in str(refused.value)
