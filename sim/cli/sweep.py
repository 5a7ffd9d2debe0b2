"""`iotwin sweep`: a scenario and its what-ifs over values of some parameters."""

import re
import sys
from collections.abc import Sequence
from typing import Final

import click

from sim.cli import options
from sim.cli.extras import need
from sim.cli.studies import StudyOptions, study_options
from sim.cli.variants import exit_unfinished, figures_named, head_unfinished, wanted_runs
from sim.observation import Metric
from sim.report.study_tables import replications_text
from sim.report.sweep_text import notes, sweep_result, sweep_table
from sim.report.tables import print_table
from sim.scenario import Scenario
from sim.study.metrics import metrics_of, own_figures
from sim.study.over import Listed, check_once, check_runs, read_listed, read_over
from sim.study.points import Precision, measure, point_of
from sim.study.sweep import GRID, Design, Sweep, assemble_sweep, grid, number_of, sampled

_DESIGN: Final = re.compile(r"(sobol|lhs):(\d+)")
_DESIGNS: Final = "grid, sobol:N, lhs:N"


@click.command("sweep", short_help="Run a scenario over values of a parameter.")
@options.scenario_argument
@click.argument("what_ifs", metavar="[WHAT_IF]...", nargs=-1)
@click.option(
    "--over",
    "overs",
    metavar="PATH=SPEC",
    multiple=True,
    required=True,
    help="What to vary: 1,2,4 or 1..64*2 or 10..50+5; may be given several times.",
)
@click.option(
    "--design",
    "design_text",
    metavar="DESIGN",
    default=GRID,
    show_default=True,
    help="Which points: grid (all combinations), or sobol:N, lhs:N of LOW..HIGH.",
)
@click.option(
    "--of",
    "figures",
    metavar="FIGURE",
    multiple=True,
    help="Show this figure (default: those of the programs); may be given several times.",
)
@options.replications_option(5)
@options.precision_options
@study_options("Draw each figure with its band.")
def command(
    scenario_name: str,
    what_ifs: tuple[str, ...],
    overs: tuple[str, ...],
    design_text: str,
    figures: tuple[str, ...],
    replications: int,
    precision: str | None,
    replications_max: int | None,
    given: StudyOptions,
) -> None:
    """Run a scenario, or what-ifs of it ('base': as it is), over values of parameters.

    PATH is what `iotwin params` lists. SPEC is a list (1,2,4; ssd,hdd), a range with a factor
    (1..64*2) or with a step (10 ms..50 ms+5 ms); for sobol:N and lhs:N a range alone. All points
    have the same seeds. A row a point: each figure's mean with its 90 % interval.

    The knee is where throughput stops to follow the load (Kneedle). Where the first parameter is a
    load, the plot has the operational bounds, dashed: from the demands of the lightest load.

    \b
    Examples:
      iotwin sweep sendmail --over 'process.blast.concurrency=1..64*2' --plot s.png
      iotwin sweep generic base ssd --over 'process.server.rate=10..90+20 /s'
      iotwin sweep generic --over machine.memory=2..8GiB*2 --over machine.cpus=1,2
      iotwin sweep generic --design lhs:20 --over 'process.server.rate=10..90 /s'
    """
    variants = given.variants(scenario_name)
    names = options.variants_of(what_ifs)
    scenarios = [variants.read(name) for name in names]
    design = _design(design_text)
    reader = read_listed if design.kind == GRID else read_over
    paths = [reader(text, scenarios) for text in overs]
    check_once(paths, given.sets)
    shown = [_figures(one, figures) for one in scenarios]
    runs = wanted_runs(replications, precision, replications_max, figures)
    points_each = number_of([one for one in paths if isinstance(one, Listed)], design)
    most = runs.runs_max if isinstance(runs, Precision) else runs
    check_runs(len(names) * points_each * most, meant=given.yes)
    options.tell_omissions(*scenarios)
    given.check_files(variants)
    values = list(
        grid([one for one in paths if isinstance(one, Listed)])
        if design.kind == GRID
        else sampled(paths, design, scenarios[0].seed)
    )
    points = [point_of(variants, name, paths, one) for name in names for one in values]
    with given.where.laboratory(f"sweeping {scenarios[0].name}") as laboratory:
        done, unfinished = measure(points, runs, laboratory, given.sets)
    sweep = assemble_sweep(scenarios[0], paths, design, done, unfinished)
    if done:
        given.draw("sweep_plot", "plot_sweep", sweep, shown[0])
    given.write("sweep", scenarios[0], done, sweep_result(sweep), unfinished)
    if given.prints:
        often = replications_text(most)
        often = f"at most {often}" if isinstance(runs, Precision) else often
        given.head(scenarios[0], f"{often} of each point", is_one_of_many=True)
        _print(sweep, names, scenarios, shown)
    exit_unfinished(unfinished)


def _print(
    sweep: Sweep,
    names: Sequence[str | None],
    scenarios: Sequence[Scenario],
    shown: Sequence[Sequence[Metric]],
) -> None:
    """Print a table for each what-if, and notes."""
    head_unfinished(sweep.unfinished)
    for name, scenario, figures in zip(names, scenarios, shown, strict=True):
        if len(names) > 1 or name is not None:
            title = scenario.what_if.title if scenario.what_if else scenario.title
            click.echo(f"what-if {name}: {title}" if name else f"{options.BASE}: {title}")
        print_table(sweep_table(sweep, name, figures), sys.stdout)
        click.echo()
    click.echo(notes(sweep), nl=False)


def _design(text: str) -> Design:
    """Return the design that --design names; refuse one that is none."""
    if text == GRID:
        return Design(GRID)
    match = _DESIGN.fullmatch(text)
    if match is None or not int(match[2]):
        raise click.BadParameter(f"'{text}' (allowed: {_DESIGNS})", param_hint="--design")
    need("scipy")
    return Design(match[1], int(match[2]))


def _figures(scenario: Scenario, wanted: tuple[str, ...]) -> tuple[Metric, ...]:
    """Return the figures to show: those asked for, else those of the programs, else all."""
    measure = scenario.measure
    return figures_named(scenario, wanted) or own_figures(measure) or metrics_of(measure)
