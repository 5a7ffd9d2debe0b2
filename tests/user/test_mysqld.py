"""mysqld: what is durable when, who waits for whom, and that nothing changed is forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.fs.super import Inode
from sim.machine import Machine
from sim.user.mysql.client import (
    BEGIN,
    COMMIT,
    DELETE,
    INSERT,
    SELECT,
    UPDATE,
    Statement,
    Table,
)
from sim.user.mysql.innodb import ALL, PAGE, InnoDb, RowLocks
from sim.user.mysql.myisam import MyIsam
from sim.user.mysql.params import REDO_ROW_BYTES
from tests.user.mysql import TOKENS, client, database, run_clients
from tests.user.servers import run_for, run_program

ROWS_PER_PAGE = PAGE // TOKENS.row_bytes


ROWS = tuple(range(0, 8000, 8))  # 10 ms of work


def update(*rows: int) -> Statement:
    return Statement(UPDATE, TOKENS, rows)


def innodb(server: object) -> InnoDb:
    engine = server.engine  # type: ignore[attr-defined]
    assert isinstance(engine, InnoDb)
    return engine


def data_inode(machine: Machine) -> Inode:
    """Return the file of the table's rows."""
    entries = machine.vfs.prepare_directory("/var/lib/mysql").entries
    assert entries is not None
    return entries[f"{TOKENS.name}.data"]


@pytest.mark.parametrize(("policy", "fsyncs"), [(0, 0), (1, 5), (2, 0)])
def test_five_commits_of_one_client_fsync_the_log_as_often_as_the_policy_says(
    policy: int, fsyncs: int
) -> None:
    machine, server = database(engine="innodb", flush_log_at_trx_commit=policy)
    run_clients(machine, client([update(n) for n in range(5)]), seconds=0.9)
    assert (innodb(server).commits, innodb(server).log_fsyncs) == (5, fsyncs)


@pytest.mark.parametrize("policy", [0, 1, 2])
def test_a_second_later_the_log_is_durable_whatever_the_policy(policy: int) -> None:
    machine, server = database(engine="innodb", flush_log_at_trx_commit=policy)
    run_clients(machine, client([update(n) for n in range(5)]), seconds=3)
    engine = innodb(server)
    assert engine.lsn == engine.durable_lsn == 5 * REDO_ROW_BYTES


def test_commits_that_meet_share_an_fsync_and_with_a_binary_log_they_do_not() -> None:
    per_commit = []
    for log_bin in (False, True):
        machine, server = database(engine="innodb", log_bin=log_bin)
        clients = [client([update(100 * n + i) for i in range(20)]) for n in range(8)]
        run_clients(machine, *clients, seconds=60)
        per_commit.append(innodb(server).log_fsyncs / innodb(server).commits)
    assert per_commit[0] < 0.6
    assert 1 <= per_commit[1] <= 2  # the prepare's may have been done by the one before


def test_a_transaction_of_several_statements_commits_once() -> None:
    machine, server = database(engine="innodb")
    statements = [Statement(BEGIN), update(1, 2), update(3), Statement(COMMIT)]
    run_clients(machine, client(statements), seconds=0.9)
    assert (innodb(server).commits, innodb(server).log_fsyncs) == (1, 1)
    assert innodb(server).row_locks.held() == 0


@pytest.mark.parametrize(("pages", "misses"), [(32, 32), (128, 256)])
def test_a_table_that_fits_into_the_pool_is_read_once_another_one_each_time(
    pages: int, misses: int
) -> None:
    """A pool of 64 pages, two rounds over all pages: LRU keeps all or nothing of a cycle."""
    machine, server = database(engine="innodb", buffer_pool="1 MiB")
    rows = tuple(n * ROWS_PER_PAGE for n in range(pages))
    run_clients(machine, client([Statement(SELECT, TOKENS, rows)] * 2))
    assert innodb(server).page_reads == misses


def test_a_modified_page_is_written_twice_when_another_one_needs_its_place() -> None:
    """128 pages modified through a pool of 64: at least 64 go home, after the doublewrite."""
    machine, server = database(engine="innodb", buffer_pool="1 MiB")
    rows = tuple(n * ROWS_PER_PAGE for n in range(128))
    run_clients(machine, client([Statement(UPDATE, TOKENS, rows)]), seconds=9)
    engine = innodb(server)
    assert 64 <= engine.page_writes <= 128
    written = machine.disks[0].stats.write_sectors * 512
    assert written >= 2 * PAGE * engine.page_writes


def test_modified_pages_go_home_in_the_end() -> None:
    machine, server = database(engine="innodb")
    run_clients(machine, client([update(*range(0, 50 * ROWS_PER_PAGE, ROWS_PER_PAGE))]))
    run_for(machine, 20)
    assert innodb(server).dirty_pages() == []
    assert innodb(server).page_writes == 50


def test_the_log_is_durable_before_a_page_is_written_home() -> None:
    machine, server = database(
        engine="innodb", buffer_pool="1 MiB", flush_log_at_trx_commit=0, log_file="1 MiB"
    )
    engine = innodb(server)
    rows = tuple(n * ROWS_PER_PAGE for n in range(300))
    run_clients(machine, client([Statement(UPDATE, TOKENS, rows)]), seconds=9)
    clean = [page for page, oldest in engine.pool.items() if oldest < 0]
    assert clean
    assert engine.durable_lsn > 0
    assert engine.checkpoint_age() <= server.params.log_file_bytes


def test_who_wants_a_row_of_an_open_transaction_waits_for_its_commit() -> None:
    machine, server = database(engine="innodb")
    first = [Statement(BEGIN), update(7), update(*range(1000, 1200)), Statement(COMMIT)]
    run_clients(machine, client(first), client([update(7)]))
    assert innodb(server).row_locks.waits >= 1
    assert innodb(server).commits == 2


@pytest.mark.parametrize("through, waits", [(False, 0), (True, 1)])
def test_who_reads_a_table_through_to_delete_lets_nobody_insert_before_the_commit(
    through: bool, waits: int
) -> None:
    machine, server = database(engine="innodb")
    delete = Statement(DELETE, TOKENS, tuple(range(1000)), reads_through=through)
    log: list[str] = []

    def told(name: str, statement: Statement, after_ns: int):  # type: ignore[no-untyped-def]
        program = client([statement])

        def body(sys):  # type: ignore[no-untyped-def]
            yield from sys.sleep(after_ns)
            yield from program(sys)
            log.append(name)

        return body

    insert = Statement(INSERT, TOKENS, (150_000,))
    run_clients(machine, told("delete", delete, 0), told("insert", insert, 2_000_000))
    assert innodb(server).row_locks.waits == waits
    assert not through or log == ["delete", "insert"]
    assert innodb(server).row_locks.held() == 0


def test_who_reads_a_table_through_to_delete_waits_for_who_inserts() -> None:
    machine, server = database(engine="innodb")
    insert = [
        Statement(BEGIN),
        Statement(INSERT, TOKENS, (7,)),
        update(*range(1000, 1200)),
        Statement(COMMIT),
    ]
    delete = [Statement(DELETE, TOKENS, (9,), reads_through=True)]
    run_clients(machine, client(insert), client(delete))
    assert innodb(server).row_locks.waits == 1
    assert innodb(server).row_locks.deadlocks == 0


def test_a_deadlock_is_broken_and_both_clients_get_answers() -> None:
    machine, server = database(engine="innodb", buffer_pool="64 MiB")
    work = tuple(range(0, 200_000, 1000))
    orders = ((1, 2), (2, 1))
    answers: list[list[bool]] = [[], []]
    bodies = [
        client(
            [
                Statement(BEGIN),
                update(one),
                update(*(row + one for row in work)),
                update(other),
                Statement(COMMIT),
            ],
            answers[n],
        )
        for n, (one, other) in enumerate(orders)
    ]
    run_clients(machine, *bodies)
    assert [len(found) for found in answers] == [5, 5]
    assert innodb(server).row_locks.deadlocks == 1
    assert sorted(all(found) for found in answers) == [False, True]


def test_myisam_locks_the_table_and_innodb_only_rows() -> None:
    """Two clients at different rows of one table."""
    waited = []
    for engine in ("myisam", "innodb"):
        machine, server = database(engine=engine)
        bodies = [client([update(*range(n, 4000, 40))] * 5) for n in (0, 20)]
        run_clients(machine, *bodies)
        waited.append(server.engine.waited())
    assert waited[0] > 0
    assert waited[1] == 0


def test_myisam_makes_nothing_durable_and_dirties_one_page_for_each_place() -> None:
    machine, server = database(engine="myisam")
    rows = tuple(page * 4096 // TOKENS.row_bytes for page in range(0, 300, 3))
    run_clients(machine, client([update(*rows)]), seconds=1)
    inode = data_inode(machine)
    assert isinstance(server.engine, MyIsam)
    assert inode.mapping.nr_dirty == 100
    assert machine.disks[0].stats.writes == 0


def test_an_insert_makes_a_myisam_table_longer_by_its_rows() -> None:
    machine, _ = database(engine="myisam")
    run_clients(machine, client([Statement(INSERT, TOKENS, (5, 900, 77))]))
    inode = data_inode(machine)
    assert inode.size == TOKENS.data_bytes() + 3 * TOKENS.row_bytes


READ, PUT, WRITE = Statement(SELECT, TOKENS, ROWS), Statement(INSERT, TOKENS, ROWS), update(*ROWS)


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (READ, READ, 0),
        (READ, PUT, 0),
        (READ, WRITE, 1),
        (PUT, READ, 0),
        (PUT, PUT, 1),
        (PUT, WRITE, 1),
        (WRITE, READ, 1),
        (WRITE, PUT, 1),
        (WRITE, WRITE, 1),
    ],
)
def test_a_myisam_table_is_shared_by_readers_and_one_insert(
    first: Statement, second: Statement, waits: int
) -> None:
    """The table of thr_lock.py; the second comes while the first is at work, on the CPU alone."""
    machine, server = database(engine="myisam")
    run_clients(machine, client([READ]))  # The rows are in memory from now on.
    run_clients(machine, client([first]), client([second], pause_ms=2))
    assert server.engine.waited() == waits


@pytest.mark.parametrize("later", [READ, PUT])
def test_a_writer_that_waits_holds_up_who_comes_later(later: Statement) -> None:
    machine, server = database(engine="myisam")
    run_clients(
        machine, client([READ]), client([update(1)], pause_ms=2), client([later], pause_ms=4)
    )
    assert server.engine.waited() == 2


@pytest.mark.parametrize(("concurrent_insert", "waits"), [(0, (1, 1)), (1, (0, 1)), (2, (0, 0))])
def test_holes_keep_inserts_from_readers_unless_these_go_to_the_end(
    concurrent_insert: int, waits: tuple[int, int]
) -> None:
    for holes, expected in zip((0, 1), waits, strict=True):
        machine, server = database(engine="myisam", concurrent_insert=concurrent_insert)
        run_clients(machine, client([Statement(DELETE, TOKENS, tuple(range(holes))), READ]))
        run_clients(machine, client([READ]), client([PUT], pause_ms=2))
        assert server.engine.waited() == expected


@given(
    st.lists(
        st.tuples(st.sampled_from([DELETE, INSERT]), st.sets(st.integers(0, 400), min_size=1)),
        max_size=6,
    )
)
def test_inserts_fill_the_holes_of_deleted_rows_before_the_table_grows(
    steps: list[tuple[str, set[int]]],
) -> None:
    machine, server = database(engine="myisam")
    holes: set[int] = set()
    grown = 0
    for kind, rows in steps:
        if kind == DELETE:
            holes |= rows
        else:
            grown += max(0, len(rows) - len(holes))
            assert isinstance(server.engine, MyIsam)
        run_clients(machine, client([Statement(kind, TOKENS, tuple(sorted(rows)))]), seconds=1)
        if kind == INSERT:
            for _ in range(min(len(rows), len(holes))):
                holes.pop()
            left = server.engine.table_of(TOKENS).holes
            assert len(left) == len(holes)
            holes = {place // TOKENS.row_bytes for place in left}
    assert data_inode(machine).size == TOKENS.data_bytes() + grown * TOKENS.row_bytes


@pytest.mark.parametrize("engine", ["myisam", "innodb"])
def test_a_table_that_is_not_there_is_an_error_and_the_connection_goes_on(engine: str) -> None:
    machine, _ = database(engine=engine)
    missing = Statement(UPDATE, Table("missing", rows=10, row_bytes=10), (1,))
    answers: list[bool] = []
    run_clients(machine, client([missing, update(1)], answers))
    assert answers == [False, True]


def test_more_than_max_connections_are_sent_away() -> None:
    machine, _ = database(max_connections=1)
    answers: list[bool] = []
    several = [client([update(*range(0, 100_000, 50))], answers) for _ in range(3)]
    run_clients(machine, *several)
    assert sorted(answers) == [False, False, True]


@given(steps=st.lists(st.tuples(st.integers(0, 3), st.integers(ALL, 4)), min_size=1, max_size=30))
def test_a_row_has_one_owner_and_nobody_waits_in_a_circle(
    steps: list[tuple[int, int]],
) -> None:
    """Owners take rows, or all, in any order, each on a thread of its own; all come to an end."""
    from_owner: dict[int, list[int]] = {}
    for owner, row in steps:
        from_owner.setdefault(owner, []).append(row)
    machine, _ = database()
    locks = RowLocks()
    ended: list[int] = []

    def taker(owner: int, rows: list[int]):  # type: ignore[no-untyped-def]
        def body(sys):  # type: ignore[no-untyped-def]
            for row in rows:
                if not (yield from locks.acquire(owner, ("t", row), sys)):
                    break
                yield from sys.sleep(1000 * (owner + 1))
            locks.release(owner, sys)
            ended.append(owner)

        return body

    bodies = [taker(owner, rows) for owner, rows in from_owner.items()]
    run_clients(machine, *bodies, seconds=2)
    assert sorted(ended) == sorted(from_owner)
    assert locks.held() == 0


def test_an_engine_with_no_client_writes_nothing() -> None:
    machine, server = database(engine="innodb")

    def nothing(sys):  # type: ignore[no-untyped-def]
        yield from sys.sleep(1)

    run_program(machine, nothing, 15)
    assert innodb(server).log_fsyncs == innodb(server).page_writes == 0
