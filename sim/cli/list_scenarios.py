"""`iotwin list`: the scenarios that are there, and their what-ifs."""

import sys

import click

from sim.cli import options
from sim.cli.output import check_json, write_json
from sim.report.tables import Column, Table, print_table
from sim.scenario.load import headlines


@click.command("list", short_help="List the scenarios and their what-ifs.")
@options.json_option
def command(json_path: str | None) -> None:
    """List the scenarios that come along, each with its what-ifs.

    \b
    Examples:
      iotwin list
      iotwin list --json -
    """
    found = headlines()
    check_json(json_path)
    if json_path is not None:
        content = [
            {"scenario": one.name, "title": one.title, "what_ifs": dict(one.what_ifs)}
            for one in found
        ]
        write_json({"scenarios": content}, json_path)
    if json_path != "-":
        rows: list[tuple[str, ...]] = []
        for headline in found:
            rows.append((headline.name, "", headline.title))
            rows += [("", name, title) for name, title in headline.what_ifs.items()]
        columns = (Column("scenario"), Column("what-if"), Column("title"))
        print_table(Table(columns, tuple(rows)), sys.stdout)
