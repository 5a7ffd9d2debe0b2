"""What `iotwin trace` says of the files that it wrote, as text and JSON.

Models: the last lines of blktrace: how much there is of what.
Linux counterpart: none.
Invariants: numbers of requests are those of /proc/diskstats over the same time.
Left out: what is in the files: Perfetto and blkparse show it.
"""

from collections.abc import Mapping
from typing import Any

from sim.report.study_tables import scenario_heading
from sim.scenario import Scenario
from sim.study.trace import Traced


def heading(scenario: Scenario, traced: Traced, command: str) -> str:
    """Return the lines that say what was run, and how to run it again."""
    conditions = (
        f"seed {scenario.seed}, {traced.from_ns / 1e9:g} s to {traced.to_ns / 1e9:g} s of the run,"
        f" iotwin {traced.version}"
    )
    return scenario_heading(scenario, conditions, command)


def contents(traced: Traced) -> str:
    """Return how much happened."""
    disks = "".join(f", {count} requests of {disk}" for disk, count in traced.requests.items())
    return f"{traced.switches} switches of tasks{disks}"


def places(sizes: Mapping[str, int], perfetto: str | None, blktrace: str | None) -> str:
    """Return where the results are, and how large."""
    lines = ""
    if perfetto is not None:
        lines += f"{perfetto}: {sizes[perfetto]:,} bytes\n"
    if blktrace is not None:
        of_disks = [size for path, size in sizes.items() if path != perfetto]
        lines += f"{blktrace}: {sum(of_disks):,} bytes in {len(of_disks)} files\n"
    return lines


def trace_json(scenario: Scenario, traced: Traced, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the same as what json can write; `sizes`: bytes of each file."""
    return {
        "scenario": scenario.name,
        "what_if": scenario.what_if.name if scenario.what_if else None,
        "seed": scenario.seed,
        "version": traced.version,
        "from_s": traced.from_ns / 1e9,
        "to_s": traced.to_ns / 1e9,
        "switches": traced.switches,
        "requests": traced.requests,
        "files": [{"path": path, "bytes": size} for path, size in sizes.items()],
    }
