"""Options of my.cnf, and what the server's code costs on the machine of the scenario.

Models: mysqld 5.0's variables that decide when something reaches a disk.
Counterpart: MySQL 5.0 Reference Manual, server system variables; InnoDB startup options.
Invariants: defaults are those of MySQL 5.0.
Left out: what no statement here needs: sort and join buffers, the query cache.
"""

from dataclasses import dataclass
from typing import Final

from sim.param import param

MYISAM: Final = "myisam"
INNODB: Final = "innodb"
CONNECT_USER_NS: Final = 300_000  # user CPU of a connection; assumed: a thread and a hand-shake
# Redo log of a changed row; assumed: redo and undo of a short row, some 100 bytes each
REDO_ROW_BYTES: Final = 200
BINLOG_ROW_BYTES: Final = 60  # binary log of a changed row; assumed: the statement's share of a row


@dataclass(frozen=True, kw_only=True)
class MysqldParams:
    """The server's options."""

    engine: str = param(
        MYISAM,
        dim="text",
        choices=(MYISAM, INNODB),
        source="MySQL 5.0 manual: default_storage_engine (InnoDB from 5.5)",
        doc="storage engine of all tables",
    )
    directory: str = param(
        "/var/lib/mysql", dim="text", source="my.cnf: datadir", doc="where the tables are"
    )
    port: int = param(3306, dim="count", minimum=1, maximum=65535, source="my.cnf", doc="TCP port")
    max_connections: int = param(
        100,
        dim="count",
        minimum=1,
        source="MySQL 5.0 manual: max_connections",
        doc="connections served at a time; more are sent away",
    )
    statement_user_ns: int = param(
        "0.1 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: some 10,000 simple statements a second on a CPU of 2007",
        doc="user CPU of a statement without its rows",
    )
    row_user_ns: int = param(
        "10 us",
        dim="time_ns",
        minimum=0,
        source="assumed: a look-up in a tree of three levels",
        doc="user CPU of a row",
    )
    concurrent_insert: int = param(
        1,
        dim="count",
        choices=(0, 1, 2),
        source="MySQL 5.0 manual: concurrent_insert",
        doc="MyISAM's INSERTs beside readers: 0 never, 1 without holes, 2 at the end despite them",
    )
    buffer_pool_bytes: int = param(
        "8 MiB",
        dim="bytes",
        minimum=1 << 20,
        source="MySQL 5.0 manual: innodb_buffer_pool_size",
        doc="InnoDB's own cache of pages",
    )
    flush_log_at_trx_commit: int = param(
        1,
        dim="count",
        choices=(0, 1, 2),
        source="MySQL 5.0 manual: innodb_flush_log_at_trx_commit",
        doc="redo log at commit: 1 written and fsynced, 2 written, 0 neither; each second both",
    )
    log_file_bytes: int = param(
        "10 MiB",
        dim="bytes",
        minimum=1 << 20,
        source="MySQL 5.0 manual: innodb_log_file_size 5 MiB, two in the group",
        doc="size of all redo logs together, written round and round",
    )
    doublewrite: bool = param(
        True,
        dim="bool",
        source="MySQL 5.0 manual: innodb_doublewrite",
        doc="pages are written to the doublewrite buffer first",
    )
    io_capacity: int = param(
        100,
        dim="count",
        minimum=1,
        source="storage/innobase/srv/srv0srv.c 5.0: buf_flush_batch of 100 pages",
        doc="pages that the master thread flushes at a time",
    )
    dirty_pages_percent: float = param(
        "90 %",
        dim="percent",
        minimum=0,
        maximum=100,
        source="MySQL 5.0 manual: innodb_max_dirty_pages_pct",
        doc="share of modified pages from which the master thread flushes each second",
    )
    log_bin: bool = param(
        False, dim="bool", source="my.cnf: log_bin not set", doc="keep a binary log"
    )
    sync_binlog: int = param(
        0,
        dim="count",
        minimum=0,
        source="MySQL 5.0 manual: sync_binlog",
        doc="commits between two fsyncs of the binary log; 0: never",
    )
