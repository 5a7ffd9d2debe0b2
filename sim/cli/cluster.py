"""`iotwin cluster`: how to run on more machines than one."""

import platform
import sys

import click

import sim
from sim.study.trial import model

_TEXT = """\
Studies run on a Dask cluster: a scheduler, and workers on any number of machines.
All need the same iotwin ({version}, model {model}) and Python {python}:

  pip install 'iotwin[cluster]'

On one machine, the scheduler:

  dask scheduler --host {host} --port {port}

On each machine, as many workers as it has CPUs, each with one thread:

  dask worker tcp://{host}:{port} --nworkers auto --nthreads 1

Where you type your studies:

  iotwin compare sendmail tmpfs --replications 200 --executor dask://{host}:{port}

A worker with other sources is refused by name before the first run. Nothing is
encrypted and whoever reaches the port may run programs: use a network of your own."""


@click.command("cluster", short_help="Say how to run studies on several machines.")
@click.option("--host", default=platform.node, show_default="this one", help="The scheduler's.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8786, show_default=True, help="Its port."
)
def command(host: str, port: int) -> None:
    """Say how to start a scheduler and workers, and how to use them.

    Nothing is started: the lines are for you to type, or for your cluster's own tools.

    \b
    Examples:
      iotwin cluster
      iotwin cluster --host head --port 8786
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    told = _TEXT.format(
        version=sim.__version__, model=model()[:8], python=python, host=host, port=port
    )
    click.echo(told)
