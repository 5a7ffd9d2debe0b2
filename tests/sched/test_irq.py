"""Interrupt lines: whose CPU serves them, and for how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.sched.irq import InterruptLine
from sim.sched.task import TASK_UNINTERRUPTIBLE, sleep_ns
from sim.syscall import O_DIRECT, O_RDONLY
from tests.sched.rig import MS, US, Rig
from tests.user.servers import S, boot


def test_a_line_takes_its_time_from_its_cpu_only():
    rig = Rig(cpus=2)
    line = InterruptLine(rig.sched, 1, 100 * US)
    rig.at(MS, lambda _: line.serve())
    rig.at(5 * MS, lambda _: line.serve(packets=3))
    rig.run(0.01)
    assert [cpu.softirq_ns for cpu in rig.sched.cpu_times] == [0, 400 * US]
    assert rig.sched.nr_interrupts == 2


def test_what_comes_in_one_instant_is_one_interrupt_where_the_card_waits_for_it():
    """100 us for the first packet, 30 for each that comes with it, in the same message or not."""
    rig = Rig()
    line = InterruptLine(rig.sched, 0, 100 * US, 30 * US)
    for packets in (1, 2, 1):
        rig.at(MS, lambda _, packets=packets: line.serve(packets))
    rig.at(5 * MS, lambda _: line.serve())
    rig.run(0.01)
    assert rig.cpu_s("softirq_ns") == (100 + 3 * 30 + 100) * 1e-6
    assert rig.sched.nr_interrupts == 2


def times_of_a_sleeper(interrupts, look_ns):
    """Return when a task slept that long, and what the CPU did, looked at every `look_ns`."""
    rig = Rig()
    ended_ns = []

    def program(task):
        for _ in range(3):
            task.charge_user(20 * US)
            yield from sleep_ns(task, 50 * US, TASK_UNINTERRUPTIBLE, "test")
            ended_ns.append(rig.calendar.now)

    rig.sched.spawn("worker", program)
    for at_ns, ns in interrupts:
        rig.at(at_ns, lambda _, ns=ns: InterruptLine(rig.sched, 0, ns).serve())
    for at_ns in range(0, 2 * MS, look_ns):
        rig.at(at_ns, lambda _: rig.sched.update())
    rig.run(0.002)
    (times,) = rig.sched.cpu_times
    return ended_ns, times.user_ns, times.system_ns, times.softirq_ns, times.idle_ns


@given(st.lists(st.tuples(st.integers(0, 300 * US), st.integers(1, 40 * US)), max_size=40))
def test_who_looks_at_the_times_of_the_cpus_changes_none(interrupts):
    """Time in which a CPU serves interrupts is accounted for later, or when somebody looks."""
    found = times_of_a_sleeper(interrupts, 7 * US)
    assert found == times_of_a_sleeper(interrupts, MS)
    assert found[3] == sum(ns for _, ns in interrupts)


def reads_in_50_ms(queues, jobs):
    """Return a machine of 4 CPUs after readers of an NVMe drive, and what each of them read."""
    machine = boot(
        machine=f"""syscall.interrupt = "8 us"
disk.nvme0n1 = {{ profile = "ssd-nvme", queues = {queues} }}
mount."/" = {{ type = "tmpfs" }}
""",
        sets=('machine.kernel="6.1"', "machine.cpus=4"),
    )
    done = [0] * jobs

    def reader(number):
        def program(sys):
            fd = yield from sys.open("/dev/nvme0n1", O_RDONLY | O_DIRECT)
            while True:
                yield from sys.pread(fd, 4096, (done[number] * 7919 + number) % 100_000 * 4096)
                done[number] += 1

        return program

    for number in range(jobs):
        machine.kernel.start(f"reader{number}", "reader", reader(number))
    machine.run_until(S // 20)
    return machine, done


@pytest.mark.parametrize(("queues", "serving"), [(1, [0]), (2, [0, 2]), (31, [0, 1, 2, 3])])
def test_a_completion_interrupts_the_first_cpu_that_shares_the_queue(queues, serving):
    machine, _ = reads_in_50_ms(queues, 8)
    times = machine.sched.cpu_times
    assert [cpu for cpu, time in enumerate(times) if time.softirq_ns] == serving


def test_with_a_queue_for_each_cpu_no_reader_starves():
    _, done = reads_in_50_ms(31, 4)
    assert min(done) > 0.8 * sum(done) / 4
