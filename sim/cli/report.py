"""`iotwin report`: a scenario and its what-ifs as one page to hand on."""

import sys
from importlib import import_module
from pathlib import Path

import click

from sim.cli import options
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.output import check_apart, check_json, check_writable, write_json, write_text
from sim.cli.variants import exit_judged, exit_unfinished, figures_named, read_variants
from sim.report.answer_text import answer, answer_table, told_figures
from sim.report.study_tables import heading
from sim.report.tables import print_table
from sim.scenario import Scenario
from sim.scenario.cases import fit_beside
from sim.scenario.fitted import Fit, read_fit
from sim.study.findings import findings_of


@click.command("report", short_help="Write a page of HTML: question, answer, reasons.")
@options.scenario_argument
@click.argument("what_ifs", metavar="[WHAT_IF]...", nargs=-1)
@click.option("--html", "html_path", metavar="FILE", required=True, help="Write the page to FILE.")
@click.option(
    "--of",
    "figures",
    metavar="FIGURE",
    multiple=True,
    help="Answer with this figure (default: the programs' first time or rate); may be given"
    " several times.",
)
@options.seed_option
@options.set_option
@options.fit_option
@options.slo_option
@options.replications_option(5)
@laboratory_options
@options.json_option
def command(
    scenario_name: str,
    what_ifs: tuple[str, ...],
    html_path: str,
    figures: tuple[str, ...],
    seed: int | None,
    sets: tuple[str, ...],
    fit_path: str | None,
    slos: tuple[str, ...],
    replications: int,
    json_path: str | None,
    where: Where,
) -> None:
    """Report on a scenario and what-ifs (all of them if none is named), to hand on.

    One file that asks nobody for anything: the question; the answer in a sentence with its 90 %
    interval; service levels; before and after, beside what was recorded; time lines; where the time
    goes; every value with its source; what the answer rests on; how to do it again. Each variant is
    run once more than --replications says, to follow its transactions.

    The exit code is 3 if a service level is missed, 4 if one is undecided and none missed.

    \b
    Examples:
      iotwin report tunnel --html tunnel.html
      iotwin report sendmail tmpfs --html tmpfs.html --slo 'load1_peak < 12'
      iotwin report sendmail ssd+deadline --html ssd.html --of throughput_per_s --json ssd.json
    """
    fit = options.fit_of(fit_path, scenario_name)
    base, *variants = read_variants(scenario_name, what_ifs, sets=sets, seed=seed, fit=fit)
    chosen = tuple(one.name for one in figures_named(base, figures)) or told_figures(base)
    options.tell_omissions(base, *variants)
    check_json(json_path)
    check_writable(html_path)
    check_apart(html_path, json_path, read=(base.path, fit_path))
    scenarios = [options.with_levels(one, slos) for one in (base, *variants)]
    with where.laboratory(f"reporting {base.name}") as laboratory:
        findings = findings_of(
            scenarios, replications, laboratory, fit=fit, shipped=_shipped(base), sets=sets
        )
    # By name: `--help` does without what makes pages.
    html = import_module("sim.report.html_report")
    head = html.Head(command=options.command_line(), figures=chosen)
    try:
        page = html.report_html(findings, head)
    except html.TooLargeError as error:
        raise click.UsageError(str(error)) from None
    write_text(page, Path(html_path))
    click.echo(f"page written to {html_path}", err=True)
    study = findings.study
    if json_path is not None:
        findings_json = import_module("sim.report.findings_json").findings_json
        write_json(findings_json(findings, head), json_path)
    if json_path != "-":
        click.echo(heading(study.variants[0], study.version, head.command))
        click.echo("\n".join(answer(study, chosen)))
        for name in chosen if len(study.variants) > 2 else ():
            click.echo()
            print_table(answer_table(study, name), sys.stdout)
    exit_unfinished(findings.unfinished)
    exit_judged(study)


def _shipped(base: Scenario) -> Fit | None:
    """Return the fit that comes with the scenario, None without one."""
    if base.calibrate is None:
        return None
    place = fit_beside(base.path, base.calibrate.base.figures)
    return read_fit(place, base.name) if place.is_file() else None
