"""What moving bytes costs: 80 GB of dd, a million operations of fio, files of 100 GB in memory.

dd reads a disk through the page cache (a request of 128 KiB for each window of read-ahead) and past
it (a megabyte a call, 512 KiB a request), and writes a file both ways. fio does a million random
reads with 16 in flight. Each runs in a process of its own (worker.py): its peak memory is its own.
"""

import resource
import time
from pathlib import Path

from benchmarks.measure import Row
from sim.machine import simulate
from sim.scenario.dd_command import dd_layer
from sim.scenario.fio_file import read_fio_text
from sim.scenario.load import load, load_text
from sim.study.fio_run import load_machine, run_fio

MACHINE = Path(__file__).with_name("transfer.toml")
KIB_PER_MIB = 1024
MIB_OF_80_GB = 76_294
OPERATIONS = 1_000_000
DD = {
    "read through the page cache": "if=/dev/sdb of=/dev/null bs=1M",
    "read, iflag=direct": "if=/dev/sdb of=/dev/null bs=1M iflag=direct",
    "write through the page cache": "if=/dev/zero of=/x bs=1M",
    "write, oflag=direct": "if=/dev/zero of=/x bs=1M oflag=direct",
}
JOB = f"""\
[reads]
filename=/dev/sdb
rw=randread
ioengine=libaio
direct=1
iodepth=16
size={OPERATIONS * 4096}
"""


def dd(case: int) -> list[Row]:
    """Copy 80 GB in one of the ways of DD."""
    name, operands = list(DD.items())[case]
    layer = dd_layer([*operands.split(), f"count={MIB_OF_80_GB}"], 0)
    scenario = load_text(MACHINE.read_text(encoding="utf-8"), MACHINE, fit=layer)
    start_s = time.process_time()
    result = simulate(scenario, seed=1)
    return _rows(f"80 GB of dd, {name}", start_s, result.samples[-1].t_ns)


def fio(_rounds: int) -> list[Row]:
    """Do a million random reads."""
    scenario = load_machine(str(MACHINE), seed=None, sets=())
    file = read_fio_text(JOB, Path("benchmark.fio"))
    start_s = time.process_time()
    result = run_fio(scenario, file)
    assert result.jobs[0].stat.directions[0].total_ios == OPERATIONS
    return _rows("a million operations of fio", start_s, result.ended_ns)


def page_cache(gigabytes: int) -> list[Row]:
    """Run scenario page-cache with files of a size."""
    scenario = load("page-cache", sets=(f"process.app.file_size={gigabytes} GB",))
    start_s = time.process_time()
    result = simulate(scenario, seed=1)
    return _rows(f"page-cache, files of {gigabytes} GB", start_s, result.samples[-1].t_ns)


def _rows(case: str, start_s: float, simulated_ns: int) -> list[Row]:
    cpu_s = time.process_time() - start_s
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB
    return [
        Row("transfer", f"{case}: CPU time", cpu_s, "s"),
        Row("transfer", f"{case}: simulated", simulated_ns / 1e9, "s"),
        Row("transfer", f"{case}: peak memory", peak_mib, "MiB"),
    ]
