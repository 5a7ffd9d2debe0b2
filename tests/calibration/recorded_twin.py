"""A server that is known, run and recorded as `iotwin record` would have recorded it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from sim.machine import simulate
from sim.results import RunResult
from sim.scenario import Scenario
from sim.scenario.load import load_text

TRUTH = """\
title = "A server that is known"
seed = 3
[machine]
kernel = "6.1"
hostname = "known"
cpus = 2
memory = "2 GiB"
[machine.disk.sda]
device = "multiserver"
capacity = "20 GiB"
servers = 2
read = "1.5 ms"
write = "0.8 ms"
read_rate = "0 B/s"
write_rate = "0 B/s"
scheduler = "none"
[machine.mount."/"]
type = "ext3"
device = "sda"
[process.lookups]
program = "transactions"
arrivals = "open"
rate = "120 /s"
concurrency = 64
reads = 1
read_size = "8 KiB"
read_file = "/table"
working_set = "8 GiB"
direct = true
user = "3 ms"
system = "0.5 ms"
variation = "exponential"
[process.orders]
program = "transactions"
arrivals = "open"
rate = "25 /s"
concurrency = 64
writes = 1
write_size = "16 KiB"
fsyncs = 1
user = "3 ms"
system = "0.5 ms"
variation = "exponential"
[run]
duration = "65 s"
[measure]
interval = "5 s"
[what_if.double_load]
process.lookups.rate = "240 /s"
process.orders.rate = "50 /s"
[what_if.idle]
process.lookups.count = 0
process.orders.count = 0
"""
HOST = {
    "/proc/sys/kernel/osrelease": "6.1\n",
    "/proc/sys/kernel/hostname": "known\n",
    "/proc/mounts": "/dev/sda / ext3 rw,relatime 0 0\n",
    "/proc/cpuinfo": "processor\t: 0\n\nprocessor\t: 1\n",
    "/sys/block/sda/size": f"{20 * 2**30 // 512}\n",
    "/sys/block/sda/queue/rotational": "0\n",
    "/sys/block/sda/queue/scheduler": "[none] mq-deadline\n",
    "/sys/block/sda/queue/nr_requests": "256\n",
}
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def truth(what_if: str | None = None) -> Scenario:
    """Return the known server."""
    return load_text(TRUTH, Path("truth.toml"), what_if=what_if)


def run_truth(what_if: str | None = None) -> RunResult:
    """Run it for a minute."""
    return simulate(truth(what_if), 3)


def record_run(result: RunResult, folder: Path, host: dict[str, str] | None = None) -> Path:
    """Write the readings of a run as a folder of `iotwin record`; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    memory = {"/proc/meminfo": result.samples[0].text("meminfo")}
    first = _sample(0, (HOST if host is None else host) | memory)
    (folder / "host.txt").write_text(_start() + first, encoding="utf-8")
    samples = [
        _sample(sample.t_ns / 1e9, {f"/proc/{name}": text for name, text in sample.files.items()})
        for sample in result.samples[1:]  # the first seconds of a server are not those recorded
    ]
    (folder / "proc.txt").write_text(_start() + "".join(samples), encoding="utf-8")
    return folder


def _start() -> str:
    return f"=== start {BEGIN.isoformat(timespec='milliseconds')} interval_s=5\n"


def _sample(at_s: float, texts: dict[str, str]) -> str:
    at = (BEGIN + timedelta(seconds=at_s)).isoformat(timespec="milliseconds")
    sections = "".join(f"==> {name} <==\n{text}" for name, text in texts.items())
    return f"=== {at}\n{sections}=== end\n"
