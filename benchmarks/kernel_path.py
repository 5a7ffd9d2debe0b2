"""Requests per second through the whole kernel, against the queue alone in SimPy.

The twin's case is direct_read.toml: 16 processes in a closed loop, each request a system call, a
bio, an elevator's decision, a disk's service, an interrupt, a wake-up, a context switch. The naive
model of the same queue is what a first SimPy program does: a Resource and a timeout as long as a
seek by distance, a random rotation and a transfer take, and the response time noted. A Resource
serves one at a time, in order; so does the twin's disk here (elevator noop, one command at a time).
The last case is what the naive model has no counterpart for: cfq, and a drive that reorders.
"""

import math
import random
from collections.abc import Generator
from pathlib import Path
from typing import Any

import simpy

from benchmarks.measure import Row, measure
from sim.machine import Machine
from sim.scenario import load

SCENARIO = Path(__file__).with_name("direct_read.toml")
READERS = 16
SECOND_NS = 1_000_000_000
TURN_NS = 4_000_000  # 15000 rpm
SEEK_NS_MIN, SEEK_NS_MAX = 400_000, 7_000_000
TRANSFER_NS = 50_000
ROUND_S = 40
CFQ_SETS = ("machine.disk.sdb.scheduler=cfq", "machine.disk.sdb.queue_depth=32")


class TwinReads:
    """The machine with its readers running; each call simulates some more seconds."""

    def __init__(self, *sets: str) -> None:
        self.machine = Machine(load(str(SCENARIO), sets=sets), seed=1)
        self.machine.run_until(SECOND_NS)  # They have opened their file.

    def run(self) -> float:
        """Simulate a round; return the requests served."""
        machine = self.machine
        reads_before = machine.disks[0].stats.reads
        machine.run_until(machine.calendar.now + ROUND_S * SECOND_NS)
        return machine.disks[0].stats.reads - reads_before


class NaiveReads:
    """The same queue: 16 processes, one server whose service is a disk's."""

    def __init__(self) -> None:
        self.env = simpy.Environment()
        self.disk = simpy.Resource(self.env, capacity=1)
        self.chance = random.Random(1)
        self.head = 0.5
        self.served = 0
        self.response_ns = 0.0
        for _ in range(READERS):
            self.env.process(self._read())

    def _read(self) -> Generator[Any, Any, None]:
        while True:
            start = self.env.now
            position = self.chance.random()
            with self.disk.request() as request:
                yield request
                yield self.env.timeout(self._service_ns(position))
            self.response_ns += self.env.now - start
            self.served += 1

    def _service_ns(self, position: float) -> int:
        distance = abs(position - self.head)
        self.head = position
        seek_ns = SEEK_NS_MIN + (SEEK_NS_MAX - SEEK_NS_MIN) * math.sqrt(distance)
        return round(seek_ns + TURN_NS * self.chance.random() + TRANSFER_NS)

    def run(self) -> float:
        """Simulate a round; return the requests served."""
        served_before = self.served
        self.env.run(until=self.env.now + ROUND_S * SECOND_NS)
        return self.served - served_before


def kernel_path(rounds: int) -> list[Row]:
    """Measure both models of the same queue."""
    cases = {
        "SimPy, Resource and timeout": NaiveReads().run,
        "the twin, noop": TwinReads().run,
        "the twin, cfq, 32 commands in the drive": TwinReads(*CFQ_SETS).run,
    }
    return measure("kernel path", "requests/s", cases, rounds)
