"""`iotwin run --block-dump`: the kernel's log lines about blocks and inodes, by process.

Models: echo 1 > /proc/sys/vm/block_dump; dmesg | cut -d: -f1 | sort | uniq -c.
Linux counterpart: Documentation/laptops/laptop-mode.txt: block_dump.
Invariants: the text is complete or not there.
Left out: the rest of the kernel's log.
"""

from pathlib import Path

import click

from sim.cli.output import write_text
from sim.cli.progress import Progress
from sim.machine import simulate
from sim.scenario import Scenario
from sim.sched.version import kernel_version
from sim.study.block_dump import REMOVED_IN, BlockDump, counts_text


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
