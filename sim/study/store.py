"""The store: what finished simulations gave, by key, in a file that outlives the command.

Models: a laboratory's notebook.
Linux counterpart: none.
Invariants: a row is there whole or not at all (SQLite, write-ahead log); a key means one outcome,
 so a row is never changed; a file that is not a store, or that a later iotwin wrote, is refused; a
 damaged one is renamed and told, and nothing of it is lost.
Left out: the readings of /proc, which take a thousand times the room: who wants them simulates.

Hand estimate: 80 figures of 30 characters are 2.4 KB as text and half of that compressed. A study
of 1,000 runs takes 2 MB.
"""

import csv
import json
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

APPLICATION: Final = 0x696F7477  # "iotw": what file(1) shows as the application id
SCHEMA: Final = 1
FILE: Final = "runs.sqlite"
NONE: Final = "none"
_UNREADABLE: Final = (sqlite3.DatabaseError, zlib.error, ValueError)  # by SQLite; in a row
_WAIT_S: Final = 30.0  # for another command that writes
_TABLE: Final = """\
CREATE TABLE run (
  key TEXT PRIMARY KEY, finished REAL NOT NULL, scenario TEXT NOT NULL, what_if TEXT,
  sets TEXT NOT NULL, seed INTEGER NOT NULL, model TEXT NOT NULL, digest TEXT NOT NULL,
  cpu_s REAL NOT NULL, outcome BLOB NOT NULL
) WITHOUT ROWID
"""
_COLUMNS: Final = (
    *("key", "finished", "scenario", "what_if", "sets", "seed", "model", "digest", "cpu_s"),
    "outcome",
)


class StoreError(ValueError):
    """A store that cannot be opened, is none, or is of another version."""


class StoreFullError(RuntimeError):
    """What was simulated could not be written; what is written is kept."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One finished simulation: how it was asked for, and what it gave."""

    key: str
    scenario: str
    what_if: str | None
    sets: tuple[str, ...]
    seed: int
    model: str
    digest: str
    cpu_s: float
    outcome: Mapping[str, Any]  # figures, and what else is made of a run: plain values
    finished: float = 0.0  # seconds since 1970; when it was put


class Store:
    """A file of rows; a context manager. `told` is called with what the user should know."""

    def __init__(self, path: Path) -> None:
        """Open a store, or make it; raise StoreError."""
        self.path = path
        self.told = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path}: cannot be made ({error.strerror})") from None
        try:
            self._rows = _opened(path)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise StoreError(f"{path}: cannot be opened ({error})") from None
            self._begin_anew(error)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_error: object) -> None:
        self._rows.close()

    def _begin_anew(self, error: Exception) -> None:
        """Put the damaged file aside, say so in `told`, and go on with a new one."""
        kept = _put_aside(self.path)
        self.told = f"{self.path} was damaged ({error}): it is {kept.name} now, a new one is begun"
        self._rows = _opened(self.path)

    def __len__(self) -> int:
        """Return how many simulations are stored."""
        [(number,)] = self._rows.execute("SELECT count(*) FROM run")
        return int(number)

    def get(self, key: str) -> Row | None:
        """Return the row of a key; a file that turns out to be damaged has none."""
        question = f"SELECT {', '.join(_COLUMNS)} FROM run WHERE key = ?"
        try:
            return next(map(_row, self._rows.execute(question, (key,))), None)
        except _UNREADABLE as error:
            if not _is_damage(error):
                raise
            self._rows.close()
            self._begin_anew(error)
            return None

    def put(self, row: Row) -> None:
        """Keep a row, on disk before anything else happens; raise StoreFullError."""
        packed = zlib.compress(json.dumps(row.outcome, separators=(",", ":")).encode(), 9)
        values = (
            *(row.key, time.time(), row.scenario, row.what_if, json.dumps(row.sets), row.seed),
            *(row.model, row.digest, row.cpu_s, packed),
        )
        try:
            self._insert(values)
        except sqlite3.OperationalError as error:
            raise StoreFullError(f"{self.path}: {error}") from None
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            self._rows.close()
            self._begin_anew(error)
            self._insert(values)

    def _insert(self, values: Sequence[object]) -> None:
        marks = ", ".join("?" * len(values))
        with self._rows:
            self._rows.execute(f"INSERT OR IGNORE INTO run VALUES ({marks})", values)

    def rows(self) -> Iterator[Row]:
        """Yield all rows, the oldest first; raise StoreError where the file is damaged."""
        columns = ", ".join(_COLUMNS)
        try:
            for values in self._rows.execute(f"SELECT {columns} FROM run ORDER BY finished, key"):
                yield _row(values)
        except _UNREADABLE as error:
            raise self._unreadable(error) from None

    def clean(self, older_s: float) -> int:
        """Forget what was finished that long ago; return how many rows. Raise StoreError."""
        try:
            with self._rows:
                done = self._rows.execute(
                    "DELETE FROM run WHERE finished <= ?", (time.time() - older_s,)
                )
            self._rows.execute("VACUUM")
        except sqlite3.DatabaseError as error:
            raise self._unreadable(error) from None
        return done.rowcount

    def _unreadable(self, error: Exception) -> Exception:
        """Return what to raise: a damaged file is left to the next study, which renames it."""
        if not _is_damage(error):
            return error
        return StoreError(
            f"{self.path}: damaged ({error}): the next study that needs this part renames it"
        )

    def export(self, file: IO[str]) -> int:
        """Write all rows as CSV, a column for each figure that any of them has; return how many."""
        names = dict.fromkeys(name for row in self.rows() for name in row.outcome["figures"])
        writer = csv.writer(file)
        writer.writerow((*_COLUMNS[:-1], *names))
        number = 0
        for row in self.rows():
            number += 1
            figures = row.outcome["figures"]
            head = (
                *(row.key, f"{row.finished:.0f}", row.scenario, row.what_if or "base"),
                *(" ".join(row.sets), row.seed, row.model, row.digest, row.cpu_s),
            )
            writer.writerow((*head, *(figures.get(name, "") for name in names)))
        return number


def _row(values: Sequence[Any]) -> Row:
    given = dict(zip(_COLUMNS, values, strict=True))
    given["sets"] = tuple(json.loads(given["sets"]))
    given["outcome"] = json.loads(zlib.decompress(given["outcome"]))
    return Row(**given)


def _opened(path: Path) -> sqlite3.Connection:
    """Return the open file with its table; raise StoreError, sqlite3.DatabaseError."""
    rows = sqlite3.connect(path, timeout=_WAIT_S)
    try:
        [(application,)] = rows.execute("PRAGMA application_id")
        [(schema,)] = rows.execute("PRAGMA user_version")
        [(tables,)] = rows.execute("SELECT count(*) FROM sqlite_master")
        if tables and application != APPLICATION:
            raise StoreError(f"{path}: not a store of iotwin, but another SQLite file")
        if tables and schema != SCHEMA:
            raise StoreError(
                f"{path}: a store of schema {schema}, and this iotwin knows {SCHEMA}:"
                " give another file (--store FILE)"
            )
        rows.execute("PRAGMA journal_mode = WAL")
        rows.execute("PRAGMA synchronous = NORMAL")
        if not tables:
            with rows:
                rows.execute("BEGIN IMMEDIATE")
                [(made,)] = rows.execute("SELECT count(*) FROM sqlite_master")
                if not made:  # else another command was faster
                    rows.execute(f"PRAGMA application_id = {APPLICATION}")
                    rows.execute(f"PRAGMA user_version = {SCHEMA}")
                    rows.execute(_TABLE)
        else:
            rows.execute("SELECT key, outcome FROM run LIMIT 1").fetchall()
    except BaseException:
        rows.close()
        raise
    return rows


def _is_damage(error: Exception) -> bool:
    if not isinstance(error, sqlite3.Error):
        return True  # what is in a row is no outcome
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def _put_aside(path: Path) -> Path:
    """Rename a damaged store, with the log that belongs to it; return its new name."""
    number = 1
    while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(kept)
    for end in ("-wal", "-shm"):
        beside = path.with_name(path.name + end)
        if beside.exists():
            beside.rename(kept.with_name(kept.name + end))
    return kept


def default_path() -> Path:
    """Return where the store is if nobody says: in the user's cache."""
    if sys.platform == "win32":
        given = os.environ.get("LOCALAPPDATA")
        return (Path(given) if given else Path.home() / "AppData" / "Local") / "iotwin" / FILE
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "iotwin" / FILE
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "iotwin" / FILE
