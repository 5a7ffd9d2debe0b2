"""A scenario and its what-ifs as one table: a row each, the figures of its own programs.

Models: the table that answers a scenario's question at one look.
Linux counterpart: none.
Invariants: the base comes first, the what-ifs in the order of the file; a figure that a row does
not have is "-". Figures are those that the scenario's programs declare and [measure] asks for.
Left out: intervals and changes, which `iotwin compare` has; figures of disks and CPUs.
"""

from typing import Final

from sim.report.tables import Column, Table, figure
from sim.study.metrics import own_figures
from sim.study.outcome import Study

NONE: Final = "-"
AS_IT_IS: Final = "(as it is)"


def what_if_table(study: Study) -> Table:
    """Return a row for each variant of the study."""
    metrics = own_figures(study.variants[0].scenario.measure)
    columns = (
        Column("what-if"),
        *(Column(metric.name, is_number=True) for metric in metrics),
        Column("title"),
    )
    rows: list[tuple[str, ...]] = []
    for variant in study.variants:
        found = variant.metrics
        cells = (
            figure(found[one.name].median, one.unit) if one.name in found else NONE
            for one in metrics
        )
        title = variant.title if rows else AS_IT_IS
        rows.append((variant.name, *cells, title))
    return Table(columns, tuple(rows))
