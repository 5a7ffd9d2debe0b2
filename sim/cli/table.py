"""`iotwin table`: exercise tables, or a scenario with its what-ifs; each cell is simulated."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

import sim
from sim.cli import options
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.output import check_json, check_picture, write_json, write_picture
from sim.cli.variants import exit_unfinished, run_variants
from sim.drivers.disk import profile_names
from sim.registry import did_you_mean
from sim.report.exercise_table import exercise_json, exercise_table
from sim.report.study_file import variants_file
from sim.report.tables import Column, Table, print_table
from sim.report.what_if_table import what_if_table
from sim.scenario import Scenario, load, open_scenario, scenario_files
from sim.study.exercise import DEVICES, PROFILE, SEED, Exercise, access, fill, raid
from sim.study.metrics import own_figures

LEVELS: Final = ("0", "1", "5", "10")
SCENARIO_LINE: Final = "of a scenario, by its name: the base and every what-if, a row each"


@dataclass(frozen=True)
class Offer:
    """A table: what it shows, which options choose among its rows, and what makes it of them."""

    line: str
    choices: tuple[str, ...]
    make: Callable[..., Exercise]


def _raid(*, level: tuple[str, ...], devices: tuple[int, ...], profile: str | None) -> Exercise:
    names = [f"raid{one}" for one in level or LEVELS]
    chosen = profile or PROFILE
    if chosen not in profile_names():
        hint = did_you_mean(chosen, profile_names())
        known = ", ".join(profile_names())
        message = f"no profile '{chosen}'{hint} (known: {known})"
        raise click.BadParameter(message, param_hint="--profile")
    return raid(names, devices or DEVICES, chosen)


TABLES: Final[Mapping[str, Offer]] = {
    "raid": Offer("RAID 0, 1, 5 and 10 over 2 to 8 disks", ("level", "devices", "profile"), _raid),
    "access": Offer("in order against at random, by kind of device", (), access),
}


@click.command("table", short_help="Fill a table: RAID levels, access, what-ifs.")
@click.argument("name", metavar="[TABLE]", required=False)
@click.option(
    "--level", multiple=True, type=click.Choice(LEVELS), help="raid: this level; several times."
)
@click.option(
    "--devices",
    multiple=True,
    metavar="N",
    type=click.IntRange(1, 8),
    help="raid: so many disks, 2 to 8; several times.",
)
@click.option("--profile", help="raid: the disks, ec2/m3.xlarge if not given.")
@options.seed_option
@laboratory_options
@options.json_option
@options.plot_option
def command(
    name: str | None,
    seed: int | None,
    json_path: str | None,
    plot_path: str | None,
    where: Where,
    **choices: Any,
) -> None:
    """Fill a table of the exercises, raid or access, or that of a scenario; else list them.

    Every cell of raid and access is a run of fio on a machine of its own, past the page cache:
    reads and writes in order are of 1 MiB, 4 at a time for each disk, those at random of 4 KiB, 32
    at a time. The table of a scenario has a row for each of its what-ifs, run once, and the figures
    that its programs report.

    \b
    Examples:
      iotwin table
      iotwin table raid --level 5 --level 10 --devices 4
      iotwin table raid --profile sata-7200 --json raid.json
      iotwin table access --plot access.png
      iotwin table fsync-where
    """
    check_json(json_path)
    check_picture(plot_path)
    if name is None:
        rows = (*((table, offer.line) for table, offer in TABLES.items()), ("NAME", SCENARIO_LINE))
        print_table(Table((Column("table"), Column("what it shows")), rows), sys.stdout)
        return
    if name not in TABLES:
        _fill_of_scenario(_scenario(name, choices, plot_path), seed, where, json_path)
        return
    exercise = _exercise(name, choices)
    chosen = SEED if seed is None else seed
    with where.laboratory(f"filling table {exercise.name}") as laboratory:
        rows_found = fill(exercise, chosen, laboratory)
    write_picture(plot_path, "exercise_plot", "plot_exercise", exercise, rows_found)
    if json_path is not None:
        write_json(exercise_json(exercise, rows_found, chosen, sim.__version__), json_path)
    if json_path != "-":
        click.echo(f"{exercise.title}\nseed {chosen}, iotwin {sim.__version__}")
        click.echo(f"$ {options.command_line()}\n")
        print_table(exercise_table(exercise, rows_found), sys.stdout)


def _exercise(name: str, choices: Mapping[str, Any]) -> Exercise:
    """Return the table's rows and columns; refuse an option that chooses nothing there."""
    offer = TABLES[name]
    _refuse_others(name, offer.choices, choices)
    return offer.make(**{choice: choices[choice] for choice in offer.choices})


def _refuse_others(name: str, taken: Sequence[str], choices: Mapping[str, Any]) -> None:
    for choice, value in choices.items():
        if value and choice not in taken:
            tables = [other for other, one in TABLES.items() if choice in one.choices]
            raise click.UsageError(f"--{choice} is for table {' and '.join(tables)}, not {name}")


def _scenario(name: str, choices: Mapping[str, Any], plot_path: str | None) -> Scenario:
    """Return the scenario of that name or path; refuse what its table does not have."""
    is_path = name.endswith(".toml") or "/" in name
    if not is_path and name not in scenario_files():
        known = (*TABLES, *sorted(scenario_files()))
        hint = did_you_mean(name, known)
        raise click.UsageError(f"no table '{name}'{hint} (known: {', '.join(known)})")
    _refuse_others(name, (), choices)
    if plot_path is not None:
        raise click.UsageError(f"--plot is for table {' and '.join(TABLES)}, not {name}")
    scenario = load(name)
    if not own_figures(scenario.measure):
        message = f"no program of '{name}' has figures of its own that its [measure] asks for"
        raise click.UsageError(f"{message} (`iotwin compare {name}` shows all)")
    return scenario


def _fill_of_scenario(
    base: Scenario, seed: int | None, where: Where, json_path: str | None
) -> None:
    """Run the base and every what-if once, and print them."""
    names = (None, *(what_if.name for what_if in base.what_ifs))
    file = open_scenario(str(base.path))
    variants = [file.read(name, seed=seed) for name in names]
    study = run_variants(variants, 1, where, None)
    if json_path is not None:
        write_json(variants_file("table", study, options.command_line()), json_path)
    if json_path != "-":
        click.echo(f"{base.title}\nseed {variants[0].seed}, iotwin {study.version}\n")
        print_table(what_if_table(study), sys.stdout)
    exit_unfinished(study.unfinished)
