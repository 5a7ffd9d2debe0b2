"""`iotwin follow`: a server as it runs, beside its twin, with an alarm when the two part."""

from importlib import import_module

import click

from sim.cli import options
from sim.cli.record import SecondsType

INTERVAL_MIN_S = 1.0


@click.command("follow", short_help="Follow a server live, beside its twin; tell when they part.")
@click.argument("source", metavar="[DIR|URL]", required=False)
@click.option("--here", is_flag=True, help="Follow this host (Linux; no root is needed).")
@click.option(
    "--interval",
    "interval_s",
    type=SecondsType(),
    default="10s",
    show_default=True,
    metavar="TIME",
    help="Time between two lines; the server is read twice as often.",
)
@click.option(
    "--for",
    "duration_s",
    type=SecondsType(),
    metavar="TIME",
    help="How long (default: until Ctrl-C).",
)
@click.option(
    "--twin",
    "twin_path",
    type=click.Path(dir_okay=False, exists=True),
    metavar="TWIN.toml",
    help="A twin of this server, of `iotwin mine` (default: one is made of the first minute).",
)
@click.option("--no-twin", is_flag=True, help="No twin: only tell when the server changes.")
@click.option(
    "--what-if",
    "asked",
    metavar="QUESTION",
    multiple=True,
    help="Asked at the end or at Ctrl-C, such as load=2; on a terminal, type it at any time.",
)
@click.option(
    "--state",
    "state_path",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Keep what was learned in FILE: the same command goes on (default: nothing is kept).",
)
@click.option(
    "--instance", metavar="HOST:PORT", help="Which host, of a Prometheus that has several."
)
@click.option(
    "--from-start", is_flag=True, help="Of a recording, all of it (default: its last minute)."
)
@options.json_option
def command(
    source: str | None,
    here: bool,
    interval_s: float,
    duration_s: float | None,
    twin_path: str | None,
    no_twin: bool,
    asked: tuple[str, ...],
    state_path: str | None,
    instance: str | None,
    from_start: bool,
    json_path: str | None,
) -> None:
    """Show a server and its twin side by side, and tell when the two part.

    Follows this host, a folder that `iotwin record` writes into, one that `iotwin proc --live`
    keeps up to date, a Prometheus server that scrapes node_exporter, or an address of node_exporter
    itself (it ends in /metrics). A twin is made of the first minute and kept current in a process
    of its own, which takes half of a core at most. An alarm says what changed, since when, by how
    much: the load, or a device that no longer answers as the twin says at this load.

    Nothing is written but --state and --json. The JSON is a line for each thing that is told.

    \b
    Examples:
      iotwin follow --here
      iotwin follow --here --for 5m --what-if load=2
      iotwin follow http://prometheus:9090 --instance db1:9100 --json -
      iotwin follow http://db1:9100/metrics --no-twin --state db1.json
    """
    if here == (source is not None):
        raise click.UsageError("name a folder or an address, or --here for this host: one of them")
    if interval_s < INTERVAL_MIN_S:
        raise click.UsageError(f"--interval {interval_s:g}s (allowed: {INTERVAL_MIN_S:g}s or more)")
    if no_twin and (twin_path or asked):
        raise click.UsageError("--no-twin leaves nothing for --twin and --what-if")
    # By name: numpy and scipy cost more than the help that --help gives.
    import_module("sim.cli.following").follow(
        source,
        interval_s=interval_s,
        duration_s=duration_s,
        twin_path=twin_path,
        with_twin=not no_twin,
        asked=asked,
        state_path=state_path,
        instance=instance,
        from_start=from_start,
        json_path=json_path,
    )
