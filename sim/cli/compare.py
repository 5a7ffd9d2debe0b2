"""`iotwin compare`: what-ifs against the base, with common random numbers."""

import sys

import click

from sim.cli import options
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.output import check_apart, check_json, check_picture, write_json, write_picture
from sim.cli.variants import (
    exit_judged,
    exit_unfinished,
    head_unfinished,
    precise_runs,
    read_variants,
    run_variants,
    tell_precision,
)
from sim.report.answer_text import answer, answer_table, told_figures
from sim.report.levels_table import levels_table
from sim.report.study_file import variants_file
from sim.report.study_tables import changes_text, compare_table, heading, notes, run_table
from sim.report.tables import print_table
from sim.report.what_if_table import what_if_table
from sim.study.outcome import Study

SEVERAL = 2  # what-ifs, from which on each one's table is for --all


@click.command("compare", short_help="Compare what-ifs with the base, seed by seed.")
@options.scenario_argument
@click.argument("what_ifs", metavar="[WHAT_IF]...", nargs=-1)
@options.seed_option
@options.set_option
@options.fit_option
@options.slo_option
@options.replications_option(5)
@options.precision_options
@options.precise_option
@click.option("--all", "tells_all", is_flag=True, help="Print every figure of every what-if.")
@laboratory_options
@options.json_option
@options.plot_option
def command(
    scenario_name: str,
    what_ifs: tuple[str, ...],
    seed: int | None,
    sets: tuple[str, ...],
    fit_path: str | None,
    slos: tuple[str, ...],
    replications: int,
    precision: str | None,
    replications_max: int | None,
    figures: tuple[str, ...],
    tells_all: bool,
    json_path: str | None,
    plot_path: str | None,
    where: Where,
) -> None:
    """Compare what-ifs (all of them if none is named) with the base.

    The answer comes first, in a sentence; of several what-ifs one table follows, and with --all
    every figure of each.

    Every variant is run with the same seeds, so that only what was changed differs. Mean of the
    replications with its 90 % interval, median, and range of the runs; mean of the change seed by
    seed with its 90 % interval. Three runs at least say which figures changed by more than chance:
    of comparisons of a server with itself, one in ten would name any.

    Service levels of [slo] and --slo are met, missed (no data is missed as well) or undecided, with
    95 % on one side. The exit code is 3 if one is missed, 4 if one is undecided and none missed.

    \b
    Examples:
      iotwin compare sendmail tmpfs ssd
      iotwin compare sendmail ssd+deadline
      iotwin compare sendmail --replications 20 --json compare.json
      iotwin compare sendmail tmpfs --plot storm.png
      iotwin compare sendmail tmpfs --slo 'load1_peak < 12'
    """
    fit = options.fit_of(fit_path, scenario_name)
    base, *variants = read_variants(scenario_name, what_ifs, sets=sets, seed=seed, fit=fit)
    runs = precise_runs(base, replications, precision, replications_max, figures)
    options.tell_omissions(base, *variants)
    options.tell_twin(base, what_ifs)
    check_json(json_path)
    check_picture(plot_path)
    check_apart(json_path, plot_path, read=(base.path, fit_path))
    keep = plot_path is not None
    scenarios = [options.with_levels(one, slos) for one in (base, *variants)]
    study = run_variants(scenarios, runs, where, fit, sets=sets, keep=keep)
    write_picture(plot_path, "plot", "plot_study", study)
    if json_path is not None:
        write_json(variants_file("compare", study, options.command_line()), json_path)
    if json_path != "-":
        head_unfinished(study.unfinished)
        _tell(study, tells_all=tells_all)
        tell_precision(study, runs)
    exit_unfinished(study.unfinished)
    exit_judged(study)


def _tell(study: Study, *, tells_all: bool) -> None:
    """Print the answer, one table of all variants, and as much more as is wanted."""
    first, *others = study.variants
    click.echo(heading(first, study.version, options.command_line()))
    figures = told_figures(first.scenario)
    for sentence in answer(study, figures) if others else ():
        click.echo(f"{sentence}\n")
    if len(others) >= SEVERAL:
        print_table(what_if_table(study), sys.stdout)
        click.echo()
        for name in figures:
            print_table(answer_table(study, name), sys.stdout)
            click.echo()
    if not others:
        print_table(run_table(first), sys.stdout)
    for outcome in others if tells_all or len(others) < SEVERAL else ():
        click.echo(f"what-if {outcome.name}: {outcome.title}")
        print_table(compare_table(study, outcome), sys.stdout)
        click.echo(changes_text(outcome))
    if any(outcome.levels for outcome in study.variants):
        print_table(levels_table(study.variants), sys.stdout)
        click.echo()
    if len(others) >= SEVERAL and not tells_all:
        click.echo("--all prints every figure of every what-if.")
    click.echo(notes(study.variants), nl=False)
