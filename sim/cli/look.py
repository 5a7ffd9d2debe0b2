"""`iotwin look`: what a recording says, before any simulation."""

from typing import Any

import click

from calibration.dataset import open_source
from calibration.look import look
from calibration.look.demand import Customers
from calibration.look.report import to_json, to_text
from calibration.look.summary import Throughput
from sim.cli import options
from sim.cli.exec_tool import TimeType
from sim.cli.output import check_apart, check_json, write_json
from sim.units import NS_PER_S, UnitError, parse_quantity


class RateType(click.ParamType[float]):
    """A rate as in scenarios: 11, "11 /s", "660 /min"."""

    name = "rate"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the rate per second."""
        try:
            rate = parse_quantity(value, "rate_per_s")
        except UnitError as error:
            self.fail(str(error), param, ctx)
        if rate <= 0:
            self.fail(f"a rate is more than 0, got {value}", param, ctx)
        return rate


@click.command("look", short_help="Say what a recording says, before any simulation.")
@click.argument("paths", metavar="FILE...|DATASET|DIR", nargs=-1, required=True)
@click.option(
    "--throughput",
    "throughput_per_s",
    type=RateType(),
    metavar="RATE",
    help="Transactions per second, for the demand of one.",
)
@click.option(
    "--customers",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="How many clients send transactions, for a bound.",
)
@click.option(
    "--think",
    "think_ns",
    type=TimeType(),
    metavar="TIME",
    default=0,
    help="How long a client thinks in between (default 0).",
)
@options.json_option
def command(
    paths: tuple[str, ...],
    throughput_per_s: float | None,
    customers: float | None,
    think_ns: int,
    json_path: str | None,
) -> None:
    """Say what a recording says, by operational analysis, before any simulation.

    Reads files of one server in any known format, a data set by name or folder, or a folder of
    `iotwin record`. Utilisation, service times, merging, the number of CPUs and of tasks that wait
    inside I/O, the kind of each device, the likely bottleneck, and whether the recording agrees
    with itself.

    \b
    Examples:
      iotwin look sendmail
      iotwin look iostat.txt uptime.txt --throughput "11 /s" --customers 16 --think "270 ms"
      iotwin look storm --json look.json
    """
    check_json(json_path)
    check_apart(json_path, read=paths)
    known = None
    if throughput_per_s is not None:
        known = Throughput(per_s=throughput_per_s, source="--throughput")
    asked = Customers(number=customers, think_s=think_ns / NS_PER_S) if customers else None
    source = open_source(paths)
    options.tell_left_aside(source.left_aside)
    seen = look(source, throughput=known, customers=asked)
    if asked is not None and seen.demands is None:
        raise click.UsageError("--customers needs a throughput: give --throughput too")
    if json_path is not None:
        write_json(to_json(seen), json_path)
    if json_path != "-":
        click.echo(to_text(seen), nl=False)
