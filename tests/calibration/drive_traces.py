"""Traces for the tests of drives: made by the model itself, written as the recorded ones are."""

import gzip
import json
import random

from calibration.drive.replay import replay
from calibration.drive.rules import params_of_sheet
from calibration.drive.sheet import sheet_of
from calibration.drive.trace import Access
from sim.block.bio import READ, WRITE

ROW = {
    "name": "Maker Model 1",
    "rpm": 7200.0,
    "blocks_512": 4_000_000,
    "surfaces": 5,
    "cylinders": 5000,
    "blocks_per_track_outer": 200.0,
    "blocks_per_track_inner": 130.0,
    "seek_ms_single": 1.0,
    "seek_ms_average": 8.0,
    "seek_ms_full": 16.0,
    "head_switch_ms": 0.9,
}


def sheet(**changes):
    return sheet_of(ROW | changes, "sheets.json: drive")


def requests(count, capacity_sectors, seed=1):
    """Return requests without measured times: reads in sequence, near and far, and writes."""
    draw = random.Random(seed)
    found, end = [], 0
    for _ in range(count):
        sectors = draw.choice((4, 4, 8, 16, 32))
        start = draw.choice((end, end + draw.randrange(-300, 300), draw.randrange(1 << 40)))
        start = start % (capacity_sectors - sectors)
        op = draw.choice((READ, READ, WRITE))
        found.append(Access(op, start, sectors, 1, draw.randrange(5_000_000, 40_000_000)))
        end = start + sectors
    return found


def measured_on(params, count, seed=1):
    """Return requests with the times that the model itself takes."""
    asked = requests(count, params.capacity_bytes // 512)
    took_ns = replay(params, asked, seed)
    return tuple(
        Access(one.op, one.sector, one.sectors, ns, one.think_ns)
        for one, ns in zip(asked, took_ns, strict=True)
    )


def text(accesses):
    """Return the lines of a trace."""
    letter = {READ: "R", WRITE: "W"}
    return "".join(
        f"{letter[one.op]} Hit {one.sector:>9} {one.sectors} "
        f"{one.measured_ns / 1000:.3f} {one.think_ns / 1000:.3f}\n"
        for one in accesses
    )


def write_files(folder, accesses, **rows):
    """Write the trace and the data sheets; return the command's first arguments."""
    (folder / "trace.gz").write_bytes(gzip.compress(text(accesses).encode()))
    (folder / "sheets.json").write_text(json.dumps(rows or {"maker1": ROW}), encoding="utf-8")
    return [str(folder / "trace.gz"), "--drive", f"{folder}/sheets.json:maker1"]


def default_params(**changes):
    return params_of_sheet(sheet(**changes))
