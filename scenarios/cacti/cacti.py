"""Cacti: a poller that asks devices every five minutes, and keeps what they say in rrd files.

Theory of operation (Cacti 0.8.7: poller.php, cmd.php, lib/poller.php; spine 0.8.7: poller.c)
 - cron starts poller.php every `interval`. It starts the pollers, and while they work takes what
   they have put into the table poller_output: a SELECT, a DELETE of these rows, a line down a pipe
   to rrdtool for each data source (process_poller_output). The DELETE names the data sources, a
   part of the key, and nearly all that are in the table: it is read through, so that InnoDB lets
   nobody insert until the DELETE is durable, and the DELETE waits for who inserts. After 298 s it
   gives up on pollers that still work: what they have not asked by then has no value in this
   interval, and as they go by number, it is the same ones each time.
 - cmd.php, PHP, asks one device after the other. To each: is it alive (a GET)? One GET for each
   data source, one program started for each script, and at once one INSERT of one row: with InnoDB
   a transaction and an fsync of its log.
 - spine, C, has `threads` that take one device each, with a connection to MySQL each. It asks for
   up to `max_oids` values in one GET, and makes one INSERT for all that a device has said.
 - rrdtool, one process, updates a file for each data source: opens it, reads its header, writes the
   header's counters and the row, and leaves it to the kernel when that reaches the disk. It tells
   the kernel to read nothing ahead (rrd_open.c of rrdtool 1.2.24, 2007).
Invariants: each data source is asked at most once in an interval; a poll that is over has asked all
 of them; each value polled is written to its file once.
Left out: graphs that somebody looks at, the boost plug-in, several processes of cmd.php or spine,
 files with several data sources, thresholds, tables of two engines.

By hand, lock waits: an INSERT and a DELETE are of 2 ms each, one DELETE a second; a poller that
inserts every 75 ms meets one in 2 x 2 / 75 of the seconds, 16 times in 298 s; spine ten times a
second, each longer, but for ten seconds only: once or twice.
By hand, cmd.php: n devices of s data sources take n (R + s (R + C + F)), with R the round trip, C
the CPU time of PHP, F the fsync of an INSERT: for 100 devices of 12, 40 ms, 15 ms and 8 ms that is
80 s; and a script's start, a dead device's timeout x (retries + 1) on top. With T threads of spine
a T-th of the waiting, next to none of C, an F for each device.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from scenarios.cacti.figures import POLL
from scenarios.cacti.snmp import SnmpSession
from sim.net import Connection
from sim.observation import Family
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_RDWR, POSIX_FADV_RANDOM, Pipe, Sys
from sim.user.mysql.client import (
    DELETE,
    INSERT,
    PORT,
    SELECT,
    UPDATE,
    Statement,
    Table,
    query,
    table_files,
)
from sim.user.program import ServerProgram

LOCALHOST: Final = "localhost"
CMD_PHP: Final = "cmd.php"
SPINE: Final = "spine"
LOOK_NS: Final = 1_000_000_000  # poller.php: looks at poller_output each second
COMMAND_BYTES: Final = 70  # "update /var/lib/.../name.rrd --template ... N:1234567"
HEADER_BYTES: Final = 4096  # of a round-robin file: what an update reads, and rewrites a part of
ROW_BYTES: Final = 8  # a double
FINE_ROWS: Final = 600  # Cacti 0.8.7: rows of five minutes; the coarser archives have theirs seldom
ROWS_APART: Final = 37  # assumed: between the beginnings of two files; any number does
DATABASE: Final = "/var/lib/mysql"


@dataclass(frozen=True, kw_only=True)
class CactiParams:
    """The installation's size, its settings, and what its programs cost."""

    poller: str = param(
        CMD_PHP,
        dim="text",
        choices=(CMD_PHP, SPINE),
        source="manual: Cacti: Settings, Poller Type",
        doc="program that asks the devices",
    )
    agents: str = param(
        "devices",
        dim="text",
        source="scenario",
        doc="process that the devices are",
        names_host=True,
    )
    devices: int = param(100, dim="count", minimum=1, source="scenario", doc="devices")
    sources: int = param(
        12, dim="count", minimum=1, source="scenario", doc="data sources of each, asked by SNMP"
    )
    scripts: int = param(
        0, dim="count", minimum=0, source="scenario", doc="data sources of each, asked by a script"
    )
    threads: int = param(
        10,
        dim="count",
        minimum=1,
        maximum=50,
        source="manual: Cacti manual: 10 to 15 threads a process",
        doc="devices that spine asks at a time",
    )
    max_oids: int = param(
        10,
        dim="count",
        minimum=1,
        maximum=60,
        source="manual: Cacti: Maximum SNMP OIDs Per Get Request",
        doc="values that spine asks for at once",
    )
    snmp_timeout_ns: int = param(
        "500 ms",
        dim="time_ns",
        minimum=1,
        source="manual: Cacti: SNMP Timeout 500",
        doc="wait for an answer",
    )
    snmp_retries: int = param(
        3,
        dim="count",
        minimum=0,
        source="manual: Cacti: SNMP Retries 3",
        doc="questions asked again",
    )
    interval_ns: int = param(
        "5 min", dim="time_ns", minimum=1, source="manual: crontab: */5", doc="from poll to poll"
    )
    runtime_max_ns: int = param(
        "298 s",
        dim="time_ns",
        minimum=1,
        source="manual: poller.php 0.8.7: MAX_POLLER_RUNTIME 298",
        doc="when a poll that is not done is given up",
    )
    polls: int = param(3, dim="count", minimum=1, source="scenario", doc="polls until it ends")
    warm_up_polls: int = param(
        1,
        dim="count",
        minimum=0,
        source="assumed: headers of all files are in memory after one",
        doc="polls of these that are not measured",
    )
    rrd_directory: str = param(
        "/var/www/cacti/rra", dim="text", source="manual: Cacti: the directory rra", doc="rrd files"
    )
    rrd_bytes: int = param(
        "47 KiB",
        dim="bytes",
        minimum=2 * HEADER_BYTES,
        doc="size of a round-robin file",
        source="manual: Cacti 0.8.7: averages, maxima, each 600 + 700 + 775 + 797 rows of 8 bytes",
    )
    start_ns: int = param(
        "60 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of starting poller.php, and of cmd.php",
        source="assumed: PHP starts, reads its includes, connects",
    )
    php_user_ns: int = param(
        "6 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of cmd.php for a data source",
        source="assumed: PHP 5 of 2008: a snmpget(), regular expressions, a statement",
    )
    spine_user_ns: int = param(
        "0.1 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of spine for a data source",
        source="assumed: net-snmp's encoding and decoding, formatting",
    )
    script_user_ns: int = param(
        "40 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of a script",
        source="assumed: fork and exec of a small Perl or PHP script, 20 to 60 ms",
    )
    output_user_ns: int = param(
        "1 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of poller.php for a value on its way",
        source="assumed: a row fetched, a line made, by PHP",
    )
    update_user_ns: int = param(
        "0.3 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of rrdtool for an update",
        source="assumed: parse a line, consolidate four archives",
    )

    @property
    def per_device(self) -> int:
        """Data sources of a device, of both kinds."""
        return self.sources + self.scripts

    @property
    def all_sources(self) -> int:
        """Data sources of the installation."""
        return self.devices * self.per_device


class Poll:
    """One interval's work: when it began, what is asked and what has come."""

    def __init__(self, params: CactiParams, began_ns: int) -> None:
        self.ends_ns = began_ns + params.runtime_max_ns
        self.devices: deque[int] = deque(range(params.devices))
        self.output: list[int] = []  # data sources with rows in poller_output
        self.pollers: int = 0  # that still work
        self.asked: int = 0  # data sources


@register("program", "cacti", params=CactiParams, doc="Cacti with cmd.php or spine, and rrdtool")
class Cacti(ServerProgram):
    """cron and poller.php; `_cmd_php` and `_spine_thread` ask, `_rrdtool` writes."""

    figures: ClassVar[tuple[Family, ...]] = (POLL,)
    marks: ClassVar[tuple[str, ...]] = (
        "poll_missed",
        "poll_ns",
        "polls_begin",
        "polls_end",
        "snmp_timeouts",
        "sources_never_polled",
    )

    def __init__(self, params: CactiParams) -> None:
        self.params = params
        rows = params.all_sources
        self.items = Table("poller_item", rows, 600)
        self.hosts = Table("host", params.devices, 500)
        self.output = Table("poller_output", rows, 80)
        self.updates = [0] * rows  # of each file
        self.polled = bytearray(rows)  # data sources that were ever asked in time

    def directories(self) -> tuple[str, ...]:
        return (self.params.rrd_directory,)

    def files(self) -> Mapping[str, int]:
        params = self.params
        files = {self._rrd(number): params.rrd_bytes for number in range(params.all_sources)}
        return files | table_files(DATABASE, (self.items, self.hosts, self.output))

    def _rrd(self, number: int) -> str:
        return f"{self.params.rrd_directory}/{number:06d}.rrd"

    def main(self, sys: Sys) -> Blocking[None]:
        """Start a poll every interval (cron)."""
        sys.ignore_children()
        began_ns = sys.clock_ns() + LOOK_NS
        for number in range(self.params.polls):
            yield from sys.sleep(max(0, began_ns - sys.clock_ns()))
            if number == self.params.warm_up_polls:
                sys.trace_marker("polls_begin", number)
            yield from sys.fork("poller.php", self._poll, began_ns)
            began_ns += self.params.interval_ns
        yield from sys.sleep(max(0, began_ns - sys.clock_ns()))
        sys.trace_marker("sources_never_polled", self.polled.count(0))
        sys.trace_marker("polls_end", 1)

    def _poll(self, sys: Sys, began_ns: int) -> Blocking[None]:
        """One run of poller.php."""
        params = self.params
        sys.probe("poll__start")
        sys.ignore_children()
        sys.compute(params.start_ns)
        poll = Poll(params, began_ns)
        database = yield from _connected(sys)
        to_rrdtool = sys.pipe()
        yield from sys.fork("rrdtool", self._rrdtool, to_rrdtool)
        yield from self._start_pollers(sys, poll)
        while poll.pollers and sys.clock_ns() < poll.ends_ns:
            yield from sys.sleep(LOOK_NS)
            yield from self._process_output(sys, poll, database, to_rrdtool)
        yield from self._process_output(sys, poll, database, to_rrdtool)
        yield from sys.pipe_write(to_rrdtool, 5, None)  # quit
        yield from sys.close_connection(database)
        sys.trace_marker("poll_ns", sys.clock_ns() - began_ns)
        sys.trace_marker("poll_missed", params.all_sources - poll.asked)
        sys.probe("poll__done")

    def _start_pollers(self, sys: Sys, poll: Poll) -> Blocking[None]:
        if self.params.poller == CMD_PHP:
            poll.pollers = 1
            yield from sys.fork("php", self._cmd_php, poll)
            return
        poll.pollers = self.params.threads
        for _ in range(self.params.threads):
            yield from sys.fork("spine", self._spine_thread, poll)

    # -- Asking

    def _cmd_php(self, sys: Sys, poll: Poll) -> Blocking[None]:
        """Ask all devices, one data source after the other, a row at a time."""
        params = self.params
        sys.compute(params.start_ns)
        database = yield from _connected(sys)
        session = self._session(sys)
        while poll.devices and sys.clock_ns() < poll.ends_ns:
            device = poll.devices.popleft()
            is_alive = yield from self._greet(sys, session, device, database)
            for number in self._numbers(device):
                if sys.clock_ns() >= poll.ends_ns:
                    break
                if is_alive:
                    sys.compute(params.php_user_ns)
                    yield from self._ask(sys, session, device, [number])
                    yield from self._insert(sys, poll, database, [number])
                self._note(poll, [number])
        yield from sys.close_connection(database)
        sys.trace_marker("snmp_timeouts", session.timeouts)
        poll.pollers -= 1

    def _spine_thread(self, sys: Sys, poll: Poll) -> Blocking[None]:
        """Ask one device after the other, many values at a time; one INSERT for each device."""
        params = self.params
        database = yield from _connected(sys)
        session = self._session(sys)
        while poll.devices and sys.clock_ns() < poll.ends_ns:
            device = poll.devices.popleft()
            is_alive = yield from self._greet(sys, session, device, database)
            numbers = self._numbers(device)
            if is_alive:
                sys.compute(params.spine_user_ns * len(numbers))
                for first in range(0, params.sources, params.max_oids):
                    some = numbers[first : min(first + params.max_oids, params.sources)]
                    yield from self._ask(sys, session, device, some)
                for number in numbers[params.sources :]:
                    yield from self._ask(sys, session, device, [number])
                yield from self._insert(sys, poll, database, numbers)
            self._note(poll, numbers)
        yield from sys.close_connection(database)
        sys.trace_marker("snmp_timeouts", session.timeouts)
        poll.pollers -= 1

    def _session(self, sys: Sys) -> SnmpSession:
        params = self.params
        return SnmpSession(sys, params.agents, params.snmp_timeout_ns, params.snmp_retries)

    def _numbers(self, device: int) -> list[int]:
        """Return a device's data sources; those asked by scripts come last."""
        first = device * self.params.per_device
        return list(range(first, first + self.params.per_device))

    def _greet(
        self, sys: Sys, session: SnmpSession, device: int, database: Connection
    ) -> Blocking[bool]:
        """Read what to ask of a device; see if it is alive, and note that."""
        rows = tuple(self._numbers(device))
        yield from query(sys, database, Statement(SELECT, self.items, rows))
        is_alive = yield from session.get(device, 1)
        yield from query(sys, database, Statement(UPDATE, self.hosts, (device,)))
        return is_alive

    def _ask(
        self, sys: Sys, session: SnmpSession, device: int, numbers: list[int]
    ) -> Blocking[None]:
        """Ask for values: by one GET, or the one by its script."""
        if numbers[0] % self.params.per_device < self.params.sources:
            yield from session.get(device, len(numbers))
            return
        pid = yield from sys.fork("script", self._script, device)
        yield from sys.waitpid(pid)

    def _script(self, sys: Sys, device: int) -> Blocking[None]:
        """A script: starts, asks the device something, prints it."""
        sys.compute(self.params.script_user_ns)
        yield
        yield from self._session(sys).get(device, 1)

    def _insert(
        self, sys: Sys, poll: Poll, database: Connection, numbers: list[int]
    ) -> Blocking[None]:
        """Put values into poller_output."""
        yield from query(sys, database, Statement(INSERT, self.output, tuple(numbers)))
        poll.output += numbers

    def _note(self, poll: Poll, numbers: list[int]) -> None:
        """Count data sources as asked."""
        poll.asked += len(numbers)
        for number in numbers:
            self.polled[number] = 1

    # -- Writing

    def _process_output(
        self, sys: Sys, poll: Poll, database: Connection, to_rrdtool: Pipe
    ) -> Blocking[None]:
        """Hand what is in poller_output to rrdtool, and empty it (process_poller_output)."""
        numbers = tuple(poll.output)
        if not numbers:
            return
        poll.output.clear()
        yield from query(sys, database, Statement(SELECT, self.output, numbers))
        sys.compute(self.params.output_user_ns * len(numbers))
        yield from query(sys, database, Statement(DELETE, self.output, numbers, reads_through=True))
        for number in numbers:
            yield from sys.pipe_write(to_rrdtool, COMMAND_BYTES, number)

    def _rrdtool(self, sys: Sys, commands: Pipe) -> Blocking[None]:
        """Update one file after the other until told to quit (rrdtool -)."""
        while True:
            number = yield from sys.pipe_read(commands)
            if number is None:
                return
            sys.compute(self.params.update_user_ns)
            fd = yield from sys.open(self._rrd(number), O_RDWR)
            yield from sys.fadvise(fd, POSIX_FADV_RANDOM)
            yield from sys.pread(fd, HEADER_BYTES, 0)
            for place in self._rows(number):
                yield from sys.pwrite(fd, ROW_BYTES, place)
            yield from sys.pwrite(fd, HEADER_BYTES // 4, 0)
            yield from sys.close(fd)

    def _rows(self, number: int) -> tuple[int, int]:
        """Return where the next row of the averages is, and that of the maxima.

        Files were made at different times, so that their rows are at different places.
        """
        row = (number * ROWS_APART + self.updates[number]) % FINE_ROWS
        self.updates[number] += 1
        half = (self.params.rrd_bytes - HEADER_BYTES) // 2
        first = HEADER_BYTES + row * ROW_BYTES
        return first, first + half


def _connected(sys: Sys) -> Blocking[Connection]:
    """Connect to mysqld, as soon as it listens."""
    while True:
        connection = yield from sys.connect(LOCALHOST, PORT)
        if connection is not None:
            return connection
        yield from sys.sleep(LOOK_NS)
