"""Servers of the lessons that no scenario describes: changes to one that does.

Models: the same bench with another disk on it.
Linux counterpart: none.
Invariants: a lesson and its questions change a scenario by the same mapping.
Left out: what a scenario of its own would say, which is for servers that somebody asks about.
"""

from typing import Final

from sim.lesson.runs import Changes

# Over `generic`: readers without a pause, 4 KiB each, no cache that helps, hardly any CPU time.
READERS: Final[Changes] = {
    "machine.kernel": "5.15",
    "machine.cpus": 8,
    'machine.mount."/".type': "ext4",
    "process.server.arrivals": "closed",
    "process.server.user": "20 us",
    "process.server.system": "10 us",
    "process.server.variation": "constant",
    "process.server.writes": 0,
    "process.server.reads": 1,
    "process.server.read_size": "4 KiB",
}
# On flash; so short because it does many thousand reads a second.
FLASH: Final[Changes] = {
    **READERS,
    "machine.disk.sda.profile": "ssd-nvme",
    "machine.disk.sda.scheduler": "none",
    "process.server.warm_up": "100 ms",
    "run.duration": "600 ms",
    "measure.interval": "100 ms",
}
# On a disk with an arm.
ARM: Final[Changes] = {
    **READERS,
    "machine.disk.sda.profile": "sas-15k",
    "machine.disk.sda.scheduler": "mq-deadline",
    "process.server.warm_up": "2 s",
    "run.duration": "22 s",
}
# Over `generic`: requests that look something up, and change nothing.
READING: Final[Changes] = {"process.server.writes": 0}
# Over `r3-swap`: so little memory that a few seconds show what swap does; all pages used alike.
SWAPPING: Final[Changes] = {
    "machine.memory": "1000 MiB",
    "machine.vm.kernel": "50 MiB",
    "process.load.growth": "500 MB/s",
    "process.load.hot": 0,
    "process.load.hot_uses": 0,
    "process.load.uses": "20000 /s",
    "process.reader.count": 0,
    "run.duration": "12 s",
    "measure.interval": "1 s",
}
