"""The store: rows whole or not at all, damage told and kept, other people's files left alone."""

import csv
import io
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.study import store as stores
from sim.study.laboratory import Laboratory
from sim.study.store import Row, Store, StoreError, StoreFullError
from sim.study.trial import Trial

SEEN = {"missing": [], "until": "", "part": "all"}


def row(key: str = "k", **more: Any) -> Row:
    """Return a row."""
    values = {
        "scenario": "sendmail",
        "what_if": None,
        "sets": ("machine.cpus=2",),
        "seed": 1,
        "model": "m",
        "digest": "d",
        "cpu_s": 0.5,
        "outcome": {"figures": {"load1_peak": 1.5}, "seen": SEEN},
    }
    return Row(key=key, **(values | more))


@given(st.dictionaries(st.text(min_size=1), st.floats(allow_nan=False)), st.integers(0, 2**63 - 1))
def test_what_is_put_is_got(figures: dict[str, float], seed: int) -> None:
    one = row(seed=seed, outcome={"figures": figures, "seen": SEEN})
    with Store(Path(":memory:")) as store:
        store.put(one)
        found = store.get("k")
        assert found is not None
        assert replace(found, finished=0.0) == one
        assert store.get("another") is None


def test_a_row_is_never_changed(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.put(row(seed=1))
        store.put(row(seed=2))
        assert [one.seed for one in store.rows()] == [1]


def test_two_commands_write_the_same_store(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as one, Store(tmp_path / "s") as two:
        for number in range(20):
            (one if number % 2 else two).put(row(str(number)))
        assert len(one) == len(two) == 20


def test_a_row_of_the_longest_scenario_takes_less_than_4_kib(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Store(path) as store:
        sets = ("process.blast.messages=20",)
        shorter = 20 * 10**9
        trials = [Trial("sendmail", None, (), seed, sets, shorter) for seed in (1, 2)]
        Laboratory(store=store).run(trials)
        [_first, second] = store.rows()
        assert len(second.outcome["figures"]) > 30
        more = 200
        before = path.stat().st_size
        for number in range(more):
            store.put(replace(second, key=f"{number:032d}"))
    assert (path.stat().st_size - before) / more <= 4096


def test_what_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.sqlite"
    with sqlite3.connect(path) as mine:
        mine.execute("CREATE TABLE addresses (name TEXT)")
    mine.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another SQLite file"):
        Store(path)
    assert path.read_bytes() == before


def test_an_unknown_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    Store(path).__exit__()
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 9")
    later.close()
    with pytest.raises(StoreError, match="schema 9, and this iotwin knows 1"):
        Store(path)


@pytest.mark.parametrize("damage", ["head", "all"])
def test_a_damaged_store_is_renamed_and_told(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "s"
    with Store(path) as store:
        store.put(row())
    content = path.read_bytes()
    bad = b"\0" * 100 + content[100:] if damage == "head" else b"not a database at all" * 300
    path.write_bytes(bad)
    with Store(path) as store:
        assert "s.damaged-1" in store.told
        assert len(store) == 0
        store.put(row())
    assert (tmp_path / "s.damaged-1").read_bytes() == bad
    path.write_bytes(bad)
    with Store(path) as store:
        assert "s.damaged-2" in store.told


def test_damage_behind_the_first_page_is_renamed_and_told_when_it_is_met(tmp_path: Path) -> None:
    path = tmp_path / "s"
    keys = [f"{number:04}" for number in range(300)]
    with Store(path) as store:
        for key in keys:
            store.put(row(key, outcome={"figures": {}, "noise": os.urandom(99).hex()}))
    content = path.read_bytes()
    bad = content[: -4096 * 2] + b"\xff" * 4096 + content[-4096:]
    path.write_bytes(bad)
    with Store(path) as store, pytest.raises(StoreError, match="damaged"):
        list(store.rows())
    with Store(path) as store:
        assert not store.told
        found = [store.get(key) for key in keys]
        assert None in found
        assert "s.damaged-1" in store.told
        store.put(row("new"))
        assert store.get("new") is not None
    assert (tmp_path / "s.damaged-1").read_bytes() == bad


def test_a_row_that_is_no_outcome_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Store(path) as store:
        store.put(row("one"))
        with store._rows:
            store._rows.execute("UPDATE run SET outcome = x'00'")
        assert store.get("one") is None
        assert "s.damaged-1" in store.told
        store.put(row("one"))
        assert store.get("one") is not None


def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made"):
        Store(tmp_path / "file" / "s")
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path)


def test_a_full_disk_is_told_and_what_is_written_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Store(path) as store:
        store.put(row("first"))
        store._rows.execute("PRAGMA max_page_count = 1")  # what SQLite makes of ENOSPC
        with pytest.raises(StoreFullError, match="full"):
            for number in range(1000):
                store.put(row(str(number), outcome={"figures": {}, "noise": os.urandom(999).hex()}))
    with Store(path) as store:
        assert store.get("first") is not None


WRITER = """
import sys
from pathlib import Path
from sim.study.store import Row, Store
with Store(Path(sys.argv[1])) as store:
    for number in range(100_000):
        store.put(Row(key=str(number), scenario="s", what_if=None, sets=(), seed=number, model="m",
                      digest="d", cpu_s=0.0, outcome={"figures": {"n": number}}))
        print(number, flush=True)
"""


def test_a_writer_that_is_killed_loses_nothing_that_it_told(tmp_path: Path) -> None:
    path = tmp_path / "s"
    top = str(Path(__file__).resolve().parents[2])
    for told in (3, 40, 11):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            env={**os.environ, "PYTHONPATH": top},
            stdout=subprocess.PIPE,
            text=True,
        ) as writer:
            assert writer.stdout is not None
            last = [writer.stdout.readline() for _ in range(told)][-1]
            writer.kill()
        with Store(path) as store:
            assert not store.told
            seeds = sorted(one.seed for one in store.rows())
        assert seeds == list(range(len(seeds)))
        assert len(seeds) > int(last)


def test_clean_forgets_what_is_old_and_export_writes_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    with Store(tmp_path / "s") as store:
        monkeypatch.setattr(stores.time, "time", lambda: now - 40 * 86400)
        store.put(row("old"))
        monkeypatch.setattr(stores.time, "time", lambda: now)
        store.put(row("new", what_if="tmpfs", outcome={"figures": {"a": 1.0, "b": 2.0}}))
        store.put(row("other", outcome={"figures": {"c": 3.0}}))
        assert store.clean(older_s=30 * 86400) == 1
        text = io.StringIO()
        assert store.export(text) == 2
    rows = list(csv.DictReader(io.StringIO(text.getvalue())))
    assert [(one["what_if"], one["a"], one["c"]) for one in rows] == [
        ("tmpfs", "1.0", ""),
        ("base", "", "3.0"),
    ]
