"""A web service: pages made of computing and of queries to a cache and a database.

Models: a pool of workers, each with connections of its own to cache and database. A page is
computed in as many bursts as it has queries, and one: between two bursts the worker asks and waits.
When the last burst is over, the first byte of the page is sent.
Counterpart: PHP under FPM or a Java container with its thread pool, behind a load balancer.
Invariants: a worker makes one page at a time; queries follow each other.
Left out: pages of different kinds, sessions, queries at the same time, TLS, keep-alive to the
 balancer.

By hand: 60 ms of CPU at 2.4 GHz and 80 queries of 0.3 ms are 60 + 24 = 84 ms to the first byte; at
1.2 GHz, where the queries' server runs at 1.2 GHz too, twice that: next to nothing in it waits for
anything but a CPU, though no CPU is ever busy for longer than a millisecond.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from sim.net import Connection
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.program import ServerProgram

BACKLOG = 128  # SOMAXCONN
QUERY_BYTES = 200  # a key, or a statement of two lines
LOCALHOST = "localhost"
CACHE_PORT: Final = 11211  # port of the cache; memcached
DATABASE_PORT: Final = 3306  # port of the database; mysqld


@dataclass(frozen=True, kw_only=True)
class WebServiceParams:
    """What a page costs."""

    port: int = param(80, dim="count", minimum=1, maximum=65535, source="RFC 9110", doc="TCP port")
    workers: int = param(
        16, dim="count", minimum=1, maximum=4096, source="scenario", doc="pages at a time"
    )
    user_ns: int = param(
        "30 ms", dim="time_ns", minimum=0, source="scenario", doc="user CPU of a page"
    )
    cache_queries: int = param(
        40, dim="count", minimum=0, source="scenario", doc="queries of a page to the cache"
    )
    database_queries: int = param(
        10, dim="count", minimum=0, source="scenario", doc="queries of a page to the database"
    )
    wait_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="scenario",
        doc="time in which a page waits for something that has no CPU here, such as another site",
    )
    page_bytes: int = param(
        "40 KiB", dim="bytes", minimum=1, source="assumed: a page of HTML", doc="size of a page"
    )


@register("program", "web_service", params=WebServiceParams, doc="pages of computing and queries")
class WebService(ServerProgram):
    """The workers, which all accept on one socket."""

    marks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: WebServiceParams) -> None:
        self.params = params

    def main(self, sys: Sys) -> Blocking[None]:
        """Listen, start the workers, be the first."""
        listener = yield from sys.listen(self.params.port, BACKLOG)
        for _ in range(1, self.params.workers):
            yield from sys.fork("web", self._worker, listener)
        yield from self._worker(sys, listener)

    def _worker(self, sys: Sys, listener: object) -> Blocking[None]:
        """Make one page after the other."""
        params = self.params
        cache = database = None
        if params.cache_queries:
            cache = yield from _connected(sys, CACHE_PORT)
        if params.database_queries:
            database = yield from _connected(sys, DATABASE_PORT)
        order = self._order(cache, database)
        while True:
            connection = yield from sys.accept(listener)  # type: ignore[arg-type]
            request = yield from sys.recv(connection)
            if request is not None:
                yield from self._make_page(sys, order)
                yield from sys.send(connection, params.page_bytes, "page")
            yield from sys.close_connection(connection)

    def _order(self, cache: Connection | None, database: Connection | None) -> list[Connection]:
        """Return whom a page asks, one after the other: the cache's queries between the others."""
        params = self.params
        total = params.cache_queries + params.database_queries
        order = []
        asked = 0
        for number in range(total):
            due = (number + 1) * params.database_queries // total
            server = database if due > asked else cache
            asked = due
            assert server is not None
            order.append(server)
        return order

    def _make_page(self, sys: Sys, order: list[Connection]) -> Blocking[None]:
        """Compute, ask, and so on; then wait for what is not here."""
        params = self.params
        burst_ns = params.user_ns // (len(order) + 1)
        for server in order:
            sys.compute(burst_ns)
            yield  # The CPU time passes here, before the query is sent.
            yield from sys.send(server, QUERY_BYTES, "query")
            yield from sys.recv(server)
        sys.compute(burst_ns)
        yield
        if params.wait_ns:
            yield from sys.sleep(params.wait_ns)


def _connected(sys: Sys, port: int) -> Blocking[Connection]:
    """Connect to a server of queries on this machine, as soon as it listens."""
    while True:
        connection = yield from sys.connect(LOCALHOST, port)
        if connection is not None:
            return connection
        yield from sys.sleep(10_000_000)  # 10 ms: it is still booting
