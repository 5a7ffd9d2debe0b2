"""What the command costs beside its work: `iotwin run sendmail` as a whole against its simulation.

The command runs in a process of its own, from the start of Python to its end; CPU time of that
process. The simulation runs in this process, with the scenario loaded before. Both take turns.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import sim
from benchmarks.measure import Row
from sim.machine import simulate
from sim.scenario import load

START = "from sim.cli.main import main; main()"


def command(rounds: int) -> list[Row]:
    """Time the command, `--help` and the simulation in turn; ratios are to the simulation."""
    run_command("run", "sendmail")  # so that Python's bytecode is written
    scenario = load("sendmail")
    times_s: dict[str, list[float]] = {"its simulation": [], "run sendmail": [], "--help": []}
    for _ in range(rounds):
        start_s = time.process_time()
        simulate(scenario, scenario.seed)
        times_s["its simulation"].append(time.process_time() - start_s)
        times_s["run sendmail"].append(run_command("run", "sendmail"))
        times_s["--help"].append(run_command("--help"))
    base = times_s["its simulation"]
    return [
        Row(
            "command",
            f"{name}: CPU time",
            min(found),
            "s",
            statistics.median(a / b for a, b in zip(found, base, strict=True)),
            (max(found) - min(found)) / statistics.median(found),
        )
        for name, found in times_s.items()
    ]


def run_command(*arguments: str) -> float:
    """Run iotwin with the arguments; return the CPU seconds of its process."""
    place = Path(sim.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(place)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-P", "-c", START, *arguments],
        cwd="/",
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
