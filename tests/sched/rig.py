"""CPUs with nothing else, and programs that compute, wait, and measure."""

import random

from sim.engine.calendar import Calendar
from sim.sched.core import Sched
from sim.sched.params import SchedParams
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_RUNNING, sleep_ns

US = 1_000
MS = 1_000_000
S = 1_000_000_000

O1, CFS, MODERN, EEVDF = (2, 6, 16), (2, 6, 32), (4, 4), (6, 12)
RELEASES = [(2, 6, 16), (2, 6, 18), (2, 6, 24), (2, 6, 32), (3, 2), (4, 4), (5, 4), (6, 12)]


class Rig:
    """A machine's scheduler; context switches are free unless asked for."""

    def __init__(self, cpus=1, kernel=CFS, *, switch_ns=0, hz=250, notsc=False, preemption="full"):
        self.calendar = Calendar()
        params = SchedParams(context_switch_ns=switch_ns, hz=hz, notsc=notsc, preemption=preemption)
        self.sched = Sched(self.calendar, cpus, kernel, params)
        self.log = []

    def run(self, seconds):
        self.calendar.run_until(self.calendar.now + int(seconds * S))
        return self

    def at(self, when_ns, fn, arg=None):
        self.calendar.post(when_ns - self.calendar.now, fn, arg)

    def note(self, what):
        self.log.append((self.calendar.now, what))

    def hogs(self, *nices):
        return [self.sched.spawn(f"hog{nice}", hog, nice=nice) for nice in nices]

    def cpu_s(self, column):
        return sum(getattr(time, column) for time in self.sched.cpu_times) / S

    def shares(self, tasks):
        total = sum(task.utime_ns for task in tasks)
        return [task.utime_ns / total for task in tasks]


def hog(task):
    while True:
        task.charge_user(50 * MS)
        yield


def compute(ns):
    """A program that computes for `ns` and exits."""

    def main(task):
        task.charge_user(ns)
        yield

    return main


def sleeper(state, ns, in_iowait=False, until_ns=None):
    """A program that sleeps in `state` again and again, for `ns` each time."""

    def main(task):
        while until_ns is None or task.sched.calendar.now < until_ns:
            task.in_iowait = in_iowait
            yield from sleep_ns(task, ns, state, "test")
            task.in_iowait = False

    return main


class OpenQueue:
    """Poisson arrivals of jobs with exponential demand, each done by a task of a pool."""

    def __init__(self, rig, *, rate_per_s, mean_ns, jobs, seed=1):
        self.rig = rig
        self.random = random.Random(seed)
        self.rate_per_ns = rate_per_s / S
        self.mean_ns = mean_ns
        self.left = jobs
        self.idle = []
        self.arrived = {}
        self.response_ns = []
        self.area = 0
        self._in_system = 0
        self._changed_ns = 0
        rig.calendar.post(0, self._arrive, None)

    def _count(self, change):
        now = self.rig.calendar.now
        self.area += self._in_system * (now - self._changed_ns)
        self._changed_ns = now
        self._in_system += change

    def _arrive(self, _):
        if not self.left:
            return
        self.left -= 1
        self._count(+1)
        task = self.idle.pop() if self.idle else self.rig.sched.spawn("worker", self._work)
        self.arrived[task.pid] = self.rig.calendar.now
        if task.state != TASK_RUNNING:
            self.rig.sched.wake_up(task)
        self.rig.calendar.post(int(self.random.expovariate(self.rate_per_ns)), self._arrive, None)

    def _work(self, task):
        while True:
            task.charge_user(max(1, int(self.random.expovariate(1 / self.mean_ns))))
            yield
            self.response_ns.append(self.rig.calendar.now - self.arrived.pop(task.pid))
            self._count(-1)
            self.idle.append(task)
            task.set_state(TASK_INTERRUPTIBLE, "pool")
            yield

    def mean_in_system(self):
        return self.area / self._changed_ns

    def mean_response_s(self):
        return sum(self.response_ns) / len(self.response_ns) / S
