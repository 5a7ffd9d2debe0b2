"""`iotwin record`: a live Linux host into a folder of /proc text."""

import functools
import inspect
from dataclasses import asdict
from typing import Any

import click

from calibration import record as recorder
from sim.cli import options
from sim.cli.output import check_json, write_json
from sim.cli.progress import Progress


class SecondsType(click.ParamType[float]):
    """A time as the recorder takes it: 5, 5s, 10m, 1h."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds."""
        if isinstance(value, int | float):
            return float(value)
        try:
            return recorder.parse_seconds(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _print_script(ctx: click.Context, _param: click.Parameter, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        click.echo(inspect.getsource(recorder), nl=False)
        ctx.exit()


@click.command("record", short_help="Record this host's /proc into a folder.")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--interval",
    "interval_s",
    type=SecondsType(),
    default="5s",
    show_default=True,
    metavar="TIME",
    help="Time between samples.",
)
@click.option(
    "--duration",
    "duration_s",
    type=SecondsType(),
    metavar="TIME",
    help="How long (default: until Ctrl-C).",
)
@click.option(
    "--costs/--no-costs",
    "with_costs",
    default=True,
    show_default=True,
    help="Measure what calls cost on this host, first, for a second.",
)
@click.option("--resume", is_flag=True, help="Go on with the recording in DIR after a gap.")
@click.option(
    "--print-script",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_script,
    help="Print the recorder as one file that needs Python 3.7 alone, to copy to another host.",
)
@options.json_option
def command(
    folder: str,
    interval_s: float,
    duration_s: float | None,
    with_costs: bool,
    resume: bool,
    json_path: str | None,
) -> None:
    """Record /proc and /sys of this Linux host, word for word, into DIR.

    No root is needed. Ctrl-C ends a recording cleanly; one that was killed keeps every whole
    sample, and --resume goes on with it. Before the first sample it is measured, for a second, what
    a system call, a copied page, a context switch and a fork cost here: costs.txt, for a twin.

    \b
    Examples:
      iotwin record storm --interval 5 --duration 10m
      iotwin record storm --resume --duration 10m
      iotwin look storm
      iotwin record --print-script > record.py; scp record.py host:; ssh host python3 record.py DIR
    """
    check_json(json_path)
    if resume:
        run = recorder.resume
    else:
        costs = recorder.host_costs if with_costs else None
        run = functools.partial(recorder.record, costs=costs)
    if duration_s is None:
        click.echo(f"recording into {folder} every {interval_s:g} s; Ctrl-C ends it", err=True)
    with Progress("recording") as progress:

        def tell(samples: int, total: int | None) -> None:
            if total is not None:
                progress(samples, total)

        try:
            done = run(folder, interval_s, duration_s, tell=tell)
        except recorder.RecordError as error:
            raise click.UsageError(str(error)) from None
    if json_path is not None:
        write_json({"folder": folder, **asdict(done), "core_pct": done.core_pct}, json_path)
    if json_path != "-":
        click.echo(recorder.summary(folder, done))
