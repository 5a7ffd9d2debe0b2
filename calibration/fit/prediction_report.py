"""A prediction as text and as JSON.

Models: the answer to a what-if question, with its label.
Linux counterpart: none.
Invariants: the JSON has the form of `iotwin run --json`, with the label and the shares added, and
 without the digests: those tell whether two runs of one set of parameters are the same, and a
 member is a set of its own. Every output says whether it is a prediction or a reproduction.
Left out: pictures.
"""

from typing import Any, Final

from calibration.fit.predict import Prediction
from sim.report.tables import Column, Table, figure, interval
from sim.study.recorded import Figure
from sim.study.summary import Summary

_WORTH_NAMING: Final = 0.05  # shares below this are noise of the estimate
_NAMED: Final = 2
# One word for each outcome of "does the 90 % interval hold what was recorded?"
_VERDICTS: Final = {True: "holds it", False: "misses it"}


def prediction_table(prediction: Prediction, recorded: dict[str, Figure]) -> Table:
    """Return every figure with its interval, what was recorded, and what widens it."""
    columns = [
        Column("figure"),
        Column("median", True),
        Column("90 % interval", True),
        Column("unit"),
        *([Column("recorded", True), Column("interval")] if recorded else []),
        Column("width mostly from"),
    ]
    rows = []
    for name, summary in prediction.metrics.items():
        if name.startswith("disk.") and summary.lo == summary.hi == 0 and name not in recorded:
            continue
        row = [
            name,
            figure(summary.median, summary.unit),
            interval(summary.lo, summary.hi, summary.unit),
            summary.unit,
        ]
        row += _beside(summary, recorded.get(name)) if recorded else []
        rows.append((*row, widest(prediction, name)))
    return Table(tuple(columns), tuple(rows))


def _beside(summary: Summary, recorded: Figure | None) -> list[str]:
    if recorded is None:
        return ["", ""]
    if recorded.value is None:
        return [recorded.text, ""]
    return [recorded.text, _VERDICTS[summary.lo <= recorded.value <= summary.hi]]


def held(prediction: Prediction, recorded: dict[str, Figure]) -> str:
    """Return how many of the recorded figures their intervals hold, as a sentence, or ""."""
    known = {name: one.value for name, one in recorded.items() if one.value is not None}
    summaries = [
        (prediction.metrics[name], value)
        for name, value in known.items()
        if name in prediction.metrics
    ]
    if not summaries:
        return ""
    inside = sum(summary.lo <= value <= summary.hi for summary, value in summaries)
    return f"The 90 % intervals hold {inside} of the {len(summaries)} recorded figures."


def widest(prediction: Prediction, metric: str) -> str:
    """Return the parameters that explain most of a figure's variance, with their shares."""
    shares = prediction.shares.get(metric, {})
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])[:_NAMED]
    named = [f"{name} {100 * share:.0f} %" for name, share in ordered if share >= _WORTH_NAMING]
    return ", ".join(named)


def prediction_json(
    prediction: Prediction, recorded: dict[str, Figure], version: str
) -> dict[str, Any]:
    """Return the prediction in the form of `iotwin run --json`: label, shares, no digests."""
    scenario, what_if = prediction.scenario, prediction.scenario.what_if
    metrics: dict[str, dict[str, Any]] = {}
    for name, summary in prediction.metrics.items():
        metrics[name] = {
            "median": summary.median,
            "lo": summary.lo,
            "hi": summary.hi,
            "unit": summary.unit,
        }
        known = recorded.get(name)
        if known is not None and known.value is not None:
            metrics[name]["recorded"] = known.value
        if name in prediction.shares:
            metrics[name]["shares"] = prediction.shares[name]
            metrics[name]["explained"] = prediction.joint[name]
    return {
        "scenario": scenario.name,
        "what_if": what_if.name if what_if else None,
        "seed": prediction.seed,
        "replications": prediction.replications,
        "version": version,
        "kind": prediction.kind,
        "fit": prediction.fit.file,
        "members": prediction.members,
        "metrics": metrics,
    }
