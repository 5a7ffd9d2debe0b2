"""`iotwin doctor`: versions, compiled or interpreted, what optional parts are there."""

import importlib.metadata
import platform
import sys
from pathlib import Path

import click

from sim.cli import options
from sim.cli.extras import install_command
from sim.cli.output import check_json, write_json
from sim.compiled import COMPILING, checkout, compiled_modules
from sim.registry import KINDS, names
from sim.report.tables import Column, Table, print_table
from sim.scenario import scenario_files
from sim.scenario.cases import data_sets, use_all

# distribution -> what needs it
_NEEDED = {"simpy": "the engine", "click": "the command line"}
_OPTIONAL = {
    "rich": "tables and progress on a terminal",
    "matplotlib": f"--plot: {install_command('plot')}",
    "numpy": f"calibrate, predict, twin: {install_command('fit')}",
    "scipy": "the same",
    "scikit-learn": "the same",
    "emcee": "the same",
    "threadpoolctl": "the same",
    "mypy": "compiling, type checks",
    "jupytext": f"lessons: {install_command('lesson')}",
    "nbconvert": "the same",
}


@click.command("doctor", short_help="Show versions, what is compiled, what is there.")
@options.json_option
def command(json_path: str | None) -> None:
    """Show versions, whether the kernel is compiled, and which parts are there.

    Exits with 1 if something that every run needs is missing.

    \b
    Examples:
      iotwin doctor
      iotwin doctor --json -
    """
    check_json(json_path)
    findings = _findings()
    missing = [name for name in _NEEDED if _version(name) is None]
    if json_path is not None:
        rows = [{"part": part, "found": found, "note": note} for part, found, note in findings]
        write_json({"parts": rows, "missing": missing}, json_path)
    if json_path != "-":
        columns = (Column("part"), Column("found"), Column("note"))
        print_table(Table(columns, tuple(findings)), sys.stdout)
    for name in missing:
        click.echo(f"iotwin: error: {name} is missing: {_NEEDED[name]}", err=True)
    if missing:
        sys.exit(1)


def _findings() -> list[tuple[str, str, str]]:
    rows = [
        ("iotwin", _version("iotwin") or "not installed", str(Path(__file__).parents[2])),
        ("python", platform.python_version(), sys.executable),
    ]
    for distribution, use in (_NEEDED | _OPTIONAL).items():
        rows.append((distribution, _version(distribution) or "missing", use))
    rows.append(_kernel_modules())
    use_all()
    rows += [(f"{kind}s", str(len(names(kind))), ", ".join(names(kind))) for kind in KINDS]
    scenarios = sorted(scenario_files())
    rows.append(("scenarios", str(len(scenarios)), ", ".join(scenarios)))
    recordings = data_sets()
    rows.append(("recordings", str(len(recordings)), ", ".join(recordings)))
    return rows


def _kernel_modules() -> tuple[str, str, str]:
    """Return whether the kernel is compiled; if not, what that would take and bring."""
    number = len(compiled_modules())
    if number:
        return ("kernel modules", "compiled", f"{number} compiled")
    home = checkout()
    how = "the wheel for this platform has them compiled"
    if home is not None:
        how = f"`make fast` in {home}: {COMPILING}"
    return ("kernel modules", "interpreted", how)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
