"""What a client and a MySQL server say to each other: statements, rows, answers.

Models: the client library. A statement names a table and rows by number; whoever makes it draws
them, so that a table's hot rows are hot pages in the server's buffers and in the page cache. The
client's package has made the tables: `table_files()` for ServerProgram.files().
Counterpart: the MySQL client/server protocol, libmysqlclient 5.0.
Invariants: one answer to each statement, in order; outside of BEGIN .. COMMIT every statement that
 writes is a transaction of its own.
Left out: what the rows contain, query plans (each row is found by an index), authentication.

    connection = yield from sys.connect(LOCALHOST, PORT)
    ok = yield from query(sys, connection, Statement(UPDATE, tokens, rows))
"""

from dataclasses import dataclass
from typing import Final

from sim.net import Connection
from sim.sched.task import Blocking
from sim.syscall import Sys

PORT: Final = 3306
SELECT: Final = "SELECT"
UPDATE: Final = "UPDATE"
INSERT: Final = "INSERT"
DELETE: Final = "DELETE"
BEGIN: Final = "BEGIN"
COMMIT: Final = "COMMIT"
WRITES: Final = (UPDATE, INSERT, DELETE)
HEAD_BYTES: Final = 60  # of a statement without its rows, and of an answer
KEY_BYTES: Final = 12  # of a row's key in a statement, such as a decimal number and a comma


@dataclass(frozen=True)
class Table:
    """A table: its name, and how many rows of which size are in it at the start."""

    name: str
    rows: int
    row_bytes: int
    key_bytes: int = 16  # of an entry of its index

    def data_bytes(self) -> int:
        """Return the size of the rows."""
        return self.rows * self.row_bytes

    def index_bytes(self) -> int:
        """Return the size of the index, its leaves two thirds full."""
        return self.rows * self.key_bytes * 3 // 2


@dataclass(frozen=True)
class Statement:
    """One line of SQL: what it does to which rows; an INSERT's rows are where their keys belong.

    Rows are found by an index, or by reading the table through, where they are nearly all of it.
    """

    kind: str
    table: Table | None = None
    rows: tuple[int, ...] = ()
    reads_through: bool = False

    def request_bytes(self) -> int:
        """Return its length; an INSERT brings its rows."""
        each = KEY_BYTES
        if self.kind == INSERT and self.table is not None:
            each = self.table.row_bytes
        return HEAD_BYTES + each * len(self.rows)

    def answer_bytes(self) -> int:
        """Return the length of what comes back; a SELECT's rows."""
        if self.kind == SELECT and self.table is not None:
            return HEAD_BYTES + self.table.row_bytes * len(self.rows)
        return HEAD_BYTES


def data_file(directory: str, table: Table) -> str:
    """Return the file with the rows (.MYD, or .ibd)."""
    return f"{directory}/{table.name}.data"


def index_file(directory: str, table: Table) -> str:
    """Return the file with MyISAM's index (.MYI)."""
    return f"{directory}/{table.name}.index"


def table_files(directory: str, tables: tuple[Table, ...]) -> dict[str, int]:
    """Return the files of tables that are there before the server starts, with their sizes."""
    sizes = {data_file(directory, table): table.data_bytes() for table in tables}
    return sizes | {index_file(directory, table): table.index_bytes() for table in tables}


def query(sys: Sys, connection: Connection, statement: Statement) -> Blocking[bool]:
    """Send a statement and wait for its answer; False if the server is gone or refuses."""
    sent = yield from sys.send(connection, statement.request_bytes(), statement)
    if not sent:
        return False
    answer = yield from sys.recv(connection)
    return bool(answer == "ok")
