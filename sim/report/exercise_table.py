"""An exercise table as text, as JSON, and as bars.

Models: the tables at the end of a lesson.
Linux counterpart: none.
Invariants: text and JSON have the same rows; JSON has all digits.
Left out: nothing.
"""

from typing import Any

from sim.report.tables import Column, Table, figure
from sim.study.exercise import Exercise, Fact

Rows = list[dict[str, Fact]]


def exercise_table(exercise: Exercise, rows: Rows) -> Table:
    """Return the text; what is a word in the first row is one in all."""
    facts = [
        Column(heading, not isinstance(rows[0][key], str))
        for key, heading in exercise.headings.items()
    ]
    columns = (*facts, *(Column(one.heading, True) for one in exercise.loads))
    return Table(columns, tuple(tuple(_cell(fact) for fact in row.values()) for row in rows))


def _cell(fact: Fact) -> str:
    return figure(fact) if isinstance(fact, float) else str(fact)


def exercise_json(exercise: Exercise, rows: Rows, seed: int, version: str) -> dict[str, Any]:
    """Return the rows with what made them."""
    return {
        "table": exercise.name,
        "title": exercise.title,
        "seed": seed,
        "version": version,
        "rows": rows,
    }
