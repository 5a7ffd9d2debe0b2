"""A Grafana dashboard of a server under node_exporter's names, over the time of a run.

Models: the first page of an administrator's dashboards: load, CPUs, disks, memory, paging. It shows
what `iotwin export --format openmetrics` gave Prometheus.
Linux counterpart: none; the JSON model of Grafana 9 and later (Dashboard JSON model, schema 37).
Invariants: each expression names metrics that sim/report/node_metrics.py exports of every kernel
(tests/report/test_grafana.py), and Prometheus answers each of them (tests/oracle). Runs are told
apart by the labels of the export: instance, scenario, what_if, seed. The panels lie side by side
and do not overlap.
Left out: discards and flushes, which older kernels do not count; alerts. It was not looked at in a
Grafana: none was at hand.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

SCHEMA_VERSION: Final = 37
GRID_WIDTH: Final = 24
PANEL_WIDTH: Final = 12
PANEL_HEIGHT: Final = 8
LABELS: Final = ("instance", "scenario", "what_if", "seed")
RUN: Final = ",".join(f'{name}=~"${name}"' for name in LABELS)
WINDOW: Final = "$__rate_interval"
WHICH: Final = "{{what_if}}"  # nothing for the base
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


class Curve(NamedTuple):
    """An expression of Prometheus, and what its curves are called."""

    expression: str
    legend: str


class Panel(NamedTuple):
    """A picture: title, unit by Grafana's name, curves; `is_stacked`: they add up to a whole."""

    title: str
    unit: str
    curves: Sequence[Curve]
    is_stacked: bool = False


def _gauge(metric: str, legend: str) -> Curve:
    return Curve(f"node_{metric}{{{RUN}}}", f"{legend} {WHICH}")


def _rate(metric: str, legend: str) -> Curve:
    return Curve(_per_s(metric), f"{legend} {WHICH}")


def _per_s(metric: str) -> str:
    return f"rate(node_{metric}{{{RUN}}}[{WINDOW}])"


def _await(time: str, number: str, legend: str) -> Curve:
    ratio = f"{_per_s(f'disk_{time}_time_seconds_total')} / {_per_s(f'disk_{number}_total')}"
    return Curve(ratio, f"{{{{device}}}} {legend} {WHICH}")


_STATES: Final = f"sum by (mode, {', '.join(LABELS)}) ({_per_s('cpu_seconds_total')})"
_ALL_STATES: Final = (
    f"ignoring (mode) group_left sum by ({', '.join(LABELS)}) ({_per_s('cpu_seconds_total')})"
)
PANELS: Final = (
    Panel("Load average", "short", [_gauge(f"load{n}", f"{n} min") for n in (1, 5, 15)]),
    Panel(
        "CPUs",
        "percentunit",
        [Curve(f"{_STATES} / {_ALL_STATES}", f"{{{{mode}}}} {WHICH}")],
        is_stacked=True,
    ),
    Panel(
        "Tasks",
        "short",
        [_gauge("procs_running", "running"), _gauge("procs_blocked", "blocked by I/O")],
    ),
    Panel(
        "Disks: share of time in use",
        "percentunit",
        [_rate("disk_io_time_seconds_total", "{{device}}")],
    ),
    Panel(
        "Disks: requests a second",
        "iops",
        [
            _rate("disk_reads_completed_total", "{{device}} read"),
            _rate("disk_writes_completed_total", "{{device}} write"),
        ],
    ),
    Panel(
        "Disks: throughput",
        "Bps",
        [
            _rate("disk_read_bytes_total", "{{device}} read"),
            _rate("disk_written_bytes_total", "{{device}} write"),
        ],
    ),
    Panel(
        "Disks: await",
        "s",
        [
            _await("read", "reads_completed", "read"),
            _await("write", "writes_completed", "write"),
        ],
    ),
    Panel(
        "Disks: requests in queue and service",
        "short",
        [_rate("disk_io_time_weighted_seconds_total", "{{device}}")],
    ),
    Panel(
        "Memory",
        "bytes",
        [
            _gauge("memory_MemFree_bytes", "free"),
            _gauge("memory_Cached_bytes", "page cache"),
            _gauge("memory_Dirty_bytes", "dirty"),
            _gauge("memory_Writeback_bytes", "being written"),
        ],
    ),
    Panel(
        "Paging, pages a second",
        "short",
        [
            _rate("vmstat_pswpin", "swapped in"),
            _rate("vmstat_pswpout", "swapped out"),
            _rate("vmstat_pgmajfault", "major faults"),
        ],
    ),
    Panel(
        "Switches and interrupts a second",
        "short",
        [
            _rate("context_switches_total", "context switches"),
            _rate("intr_total", "interrupts"),
            _rate("forks_total", "forks"),
        ],
    ),
)


def dashboard(*, title: str, begin_ms: int, end_ms: int, interval_s: float) -> dict[str, Any]:
    """Return the dashboard as what json can write; times in ms since 1970, as Grafana has them.

    `interval_s` is the time between two readings: rates are taken over four of them.
    """
    return {
        "title": title,
        "tags": ["iotwin"],
        "editable": True,
        "schemaVersion": SCHEMA_VERSION,
        "timezone": "utc",
        "time": {"from": str(begin_ms), "to": str(end_ms)},
        "templating": {"list": [_datasource(), *(_variable(name) for name in LABELS)]},
        "panels": [_panel(number, one, interval_s) for number, one in enumerate(PANELS)],
    }


def _datasource() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
    }


def _variable(label: str) -> dict[str, Any]:
    """Return the choice of a label's values; ".*" also has runs without the label."""
    return {
        "name": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": f"label_values(node_load1, {label})",
        "refresh": 2,  # when the time changes
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(number: int, panel: Panel, interval_s: float) -> dict[str, Any]:
    across = GRID_WIDTH // PANEL_WIDTH
    custom = {"stacking": {"mode": "normal"}, "fillOpacity": 60} if panel.is_stacked else {}
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0, "custom": custom}
    if panel.is_stacked:
        defaults["max"] = 1
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": DATASOURCE,
        "interval": f"{interval_s:g}s",
        "gridPos": {
            "x": number % across * PANEL_WIDTH,
            "y": number // across * PANEL_HEIGHT,
            "w": PANEL_WIDTH,
            "h": PANEL_HEIGHT,
        },
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {"tooltip": {"mode": "multi"}},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": DATASOURCE,
                "expr": curve.expression,
                "legendFormat": curve.legend,
            }
            for place, curve in enumerate(panel.curves)
        ],
    }
