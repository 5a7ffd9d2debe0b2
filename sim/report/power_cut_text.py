"""A power cut as text and JSON.

Models: the page that an administrator writes on the morning after.
Linux counterpart: none.
Invariants: what was accepted is handed on, in a mailbox, in the queue, or lost.
Left out: which messages.
"""

from typing import Any

from sim.report.study_json import summary_json, variant_head
from sim.report.study_tables import RANGE, replications_text, scenario_heading
from sim.report.tables import Column, Table, figure, interval
from sim.study.power_cut import PowerCut

MEANINGS = {
    "messages_accepted": "answered 250 before the cut",
    "messages_handed_on": "of these, taken over by the next host",
    "messages_in_mailboxes": "of these, delivered on this machine, whole after the next boot",
    "messages_in_queue": "of these, there and whole after the next boot",
    "messages_lost": "of these, accepted and lost",
    "messages_sent_twice": "handed on or delivered, and still in the queue after the next boot",
    "files_incomplete": "there by name, but not all of their contents",
    "changes_undone": "of names and sizes, not on the medium yet",
    "damage": "that recovery cannot mend",
}


def heading(cut: PowerCut, command: str) -> str:
    """Return the lines that say what was run, and how to run it again."""
    runs = replications_text(len(cut.cuts))
    conditions = (
        f"power cut at {cut.at_ns / 1e9:g} s; seed {cut.scenario.seed}, {runs}, iotwin"
        f" {cut.version}"
    )
    return scenario_heading(cut.scenario, conditions, command)


def table(cut: PowerCut) -> Table:
    """Return the figures with what they mean."""
    several = len(cut.cuts) > 1
    columns = [Column("figure"), Column("simulated", is_number=True)]
    columns += [Column(RANGE, is_number=True)] if several else []
    rows = []
    for name, one in cut.figures.items():
        row = [name, figure(one.median, "messages")]
        row += [interval(one.least, one.greatest, "messages")] if several else []
        rows.append((*row, MEANINGS[name]))
    return Table((*columns, Column("")), tuple(rows))


def mounts(cut: PowerCut) -> str:
    """Return a line or more for each mount of the first run."""
    lines = []
    for place, one in sorted(cut.cuts[0].left.items()):
        journal = f", recovered up to transaction {one.last_durable}" if one.last_durable else ""
        lines.append(f"{place} ({one.kind}): {one.files} files{journal}")
        lines += [f"  damage: {text}" for text in one.damage]
    return "\n".join(lines) + "\n"


def cut_json(cut: PowerCut) -> dict[str, Any]:
    """Return the study in the form of `run --json`, with the moment of the cut."""
    return {
        **variant_head(cut.scenario, len(cut.cuts), cut.version),
        "power_cut_s": cut.at_ns / 1e9,
        "metrics": {name: summary_json(one) for name, one in cut.figures.items()},
    }
