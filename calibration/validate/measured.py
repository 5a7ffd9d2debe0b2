"""What was measured of a run, under the names of the index of runs.

Models: the index that the recorder makes of its runs.
Linux counterpart: none.
Invariants: read after the prediction and apart from it; nothing here is imported by what builds or
 simulates a run. What the files lack is left out, not guessed.
Left out: emulator_stats, traces, the tools' own texts.
"""

import csv
import gzip
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from calibration.validate import pg_test_fsync
from calibration.validate.describe import read_run
from calibration.validate.fio_jobs import measured_fio_result
from calibration.validate.sharing import Hog, sharing

# workload type -> {name in the index: path in the run's result}; fio by what it did
_RESULTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "fio randread": {"ops/s": ("iops",), "lat ms": ("lat_mean_ms",)},
    "fio write": {"MB/s": ("bw_MBps",), "lat ms": ("lat_mean_ms",)},
    "mailq": {"msg/s": ("msg_per_s",), "fsync ms": ("fsync_ms", "mean")},
    "mta": {"msg/s accepted": ("msg_per_s",), "drained s": ("drained_s",)},
    "memtouch": {
        "tx/s": ("ops_per_s",),
        "tx ms": ("lat_mean_ms",),
        "major faults": ("major_faults",),
        "killed": ("processes_killed",),
    },
    "pcread": {"reads/s": ("ops_per_s",), "hit ratio": ("hit_ratio",)},
    "cpuburn": {"io ops/s": ("ops_per_s",), "CPU s": ("cpu_total_s",)},
}
_SUMMARY: Final = {"wps": "wps", "aqu_sz": "aqu_sz", "util": "util", "iowait": "iowait"}
_SWAPPED: Final = {"si": "pswpin", "so": "pswpout"}  # pages in the whole run
_RUNNING: Final = ("own_R",)
_ASLEEP: Final = ("own_D", "kt_D")
_KIB_PER_MIB: Final = 1024


def measured(directory: Path) -> dict[str, Any] | None:
    """Return the figures of a run, or None if its directory holds only its description."""
    run = read_run(directory)
    result, summary = run.get("result"), run.get("summary")
    if not isinstance(result, dict) or not isinstance(summary, dict):
        return None
    found: dict[str, Any] = {"result": _result(run["workload"], result)}
    found["await_ms"] = {kind: summary[f"{kind}_await"] for kind in ("r", "w")}
    found["await_all_ms"] = _of_both(summary)
    found |= {name: summary[key] for name, key in _SUMMARY.items() if key in summary}
    if summary.get("T_s"):
        swapped = {name: summary.get(key) for name, key in _SWAPPED.items()}
        found |= {n: pages / summary["T_s"] for n, pages in swapped.items() if pages is not None}
    if summary.get("wps"):
        found["wareq_sz"] = summary["wMBps"] * _KIB_PER_MIB / summary["wps"]
    if run["workload"].get("type") == "cpuburn":
        found["result"] |= _sharing(result, summary["r_await"])
    if summary.get("load_n_mean") is not None:
        # Others' tasks are in the load average of a machine that is not ours alone.
        found["load"] = summary["load_n_mean"] - summary.get("ext_R_mean", 0)
    if "clean" in summary:
        found["clean"] = bool(summary["clean"])  # nobody else's work was on the machine
    return found | _census(directory)


def _of_both(summary: Mapping[str, Any]) -> float:
    """Return the mean time of a request of either direction, ms."""
    rates = {kind: summary.get(f"{kind}ps") or 0.0 for kind in ("r", "w")}
    whole = sum(rates.values())
    waited = sum(summary[f"{kind}_await"] * rate for kind, rate in rates.items())
    return waited / whole if whole else 0.0


def _sharing(result: Mapping[str, Any], await_ms: float) -> dict[str, Any]:
    """Return how the hogs and the readers of a run shared the CPUs, as they said."""
    hogs = [
        Hog(nice=hog["nice"], cpu_s=hog["cpu_s"], wall_s=hog["wall_s"])
        for hog in result.get("cpu", ())
    ]
    reads = [reader["lat_mean_ms"] for reader in result.get("io", ())]
    return sharing(hogs, fmean(reads) if reads else None, await_ms)


def _result(workload: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(workload.get("type"))
    if kind == "fio" and "job" in workload:
        return measured_fio_result(result["jobs"])
    if kind == "pg_test_fsync":
        return pg_test_fsync.measured_result(result["tests"])
    if kind == "fio" and "rw" in workload["params"]:
        kind = f"fio {workload['params']['rw']}"
    if kind == "cpuburn" and not workload["params"].get("io_procs"):
        result = {**result, "ops_per_s": None}
    return {name: _at(result, path) for name, path in _RESULTS.get(kind, {}).items()}


def _at(table: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = table
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _census(directory: Path) -> dict[str, float]:
    """Return what the recorder counted each second, nothing without its file.

    The median number of active tasks, and the mean number of those that sleep uninterruptibly
    without the first and last count, which stand before and behind the workload.
    """
    path = directory / "sampler.csv.gz"
    if not path.is_file():
        return {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    if not rows:
        return {}
    asleep = [sum(float(row[name]) for name in _ASLEEP) for row in rows]
    running = [sum(float(row[name]) for name in _RUNNING) for row in rows]
    active = [sum(tasks) for tasks in zip(asleep, running, strict=True)]
    return {"own_load": float(median(active)), "own_D": fmean(asleep[1:-1] or asleep)}
