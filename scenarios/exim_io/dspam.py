"""dspam: a statistical filter that learns from every message, with its tokens in a data base.

Theory of operation (dspam 3.6 to 3.8: libdspam.c, storage/mysql_drv.c)
 - A process for each message. It cuts the text into tokens (words and pairs of words), and asks for
   the rows of all of them in one SELECT ... IN (...).
 - Training on everything (TrainingMode teft, the default): each token that was there is counted up,
   in one UPDATE ... IN (...); each that was not is a new row. Then a row for the message's
   signature, kept for a correction later, and the user's totals.
 So a message of a few kilobytes changes some hundred rows of a few dozen bytes, and they lie where
 their hashes put them: on as many pages. The most frequent words are everybody's, by Zipf's law.
Linux counterpart: none.
Invariants: one SELECT, one UPDATE, three INSERTs or UPDATEs for each message; its tokens are drawn
 for the message's number, whatever happened to others.
Left out: quarantine, corrections, purging (dspam_clean), what the result is.

Estimate: T draws from a Zipf vocabulary of V words in P pages, exponent 1: a word of rank r comes
with probability 1 / (r ln V). At T = 500, V = 500,000 some 300 pages of 15 MB are touched.
"""

from dataclasses import dataclass
from random import Random
from typing import Final

from sim.param import param
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.mysql.client import INSERT, PORT, SELECT, UPDATE, Statement, Table, query

HASH_FACTOR: Final = 2_654_435_761  # Knuth's multiplicative hash: spreads ranks over rows
LOCALHOST: Final = "localhost"


@dataclass(frozen=True, kw_only=True)
class DspamParams:
    """dspam.conf, and what its code costs."""

    tokens: int = param(
        500,
        dim="count",
        minimum=1,
        source="assumed: a message has 500 to 2000 different tokens; most are short",
        doc="tokens of a message that are looked up",
    )
    new_tokens: float = param(
        0.1,
        dim="number",
        minimum=0,
        maximum=1,
        source="assumed: every tenth is a number, a name or a misspelling",
        doc="share of the tokens that were never seen",
    )
    vocabulary: int = param(
        500_000,
        dim="count",
        minimum=100,
        source="assumed: some months of mail at that share of new tokens, purged of rare ones",
        doc="rows of the token table",
    )
    token_row_bytes: int = param(
        30,
        dim="bytes",
        minimum=1,
        source="manual: dspam 3.6 mysql_objects-4.1.sql: uid, token, two counts, a date",
        doc="row of a token",
    )
    signature_bytes: int = param(
        "6 KiB",
        dim="bytes",
        minimum=1,
        source="manual: dspam 3.6: 12 bytes a token in the signature, with 500 of them",
        doc="row of a signature",
    )
    signatures: int = param(
        20_000,
        dim="count",
        minimum=1,
        source="assumed: two weeks of messages are kept",
        doc="rows of the signature table",
    )
    mysql_port: int = param(
        PORT,
        dim="count",
        minimum=1,
        maximum=65535,
        source="manual: dspam.conf: MySQLPort",
        doc="port of the data base",
    )
    mysql_directory: str = param(
        "/var/lib/mysql", dim="text", source="my.cnf: datadir", doc="where its tables are"
    )
    dspam_exec_ns: int = param(
        "5 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: exec, dynamic linking, its configuration",
        doc="CPU of starting dspam",
    )
    token_user_ns: int = param(
        "20 us",
        dim="time_ns",
        minimum=0,
        source="assumed: cutting, hashing, sorting, SQL text of a token",
        doc="user CPU of a token in dspam",
    )

    def token_table(self) -> Table:
        """Return the table of tokens."""
        return Table("dspam_token_data", self.vocabulary, self.token_row_bytes, 20)

    def signature_table(self) -> Table:
        """Return the table of signatures."""
        return Table("dspam_signature_data", self.signatures, self.signature_bytes, 40)

    def stats_table(self) -> Table:
        """Return the table of users' totals."""
        return Table("dspam_stats", 100, 60)

    def tables(self) -> tuple[Table, ...]:
        """Return all tables."""
        return self.token_table(), self.signature_table(), self.stats_table()


def draw_tokens(params: DspamParams, chance: Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the rows of a message's known tokens, and where the keys of its new ones belong."""
    rows = params.vocabulary
    number_new = round(params.new_tokens * params.tokens)
    known: dict[int, None] = {}
    for _ in range(params.tokens - number_new):
        rank = int(rows ** chance.random())  # log-uniform: Zipf's law with exponent 1
        known[rank * HASH_FACTOR % rows] = None
    new = tuple(int(chance.random() * rows) for _ in range(number_new))
    return tuple(known), new


def dspam(sys: Sys, params: DspamParams, number: int, scale: float) -> Blocking[bool]:
    """Judge and learn message `number`; False if the data base does not answer.

    `scale` is how many times as long its CPU time is as declared.
    """
    sys.probe("dspam__start")
    sys.compute(round(scale * (params.dspam_exec_ns + params.token_user_ns * params.tokens)))
    known, new = draw_tokens(params, sys.stream(f"tokens.{number}"))
    connection = yield from sys.connect(LOCALHOST, params.mysql_port)
    done = connection is not None
    if connection is not None:
        signature = number % params.signatures
        for statement in (
            Statement(SELECT, params.token_table(), known),
            Statement(UPDATE, params.token_table(), known),
            Statement(INSERT, params.token_table(), new),
            Statement(INSERT, params.signature_table(), (signature,)),
            Statement(UPDATE, params.stats_table(), (number % 100,)),
        ):
            done = done and (yield from query(sys, connection, statement))
        yield from sys.close_connection(connection)
    sys.probe("dspam__done")
    return done
