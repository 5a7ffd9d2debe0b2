"""What a recording holds, at a glance.

Models: the table of contents of a recording.
Linux counterpart: none.
Invariants: reports since boot are counted but in no minimum, median or maximum; columns that never
were anything but 0 are counted, not listed.
Left out: what the figures mean for the server: `iotwin look`.
"""

from collections.abc import Iterable, Sequence
from statistics import median

from calibration.samples import COLUMNS, Recording, Sample
from sim.report.tables import Column, Table, figure


def columns_table() -> Table:
    """Return every column of the samples table with its meaning."""
    rows = tuple((name, column.kind, column.meaning) for name, column in COLUMNS.items())
    return Table((Column("column"), Column("of a"), Column("meaning")), rows)


def facts_lines(recording: Recording) -> list[str]:
    """Return source and formats, the reports, and the facts, each on a line."""
    boot = {sample.report for sample in recording.samples if sample.since_boot}
    reports = {sample.report for sample in recording.samples}
    lines = [
        f"{recording.source}: {', '.join(recording.formats)}",
        f"  reports: {len(reports)}, of them since boot: {len(boot)}",
        *(f"  {name}: {value}" for name, value in recording.facts.items()),
    ]
    if recording.problems:
        lines.append(f"  lines not taken: {len(recording.problems)}")
    return lines


def summary_table(samples: Sequence[Sample]) -> Table:
    """Return count, minimum, median and maximum of each column that was ever more than 0."""
    rows = [
        (name, column, str(len(values)), *map(figure, (min(values), median(values), max(values))))
        for (name, column), values in _series(samples).items()
        if any(values)
    ]
    headings = Column("name"), Column("column")
    numbers = (Column(title, is_number=True) for title in ("values", "min", "median", "max"))
    return Table((*headings, *numbers), tuple(rows))


def always_zero(samples: Sequence[Sample]) -> int:
    """Return how many columns summary_table() leaves out."""
    return sum(1 for values in _series(samples).values() if not any(values))


def since_boot_alone(samples: Sequence[Sample]) -> int:
    """Return how many columns have values since boot alone, which summary_table() leaves out."""
    later = {(one.name, one.column) for one in samples if not one.since_boot}
    return len({(one.name, one.column) for one in samples} - later)


def _series(samples: Iterable[Sample]) -> dict[tuple[str, str], list[float]]:
    """Return the values of each thing and column, things together."""
    found: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = {}
    for sample in samples:
        if not sample.since_boot:
            of_thing = found.setdefault((sample.kind, sample.name), {})
            label = sample.name if sample.kind == "device" else f"{sample.kind} {sample.name}"
            of_thing.setdefault((label.strip(), sample.column), []).append(sample.value)
    return {key: values for of_thing in found.values() for key, values in of_thing.items()}
