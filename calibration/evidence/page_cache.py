"""The scenarios of the page cache beside the measured test bed.

Models: programs that read and write files larger than a part of memory: each phase's time, and the
 sums over so many programs at a time.
Linux counterpart: the test bed's kernel, CentOS 8.1 with 4.18 (page-cache.toml).
Invariants: what the scenarios were fitted to is kept apart from what they were not.
Left out: the test bed's other sizes, which are kept back from this project.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from calibration.drive.bad_input import BadInput
from calibration.evidence.drives import Found
from sim.machine import simulate
from sim.scenario import load
from sim.study.metrics import compute_metrics

MEASURED: Final = "pagecache/measured.json"
SIZES_GB: Final = ("20", "100")  # all that is there; the scenario was fitted to both
FITTED_COUNTS: Final = ("6", "8")
OTHER_COUNTS: Final = ("1", "10", "16", "31")
_SUMS: Final = {"read_s_sum": "readtime", "write_s_sum": "writetime", "makespan_s_sum": "makespan"}


def figures(name: str, *sets: str) -> dict[str, Any]:
    """Return the figures of a run of a scenario."""
    scenario = load(name, sets=sets)
    return dict(compute_metrics(simulate(scenario, scenario.seed), scenario.measure))


def measured(shared: Path) -> dict[str, Any]:
    """Return what was measured; raise BadInput."""
    path = shared / MEASURED
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise BadInput(str(path), f"cannot be read: {error}") from None


def errors_of_single(known: dict[str, Any], size_gb: str) -> dict[str, float]:
    """Return the error of each phase of one program with files of a size."""
    found = figures("page-cache", f"process.app.file_size={size_gb} GB")
    return {
        f"{size_gb} GB, phase {number}": found[f"phase.{number}.{phase['op']}_s"] / phase["seconds"]
        - 1
        for number, phase in enumerate(known["single"][size_gb]["phases"], start=1)
    }


def errors_of_concurrent(known: dict[str, Any], count: str) -> dict[str, float]:
    """Return the errors of the sums over so many programs."""
    found = figures("page-cache-concurrent", f"process.app.count={count}")
    return {
        f"{count} programs, {theirs}": found[ours] / known["concurrent"][count][theirs]["mean"] - 1
        for ours, theirs in _SUMS.items()
    }


def compared(shared: Path, tell: Callable[[str], None]) -> Iterator[Found]:
    """Yield the errors of every phase and sum; raise BadInput."""
    known = measured(shared)
    for size in SIZES_GB:
        command = f"iotwin run page-cache --set 'process.app.file_size={size} GB'"
        for name, error in errors_of_single(known, size).items():
            yield "page cache, one program (fitted)", name, error, command
        tell(f"page cache: {size} GB")
    for area, counts in (("fitted", FITTED_COUNTS), ("not fitted", OTHER_COUNTS)):
        for count in counts:
            command = f"iotwin run page-cache-concurrent --set process.app.count={count}"
            for name, error in errors_of_concurrent(known, count).items():
                yield f"page cache, several programs ({area})", name, error, command
            tell(f"page cache: {count} programs")
