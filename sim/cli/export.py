"""`iotwin export`: the readings of a run in a format that other programs take."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from sim.cli import options
from sim.cli.exec_tool import TimeType, check_at
from sim.cli.extras import need
from sim.cli.output import check_apart, check_json, write_file, write_to
from sim.cli.progress import Progress
from sim.machine import simulate
from sim.report.grafana import dashboard
from sim.report.node_metrics import metrics, open_metrics, prometheus_text, unix_time_s
from sim.report.sadf_json import sadf_json
from sim.results import RunResult
from sim.scenario import Scenario, load
from sim.tools.snapshot import Snapshot
from sim.units import NS_PER_S

Readings = Sequence[Snapshot]
JOB: Final = "iotwin"  # the label that Prometheus gives what one of its jobs asks for


def _labels(scenario: Scenario) -> Mapping[str, str]:
    """Return the labels that say which server and which run it is."""
    what_if = {"what_if": scenario.what_if.name} if scenario.what_if else {}
    names = {"job": JOB, "instance": scenario.server.hostname, "scenario": scenario.name}
    return names | what_if | {"seed": str(scenario.seed)}


def _prometheus(readings: Readings, _scenario: Scenario) -> Iterator[str]:
    yield prometheus_text(readings[0])


def _open_metrics(readings: Readings, scenario: Scenario) -> Iterator[str]:
    return open_metrics(readings, _labels(scenario))


def _json_lines(readings: Readings, _scenario: Scenario) -> Iterator[str]:
    """Yield a line for each reading: its time, and each metric with its labels."""
    for reading in readings:
        clock = datetime.fromtimestamp(unix_time_s(reading), UTC)
        found: dict[str, Any] = {}
        for metric in metrics(reading):
            labels = ",".join(f'{name}="{value}"' for name, value in metric.labels)
            found[f"{metric.name}{{{labels}}}" if labels else metric.name] = metric.value
        row = {"t_s": reading.t_ns / NS_PER_S, "clock": clock.isoformat(), "metrics": found}
        yield json.dumps(row) + "\n"


def _csv(readings: Readings, _scenario: Scenario) -> Iterator[str]:
    """Yield a row for each metric of each reading, with a column for each label."""
    names = ("cpu", "mode", "device")
    yield _csv_row(("t_s", "metric", *names, "value"))
    for reading in readings:
        for metric in metrics(reading):
            labels = dict(metric.labels)
            values = (labels.get(name, "") for name in names)
            yield _csv_row((reading.t_ns / NS_PER_S, metric.name, *values, metric.value))


def _csv_row(values: Sequence[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


def _grafana(readings: Readings, scenario: Scenario) -> Iterator[str]:
    begin_ms, end_ms = (round(1000 * unix_time_s(readings[n])) for n in (0, -1))
    interval_s = scenario.measure.interval_ns / NS_PER_S
    title = f"iotwin: {scenario.name}"
    content = dashboard(title=title, begin_ms=begin_ms, end_ms=end_ms, interval_s=interval_s)
    yield json.dumps(content, indent=2) + "\n"


def _sadf(readings: Readings, scenario: Scenario) -> Iterator[str]:
    server = scenario.server
    document = sadf_json(readings, hostname=server.hostname, release=server.kernel)
    yield json.dumps(document, indent="\t") + "\n"


class _Format(NamedTuple):
    """How a format is written; `is_moment`: of one reading alone."""

    write: Callable[[Readings, Scenario], Iterator[str]]
    is_moment: bool = False


FORMATS: Final[Mapping[str, _Format]] = {
    "prometheus": _Format(_prometheus, is_moment=True),
    "openmetrics": _Format(_open_metrics),
    "jsonl": _Format(_json_lines),
    "csv": _Format(_csv),
    "sadf": _Format(_sadf),
    "grafana": _Format(_grafana),
}
PARQUET: Final = "parquet"  # of bytes, not text: written by sim/report/parquet.py


@click.command("export", short_help="Write a run for Prometheus, sadf, pandas and others.")
@options.scenario_argument
@options.what_if_option
@options.seed_option
@options.set_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice([*FORMATS, PARQUET]),
    default="openmetrics",
    show_default=True,
    help="What to write.",
)
@click.option(
    "--at",
    "at_ns",
    type=TimeType(),
    metavar="TIME",
    help="Of prometheus: the moment, in simulated time (default: the end of the run).",
)
@click.option(
    "--out",
    "out",
    metavar="FILE|-",
    default="-",
    help="Where to; - is standard output (default).",
)
def command(
    scenario_name: str,
    what_if: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    format_name: str,
    at_ns: int | None,
    out: str,
) -> None:
    """Run a scenario and write its readings of /proc in a format of others.

    prometheus is what node_exporter would answer at one moment; openmetrics has every reading with
    its time, for `promtool tsdb create-blocks-from openmetrics`. jsonl and csv have the same
    figures under the same names, as parquet has, for which the extra `parquet` and --out FILE are
    needed. sadf is what `sadf -j` makes of sar's files. grafana is a
    dashboard to import, for what openmetrics gave Prometheus, over the time of the run.

    \b
    Examples:
      iotwin export sendmail --out storm.om
      iotwin export sendmail --what-if tmpfs --format csv --out tmpfs.csv
      iotwin export sendmail --format prometheus --at "2 min"
      iotwin export sendmail --format sadf --out storm.json
      iotwin export sendmail --format grafana --out dashboard.json
      iotwin export sendmail --format parquet --out storm.parquet
    """
    scenario = load(scenario_name, what_if=what_if, sets=sets, seed=seed)
    form = FORMATS.get(format_name)  # None: parquet
    if form is None:
        if out == "-":
            raise click.UsageError("parquet is no text: give it a file, --out FILE")
        need("pyarrow")
    if at_ns is not None and (form is None or not form.is_moment):
        moments = ", ".join(name for name, one in FORMATS.items() if one.is_moment)
        raise click.UsageError(f"--at is of {moments}: {format_name} has the whole run")
    options.tell_omissions(scenario)
    check_at(scenario, at_ns)
    check_json(out)
    check_apart(out, read=(scenario.path,))
    with Progress(f"simulating {scenario.label}") as progress:
        result = simulate(scenario, scenario.seed, progress)
    if form is None:
        write = import_module("sim.report.parquet").write_parquet
        write_file(Path(out), lambda place: write(result.samples, _labels(scenario), place))
        return
    readings = [_at(result, at_ns)] if form.is_moment else result.samples
    chunks = form.write(readings, scenario)
    write_to("".join(chunks), out)


def _at(result: RunResult, at_ns: int | None) -> Snapshot:
    """Return the first reading at that moment or later; the last one if none is given."""
    later = (one for one in result.samples if at_ns is not None and one.t_ns >= at_ns)
    found = next(later, result.samples[-1])
    if at_ns is not None and found.t_ns < at_ns:
        last_s = found.t_ns / NS_PER_S
        click.echo(f"iotwin: the run ended before --at: this is as of {last_s:g} s", err=True)
    return found
