"""What `iotwin twin` says: how the twin was made, what was assumed, how near it comes.

Models: the covering letter.
Linux counterpart: none.
Invariants: every assumption and replacement is a line; the residual table has every column of the
fit and every one left out with its reason; "simulated" is a run of the file that was written.
Left out: pictures.
"""

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any, Final

from calibration.fit.report import parameter_table, posterior_columns
from calibration.look import Look
from calibration.twin.columns import LEFT_OUT
from calibration.twin.commits import OVERWRITE
from calibration.twin.demands import DIRECT, SWAP_OUT, SYNC, WRITE, Class
from calibration.twin.draft import Draft
from calibration.twin.fitting import Twin
from sim.report.tables import Column, Table, figure, interval, plain

WIDTH = 96
# Kind of a class that writes -> how one says it.
HOW: Final[Mapping[str, str]] = {
    SYNC: "synced: programs wait for a commit",
    DIRECT: "direct: programs write past the page cache",
    WRITE: "buffered: a flusher writes, and nobody waits",
    SWAP_OUT: "swapped out by reclaim",
}
FLUSHED: Final = "synced: programs wait for a flush"  # of blocks that are there: no commit
AT_ONCE: Final = "written back many at a time, and nobody waits"


def twin_text(twin: Twin, seen: Look) -> str:
    """Return the whole report."""
    parts = [
        *_classes(twin.draft),
        "",
        *_notes(twin.draft),
        "",
        "Fitted parameters (narrowed: share of the prior's width that the recording took away)",
        plain(parameter_table(twin.rows)).rstrip("\n"),
        "",
        f"Recorded against simulated ({len(seen.used)} intervals; a run of the twin; the interval"
        " is emulated)",
        plain(_residuals(twin)).rstrip("\n"),
        *_left_out(twin.draft),
        "",
        *_trust(twin),
    ]
    return "\n".join(parts) + "\n"


def twin_json(twin: Twin, scenario: str, version: str) -> dict[str, Any]:
    """Return the report as what json can write: notes, parameters, columns, names of what-ifs."""
    low, _median, high = posterior_columns(twin.fit)
    return {
        "scenario": scenario,
        "seed": twin.fit.plan.seed,
        "simulations": twin.fit.plan.simulations,
        "version": version,
        "notes": list(twin.draft.notes),
        "parameters": {
            row.path: {
                "median": row.median,
                "lo": row.low,
                "hi": row.high,
                "identified": row.is_identified,
            }
            for row in twin.rows
        },
        "verdict": twin.verdict.text,
        "advice": twin.verdict.advice,
        "fair": twin.verdict.is_fair,
        "loss": twin.verdict.loss,
        "columns": {
            one.metric: {
                "recorded": one.value,
                "simulated": twin.simulated.get(one.metric),
                "lo": float(low[i]),
                "hi": float(high[i]),
                "unit": one.unit,
            }
            for i, one in enumerate(twin.columns)
        },
        "what_ifs": [one.name for one in twin.draft.sheet.what_ifs],
    }


def _classes(draft: Draft) -> Iterator[str]:
    yield "Classes of transactions"
    for load in draft.loads:
        for one in load.classes:
            size = f"{one.size_bytes / 1024:.3g} KiB"
            if one.at_once > 1:
                size = f"{one.at_once:.0f} x {size}"
            how = (
                f"closed, {one.customers} customers"
                if one.customers is not None
                else f"open, {one.rate_per_s:.3g} /s estimated"
            )
            yield f"  {load.name} {one.kind}: {how}, {size} each ({one.reason})"


def writers_told(draft: Draft) -> list[str]:
    """Return who is taken to write to each device, and why, a line for each."""
    found = []
    for load in draft.loads:
        told = [f"{_how(one)} ({one.reason})" for one in load.classes if one.kind in HOW]
        if told:
            found.append(f"{load.name}'s writes are taken for {', and '.join(told)}.")
    return [*found, f"{draft.choice}."] if draft.choice else found


def _how(one: Class) -> str:
    """Return how the writes of a class come to the device, and who waits for them."""
    if one.at_once > 1:
        return AT_ONCE
    if one.promise is OVERWRITE:
        return FLUSHED
    return HOW[one.kind]


def _notes(draft: Draft) -> Iterator[str]:
    yield "Assumed or replaced" if draft.notes else "Nothing had to be assumed of the machine."
    for note in draft.notes:
        yield from wrap(note, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _residuals(twin: Twin) -> Table:
    columns = (
        Column("column"),
        Column("recorded", True),
        Column("simulated", True),
        Column("off by", True),
        Column("90 %, emulated", True),
        Column("unit"),
        Column("trusted to", True),
    )
    low, _median, high = posterior_columns(twin.fit)
    rows = []
    for i, one in enumerate(twin.columns):
        value = twin.simulated.get(one.metric)
        shown = "-" if value is None else figure(value, one.unit)
        off = "-" if value is None else f"{100 * (value / one.value - 1):+.0f} %"
        span = interval(low[i], high[i], one.unit)
        trust = f"{100 * one.discrepancy:g} %"
        rows.append((one.name, figure(one.value, one.unit), shown, off, span, one.unit, trust))
    return Table(columns, tuple(rows))


def _left_out(draft: Draft) -> Iterator[str]:
    for name, why in {**LEFT_OUT, **draft.server.left_out}.items():
        yield f"  left out: {name}: {why}"


def _trust(twin: Twin) -> Iterator[str]:
    posterior = twin.fit.posterior
    yield f"verdict: {twin.verdict.text}"
    if twin.verdict.advice:
        yield from wrap(f"what to do: {twin.verdict.advice}", WIDTH, subsequent_indent="  ")
    yield f"loss: {twin.verdict.loss:.2f} (mean square of the run's distances, in trusts)"
    sampler = "converged" if posterior.has_converged else "NOT CONVERGED: take more --simulations"
    yield f"sampler: {sampler} (R-hat {posterior.r_hat.max():.3f})"
    yield "intervals hold what the recording leaves open, not which class of transactions there is."
