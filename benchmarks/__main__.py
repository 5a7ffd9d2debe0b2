"""Measure the twin's speed: a table on standard output, JSON where asked.

Rates depend on the machine, ratios hardly do: the cases of a group take turns in one process.
The sources of this checkout are measured interpreted; if a compiled ``sim`` is installed in this
Python (``pip install .``), or given with --build, it is measured too.
"""

import argparse
import json
import platform
import site
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

REPOSITORY = Path(__file__).resolve().parents[1]
WORKER = Path(__file__).with_name("worker.py")
ROUNDS = 7
SIZES = (1, 4, 16)  # times the storm's messages
GROUPS = ["command", "engine", "io_uring", "kernel_path", "storm", "transfer"]
Row: TypeAlias = dict[str, Any]


def compiled_builds() -> list[Path]:
    """Return the site-packages directories that hold a compiled ``sim``."""
    places = [Path(place) for place in (*site.getsitepackages(), site.getusersitepackages())]
    return [place for place in places if any(place.glob("sim/engine/calendar*.so"))]


def run_worker(place: Path, module: str, function: str, number: int) -> list[Row]:
    """Run one function of a module in a process of its own; return its rows."""
    print(f"{function} {number}, sim from {place}", file=sys.stderr)
    command = [sys.executable, "-P", str(WORKER), str(place), module, function, str(number)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"benchmarks: {function} {number} failed")
    return list(json.loads(done.stdout))


def plan(groups: list[str], *, quick: bool) -> list[tuple[str, str, int]]:
    """Return the workers to run: module, function, and its rounds or size."""
    rounds, sizes = (3, (1,)) if quick else (ROUNDS, SIZES)
    by_rounds = ("command", "engine", "io_uring", "kernel_path")
    jobs = [(group, group, rounds) for group in groups if group in by_rounds]
    if "io_uring" in groups:
        jobs.append(("io_uring", "million", 1))
    if "storm" in groups:
        jobs += [("storm", "storm", size) for size in sizes] + [("storm", "storm_tmpfs", 1)]
    if "transfer" in groups:
        jobs += [("transfer", "dd", case) for case in range(4)]
        jobs += [("transfer", "fio", 1), ("transfer", "page_cache", 100)]
    return jobs


def print_table(rows: list[Row]) -> None:
    """Print all rows, aligned; a ratio is to the first case of the group."""
    print(f"{'build':<12} {'group':<12} {'case':<46} {'value':>10} {'unit':<10} {'ratio':>6}")
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        value = f"{row['value']:,.0f}" if row["value"] >= 100 else f"{row['value']:.3g}"
        print(
            f"{row['build']:<12} {row['group']:<12} {row['case']:<46} {value:>10} "
            f"{row['unit']:<10} {ratio:>6}"
        )


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows to FILE as well")
    parser.add_argument("--build", metavar="DIR", type=Path, help="a compiled build to measure")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, the storm once")
    options = parser.parse_args()
    unknown = sorted(set(options.groups) - set(GROUPS))
    if unknown:
        parser.error(f"no group {', '.join(unknown)}; known: {', '.join(GROUPS)}")
    return options


def main() -> None:
    """Measure all builds, print the table, write the JSON."""
    options = parse_options()
    rows: list[Row] = []
    for place in [REPOSITORY, *([options.build] if options.build else compiled_builds())]:
        for module, function, number in plan(options.groups or GROUPS, quick=options.quick):
            rows += run_worker(place, module, function, number)
    print_table(rows)
    if options.json:
        report = {"python": platform.python_version(), "machine": platform.machine(), "rows": rows}
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
