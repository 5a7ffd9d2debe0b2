"""mpstat: sar's table of CPUs in an order of its own, as text and as JSON.

Models: `mpstat [-P ALL] [INTERVAL [COUNT]]` of sysstat 4 to 12, `mpstat -o JSON` of 11.5.4 on.
Linux counterpart: sysstat mpstat.c:print_cpu_stats, write_json_cpu_stats.
Invariants: rows, times and averages are read as sar's are; a header is mpstat's if interrupts stand
before the time that was stolen, or if it counts interrupts.
Left out: -I, -N, and the topology that -A prints: told by their headers.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from calibration.readers.clock import parse_time
from calibration.readers.line import Sink
from calibration.readers.sadf import HOST_FACTS, Activity, add_row, hosts_in
from calibration.readers.sar import SarReader, is_mpstat
from calibration.readers.sar_columns import FAMILIES
from calibration.readers.stamp import Pace

CPUS = Activity(FAMILIES["CPU"], "cpu")


class MpstatReader(SarReader):
    """Takes mpstat's headers, and the rows below them."""

    format: ClassVar[str] = "mpstat"

    def is_own(self, titles: Sequence[str]) -> bool:
        """Tell mpstat's headers."""
        return is_mpstat(titles)


def read_mpstat_json(document: Any, sink: Sink) -> bool:
    """Put a document of mpstat -o JSON into the sink; tell whether it is one."""
    hosts = [host for host in hosts_in(document) if any(True for _ in _reports(host))]
    pace = Pace(sink)
    for host in hosts:
        sink.learn("tool", "mpstat")
        for key, fact in (HOST_FACTS | {"date": "date"}).items():
            if isinstance(host.get(key), str | int):
                sink.learn(fact, str(host[key]))
        for clock, rows in _reports(host):
            time = parse_time(clock)
            pace.step()
            time_s = None if time is None else pace.at(sink.clock.at(time))
            for row in rows:
                add_row(row, CPUS, sink, time_s, pace.report)
    pace.close()
    return bool(hosts)


def _reports(host: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield time and rows of each report; sadf's have a time that is an object."""
    statistics = host.get("statistics")
    for report in statistics if isinstance(statistics, list) else []:
        match report:
            case {"timestamp": str(clock), "cpu-load": [*rows]}:
                yield clock, [row for row in rows if isinstance(row, dict)]
