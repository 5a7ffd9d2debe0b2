"""A server of queries: a cache or a database, known by what an answer costs.

Models: a thread a connection; each query is computed, may read from a file, and is answered.
Counterpart: memcached, mysqld (thread per connection).
Invariants: a connection's queries are answered in order, one at a time.
Left out: locks between queries, transactions, what the queries say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.net import Connection
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_RDONLY, Sys
from sim.user.program import ServerProgram

BLOCK = 4096
BACKLOG = 128  # SOMAXCONN
ANSWER_BYTES: Final = 1024  # size of an answer; assumed: a row


@dataclass(frozen=True, kw_only=True)
class QueryServerParams:
    """What an answer costs."""

    port: int = param(
        3306, dim="count", minimum=1, maximum=65535, source="scenario", doc="TCP port"
    )
    user_ns: int = param(
        "0.2 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of a query",
        source="assumed: a look-up by key: parse, two index trees, a row",
    )
    reads: float = param(
        0.0,
        dim="number",
        minimum=0,
        maximum=1,
        source="scenario",
        doc="share of the queries that read a block which is in no memory",
    )
    file: str = param("/data", dim="text", source="scenario", doc="the file they read from")
    file_size_bytes: int = param(
        "4 GiB", dim="bytes", minimum=BLOCK, source="scenario", doc="its size"
    )


@register("program", "query_server", params=QueryServerParams, doc="a cache or a database")
class QueryServer(ServerProgram):
    """The listening thread and those of its connections."""

    marks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: QueryServerParams) -> None:
        self.params = params
        self.connections = 0

    def files(self) -> Mapping[str, int]:
        params = self.params
        return {params.file: params.file_size_bytes} if params.reads else {}

    def main(self, sys: Sys) -> Blocking[None]:
        """Accept connections for ever; a thread serves each."""
        sys.ignore_children()
        listener = yield from sys.listen(self.params.port, BACKLOG)
        while True:
            connection = yield from sys.accept(listener)
            self.connections += 1
            yield from sys.fork("query", self._serve, connection, self.connections)

    def _serve(self, sys: Sys, connection: Connection, number: int) -> Blocking[None]:
        params = self.params
        chance = sys.stream(f"reads.{number}")
        fd = -1
        if params.reads:
            fd = yield from sys.open(params.file, O_RDONLY)
        while True:
            query = yield from sys.recv(connection)
            if query is None:
                break
            sys.compute(params.user_ns)
            yield  # The CPU time passes here, before the answer is sent.
            if params.reads and chance.random() < params.reads:
                block = int(chance.random() * (params.file_size_bytes // BLOCK))
                yield from sys.pread(fd, BLOCK, block * BLOCK)
            yield from sys.send(connection, ANSWER_BYTES, "answer")
        yield from sys.close_connection(connection)
