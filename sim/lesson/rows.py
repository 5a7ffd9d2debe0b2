"""Tables for lessons: a parameter over values, what-ifs under each other, the exercise tables.

Models: the table that a student fills in a laboratory's notebook.
Linux counterpart: none.
Invariants: a row is a simulation, and all rows have one seed.
Left out: intervals, and choosing the values: `iotwin sweep` has both.
"""

from collections.abc import Mapping, Sequence
from typing import overload

from sim.lesson.runs import NOTHING, Changes, Quantity, UnknownFigureError, compare, run
from sim.report.tables import Column, Table, figure, plain
from sim.study.exercise import SEED, access, fill, raid

Cell = str | int | float
EXERCISES = {"raid": raid, "access": access}


class Rows(Sequence[Mapping[str, Cell]]):
    """A table: rows by number, cells by the column's name."""

    def __init__(self, rows: Sequence[Mapping[str, Cell]], title: str) -> None:
        self._rows = tuple(rows)
        self.title = title

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Cell]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Cell]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Cell] | Sequence[Mapping[str, Cell]]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def column(self, name: str) -> list[Cell]:
        """Return the cells of a column, from the first row to the last."""
        if name not in self._rows[0]:
            raise UnknownFigureError("the table", name, list(self._rows[0]))
        return [row[name] for row in self._rows]

    def __repr__(self) -> str:
        first = self._rows[0]
        columns = tuple(
            Column(_heading(name, cell), not isinstance(cell, str)) for name, cell in first.items()
        )
        rows = tuple(tuple(_text(cell) for cell in row.values()) for row in self._rows)
        return f"{self.title}\n\n{plain(Table(columns, rows))}"


def _heading(name: str, cell: Cell) -> str:
    unit = cell.unit if isinstance(cell, Quantity) else ""
    return f"{name}, {unit}" if unit else name


def _text(cell: Cell) -> str:
    return figure(cell) if isinstance(cell, float) else str(cell)


@overload
def table(name: str, *, level: Sequence[str], devices: Sequence[int]) -> Rows: ...
@overload
def table(
    name: str,
    path: str = "",
    values: Sequence[object] = (),
    *,
    of: Sequence[str],
    what_ifs: Sequence[str] = (),
    set: Changes = NOTHING,
) -> Rows: ...
def table(
    name: str,
    path: str = "",
    values: Sequence[object] = (),
    *,
    of: Sequence[str] = (),
    what_ifs: Sequence[str] = (),
    set: Changes = NOTHING,
    level: Sequence[str] = (),
    devices: Sequence[int] = (),
) -> Rows:
    """Fill a table by simulations.

    table("generic", "process.server.rate", ["20 /s", "40 /s"], of=["response_ms"])
    table("sendmail", what_ifs=["tmpfs"], of=["throughput_per_s"])
    table("raid", level=["raid5"], devices=[3, 4])
    """
    if name in EXERCISES:
        exercise = raid(level, devices) if name == "raid" else access()
        return Rows(fill(exercise, SEED), exercise.title)
    if not of:
        raise TypeError("of=[...] names the figures that are the table's columns")
    if path:
        return _over(name, path, values, of, set)
    found = compare(name, *what_ifs, set=set)
    rows: list[dict[str, Cell]] = []
    for variant, done in found.items():
        rows.append({"what-if": variant, **{one: done[one] for one in of}})
    return Rows(rows, found["base"].scenario.title)


def _over(
    name: str, path: str, values: Sequence[object], of: Sequence[str], changes: Changes
) -> Rows:
    """Return a row for each value of a parameter."""
    rows: list[dict[str, Cell]] = []
    for value in values:
        found = run(name, set={**changes, path: value})
        rows.append({path: str(value), **{one: found[one] for one in of}})
    return Rows(rows, f"{name}, by {path}")
