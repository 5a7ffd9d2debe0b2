"""`iotwin run`: one scenario or one what-if of it, beside what was recorded.

With --crash-at the power goes at a moment, and what was accepted and lost is told; a moment that
the run cannot reach is refused before the run, and what programs do after the next boot is left
out. With --block-dump it is echo 1 > /proc/sys/vm/block_dump; dmesg | cut -d: -f1 | sort | uniq -c
(Documentation/laptops/laptop-mode.txt).
"""

import sys
from pathlib import Path

import click

from sim.block.genhd import UnmodelledError
from sim.cli import options
from sim.cli.exec_tool import TimeType
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.output import (
    check_apart,
    check_json,
    check_picture,
    check_writable,
    write_json,
    write_picture,
    write_text,
)
from sim.cli.progress import Progress
from sim.cli.variants import (
    exit_judged,
    exit_unfinished,
    head_unfinished,
    precise_runs,
    run_variants,
    tell_precision,
)
from sim.machine import simulate
from sim.report import power_cut_text
from sim.report.levels_table import levels_table
from sim.report.study_json import variant_json
from sim.report.study_tables import heading, notes, run_table
from sim.report.tables import print_table
from sim.scenario import Scenario, load
from sim.sched.version import kernel_version
from sim.study.block_dump import REMOVED_IN, BlockDump, counts_text
from sim.study.power_cut import MomentError, NothingPromisedError, cut_power


@click.command("run", short_help="Run a scenario, beside what was recorded.")
@options.scenario_argument
@options.what_if_option
@options.seed_option
@options.set_option
@options.fit_option
@options.slo_option
@options.replications_option(1)
@options.precision_options
@options.precise_option
@laboratory_options
@options.json_option
@options.plot_option
@click.option("--save", "save_path", metavar="FILE", help="Keep the readings of the first run.")
@click.option(
    "--crash-at",
    "crash_ns",
    type=TimeType(),
    metavar="TIME",
    help="Cut the power at that simulated time, and tell what is lost.",
)
@click.option(
    "--block-dump",
    "block_dump_path",
    metavar="FILE",
    help="Write the log of vm.block_dump = 1, count it by process.",
)
def command(
    scenario_name: str,
    what_if: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    fit_path: str | None,
    slos: tuple[str, ...],
    replications: int,
    precision: str | None,
    replications_max: int | None,
    figures: tuple[str, ...],
    json_path: str | None,
    plot_path: str | None,
    where: Where,
    save_path: str | None,
    crash_ns: int | None,
    block_dump_path: str | None,
) -> None:
    """Run a scenario (a name from `iotwin list`, or the path of a .toml file).

    Prints the simulated figures beside the recorded ones, with a verdict. Service levels of [slo]
    and --slo are met, missed (exit code 3) or undecided (4); to decide takes three replications.

    \b
    Examples:
      iotwin run sendmail
      iotwin run sendmail --what-if tmpfs --plot tmpfs.png
      iotwin run sendmail --set machine.cpus=8 --replications 10 --json -
      iotwin run sendmail --replications 5 --slo 'load1_peak < 12'
      iotwin run ./my-server.toml --seed 3
      iotwin run sendmail --what-if tmpfs --crash-at "50 s"
      iotwin run exim-io --block-dump blocks.txt
    """
    fit = options.fit_of(fit_path, scenario_name)
    scenario = load(scenario_name, what_if=what_if, sets=sets, seed=seed, fit=options.layer_of(fit))
    runs = precise_runs(scenario, replications, precision, replications_max, figures)
    options.tell_omissions(scenario)
    check_json(json_path)
    check_picture(plot_path)
    check_writable(save_path, block_dump_path)
    check_apart(json_path, plot_path, save_path, block_dump_path, read=(scenario.path, fit_path))
    if crash_ns is not None:
        if plot_path is not None or save_path is not None or slos or precision is not None:
            raise click.UsageError(
                "--crash-at has neither --plot nor --save nor --slo nor --precision"
            )
        crash(scenario, crash_ns, replications, where, json_path)
        return
    if block_dump_path is not None:
        if plot_path or save_path or json_path or slos or replications > 1 or precision:
            raise click.UsageError("--block-dump is one run's text: it has no other output")
        block_dump(scenario, block_dump_path)
        return
    keep = plot_path is not None or save_path is not None
    scenario = options.with_levels(scenario, slos)
    study = run_variants([scenario], runs, where, fit, sets=sets, keep=keep)
    [outcome] = study.variants
    write_picture(plot_path, "plot", "plot_study", study)
    result = outcome.replications[0].result
    if save_path is not None and result is not None:
        text = result.to_text()
        write_text(text, Path(save_path))
    if json_path is not None:
        write_json(variant_json(outcome, study.version), json_path)
    if json_path != "-":
        head_unfinished(study.unfinished)
        click.echo(heading(outcome, study.version, options.command_line()))
        print_table(run_table(outcome), sys.stdout)
        if outcome.levels:
            click.echo()
            print_table(levels_table([outcome]), sys.stdout)
        click.echo("\n" + notes([outcome]), nl=False)
        tell_precision(study, runs)
    exit_unfinished(study.unfinished)
    exit_judged(study)


def crash(
    scenario: Scenario, at_ns: int, replications: int, where: Where, json_path: str | None
) -> None:
    """Cut the power, and tell."""
    with where.laboratory(f"simulating {scenario.label}") as laboratory:
        try:
            cut = cut_power(scenario, at_ns, replications, laboratory)
        except (MomentError, NothingPromisedError, UnmodelledError) as error:
            raise click.BadParameter(str(error), param_hint="--crash-at") from None
    if json_path is not None:
        write_json(power_cut_text.cut_json(cut), json_path)
    if json_path != "-":
        click.echo(power_cut_text.heading(cut, options.command_line()))
        print_table(power_cut_text.table(cut), sys.stdout)
        click.echo("\n" + power_cut_text.mounts(cut), nl=False)


def block_dump(scenario: Scenario, path: str) -> None:
    """Simulate once; write the lines to a file, print how many each process had."""
    release = scenario.server.kernel
    if kernel_version(release) >= REMOVED_IN:
        raise click.BadParameter(
            f"Linux {release} has no block_dump (accepted: kernels to 5.13)",
            param_hint="--block-dump",
        )
    dump = BlockDump(keep_lines=True)
    with Progress(f"simulating {scenario.label}") as progress:
        simulate(scenario, scenario.seed, progress, dump.attach)
    lines = dump.lines or []
    text = "".join(f"{line}\n" for line in lines)
    write_text(text, Path(path))
    click.echo(counts_text(dump), nl=False)
    click.echo(f"{len(lines)} lines written to {path}", err=True)
