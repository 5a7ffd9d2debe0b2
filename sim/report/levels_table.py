"""Service levels as a table and as JSON: what is asked, what was seen, the verdict.

Models: the page of a report that says whether the contract is kept.
Linux counterpart: none.
Invariants: a row for each level that a variant has, the base's first; a figure stands beside every
 verdict that one decided.
Left out: how far the server is from a level under another load.
"""

from collections.abc import Sequence
from typing import Any

from sim.report.tables import Column, Table, figure, interval
from sim.study.levels import NO_DATA, TRANSACTIONS, Judged
from sim.study.outcome import VariantOutcome


def levels_table(outcomes: Sequence[VariantOutcome]) -> Table:
    """Return the levels with what was seen of each, and the verdict, of every variant."""
    judged = [{one.level.text: one for one in outcome.levels} for outcome in outcomes]
    columns = [Column("service level")]
    for outcome in outcomes:
        columns += [Column(outcome.name), Column("verdict")]
    rows = []
    for text in dict.fromkeys(text for found in judged for text in found):
        row = [text]
        for found in judged:
            row += _cells(found[text]) if text in found else ["", ""]
        rows.append(tuple(row))
    return Table(tuple(columns), tuple(rows))


def _cells(judged: Judged) -> list[str]:
    if judged.verdict == NO_DATA:
        return [seen_text(judged), f"{NO_DATA}, which is missed"]
    return [seen_text(judged), judged.verdict]


def seen_text(judged: Judged) -> str:
    """Return what decided: a mean or a share with its interval, or how few runs have data."""
    if judged.seen is None:
        return f"in {judged.runs} of {judged.asked} runs"
    unit = "%" if judged.of else judged.level.unit
    seen = f"{figure(judged.seen, unit)} {unit}".rstrip()
    if judged.interval is not None:
        seen += f" ({interval(*judged.interval, unit)})"
    if judged.of:
        seen += f" of {judged.of} {'beyond it' if judged.of == TRANSACTIONS else 'keep it'}"
    return seen


def missed_text(one: Judged) -> str:
    """Return a level that is missed, and whether that is for want of data."""
    return f"{one.level.text} ({NO_DATA})" if one.verdict == NO_DATA else one.level.text


def levels_json(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """Return the levels of one variant."""
    return [
        {
            "level": one.level.text,
            "figure": one.level.figure,
            "verdict": one.verdict,
            "missed": one.is_missed,
            "n": one.runs,
            "seen": one.seen,
            "lo": None if one.interval is None else one.interval[0],
            "hi": None if one.interval is None else one.interval[1],
            "unit": "%" if one.of else one.level.unit,
            "of": one.of or "mean",
        }
        for one in judged
    ]
