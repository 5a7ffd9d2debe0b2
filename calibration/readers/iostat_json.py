"""iostat's JSON: `iostat -o JSON`.

Models: sysstat 11.5.1 to 12.7, all options.
Linux counterpart: sysstat iostat.c:write_json_cpu_stat, write_json_ext_stat, write_json_basic_stat.
Invariants: as in the text: a row is taken whole or reported, and a group's name begins with
"group "; samples stand at the line where the document begins.
Left out: -m of 11.5.1 to 11.5.6, whose MB the tool calls kB. -y leaves no trace in a document: the
first report of a host counts as since boot.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from calibration.readers.clock import parse_moment
from calibration.readers.iostat_columns import (
    JSON_CPU,
    JSON_DEVICE,
    JSON_DEVICE_BEFORE_11_5_7,
    ONLY_BEFORE_11_5_7,
    Meaning,
    generation,
)
from calibration.readers.line import Line, Sink
from calibration.readers.stamp import Pace
from calibration.samples import Kind

_NAME: Final = "disk_device"
_FACTS: Final[Mapping[str, str]] = {
    "nodename": "hostname",
    "release": "kernel",
    "machine": "arch",
    "number-of-cpus": "cpus",
    "date": "date",
}


class _NotARow(ValueError):
    """Something in a document that is not as iostat makes it."""


def read_iostat_json(document: Any, sink: Sink) -> bool:
    """Put a document of iostat into the sink; tell whether it is one."""
    hosts = [host for host in _hosts(document) if any(_is_report(r) for r in _reports(host))]
    pace = Pace(sink)
    for host in hosts:
        for key, fact in _FACTS.items():
            if isinstance(host.get(key), str | int):
                sink.learn(fact, str(host[key]))
        _read_host(host, sink, pace)
    pace.close()
    return bool(hosts)


def _hosts(document: Any) -> Iterator[dict[str, Any]]:
    match document:
        case {"sysstat": {"hosts": [*hosts]}}:
            yield from (host for host in hosts if isinstance(host, dict))


def _reports(host: Mapping[str, Any]) -> list[Any]:
    found = host.get("statistics")
    return found if isinstance(found, list) else []


def _is_report(report: Any) -> bool:
    """Tell iostat's reports from sadf's, which call a disk "disk-device"."""
    match report:
        case {"avg-cpu": dict()} | {"disk": [{"disk_device": str()}, *_]}:
            return True
    return False


def _read_host(host: Mapping[str, Any], sink: Sink, pace: Pace) -> None:
    for index, report in enumerate(_reports(host)):
        place = f"statistics[{index}]"
        if not isinstance(report, dict):
            _skip(sink, place, "not a report of iostat")
            continue
        moment = parse_moment(str(report.get("timestamp", "")))
        if moment is not None:
            sink.learn("start", moment.isoformat())
            sink.stamp_s = sink.clock.at_moment(moment)
            sink.stamps += 1
        time_s = pace.step()
        for where, kind, name, row in _rows(report):
            try:
                values = _values(kind, row, sink)
            except _NotARow as error:
                _skip(sink, f"{place}{where}", str(error))
                continue
            sink.add(
                sink.document,
                kind,
                name,
                values,
                time_s=time_s,
                since_boot=index == 0,
                report=pace.report,
            )


def _rows(report: Mapping[str, Any]) -> Iterator[tuple[str, Kind, str, Any]]:
    """Yield place, kind, name and content of each row of a report."""
    if "avg-cpu" in report:
        yield '["avg-cpu"]', "cpu", "all", report["avg-cpu"]
    disks = report.get("disk", [])
    for index, row in enumerate(disks if isinstance(disks, list) else [disks]):
        name = row.get(_NAME) if isinstance(row, dict) else None
        name = name if isinstance(name, str) else ""
        group = f"group {name.strip()}" if name[:1] == " " else name.removeprefix("/dev/")
        yield f'["disk"][{index}]', "device", group, row


def _values(kind: Kind, row: Any, sink: Sink) -> dict[str, float]:
    """Return the columns of a row; _NotARow."""
    if not isinstance(row, dict) or (kind == "device" and not row.get(_NAME)):
        raise _NotARow("not a row of iostat")
    cells = {title: cell for title, cell in row.items() if title != _NAME}
    meanings = _meanings(kind, cells)
    version = generation(frozenset(cells))
    if version:
        sink.learn("tool", f"iostat of {version}")
    values: dict[str, float] = {}
    for title, cell in cells.items():
        if title not in meanings:
            raise _NotARow(f"no known column of iostat: {title}")
        if isinstance(cell, bool) or not isinstance(cell, int | float):
            raise _NotARow(f"{title}: {cell!r} is not a number")
        if not 0 <= cell < float("inf"):
            raise _NotARow(f"{title}: {cell} is negative or not finite")
        values.setdefault(meanings[title].column, cell * meanings[title].factor)
    return values


def _meanings(kind: Kind, cells: Mapping[str, Any]) -> Mapping[str, Meaning]:
    if kind == "cpu":
        return JSON_CPU
    return JSON_DEVICE if ONLY_BEFORE_11_5_7.isdisjoint(cells) else JSON_DEVICE_BEFORE_11_5_7


def _skip(sink: Sink, place: str, why: str) -> None:
    sink.skip(Line(sink.document.number, place), why)
