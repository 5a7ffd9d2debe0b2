"""Drives for tests: profiles as parameters, and closed loops of random reads."""

import random
import tomllib
from pathlib import Path

from sim.block.bio import READ, Bio
from sim.drivers.disk import PROFILES
from sim.param import params_of
from sim.registry import lookup
from tests.block.disks import PAGE, Rig


def profile(name):
    """Return the table of a profile: one of the package by name, another by its path."""
    path = name if isinstance(name, Path) else PROFILES / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def drive(name, **changes):
    """Return the device of a profile, some parameters changed (canonical values)."""
    table = profile(name)
    entry = lookup("device", table["device"])
    declared = {param.key: param for param in params_of(entry.params)}
    values = {}
    for key, given in table.items():
        if key not in ("doc", "device", "source"):
            given = given["value"] if isinstance(given, dict) else given
            values[declared[key].name] = declared[key].parse(given)
    return entry.cls(entry.params(**(values | changes)))


def random_reads(device, in_flight, count, seed=1):
    """Keep ``in_flight`` random reads of 4 KiB going until ``count`` are done; return the rig."""
    rig = Rig(device)
    rig.tracer.stop()
    draw = random.Random(seed)
    pages = rig.disk.capacity_sectors // PAGE
    left = count

    def read(_=None):
        nonlocal left
        if left:
            left -= 1
            rig.disk.submit_bio(Bio(READ, draw.randrange(pages) * PAGE, PAGE, read))
            rig.disk.unplug()

    for _ in range(in_flight):
        read()
    return rig.run()


def await_ms(rig):
    return rig.stats.read_ns / rig.stats.reads / 1e6


def reads_per_s(rig):
    return rig.stats.reads * 1e9 / rig.calendar.now
