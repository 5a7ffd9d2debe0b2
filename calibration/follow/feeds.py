"""Where samples come from: this host, a tree, a recording that grows, an exporter, Prometheus.

Models: whoever reads the screen aloud.
Linux counterpart: none.
Invariants: whatever the source, a sample is what `iotwin record` would have written of it; only
reading is done, without root, and nothing is kept open; a source that does not answer is told, and
asked again.
Left out: several hosts at once; authentication beyond what stands in the address.
"""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from calibration.follow.own_time import OwnTime
from calibration.host import Host, host_of, read_host
from calibration.readers.node_exporter import scrape_of
from calibration.readers.prometheus import moments_of
from calibration.readers.scrape import HOST, UNAME, Scrape, hosts_of, proc_texts
from calibration.record import PROC, TASKS_MAX, changing, counters, lasting, task_count
from calibration.record_text import RecordText, TextSample

TIMEOUT_S: Final = 5.0
ANSWER_MAX: Final = 64 * 2**20  # bytes
TRIES: Final = 5  # of a tree that changes while it is read
CENSUS_S: Final = 1.0
TASKS_PER_S: Final = 200.0  # that may be looked at: 20 us each, 0.4 % of a CPU
SCRAPED: Final = (
    '{{__name__=~"node_(disk|cpu|load|memory|vmstat|procs|context|intr|forks|boot|time|uname).*"'
    "{instance}}}"
)


class FeedError(Exception):
    """A source that cannot be read, now or at all; says which and why."""


class Feed(Protocol):
    """One source; `reading_s` is how often it is worth asking, None: with each reading."""

    name: str
    reading_s: float | None

    def host(self) -> Host | None:
        """Return what is known of the machine."""

    def poll(self) -> list[TextSample]:
        """Return the samples that are new; raise FeedError."""


@dataclass
class Local:
    """This host, without what the follower itself takes of its CPUs.

    It is worth asking who is there each second, if there are few enough to be asked.
    """

    name: str = "this host"
    reading_s: float | None = None
    root: str = "/"
    _own: OwnTime = field(default_factory=OwnTime)

    def __post_init__(self) -> None:
        """See how many tasks there are; raise FeedError where there is nothing to read."""
        if not os.path.exists(os.path.join(self.root, "proc/diskstats")):
            where = "this system" if self.root == "/" else self.root
            raise FeedError(f"{where} has no /proc/diskstats: only Linux has")
        self.reading_s = max(CENSUS_S, (task_count(self.root) or TASKS_MAX) / TASKS_PER_S)

    def host(self) -> Host | None:
        """Return what is known of the machine."""
        return host_of(_texts(lasting(self.root)))

    def poll(self) -> list[TextSample]:
        """Return a sample of now."""
        texts = _texts(changing(self.root))
        if "/proc/stat" in texts:
            texts["/proc/stat"] = self._own.without(texts["/proc/stat"])
        return [_sample(datetime.now(UTC).astimezone(), texts)]


@dataclass
class Tree(Local):
    """A folder with /proc in it, that somebody keeps up to date: `iotwin proc --live`."""

    _last: str = ""

    def poll(self) -> list[TextSample]:
        """Return a sample if its uptime went on; its time of day is the tree's own."""
        for _ in range(TRIES):
            texts = _texts(changing(self.root))
            uptime = texts.get("/proc/uptime", "")
            if not uptime or uptime == self._last:
                return []
            if _texts(counters(self.root)).get("/proc/uptime") == uptime:
                self._last = uptime
                try:
                    return [_sample(_time_of(texts), texts)]
                except (ValueError, IndexError, ArithmeticError, OSError):
                    told = "its uptime or its btime is not as the kernel's"
                    raise FeedError(f"{self.root}: {told}") from None
        return []


@dataclass
class Recorded:
    """A folder that `iotwin record` writes into, from the last `history_s` of it on."""

    name: str
    folder: Path
    history_s: float | None = None  # None: from its beginning
    reading_s: float | None = None
    _place: int = 0
    _rest: bytes = b""
    _text: RecordText = field(default_factory=RecordText)
    _number: int = 0

    def host(self) -> Host | None:
        """Return what host.txt and costs.txt say."""
        return read_host(self.folder)

    def poll(self) -> list[TextSample]:
        """Return the whole samples that were written since the last time."""
        is_first = not self._place
        try:
            with (self.folder / PROC).open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._place:
                    self._place, self._rest, self._text = 0, b"", RecordText()
                file.seek(self._place)
                data = file.read()
        except OSError as error:
            raise FeedError(f"{self.folder / PROC}: {error.strerror}") from None
        self._place += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._number += 1
            self._text.feed(self._number, line.decode("utf-8", errors="replace"))
        found, self._text.done = self._text.done, []
        if found:
            self.reading_s = found[-1].interval_s or self.reading_s
        if is_first and found and self.history_s is not None:
            oldest = found[-1].at - timedelta(seconds=self.history_s)
            found = [one for one in found if one.at >= oldest]
        return found


@dataclass
class Exporter:
    """An address of node_exporter: HOST:9100/metrics."""

    name: str
    url: str
    reading_s: float | None = None

    def __post_init__(self) -> None:
        """Ask once; raise FeedError."""
        self._scrape = _scrape_at(self.url)

    def host(self) -> Host | None:
        """Return what the exporter says of the machine."""
        return _host_of(self._scrape)

    def poll(self) -> list[TextSample]:
        """Return a sample of now."""
        return list(_samples({time.time(): _scrape_at(self.url)}))


@dataclass
class Prometheus:
    """A Prometheus server that scrapes one node_exporter; it tells of the last `history_s` too."""

    name: str
    url: str
    instance: str | None
    history_s: float
    reading_s: float | None
    _after_s: float = 0.0
    _last: dict[str, str] = field(default_factory=dict)
    _scrape: Scrape = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Ask once; raise FeedError."""
        moments = self._ask(time.time() - self.history_s)
        if not moments:
            raise FeedError(f"{self.url}: it has nothing of node_exporter of the last minutes")
        self._scrape = moments[max(moments)]

    def host(self) -> Host | None:
        """Return what the exporter said of the machine."""
        return _host_of(self._scrape)

    def poll(self) -> list[TextSample]:
        """Return the scrapes since the last time; one that is shown twice is one."""
        moments = self._ask(self._after_s or time.time() - self.history_s)
        found = []
        for sample in _samples(moments):
            texts = {one: sample.texts[one] for one in ("/proc/diskstats", "/proc/stat")}
            if texts != self._last:
                self._last = texts
                found.append(sample)
        if moments:
            self._after_s = max(moments) + 0.001
        return found

    def _ask(self, since_s: float) -> Mapping[float, Scrape]:
        instance = f',instance="{self.instance}"' if self.instance else ""
        asked = {
            "query": SCRAPED.format(instance=instance),
            "start": f"{since_s:.3f}",
            "end": f"{time.time():.3f}",
            "step": f"{self.reading_s or 5:g}",
        }
        url = f"{self.url.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(asked)}"
        try:
            answer = json.loads(_get(url))
        except ValueError:
            raise FeedError(f"{self.url}: what answers is no Prometheus (no JSON)") from None
        match answer:
            case {"status": "success", "data": {"result": [*series]}}:
                pass
            case {"error": str(said)}:
                raise FeedError(f"{self.url}: Prometheus says: {said}")
            case _:
                raise FeedError(f"{self.url}: what answers is no Prometheus")
        self._check_one(series)
        return moments_of(series)

    def _check_one(self, series: list[Any]) -> None:
        labels = [one["metric"] for one in series if isinstance(one, dict) and "metric" in one]
        hosts = [one for one in hosts_of(iter(labels)) if one]
        if len(hosts) > 1:
            told = ", ".join(hosts[:5])
            raise FeedError(
                f"{self.url}: it has {len(hosts)} hosts; name one with --instance: {told}"
            )


def feed_of(
    source: str | None, *, instance: str | None, history_s: float, reading_s: float
) -> Feed:
    """Return the feed of an argument; None is this host. Raise FeedError."""
    if source is None:
        return Local()
    if source.startswith(("http://", "https://")):
        name = urllib.parse.urlsplit(source).netloc
        if urllib.parse.urlsplit(source).path.rstrip("/").endswith("metrics"):
            return Exporter(name, source)
        return Prometheus(name, source, instance, history_s, reading_s)
    folder = Path(source)
    if (folder / PROC).is_file():
        return Recorded(folder.name, folder, history_s)
    if (folder / "proc").is_dir():
        return Tree(folder.name, None, str(folder))
    raise FeedError(
        f"{source}: neither a recording that grows (no {PROC}), nor a tree of `iotwin proc --live`"
        " (no proc/), nor an address (http://...)"
    )


def _texts(files: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    return {name: text.decode("utf-8", errors="replace") for name, text in files}


def _sample(at: datetime, texts: dict[str, str]) -> TextSample:
    return TextSample(at=at, line=0, texts=texts, begins=False, interval_s=0.0)


def _time_of(texts: Mapping[str, str]) -> datetime:
    """Return the time of day by the kernel: when it was booted, and for how long it is up."""
    uptime_s = float(texts["/proc/uptime"].split()[0])
    boot = [x for x in texts.get("/proc/stat", "").splitlines() if x.startswith("btime ")]
    boot_s = float(boot[0].split()[1]) if boot else 0.0
    return datetime.fromtimestamp(boot_s + uptime_s, UTC).astimezone()


def _samples(moments: Mapping[float, Scrape]) -> Iterable[TextSample]:
    for at_s in sorted(moments):
        texts = proc_texts(moments[at_s], at_s)
        if texts:
            yield _sample(datetime.fromtimestamp(at_s, UTC).astimezone(), texts)


def _host_of(scrape: Scrape) -> Host | None:
    """Return the release, the name and the memory that an exporter tells."""
    places = {"kernel": "/proc/sys/kernel/osrelease", "hostname": "/proc/sys/kernel/hostname"}
    texts = proc_texts(scrape, 0.0)
    known = {name: texts[name] for name in ("/proc/meminfo",) if name in texts}
    for labels, _value in scrape.get(UNAME, ()):
        for label, fact in HOST:
            if fact in places and labels.get(label):
                known[places[fact]] = f"{labels[label]}\n"
    return host_of(known)


def _scrape_at(url: str) -> Scrape:
    scrape = scrape_of(_get(url).decode("utf-8", errors="replace"))
    if not proc_texts(scrape, time.time()):
        raise FeedError(f"{url}: no counters of node_exporter in what it answers")
    return scrape


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read(ANSWER_MAX)
            return body
    except urllib.error.HTTPError as error:
        raise FeedError(
            f"{url.partition('?')[0]}: it answers {error.code} {error.reason}"
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", error)
        raise FeedError(f"{url.partition('?')[0]}: no answer: {why}") from None
