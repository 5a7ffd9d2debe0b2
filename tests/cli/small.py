"""A scenario that runs in a moment, for tests of the command line."""

from pathlib import Path

SMALL = """\
# A few messages through a server whose queue is on a disk of constant latency.
title = "A small storm"
seed = 5
uses = ["sendmail/program.py"]
[machine]
kernel = "2.6.16"
cpus = 2
memory = "1 GiB"
hostname = "small"
disk.sda = { device = "ram", capacity = "4 GiB", latency = "2 ms", scheduler = "noop" }
mount."/" = { type = "ext3", device = "sda" }

[link.lan]
latency = "0.1 ms"

[process.syslogd]
program = "syslogd"

[process.sendmail]
program = "sendmail"

[process.relay]
program = "smtp_relay"
via = "lan"

[process.blast]
program = "smtp_sender"
via = "lan"
target = "sendmail"
arrivals = "closed"
messages = 60
concurrency = 4
think_time = "0.5 s"
start = "3 s"
marks_storm = true

[run]
duration = "1 min"
until = "storm_end"
after = "4 s"

[measure]
interval = "1 s"
devices = ["sda"]

[what_if.slow]
title = "A slower disk"
doc = "Does it matter?"
machine.disk.sda.latency = "8 ms"
"""


def small_file(folder: Path, text: str = SMALL) -> str:
    """Write the scenario into a folder; return its path as a text."""
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)
