"""Random reads of 4 KiB through io_uring on NVMe, 32 deep, against the queue alone in SimPy.

The twin's case is io_uring.toml: each read is an entry of a ring, a bio, a tag, a command in a
queue of the drive, a page on a die, an interrupt and a completion. The naive model of the same
queue is what a first SimPy program does: 32 processes in a loop, a Resource with the drive's dies,
a timeout as long as a read takes, and the response time noted. The last case is what the naive
model has no counterpart for: fio, which takes completions one at a time, with its figures.
"""

import random
import resource
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import simpy

from benchmarks.measure import Row, measure
from sim.machine import Machine, simulate
from sim.scenario import load
from sim.scenario.fio_file import read_fio_text
from sim.study.fio_run import FioRun, load_machine

SCENARIO = Path(__file__).with_name("io_uring.toml")
DEPTH = 32
DIES = 144
READ_NS = 65_000  # sensing a page
OTHER_NS = 20_000  # command, channel, lanes
ROUND = 20_000
MILLION = 1_000_000
UNTIL_DONE = "run.until=reads_done"
KIB_PER_MIB = 1024
STEP_NS = 10_000_000
JOB = f"""\
[reads]
filename=/dev/nvme0n1
rw=randread
ioengine=io_uring
direct=1
iodepth={DEPTH}
"""


class TwinReads:
    """A machine at work; each call simulates until so many more are read."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        machine.run_until(STEP_NS)

    def run(self) -> float:
        """Simulate a round; return the requests served."""
        machine = self.machine
        stats = machine.disks[0].stats
        before = stats.reads
        while stats.reads - before < ROUND:
            machine.run_until(machine.calendar.now + STEP_NS)
        return stats.reads - before


def with_fio() -> Machine:
    """Return the machine with fio on it."""
    machine = Machine(load_machine(str(SCENARIO), seed=1, sets=()), 1)
    text = f"{JOB}norandommap\nruntime=1h\ntime_based\n"
    FioRun(machine, read_fio_text(text, Path("benchmark.fio")))
    return machine


class NaiveReads:
    """The same queue: 32 processes, a server for each die."""

    def __init__(self) -> None:
        self.env = simpy.Environment()
        self.dies = simpy.Resource(self.env, capacity=DIES)
        self.chance = random.Random(1)
        self.served = 0
        self.response_ns = 0.0
        for _ in range(DEPTH):
            self.env.process(self._read())

    def _read(self) -> Generator[Any, Any, None]:
        while True:
            start = self.env.now
            with self.dies.request() as request:
                yield request
                yield self.env.timeout(READ_NS + round(OTHER_NS * self.chance.random()))
            self.response_ns += self.env.now - start
            self.served += 1

    def run(self) -> float:
        """Simulate a round; return the requests served."""
        before = self.served
        while self.served - before < ROUND:
            self.env.run(until=self.env.now + STEP_NS)
        return self.served - before


def io_uring(rounds: int) -> list[Row]:
    """Measure the naive model and the twin's cases in turn."""
    cases = {
        "SimPy, Resource and timeout": NaiveReads().run,
        "the twin": TwinReads(Machine(load(str(SCENARIO)), seed=1)).run,
        "the twin, fio": TwinReads(with_fio()).run,
    }
    return measure("io_uring", "requests/s", cases, rounds)


def million(_rounds: int) -> list[Row]:
    """Read a million times; the peak memory is that of this process."""
    scenario = load(str(SCENARIO), sets=(f"process.reader.reads={MILLION}", UNTIL_DONE))
    start_s = time.process_time()
    simulate(scenario, seed=1)
    cpu_s = time.process_time() - start_s
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB
    return [
        Row("io_uring", "a million reads: CPU time", cpu_s, "s"),
        Row("io_uring", "a million reads: peak memory", peak_mib, "MiB"),
    ]
