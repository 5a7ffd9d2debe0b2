"""Prometheus' answer to a question about a stretch of time: JSON of its HTTP API.

Models: `curl 'HOST:9090/api/v1/query_range?query={__name__=~"node_(disk|cpu|...).*"}&start=...'`.
Linux counterpart: Prometheus web/api/v1/api.go: resultType matrix; docs/querying/api.md.
Invariants: only counters and gauges as node_exporter names them are taken; series of several
instances, series without a name (of rate() and other functions) and answers about one moment are
refused, each with what to ask instead.
Left out: federation, remote read.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from calibration.readers.line import Sink
from calibration.readers.scrape import Scrape, ScrapeReader, hosts_of, is_counted, is_taken, is_time

ASK: Final = (
    'ask query_range for the counters themselves: {__name__=~"node_(disk|cpu|load|memory|vmstat|'
    'procs|context|intr|forks|boot|uname).*", instance="HOST:9100"}'
)


def read_prometheus(document: Any, sink: Sink) -> bool:
    """Put an answer of Prometheus into the sink; tell whether it is one."""
    match document:
        case {"status": "success", "data": {"resultType": str(kind), "result": [*series]}}:
            pass
        case {"status": "error", "error": str(said)}:
            sink.skip(sink.document, f"Prometheus answered with an error: {said}")
            return True
        case _:
            return False
    why = _why_not(kind, series)
    if why:
        sink.skip(sink.document, f"{why}: {ASK}")
        return True
    moments = moments_of(series)
    reader = ScrapeReader(sink)
    for at_s in sorted(moments):
        reader.take(sink.document, moments[at_s], at_s)
    reader.close()
    if reader.taken < 2:
        why = f"{reader.taken} moments with counters of CPUs or disks, two are needed"
        sink.skip(sink.document, f"{why}: {ASK}")
    return True


def moments_of(series: list[Any]) -> dict[float, Scrape]:
    """Return the scrapes in the series of an answer, by their times since 1970, s."""
    moments: dict[float, Scrape] = {}
    for labels, at_s, value in _values(series):
        moments.setdefault(at_s, {}).setdefault(labels["__name__"], []).append((labels, value))
    return moments


def _why_not(kind: str, series: list[Any]) -> str:
    """Return why an answer cannot be taken; "" if it can."""
    labels = [one["metric"] for one in series if _is_series(one)]
    if kind != "matrix":
        return f"an answer about one moment (resultType {kind})"
    if not labels:
        return "an answer without series"
    if not any("__name__" in one for one in labels):
        return "series without names, as rate() makes them"
    hosts = hosts_of(one for one in labels if is_taken(str(one.get("__name__"))))
    if len(hosts) > 1:
        return f"series of {len(hosts)} hosts ({', '.join(map(str, hosts[:5]))})"
    return ""


def _is_series(one: Any) -> bool:
    return isinstance(one, Mapping) and isinstance(one.get("metric"), dict)


def _values(series: list[Any]) -> Iterator[tuple[dict[str, str], float, float]]:
    """Yield labels, time and value of what is taken; a value that is no number is passed over."""
    for one in series:
        if not _is_series(one) or not is_taken(str(one["metric"].get("__name__"))):
            continue
        labels = {str(name): str(value) for name, value in one["metric"].items()}
        values = one.get("values")
        for pair in values if isinstance(values, list) else []:
            match pair:
                case [int() | float() as at_s, str(text)]:
                    value = _number(text)
                    if value is not None and is_time(at_s):
                        yield labels, float(at_s), value


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if is_counted(value) else None
