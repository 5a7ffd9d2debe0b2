"""Run variants of a scenario for a command: processes, progress, plot, JSON.

Used by `run` and `compare`. Files that cannot be written are found before the run.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from sim.cli.options import jobs_of
from sim.cli.output import write_file
from sim.cli.progress import Progress
from sim.scenario import Scenario
from sim.scenario.fitted import Fit
from sim.study.compare import run_study
from sim.study.outcome import Study
from sim.study.replicate import processes


def run_variants(
    scenarios: Sequence[Scenario], replications: int, jobs: int | None, fit: Fit | None
) -> Study:
    """Run all variants, in several processes where that helps; `fit` is what lies over them."""
    number = jobs_of(jobs, len(scenarios) * replications)
    with Progress(f"simulating {scenarios[0].name}") as progress:
        if number == 1:
            return run_study(scenarios, replications, progress=progress, fit=fit)
        with processes(number) as executor:
            return run_study(scenarios, replications, executor=executor, progress=progress, fit=fit)


def write_plot(study: Study, path: str) -> None:
    """Draw a study into a file."""
    # By name: matplotlib takes a second, and most runs draw nothing.
    plot_study = import_module("sim.report.plot").plot_study
    write_file(Path(path), lambda place: plot_study(study, place))
    click.echo(f"plot written to {path}", err=True)
