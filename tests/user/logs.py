"""A server whose programs write over logs that are there, and sync them."""

from pathlib import Path

from calibration.readers.proc_report import device_columns
from sim.machine import simulate
from sim.results import RunResult
from sim.scenario.load import load_text
from sim.tools.iostat import compute_iostat

SERVER = """\
seed = 1
[machine]
kernel = "6.18"
cpus = 4
memory = "1 GiB"
accepts = ["cpu-generation", "large-folios"]
[machine.disk.vdb]
"""
PROGRAMS = """\
[machine.mount."/"]
type = "ext4"
device = "vdb"
[process.log]
program = "transactions"
arrivals = "open"
rate = "{rate} /s"
concurrency = 64
group_commit = {group}
write_file = "/log"
write_files = {files}
write_pattern = "sequential"
write_area = "16 MiB"
write_size = "8 KiB"
write_unit = "4 KiB"
writes = 1
fsyncs = 1
datasync = true
[run]
duration = "100 s"
[measure]
interval = "1 s"
families = ["transactions", "disk"]
"""
RUN_S = 100


def one_by_one(write: str, flush: str) -> str:
    """Return a disk that serves one request at a time, of such times."""
    return f"""\
device = "multiserver"
servers = 1
write = "{write}"
write_rate = "0 B/s"
flush = "{flush}"
capacity = "10 GiB"
"""


def run_logs(
    device: str, *, rate: float, files: int = 1, group: bool = False, from_s: int = 30
) -> tuple[RunResult, dict[str, float]]:
    """Return a run of such programs on a disk, and what iostat says of the disk from then on."""
    programs = PROGRAMS.format(rate=rate, files=files, group=str(group).lower())
    text = f'title = "Programs that overwrite and sync"\n{SERVER}{device}{programs}'
    result = simulate(load_text(text, Path("logs.toml")), 1)
    [disk] = compute_iostat(result.samples[from_s], result.samples[-1]).devices
    return result, device_columns(disk)
