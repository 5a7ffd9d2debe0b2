"""The readings of a run as Parquet: a row for each metric of each reading.

Models: the table of `iotwin export --format csv`, with types, for pandas, DuckDB, Polars and Spark.
Linux counterpart: none; Apache Parquet, by pyarrow (extra `parquet`).
Invariants: the figures and their order are those of sim/report/node_metrics.py; `clock` is the
server's own, UTC; a label that a metric does not have is null. What run it is stands in the file's
key-value metadata, each key with "iotwin." before it.
Left out: partitioned data sets; a column for each metric (pivot it where you read it).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow
from pyarrow.parquet import write_table

from sim.report.node_metrics import metrics, unix_time_s
from sim.tools.snapshot import Snapshot
from sim.units import NS_PER_S

LABELS: Final = ("cpu", "mode", "device")
_NAME: Final = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
SCHEMA: Final = pyarrow.schema(
    [
        ("t_s", pyarrow.float64()),  # simulated time since boot
        ("clock", pyarrow.timestamp("ms", tz="UTC")),
        ("metric", _NAME),
        *((label, _NAME) for label in LABELS),
        ("value", pyarrow.float64()),
    ]
)


def write_parquet(readings: Sequence[Snapshot], run: Mapping[str, str], path: Path) -> None:
    """Write the readings into a file; `run` says which run it is."""
    columns: dict[str, list[object]] = {name: [] for name in SCHEMA.names}
    for reading in readings:
        clock_ms = round(1000 * unix_time_s(reading))
        for metric in metrics(reading):
            labels = dict(metric.labels)
            row = (metric.name, *(labels.get(label) for label in LABELS), float(metric.value))
            for name, value in zip(
                SCHEMA.names, (reading.t_ns / NS_PER_S, clock_ms, *row), strict=True
            ):
                columns[name].append(value)
    told = {f"iotwin.{name}": value for name, value in run.items()}
    table = pyarrow.table(columns, schema=SCHEMA.with_metadata(told))
    write_table(table, path, compression="zstd")
