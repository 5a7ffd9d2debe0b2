"""mysqld: a thread for each connection, in front of a storage engine.

Models: MySQL 5.0: statements are parsed, optimised and handed to MyISAM (myisam.py: a lock on the
table, no fsync) or InnoDB (innodb.py: locks on rows, redo log, buffer pool). Clients and what they
say: mysql.py.
Counterpart: sql/mysqld.cc, sql/sql_parse.cc of MySQL 5.0.
Invariants: a connection's statements are answered in order; who goes away leaves no lock.
Left out: joins (a statement is about one table), the query cache, replication, both engines at
 once.

Estimate, InnoDB with flush_log_at_trx_commit = 1: X = n / T with n commits in a group and T the
file system's fsync; n is all that came meanwhile, 1 with a binary log.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from sim.net import Connection
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.mysql.client import HEAD_BYTES, Statement
from sim.user.mysql.innodb import (
    LOG_FILE,
    SYSTEM_FILE,
    SYSTEM_FILE_BYTES,
    InnoDb,
    InnoDbSession,
    master_thread,
)
from sim.user.mysql.myisam import MyIsam, MyIsamSession
from sim.user.mysql.params import CONNECT_USER_NS, INNODB, MysqldParams
from sim.user.program import ServerProgram

BACKLOG: Final = 50  # MySQL 5.0 manual: back_log


class Mysqld(ServerProgram):
    """The listening thread and those of its connections."""

    marks: ClassVar[tuple[str, ...]] = (
        "mysqld_cpu_ns",
        "mysqld_lock_waits",
        "mysqld_log_fsyncs",
        "mysqld_page_writes",
    )

    def __init__(self, params: MysqldParams) -> None:
        self.params = params
        self.connections = 0
        self.engine: InnoDb | MyIsam = InnoDb(params) if params.engine == INNODB else MyIsam(params)

    def directories(self) -> tuple[str, ...]:
        return (self.params.directory,)

    def files(self) -> Mapping[str, int]:
        directory = self.params.directory
        if self.params.engine != INNODB:
            return {}
        return {
            f"{directory}/{LOG_FILE}": self.params.log_file_bytes,
            f"{directory}/{SYSTEM_FILE}": SYSTEM_FILE_BYTES,
        }

    def main(self, sys: Sys) -> Blocking[None]:
        """Accept connections for ever; a thread serves each."""
        sys.ignore_children()
        if isinstance(self.engine, InnoDb):
            yield from sys.fork("mysqld", master_thread, self.engine)
        listener = yield from sys.listen(self.params.port, BACKLOG)
        while True:
            connection = yield from sys.accept(listener)
            if self.connections >= self.params.max_connections:
                yield from sys.close_connection(connection)
                continue
            self.connections += 1
            yield from sys.fork("mysqld", self._serve, connection)

    def _serve(self, sys: Sys, connection: Connection) -> Blocking[None]:
        """Answer one client until it goes away."""
        sys.compute(CONNECT_USER_NS)
        session = self.engine.session(sys)
        while True:
            statement: Statement | None = yield from sys.recv(connection)
            if statement is None:
                break
            answer, size = yield from self._answer(sys, session, statement)
            yield from sys.send(connection, size, answer)
        yield from session.roll_back()
        yield from session.close()
        yield from sys.close_connection(connection)
        self.connections -= 1
        self._tell_status(sys)

    def _tell_status(self, sys: Sys) -> None:
        """Leave what SHOW STATUS would say now, and this thread's CPU time."""
        sys.trace_marker("mysqld_cpu_ns", sys.cpu_clock_ns())
        sys.trace_marker("mysqld_lock_waits", self.engine.waited())
        if isinstance(self.engine, InnoDb):
            sys.trace_marker("mysqld_log_fsyncs", self.engine.log_fsyncs)
            sys.trace_marker("mysqld_page_writes", self.engine.page_writes)

    def _answer(
        self, sys: Sys, session: InnoDbSession | MyIsamSession, statement: Statement
    ) -> Blocking[tuple[str, int]]:
        """Carry out a statement; "ok" or "error", and how long the answer is."""
        sys.compute(self.params.statement_user_ns)
        sys.probe("statement__start")
        try:
            done = yield from session.execute(statement)
        except FileNotFoundError:  # ER_NO_SUCH_TABLE, for the client to deal with
            yield from session.roll_back()
            done = False
        yield  # The CPU time passes here, before the answer is sent.
        sys.probe("statement__done")
        return ("ok", statement.answer_bytes()) if done else ("error", HEAD_BYTES)


register("program", "mysqld", params=MysqldParams, doc="MySQL 5.0 with MyISAM or InnoDB")(Mysqld)
