"""A drive's outcome as tables and as JSON.

Models: two tables.
Linux counterpart: none.
Invariants: JSON has all that the tables have; times in ms, errors in per cent.
Left out: plots (picture.py).
"""

from dataclasses import asdict
from typing import Any, Final

from calibration.drive.outcome import Outcome
from sim.param import params_of
from sim.report.tables import Column, Table
from sim.units import format_quantity

# Whose parameters a table of them shows: what a fit may change.
SHOWN: Final = (
    "overhead",
    "write_overhead",
    "positioning_overhead",
    "interface_rate",
    "seek_average",
    "head_switch",
    "write_settle",
    "write_cache",
    "read_on_arrival",
    "segments",
)


def score_table(outcome: Outcome) -> Table:
    """Return mean error and demerit of each disk, then kind by kind."""
    rows = tuple(
        (
            line.parameters,
            line.requests,
            line.kind,
            str(line.score.requests),
            f"{line.score.measured_mean_ms:.3f}",
            f"{line.score.simulated_mean_ms:.3f}",
            f"{line.score.mean_error_pct:+.2f}",
            f"{line.score.demerit_pct:.2f}",
        )
        for line in outcome.lines()
    )
    headings = ("number", "measured ms", "simulated ms", "mean error %", "demerit %")
    columns = (Column("parameters"), Column("requests"), Column("kind"))
    return Table((*columns, *(Column(one, True) for one in headings)), rows)


def params_table(outcome: Outcome) -> Table:
    """Return the parameters that the data sheet does not give for sure, disk by disk."""
    declared = {one.key: one for one in params_of(type(outcome.results[0].params))}
    rows = tuple(
        (
            key,
            *(
                format_quantity(getattr(one.params, declared[key].name), declared[key].dim)
                for one in outcome.results
            ),
        )
        for key in SHOWN
    )
    headings = (Column(one.parameters, True) for one in outcome.results)
    return Table((Column("parameter"), *headings), rows)


def to_json(outcome: Outcome, drive: str, seed: int) -> dict[str, Any]:
    """Return the outcome; `mean_error_pct` and `demerit_pct` are the main figures."""
    return {
        "drive": drive,
        "seed": seed,
        "fit_requests": outcome.fitted,
        "parameters": outcome.results[-1].parameters,
        **outcome.main().to_json(),
        "results": [
            {"parameters": line.parameters, "of": line.requests, "kind": line.kind}
            | line.score.to_json()
            for line in outcome.lines()
        ],
        "disks": {one.parameters: asdict(one.params) for one in outcome.results},
    }
