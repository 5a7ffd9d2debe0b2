"""Tracepoints of the scheduler: the life of a parent and its child, as the kernel would show it."""

from sim.engine.calendar import Calendar
from sim.engine.trace import Tracer, format_record
from sim.sched.core import Sched
from sim.sched.params import SchedParams
from tests.sched.rig import MS, O1, compute


def test_fork_switch_exit_and_wake_up_are_traced_in_order():
    calendar = Calendar()
    tracer = Tracer(calendar)
    sched = Sched(calendar, 1, O1, SchedParams(context_switch_ns=0), tracer)

    def parent(task):
        child = sched.spawn("child", compute(5 * MS), task)
        yield from sched.waitpid(task, child.pid)

    tracer.start("sched_*")
    sched.spawn("parent", parent)
    calendar.run_until(100 * MS)
    assert [format_record(record) for record in tracer.records()] == [
        "    0.000000: sched_process_fork: comm=swapper pid=0 child_comm=parent child_pid=2",
        "    0.000000: sched_switch: cpu=0 prev_comm=swapper prev_pid=0 prev_state=R"
        " next_comm=parent next_pid=2 prev_wchan= prev_utime_ns=0 prev_stime_ns=0",
        "    0.000000: sched_process_fork: comm=parent pid=2 child_comm=child child_pid=3",
        "    0.000000: sched_switch: cpu=0 prev_comm=parent prev_pid=2 prev_state=S"
        " next_comm=child next_pid=3 prev_wchan=do_wait prev_utime_ns=0 prev_stime_ns=0",
        "    0.005000: sched_process_exit: comm=child pid=3",
        "    0.005000: sched_wakeup: comm=parent pid=2 cpu=0 by_pid=0",
        "    0.005000: sched_switch: cpu=0 prev_comm=child prev_pid=3 prev_state=Z"
        " next_comm=parent next_pid=2 prev_wchan= prev_utime_ns=5000000 prev_stime_ns=0",
        "    0.005000: sched_process_exit: comm=parent pid=2",
        "    0.005000: sched_switch: cpu=0 prev_comm=parent prev_pid=2 prev_state=X"
        " next_comm=swapper next_pid=0 prev_wchan=do_wait prev_utime_ns=0 prev_stime_ns=0",
    ]
