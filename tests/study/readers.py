"""Random readers of a disk that takes one request at a time, each 5 ms: for studies of a load."""

from pathlib import Path

from sim.scenario.load import ScenarioFile, open_scenario

DEMAND_S = 0.005
READERS = """\
title = "Random readers of a disk of constant latency"
seed = 3
[machine]
kernel = "2.6.32"
cpus = 2
memory = "1 GiB"
[machine.disk.sda]
device = "multiserver"
capacity = "4 GiB"
servers = 1
sigma = 0
read = "5 ms"
read_rate = "100 GB/s"
write = "5 ms"
write_rate = "100 GB/s"
scheduler = "noop"
[machine.mount."/"]
type = "ext3"
device = "sda"
[process.readers]
program = "transactions"
arrivals = "closed"
concurrency = 1
reads = 1
direct = true
warm_up = "1 s"
[run]
duration = "4 s"
[measure]
interval = "1 s"
begin = "warmed_up"
families = ["transactions", "cpu", "disk"]
devices = ["sda"]
[what_if.faster]
title = "A disk that is twice as fast"
doc = "Is it twice as many?"
machine.disk.sda.read = "2.5 ms"
[what_if.open]
title = "Readers that do not wait"
doc = "A stream."
process.readers.arrivals = "open"
process.readers.rate = "50 /s"
process.readers.concurrency = 64
"""


def readers_file(folder: Path) -> str:
    """Write the scenario; return its path."""
    path = folder / "readers.toml"
    path.write_text(READERS, encoding="utf-8")
    return str(path)


def readers(folder: Path) -> ScenarioFile:
    """Return the scenario's file."""
    return open_scenario(readers_file(folder))
