"""A small database server for tests, and clients of the test's own on it."""

from collections.abc import Callable, Iterable

from sim.machine import Machine
from sim.net.network import LOCALHOST
from sim.param import params_of
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.mysql.client import PORT, Statement, Table, query, table_files
from sim.user.mysql.mysqld import Mysqld
from sim.user.mysql.params import MysqldParams
from tests.user.servers import boot, run_program

TOKENS = Table("tokens", rows=200_000, row_bytes=32)


def database(machine: Machine | None = None, **given: object) -> tuple[Machine, Mysqld]:
    """Boot a server with the table; given: mysqld's parameters by their keys."""
    machine = machine or boot()
    known = {declared.key: declared for declared in params_of(MysqldParams)}
    values = {known[key].name: known[key].parse(value) for key, value in given.items()}
    server = Mysqld(MysqldParams(**values))
    server.name = "mysqld"
    for path in server.directories():
        machine.vfs.prepare_directory(path)
    tables = table_files(server.params.directory, (TOKENS,))
    for path, size in (dict(server.files()) | tables).items():
        machine.vfs.prepare_file(path, size)
    machine.kernel.start("mysqld", "mysqld", server.main)
    return machine, server


def client(
    statements: Iterable[Statement], answers: list[bool] | None = None, pause_ms: int = 0
) -> Callable[[Sys], Blocking[None]]:
    """Return a program that makes these statements on one connection, after a pause."""

    def body(sys: Sys) -> Blocking[None]:
        yield from sys.sleep((1 + pause_ms) * 1_000_000)  # The server listens by then.
        connection = yield from sys.connect(LOCALHOST, PORT)
        assert connection is not None
        for statement in statements:
            ok = yield from query(sys, connection, statement)
            if answers is not None:
                answers.append(ok)
        yield from sys.close_connection(connection)

    return body


def run_clients(
    machine: Machine, *bodies: Callable[[Sys], Blocking[None]], seconds: float = 20
) -> None:
    """Run clients beside each other; all have to end in time."""

    def parent(sys: Sys) -> Blocking[None]:
        pids = []
        for body in bodies:
            pids.append((yield from sys.fork("client", body)))
        for pid in pids:
            yield from sys.waitpid(pid)

    run_program(machine, parent, seconds)
