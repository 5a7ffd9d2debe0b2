"""`iotwin store`: what finished runs are kept, and where."""

import sys
import time
from pathlib import Path

import click

from sim.cli.laboratory import STORE_VARIABLE
from sim.cli.output import check_writable, write_file
from sim.report.tables import Column, Table, print_table
from sim.study.store import Row, Store, StoreError, default_path
from sim.units import UnitError, parse_quantity


class Age(click.ParamType[float]):
    """A time such as 30d, 12h or "90 s", as seconds."""

    name = "age"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds."""
        text = str(value).strip()
        if text.endswith("d") and text[:-1].strip().replace(".", "", 1).isdigit():
            return float(text[:-1]) * 86400
        try:
            seconds = float(parse_quantity(text, "time_ns")) / 1e9
        except UnitError as error:
            self.fail(f"{error} (such as 30d, 12 h, 90 min)", param, ctx)
        if seconds < 0:  # older than a time to come is every run
            self.fail(f"an age is 0 or more, got {text!r} (such as 30d, 12 h, 90 min)", param, ctx)
        return seconds


@click.group("store", short_help="List, export or clean the finished runs that are kept.")
@click.option(
    "--store",
    "path",
    metavar="FILE",
    envvar=STORE_VARIABLE,
    help="The store (default: in the user's cache).",
)
@click.pass_context
def command(ctx: click.Context, path: str | None) -> None:
    """List, export or clean the finished runs that are kept.

    A run is kept by a key of what decides it: every value of the scenario, the seed, and all
    sources that simulate. The same command finds it again; a changed value or kernel line does not.

    \b
    Examples:
      iotwin store ls
      iotwin store export runs.csv
      iotwin store clean --older 30d
    """
    ctx.obj = Path(path).expanduser() if path else default_path()


def _open(path: Path) -> Store:
    """Return an existing store; raise click.UsageError."""
    if not path.is_file():
        raise click.UsageError(f"no store {path}: no run was kept there yet")
    try:
        store = Store(path)
    except StoreError as error:
        raise click.UsageError(str(error)) from None
    if store.told:
        click.echo(f"iotwin: {store.told}", err=True)
    return store


@command.command("ls")
@click.pass_obj
def ls(path: Path) -> None:
    """Say what is kept: how many runs of which scenario and variant, since when."""
    with _open(path) as store:
        groups: dict[tuple[str, str, str], list[Row]] = {}
        for row in store.rows():
            what_if = row.what_if or "base"
            groups.setdefault((row.scenario, what_if, row.model[:8]), []).append(row)
        number = len(store)
    rows = tuple(
        (
            *name,
            str(len(found)),
            f"{sum(one.cpu_s for one in found):.1f}",
            time.strftime("%Y-%m-%d %H:%M", time.localtime(max(one.finished for one in found))),
        )
        for name, found in groups.items()
    )
    columns = (
        *(Column("scenario"), Column("what-if"), Column("model")),
        *(Column("runs", True), Column("CPU s", True), Column("newest")),
    )
    print_table(Table(columns, rows), sys.stdout)
    click.echo(f"{number} runs in {path}, {path.stat().st_size / 1024:.0f} KiB")


@command.command("export")
@click.argument("file", metavar="FILE.csv|-")
@click.pass_obj
def export(path: Path, file: str) -> None:
    """Write every run as a line of CSV; - is standard output."""
    with _open(path) as store:
        if file == "-":
            store.export(sys.stdout)
            return
        check_writable(file)
        found: list[int] = []

        def write(place: Path) -> None:
            with place.open("w", encoding="utf-8", newline="") as out:
                found.append(store.export(out))

        write_file(Path(file), write)
    click.echo(f"{found[0]} runs written to {file}", err=True)


@command.command("clean")
@click.option(
    "--older", "older_s", type=Age(), required=True, metavar="AGE", help="Such as 30d; 0d: all."
)
@click.pass_obj
def clean(path: Path, older_s: float) -> None:
    """Forget the runs that were finished longer ago than AGE."""
    with _open(path) as store:
        gone = store.clean(older_s)
        click.echo(f"{gone} runs forgotten, {len(store)} left in {path}")
