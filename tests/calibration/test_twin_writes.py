"""Whose requests they are: fsyncs, a journal's own, bulk, swap, groups; who pays for a page."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf
from pathlib import Path
from random import Random
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calibration.dataset import Source
from calibration.host import host_of
from calibration.look import Look, look
from calibration.look.intervals import Interval
from calibration.look.report import to_json, to_text
from calibration.look.tasks import CENSUS, Active
from calibration.readers import read_text
from calibration.readers.proc_report import device_columns
from calibration.twin.answers import limits_of
from calibration.twin.columns import figures_of, recorded_columns
from calibration.twin.commits import (
    COMMIT,
    JOURNAL_BYTES,
    NO_JOURNAL,
    OVERWRITE,
    OWN_FLUSHES_PER_S,
    SINGLE_FLUSH,
    CacheSign,
    promise_of,
    shared_max,
    write_alone_ms,
)
from calibration.twin.demands import (
    DIRECT,
    READ,
    SWAP_OUT,
    SYNC,
    WRITE,
    Class,
    _number_by_scatter,
    loads_of,
)
from calibration.twin.draft import Draft
from calibration.twin.fitting import draw_draft, draw_drafts, fit_best
from calibration.twin.page_costs import FOLIO_PAGES
from calibration.twin.report import writers_told
from calibration.twin.verdict import Miss, Verdict
from calibration.twin.what_ifs import every_name, what_ifs_of
from sim.machine import simulate
from sim.scenario.load import load_text
from sim.tools.iostat import compute_iostat
from sim.units import parse_quantity
from tests.calibration.test_twin_draft import (
    HOST,
    NEW,
    draft_of,
    notes_of,
    old_row,
    seen_of,
    text,
)
from tests.calibration.texts import iostat_row
from tests.user.logs import SERVER, one_by_one, run_logs

KIB = 1024


def row(
    *,
    w: float,
    size_kib: float,
    flushes: float,
    w_await: float = 2,
    util: float = 10,
    merged: float = 0,
) -> str:
    """Return a row of sysstat 12 of a device that is written to; a flush takes 1 ms."""
    each = {"w_await": w_await, "f_await": 1, "kib": size_kib, "merged": merged}
    return iostat_row("sda", w=w, f=flushes, util=util, **each)


def classes(device: str, kernel: str = "6.1.0") -> dict[str, Class]:
    """Return the classes of the only device, by kind."""
    [load] = loads_of(seen_of(text(device, heading=NEW, kernel=kernel)))
    return {one.kind: one for one in load.classes}


@given(commits=st.floats(0.1, 500), time_s=st.floats(0, 0.1))
def test_fsyncs_that_share_commits_are_those_that_come_while_one_is_under_way(
    commits: float, time_s: float
) -> None:
    found = shared_max(commits, time_s)
    assert found >= commits
    if found < inf:
        assert found == pytest.approx(commits * (1 + found * time_s))


@given(flushes=st.floats(0.01, OWN_FLUSHES_PER_S - 0.01), w=st.floats(20, 500))
@settings(max_examples=20, deadline=None)
def test_a_journal_that_commits_by_itself_says_nothing_of_fsyncs(flushes: float, w: float) -> None:
    device = row(w=w, size_kib=64, flushes=round(flushes, 2))
    found = classes(device)
    assert SYNC not in found
    recorded = text(device, heading=NEW, kernel="6.1.0")
    draft = draft_of(recorded)
    columns = recorded_columns(seen_of(recorded), draft.loads, draft.server)
    assert not [one for one in columns if "f_per_s" in one.metric]


@given(w=st.floats(60, 900), size_kib=st.sampled_from([16, 512, 4096]), c=st.floats(0.3, 3))
@settings(max_examples=40, deadline=None)
def test_fsyncs_and_what_is_written_beside_them_are_all_that_was_written(
    w: float, size_kib: int, c: float
) -> None:
    """Requests: an fsync's data, two of each commit, the rest. Bytes: theirs and the journal's."""
    w, c = round(w, 2), round(c, 2)
    found = classes(row(w=w, size_kib=size_kib, flushes=2 * c))
    waited = found.pop(SYNC)
    [bulk] = found.values()  # a flusher's, or past the page cache
    writes_per_s = waited.rate_per_s + 2 * c + bulk.rate_per_s * bulk.at_once
    assert writes_per_s == pytest.approx(w, rel=0.01)
    moved = (
        waited.rate_per_s * waited.size_bytes
        + bulk.rate_per_s * bulk.at_once * bulk.size_bytes
        + c * JOURNAL_BYTES
    )
    assert moved == pytest.approx(w * size_kib * KIB, rel=0.03)
    assert c <= waited.rate_per_s <= 1.1 * c


@pytest.mark.parametrize(("writes", "flushes"), [(2.0, 2.0), (3.0, 1.0), (5.9, 1.0), (60.0, 2.0)])
def test_a_flush_is_single_where_writes_are_those_of_single_fsyncs(
    writes: float, flushes: float
) -> None:
    assert promise_of(writes, 1.0, alone=True).flushes == flushes
    assert promise_of(writes, 1.0, alone=False).flushes == 2.0


BARE = HOST | {"/proc/fs/jbd2": "", "/proc/mounts": "/dev/sda / ext4 rw 0 0\n"}


def mount_of(draft: Draft, place: str = "/") -> dict[str, object]:
    """Return what a draft mounts at a place."""
    section = draft.sheet.sections["machine", "mount", place]
    return {key: entry.value for key, entry in section.items()}


@pytest.mark.parametrize(
    ("journals", "mounts", "told"),
    [
        ("", "/dev/sda / ext4 rw 0 0\n/dev/sda /var/lib ext4 rw 0 0\n", "/ (/dev/sda)"),
        (
            "sda2-8\n",
            "/dev/sda1 / ext4 rw 0 0\n/dev/sda2 /home ext4 rw 0 0\n/dev/sda3 /srv ext4 rw 0 0\n",
            "/ (/dev/sda1), /srv (/dev/sda3)",
        ),
        ("sda-8\n", "/dev/sda / ext4 rw 0 0\n", None),
        ("", "/dev/sda / xfs rw 0 0\n", None),
        (None, "/dev/sda / ext4 rw 0 0\n", None),
    ],
)
def test_a_look_says_which_file_systems_have_no_journal(
    journals: str | None, mounts: str, told: str | None
) -> None:
    host = {path: said for path, said in BARE.items() if path != "/proc/fs/jbd2"}
    host["/proc/mounts"] = mounts
    if journals is not None:
        host["/proc/fs/jbd2"] = journals
    recorded = text(row(w=360, size_kib=4, flushes=120), heading=NEW, kernel="6.18.0")
    seen = seen_of(recorded, host)
    page = " ".join(to_text(seen).split())
    if told is None:
        assert "without a journal" not in page
        assert to_json(seen)["without_journal"] == []
    else:
        assert f"ext4 without a journal: {told}; /proc/fs/jbd2 has none of it." in page
        assert to_json(seen)["without_journal"] == told.split()[::2]


@pytest.mark.parametrize("util", [5.0, 80.0])
def test_without_a_journal_there_is_one_fsync_for_each_flush(util: float) -> None:
    """By hand: 420 writes/s of 24 / 7 KiB, 120 flushes/s: each 12 KiB, 4 are the inode's block."""
    recorded = text(
        row(w=420, size_kib=24 / 7, flushes=120, w_await=0.1, util=util),
        heading=NEW,
        kernel="6.18.0",
    )
    [load] = loads_of(seen_of(recorded, BARE))
    [waited] = load.classes
    assert (waited.kind, waited.promise) == (SYNC, NO_JOURNAL)
    assert waited.rate_per_s == pytest.approx(120)
    assert waited.size_bytes == pytest.approx(8192, rel=0.02)


def test_a_twin_of_an_ext4_without_a_journal_has_none_and_counts_its_flushes() -> None:
    recorded = text(row(w=360, size_kib=4, flushes=120, w_await=0.1), heading=NEW, kernel="6.18.0")
    draft = draft_of(recorded, BARE)
    assert mount_of(draft)["has_journal"] is False
    assert "sda f_per_s" not in draft.server.left_out and not draft.server.single_flushes
    asked = {one.name for one in what_ifs_of(draft)}
    assert {"journal", "no_barrier"} <= asked <= set(every_name())
    assert not {"data_writeback", "data_journal"} & asked
    load_text(draft.sheet.text(""), Path("twin.toml"))


@pytest.mark.parametrize("seed", [1, 2])
def test_each_fsync_without_a_journal_writes_as_much_in_every_run(seed: int) -> None:
    """Data, the inode, the flush's own; a file that grew would have a block of extents or none."""
    recorded = text(row(w=120, size_kib=4, flushes=40, w_await=0.1), heading=NEW, kernel="6.18.0")
    draft = draw_draft(seen_of(recorded, BARE), seed)
    run = figures_of(simulate(load_text(draft.sheet.text(""), Path("twin.toml")), seed))
    assert run["sda f_per_s"] == pytest.approx(40, rel=0.1)
    assert 2.8 < run["sda w_per_s"] / run["sda f_per_s"] <= 3


@pytest.mark.parametrize(
    ("writes", "size_kib", "merged", "has_journal"),
    [
        (300, 8 / 3, 0, False),  # data, the inode's block, the flush's own write of nothing
        (300, 8 / 3, 30, None),  # a journal's blocks adjoin, and are merged
        (300, 4, 0, None),  # of a block each: nobody moves nothing
        (200, 3, 0, None),  # XFS: data, and a log of sectors
        (200, 2, 0, None),  # an overwrite of any file system: the data, and the flush's own
    ],
)
def test_without_mounts_writes_that_move_nothing_tell_of_no_journal(
    writes: float, size_kib: float, merged: float, has_journal: bool | None
) -> None:
    recorded = text(
        row(w=writes, size_kib=size_kib, flushes=100, w_await=1.7, merged=merged, util=66),
        heading=NEW,
        kernel="6.18.0",
    )
    draft = draft_of(recorded)
    mount = mount_of(draft, draft.server.places["sda"].path)
    assert mount.get("has_journal") is has_journal
    assert (mount["type"] == "ext4") is (has_journal is False or bool(merged))
    load_text(draft.sheet.text(""), Path("twin.toml"))


def checkpointed(
    fsyncs: float,
    bursts: float,
    n: int,
    *,
    dirty_kib: int = 500,
    shared: bool = True,
    service_ms: float = 0.1,
    device: str = "sda",
) -> tuple[dict[str, Class], Draft]:
    """Return classes and draft of a database: fsyncs of 3 requests, bursts of n writes beside them.

    Each request is so long with the device, of bursts side by side with others if they are
    `shared`.
    """
    w = 3 * fsyncs + n * bursts
    alone = 3 * fsyncs * service_ms
    inside = alone + bursts * n * (n + 1) / 2 * service_ms * shared
    util = (alone + bursts * n * service_ms) / 10
    printed = row(w=w, size_kib=8, flushes=fsyncs, w_await=inside / w, util=util)
    printed = printed.replace("sda", device)
    recordings = (
        read_text(text(printed, heading=NEW, kernel="6.18.0"), "iostat.txt"),
        read_text(f"MemTotal: 8000000 kB\nDirty: {dirty_kib} kB\n", "meminfo"),
    )
    seen = look(Source(name="web1", recordings=recordings, host=host_of(BARE)))
    [load] = loads_of(seen)
    return {one.kind: one for one in load.classes}, draw_draft(seen, 1)


@given(fsyncs=st.floats(40, 120), bursts=st.floats(1, 4), n=st.integers(12, 32))
@settings(max_examples=20, deadline=None)
def test_what_is_in_flight_beyond_fsyncs_are_bursts(fsyncs: float, bursts: float, n: int) -> None:
    """The opening text's: the rate of the others is exact; of n at least what their wait shows."""
    w = 3 * fsyncs + n * bursts
    assume(n * bursts > 0.06 * w and bursts * n * (n - 1) / 2 > 0.6 * w)
    found, draft = checkpointed(fsyncs, bursts, n)
    assert set(found) == {SYNC, WRITE}
    assert found[SYNC].rate_per_s == pytest.approx(fsyncs, abs=0.01)
    assert found[WRITE].rate_per_s * found[WRITE].at_once == pytest.approx(n * bursts, rel=0.05)
    assert 0.5 * n <= found[WRITE].at_once <= 1.1 * n
    section = draft.sheet.sections["process", "sda-writes"]
    assert section["writeback"].value == 1
    disk = draft.sheet.sections["machine", "disk", "sda"]
    assert (disk["servers"].value, disk["write_rate"].value) == (1, "0 B/s")
    assert parse_quantity(disk["write"].value, "time_ns") == pytest.approx(0.1e6, rel=0.2)
    load_text(draft.sheet.text(""), Path("twin.toml"))


@pytest.mark.parametrize(
    ("dirty_kib", "shared"),
    [
        (500, False),  # each goes alone: they are more requests of the fsyncs
        (14_000, True),  # 480 KiB/s that wait for half a minute: a flusher's
    ],
)
def test_what_is_no_burst_beside_fsyncs_is_taken_as_before(dirty_kib: int, *, shared: bool) -> None:
    found, _ = checkpointed(100, 3, 20, dirty_kib=dirty_kib, shared=shared)
    assert set(found) == {SYNC}


def test_at_another_load_a_checkpoint_may_write_as_much_as_today() -> None:
    """A page that was changed twice is written once."""
    _, draft = checkpointed(100, 3, 20)
    assert draft.left_open.kept == ["sda-writes"]
    assert not any("writes" in one for one in draft.left_open.others)
    assert "written back as today" in notes_of(draft)


def checkpointed_in_seconds(groups: Sequence[int], n: int = 32, *, flush_ms: float = 10) -> Look:
    """Return the look at seconds of a log of 16 fdatasyncs on a disk with a cache.

    Each second has so many groups of n of a checkpoint's pages beside them.
    """
    reports = ""
    for beside in (0, *groups):  # the first report is since boot
        w = 32 + n * beside
        printed = row(w=w, size_kib=8, flushes=16, w_await=(16 * flush_ms + 5) / w, util=17)
        printed = printed.replace("sda", "vdb").replace(" 1.00 ", f" {flush_ms:.2f} ")
        head, report = text(printed, heading=NEW, kernel="6.18.0", reports=1).split("\n\n", 1)
        reports += report
    mounts = {path: said.replace("sda", "vdb") for path, said in JOURNALLED.items()}
    recordings = (
        read_text(f"{head}\n\n{reports}", "iostat.txt", interval_s=1),
        read_text("MemTotal: 8000000 kB\nDirty: 300 kB\n", "meminfo"),
    )
    return look(Source(name="web1", recordings=recordings, host=host_of(mounts)))


@given(st.permutations([0] * 16 + [1] * 38 + [2] * 6))
@settings(max_examples=5, deadline=None)
def test_pages_of_a_checkpoint_that_a_cache_takes_are_told_by_how_they_scatter(
    groups: list[int],
) -> None:
    """The opening text's, by hand: 13 at least, 36 at most, and their mean is 22."""
    seen = checkpointed_in_seconds(groups)
    [load] = loads_of(seen)
    assert load.cache_sign is CacheSign.BY_FLUSHES
    synced, let_go = load.classes
    assert (synced.promise, synced.rate_per_s) == (OVERWRITE, pytest.approx(16))
    assert let_go.at_once == pytest.approx(22, abs=0.5)
    assert let_go.at_once * let_go.rate_per_s == pytest.approx(32 * 50 / 60, rel=0.02)
    draft = draw_draft(seen, 1)
    section = draft.sheet.sections["process", "vdb-writes"]
    assert section["writeback"].value == 1 and "var / mean" in section["writes"].source
    assert draft.sheet.sections["machine", "disk", "vdb"]["servers"].value == 1
    [prior] = [one for one in draft.priors if one.path == "process.vdb-writes.writes"]
    assert prior.low < 13.2 and prior.high > 36.4
    load_text(draft.sheet.text(""), Path("twin.toml"))


@pytest.mark.parametrize("n", [8, 16, 32])
def test_how_many_come_at_a_time_is_found_where_groups_come_by_chance(n: int) -> None:
    """Of a minute each; 0.8 groups a second scatter as n, seconds with any have 1.4 n."""
    chance, found = Random(n), []
    for _minute in range(21):
        groups = [sum(chance.random() < 0.1 for _ in range(8)) for _ in range(60)]
        [load] = loads_of(checkpointed_in_seconds(groups, n))
        found.append(load.classes[-1].at_once)
    assert median(found) == pytest.approx(n, rel=0.25)


def test_seconds_in_which_nothing_is_beside_the_log_are_no_groups() -> None:
    """One with many more flushes has fewer writes each, not less than none beside them."""
    counts = [-0.5 + 0.1 * (number % 3) for number in range(59)]
    rows = [{"w_per_s": 32 + one, "f_per_s": 16.0} for one in counts]
    rows.append({"w_per_s": 40.0, "f_per_s": 75.0})
    used = [Interval(end_s=i, length_s=1, cpu={}, devices={"vdb": x}) for i, x in enumerate(rows)]
    device = replace(checkpointed_in_seconds([1] * 60).devices[0], row={"f_per_s": 16.0})
    assert _number_by_scatter(32, device, used) is None


def test_one_by_one_beside_a_log_are_no_groups() -> None:
    [load] = loads_of(checkpointed_in_seconds([9, 11, 10, 12, 8, 10] * 10, n=2))
    assert all(one.at_once == 1 for one in load.classes)


@pytest.mark.parametrize(("service_ms", "is_open"), [(4, False), (1, True)])
def test_bursts_to_what_is_as_slow_as_an_arm_are_served_one_by_one(
    service_ms: float, *, is_open: bool
) -> None:
    """Requests of 4 ms each and, of another device, of 1 ms: that may serve 16 at a time."""
    found, draft = checkpointed(10, 0.5, 20, service_ms=service_ms, device="vda")
    assert found[WRITE].at_once > 1
    assert draft.sheet.sections["machine", "disk", "vda"]["servers"].value == 1
    assert ("machine.disk.vda.servers" in {one.path for one in draft.priors}) is is_open


def test_a_twin_says_who_writes_in_bursts() -> None:
    _, draft = checkpointed(100, 3, 20)
    [told] = writers_told(draft)
    assert "programs wait for a commit (recorded: 100 flushes/s), and written back many at" in told


@pytest.mark.parametrize(("names", "merged"), [(None, 0), (None, 120), ("sda-8\n", 120)])
def test_where_a_journal_may_be_everything_is_as_before(names: str | None, merged: float) -> None:
    host = {path: said for path, said in BARE.items() if path != "/proc/fs/jbd2"}
    if names is not None:
        host["/proc/fs/jbd2"] = names
    written = row(w=360, size_kib=4, flushes=120, w_await=0.1, merged=merged)
    recorded = text(written, heading=NEW, kernel="6.18.0")
    draft = draft_of(recorded, host)
    assert "has_journal" not in mount_of(draft)
    assert draft.server.single_flushes == {"sda"}
    assert {"data_writeback", "data_journal"} <= {one.name for one in what_ifs_of(draft)}


JOURNALLED = {**BARE, "/proc/fs/jbd2": "sda-8\n"}


def classes_on(mounts: dict[str, str], device: str) -> list[Class]:
    """Return the classes of the only device, with these mounts."""
    [load] = loads_of(seen_of(text(device, heading=NEW, kernel="6.18.0"), mounts))
    return list(load.classes)


def test_where_a_journal_has_nothing_to_merge_each_flush_is_an_overwrite() -> None:
    """As a log of four programs on a disk of 7200 rpm was recorded: 25 fdatasyncs of 8 KiB."""
    [only] = classes_on(JOURNALLED, row(w=49.4, size_kib=4.02, flushes=24.6, merged=0.2))
    assert (only.kind, only.promise) == (SYNC, OVERWRITE)
    assert only.rate_per_s == pytest.approx(24.6)
    assert only.size_bytes == pytest.approx(8.07 * KIB, rel=0.03)


@pytest.mark.parametrize(
    ("mounts", "w", "merged"),
    [
        (BARE, 49.4, 0),  # without a journal an append leaves as much
        (JOURNALLED, 49.4, 18),  # 0.7 a flush: an etcd log that grows
        (JOURNALLED, 37, 0),  # 1.5 writes a flush are those of a commit
        (JOURNALLED, 170, 0),  # most are no fsync's
    ],
)
def test_what_may_be_a_commit_is_no_overwrite(
    mounts: dict[str, str], w: float, merged: float
) -> None:
    found = classes_on(mounts, row(w=w, size_kib=4, flushes=24.6, merged=merged))
    assert all(one.promise is not OVERWRITE for one in found)


@pytest.mark.parametrize(("merged", "kind"), [(0, DIRECT), (0.76, DIRECT), (2.5, WRITE)])
def test_what_a_journal_merges_is_not_held_against_direct_writes(merged: float, kind: str) -> None:
    """As fio on a disk of 7200 rpm was recorded: 0.33 commits a second, each of two or three."""
    found = classes_on(
        JOURNALLED, row(w=11, size_kib=8, flushes=0.65, w_await=11.3, util=9, merged=merged)
    )
    assert {one.kind for one in found} == {SYNC, kind}


@pytest.mark.parametrize(
    ("sleepers", "error", "kind"),
    [
        (0.124, 0.02, DIRECT),  # one for each write
        (0.124, 0.2, WRITE),  # by a load average: it may be chance
        (0.01, 0.02, WRITE),  # for a flusher's nobody sleeps
        (1.0, 0.02, WRITE),  # somebody sleeps all the time, on a mount that does not answer
    ],
)
def test_writes_that_tasks_sleep_for_are_no_flushers(
    sleepers: float, error: float, kind: str
) -> None:
    """11 writes/s of 11.3 ms are 0.124 in flight; what is merged may be of a journal's commits."""
    printed = row(w=11, size_kib=8, flushes=0.38, w_await=11.3, util=9, merged=0.7)
    seen = seen_of(text(printed, heading=NEW, kernel="6.18.0"), JOURNALLED)
    assert seen.cpu.busy is not None
    mean = seen.cpu.busy * (seen.cpu.cpus or 1) + sleepers
    told = Active(mean=mean, error=error, source=CENSUS, readings=121)
    seen = replace(seen, system=replace(seen.system, tasks=told))
    [load] = loads_of(seen)
    assert [one.kind for one in load.classes] == [kind]


def overwriting(mounts: dict[str, str] | None, *, merged: float = 0, w_await: float = 4) -> Look:
    """Return the look at a database's writes."""
    printed = row(w=50, size_kib=8, flushes=16, merged=merged, w_await=w_await, util=20)
    return seen_of(text(printed, heading=NEW, kernel="6.18.0"), mounts)


def test_where_no_mount_was_recorded_xfs_commits_come_first_and_overwrites_last() -> None:
    """Neither merges anything."""
    [load] = loads_of(overwriting(None))
    assert [{one.promise for one in found} for found in (load.classes, load.doubt)] == [
        {SINGLE_FLUSH},
        {OVERWRITE, None},
    ]
    drafts = draw_drafts(overwriting(None), 1)
    assert [one.is_last_resort for one in drafts] == [False, True]
    [known] = draw_drafts(overwriting(JOURNALLED), 1)
    assert known.loads[0].classes == load.doubt


def test_where_overwrites_explain_every_write_both_are_fitted() -> None:
    """By hand: 25 flushes/s of XFS are 12.5 commits; 50 writes/s leave 37.5 of data, three each."""
    seen = seen_of(text(row(w=50, size_kib=4, flushes=25), heading=NEW, kernel="6.18.0"))
    [load] = loads_of(seen)
    assert [{one.promise for one in found} for found in (load.classes, load.doubt)] == [
        {COMMIT},
        {OVERWRITE},
    ]
    assert [one.is_last_resort for one in draw_drafts(seen, 1)] == [False, False]


@pytest.mark.parametrize("merged", [0, 1.6])
def test_on_xfs_overwrites_are_tried_last(merged: float) -> None:
    """Its commits merge as little as a database's log, and come first whatever is merged."""
    xfs = {"/proc/mounts": "/dev/sda / xfs rw 0 0\n"}
    [load] = loads_of(overwriting(xfs, merged=merged))
    assert OVERWRITE not in {one.promise for one in load.classes}
    assert OVERWRITE in {one.promise for one in load.doubt}
    assert [one.is_last_resort for one in draw_drafts(overwriting(xfs), 1)] == [False, True]
    others = {"/proc/mounts": "/dev/sda / btrfs rw 0 0\n"}
    [load] = loads_of(overwriting(others, merged=merged))
    assert OVERWRITE not in {one.promise for one in (*load.classes, *load.doubt)}


@pytest.mark.parametrize(("flushes", "is_fitted"), [(0.2, False), (16, True)])
def test_a_flush_that_nobody_waits_for_is_no_column(flushes: float, *, is_fitted: bool) -> None:
    printed = row(w=50, size_kib=8, flushes=flushes, w_await=5, util=30)
    [load] = loads_of(seen_of(text(printed, heading=NEW, kernel="6.18.0"), JOURNALLED))
    assert load.flushes_wait is is_fitted


def test_what_merges_too_much_for_xfs_and_too_little_for_ext4_overwrites() -> None:
    [load] = loads_of(overwriting(None, merged=1.6))
    assert OVERWRITE in {one.promise for one in load.classes}
    assert not load.doubt


def test_what_is_written_beside_a_databases_log_may_stay_as_it_is() -> None:
    """Writes of 4 ms that take 30 come together: somebody lets them go, and no program waits."""
    [draft] = draw_drafts(overwriting(JOURNALLED, w_await=30), 1)
    [only] = [one for one in draft.loads[0].classes if one.kind != SYNC]
    assert (only.kind, only.at_once) == (WRITE, 1)
    assert draft.left_open.kept == ["sda-writes"]


@pytest.mark.parametrize(("kind", "writes"), [("ext4", 48), ("xfs", 29)])
def test_commits_without_data_are_of_directories(kind: str, writes: float) -> None:
    """By hand: 19 commits leave 38 blocks of ext4's journal, or 19 of XFS's log: 10 are data."""
    printed = row(w=writes, size_kib=8, flushes=38, w_await=7, util=30)
    host = {**JOURNALLED, "/proc/mounts": f"/dev/sda / {kind} rw 0 0\n"}
    seen = seen_of(text(printed, heading=NEW, kernel="6.18.0", reports=20), host)
    [draft] = draw_drafts(seen, 1)
    [only] = draft.loads[0].classes
    assert only.rate_per_s == pytest.approx(10)
    least, most = only.directories
    assert least == pytest.approx(0.9)
    assert 1.5 < most < 3  # more, if several share a commit
    assert "19 commits/s, 10 with data, the others of directories" in only.reason
    path = "process.sda-fsyncs.directory_fsyncs"
    assert path in {one.path for one in draft.priors}
    [nobody_waits] = [one for one in what_ifs_of(draft) if one.name == "no_fsync"]
    assert nobody_waits.values == {path: 0, path.replace("directory_", ""): 0}
    single = row(w=writes + 9, size_kib=8, flushes=38, w_await=7, util=30)
    [load] = loads_of(seen_of(text(single, heading=NEW, kernel="6.18.0", reports=20), host))
    assert load.classes[0].directories == (0.0, 0.0)


def test_the_journals_thread_is_no_program() -> None:
    """Five slept at one sample: four programs, and the thread that commits for them."""
    printed = row(w=60, size_kib=8, flushes=40, w_await=9, util=40)
    seen = seen_of(text(printed, heading=NEW, kernel="6.18.0", reports=20), JOURNALLED)
    told = Active(mean=1.6, error=0.02, source=CENSUS, readings=120, most_asleep=5)
    draft = draw_draft(replace(seen, system=replace(seen.system, tasks=told)), 1)
    assert "process.sda-fsyncs.concurrency=4" in draft.left_open.others


def test_a_flush_that_waits_for_others_has_a_time_of_its_own_to_fit() -> None:
    """20 % busy with 4 ms each: 0.4 ms of 1 ms are others'. 2 % busy with 0.1 ms: 1 us is."""
    fitted = "machine.disk.sda.flush"
    draft = draw_draft(overwriting(JOURNALLED), 1)
    assert fitted in {one.path for one in draft.priors}
    columns = recorded_columns(overwriting(JOURNALLED), draft.loads, draft.server)
    assert "sda f_await_ms" in {one.metric for one in columns}
    fast = row(w=200, size_kib=8, flushes=64, w_await=0.1, util=2)
    seen = seen_of(text(fast, heading=NEW, kernel="6.18.0"), JOURNALLED)
    draft = draw_draft(seen, 1)
    assert fitted not in {one.path for one in draft.priors}
    assert draft.sheet.sections["machine", "disk", "sda"]["flush"].value == "980 us"
    columns = recorded_columns(seen, draft.loads, draft.server)
    assert "sda f_await_ms" not in {one.metric for one in columns}


def test_a_flush_waits_for_the_writes_of_other_files_alone() -> None:
    """Who syncs the same file waits for these before it flushes.

    By hand: 60 writes/s of 6 ms are 36 % busy. When one is done 0.36 + 0.36^2 / 2 / 0.64 = 0.46
    others are there, 2.8 ms in all; a flush waits for these, or joins one that does. With half as
    many there are 0.2, and 1.2 ms.
    """
    waits = {}
    for files, rate in ((1, 60), (8, 60), (8, 30)):
        _result, disk = run_logs(one_by_one("6 ms", "50 us"), rate=rate, files=files)
        waits[files, rate] = disk["f_await_ms"]
    assert waits[1, 60] < 0.2
    assert waits[8, 30] == pytest.approx(1.25, rel=0.15)  # 0.05 ms are its own
    assert 1.5 * waits[8, 30] < waits[8, 60] < 2.85


@pytest.mark.parametrize(("off", "fitted"), [(1.0, 1), (3.0, 2)])
def test_a_last_resort_is_fitted_only_beside_no_fair_twin(
    off: float, fitted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def fit_draft(draft: Draft, *_: object, **_options: object) -> SimpleNamespace:
        tried.append(draft)
        miss = Miss(metric="sda util_pct", off=off, trusts=off / len(tried))
        return SimpleNamespace(draft=draft, verdict=Verdict(misses=(miss,)))

    monkeypatch.setattr("calibration.twin.fitting.fit_draft", fit_draft)
    seen = overwriting(None)
    drafts = draw_drafts(seen, 1)
    how: dict[str, Any] = {"comment": "", "seed": 1, "simulations": 8, "laboratory": None}
    best = fit_best(drafts, seen, Path(), **how)
    assert tried == drafts[:fitted]
    assert best.draft is tried[-1]
    assert ("taken for fdatasyncs over what is there" in best.draft.choice) is (fitted == 2)


def test_a_twin_says_that_an_overwrite_waits_for_a_flush() -> None:
    [told] = writers_told(draw_draft(overwriting(JOURNALLED), 1))
    assert "synced: programs wait for a flush (recorded: 16 flushes/s)" in told


def test_a_twin_that_overwrites_has_a_file_that_is_there_and_syncs_its_data() -> None:
    recorded = text(row(w=50, size_kib=4, flushes=25), heading=NEW, kernel="6.18.0")
    draft = draft_of(recorded, JOURNALLED)
    process = draft.sheet.sections["process", "sda-fsyncs"]
    told = {key: process[key].value for key in ("datasync", "write_pattern", "write_unit")}
    assert told == {"datasync": True, "write_pattern": "sequential", "write_unit": "4 KiB"}
    assert "sda f_per_s" not in draft.server.left_out
    load_text(draft.sheet.text(""), Path("twin.toml"))


def costs_ns(recorded: str, host: dict[str, str]) -> dict[str, float]:
    """Return what pages cost on the drafted machine, which must load."""
    draft = draft_of(recorded, host)
    load_text(draft.sheet.text(""), Path("twin.toml"))
    paths = (("vm", "page_add"), ("vfs", "page_copy"))
    values = {key: draft.sheet.sections["machine", part][key].value for part, key in paths}
    return {key: parse_quantity(value, "time_ns") for key, value in values.items()}


@pytest.mark.parametrize(
    ("kernel", "kind", "shared"),
    [
        ("6.12.0", "ext4", 1),
        ("6.18.0", "ext4", FOLIO_PAGES),
        ("6.8.0", "xfs", FOLIO_PAGES),
        ("6.1.0", "xfs", 1),
        ("6.18.0", "ext3", 1),
    ],
)
def test_what_a_folio_costs_is_shared_by_its_pages_where_bulk_is_written_in_folios(
    kernel: str, kind: str, shared: int
) -> None:
    host = {path: said.replace(" ext4 ", f" {kind} ") for path, said in HOST.items()}
    bulk = text(row(w=100, size_kib=1024, flushes=0), heading=NEW, kernel=kernel)
    assert costs_ns(bulk, host) == {"page_add": round(200 / shared), "page_copy": 400}
    small = text(row(w=100, size_kib=8, flushes=0), heading=NEW, kernel=kernel)
    assert costs_ns(small, host) == {"page_add": 200, "page_copy": 400}


def test_kernel_time_of_bulk_is_fitted_as_the_price_of_a_page() -> None:
    """50 MB/s are 12,800 pages/s; 10 % of four CPUs are 31 us of each, were it all theirs."""
    recorded = text(row(w=50, size_kib=1024, flushes=0), heading=NEW, kernel="6.1.0", system=10)
    draft = draft_of(recorded)
    priors = {one.path: one for one in draft.priors}
    assert priors["machine.vfs.page_copy"].high == pytest.approx(2 * 0.4e9 / 12_800, rel=0.01)
    assert not [path for path in priors if path.endswith(".system")]


def test_user_time_beside_niced_tasks_that_fill_the_cpus_is_a_class_of_its_own() -> None:
    device = row(w=50, size_kib=16, flushes=0, w_await=20)
    recorded = text(device, heading=NEW, user=18, nice=70, system=11.5, iowait=0)
    sections = draft_of(recorded).sheet.sections
    assert sections["process", "computing"]["think_time"].value == "3.888889 ms"
    assert sections["process", "niced"]["think_time"].value == "0 s"
    assert sections["process", "sda-writes"]["user"].value == "1 us"  # the least there is
    assert "CPU: full with niced tasks" in notes_of(draft_of(recorded))


@pytest.mark.parametrize(
    ("files", "target"),
    [
        ({}, 2_000_000),
        ({"rotational": "1"}, 75_000_000),
        ({"wbt_lat_usec": "0"}, 0),
        ({"rotational": "1", "wbt_lat_usec": "500"}, 500_000),
    ],
)
def test_writeback_is_throttled_as_the_recorded_device_says(
    files: dict[str, str], target: int
) -> None:
    """A virtual device that calls itself rotational has 75 ms for a read before writes wait."""
    queue = {f"/sys/block/vda/queue/{name}": f"{said}\n" for name, said in files.items()}
    host = {path.replace("sda", "vda"): said for path, said in HOST.items()} | queue
    device = row(w=50, size_kib=16, flushes=0).replace("sda", "vda")
    draft = draft_of(text(device, heading=NEW, kernel="6.1.0"), host)
    disk = load_text(draft.sheet.text(""), Path("twin.toml")).server.all("disk")["vda"]
    assert disk.queue.wbt_lat_ns == target


def test_bulk_that_would_fill_the_file_system_goes_round_and_round() -> None:
    host = HOST | {"/sys/block/sda/queue/max_sectors_kb": "1024\n"}
    patterns = {
        rate: draft_of(text(row(w=rate, size_kib=1024, flushes=0), heading=NEW), host)
        .sheet.sections["process", "sda-writes"]["write_pattern"]
        .value
        for rate in (10, 400)
    }
    assert patterns == {10: "append", 400: "sequential"}


def swap_rows(*, read_kib: float = 4) -> str:
    """Return rows of a disk with files, and of one from which pages are swapped in 8 at a time."""
    queue = (770 * 0.79 + 198 * 4.66) / 1000
    return (
        old_row("sda", r=90, w=0, size_kib=8, await_ms=1, util=9)
        + f"sdb 0.00 298.00 770.00 198.00 {770 * read_kib:.2f} 1980.00 10.40 {queue:.2f} 1.58"
        " 0.79 4.66 0.15 15.00\n"
    )


SWAPS = "Filename Type Size Used Priority\n/dev/sdb1 partition 2096120 945552 -1\n"


def swapped(rows: str, host: dict[str, str] | None = None) -> dict[str, list[str]]:
    """Return the kinds of classes of each device of a server that tells where it swaps."""
    loads = loads_of(seen_of(SWAPS + "\n" + text(rows), host))
    return {load.name: [one.kind for one in load.classes] for load in loads}


def test_a_device_that_holds_swap_alone_is_read_by_faults_and_written_at_once() -> None:
    assert swapped(swap_rows()) == {"sdb": [READ, SWAP_OUT], "sda": [READ]}
    draft = draft_of(SWAPS + "\n" + text(swap_rows()))
    out = draft.sheet.sections["process", "sdb-swapouts"]
    assert (out["writeback"].value, out["rate"].value) == (1, "198 /s")
    assert "write_turn" not in out
    draft.sheet.what_ifs += what_ifs_of(draft)
    names = {one.name for one in draft.sheet.what_ifs}
    assert "double_load" in names
    assert "double_memory" not in names
    load_text(draft.sheet.text(""), Path("twin.toml"))


def test_a_swap_area_gets_no_other_file_system_and_follows_the_load() -> None:
    draft = draft_of(SWAPS + "\n" + text(swap_rows()))
    what_ifs = {one.name: one.values for one in what_ifs_of(draft)}
    swap, files = (draft.server.places[name].path for name in ("sdb", "sda"))
    touched = {name for name, values in what_ifs.items() if any(f'"{swap}"' in v for v in values)}
    assert touched == set()
    assert any(f'"{files}"' in path for path in what_ifs["tmpfs"])
    assert not any("swapouts" in path for path in what_ifs["tmpfs"])
    assert what_ifs["double_load"]["process.sdb-swapouts.load_scale"] == 2.0
    assert not {"double_memory", "half_memory"} & set(what_ifs)


def test_a_device_that_may_hold_files_beside_swap_is_one_of_files() -> None:
    """Without mounts: larger reads than pages are of files. With mounts: those count."""
    assert swapped(swap_rows(read_kib=16))["sdb"] == [READ, WRITE]
    mounted = HOST | {"/proc/mounts": "/dev/sdb2 /data ext4 rw 0 0\n"}
    assert swapped(swap_rows(), mounted)["sdb"] == [READ, WRITE]
    elsewhere = HOST | {"/proc/mounts": "/dev/sda1 / ext4 rw 0 0\n"}
    assert swapped(swap_rows(read_kib=16), elsewhere)["sdb"] == [READ, SWAP_OUT]


@given(n=st.floats(3, 20), rate=st.floats(100, 800), await_ms=st.floats(1, 3))
@settings(max_examples=30, deadline=None)
def test_requests_in_groups_leave_a_device_idle_between_them(
    n: float, rate: float, await_ms: float
) -> None:
    """util = 1 - exp(-(X / n) R)."""
    util = 1 - exp(-rate / n * await_ms / 1000)
    device = old_row("sda", r=rate, w=0, size_kib=8, await_ms=await_ms, util=100 * util)
    [load] = loads_of(seen_of(text(device, kernel="2.6.32")))
    if load.device.guess.startswith("disk"):
        return
    assert load.classes[0].together == pytest.approx(n, rel=0.2)


def test_requests_that_come_by_themselves_are_in_no_groups() -> None:
    device = old_row("sda", r=300, w=0, size_kib=8, await_ms=1, util=100 * (1 - exp(-0.3)))
    assert classes_of_old(device).together == 1


def classes_of_old(device: str) -> Class:
    [load] = loads_of(seen_of(text(device)))
    [only] = load.classes
    return only


@given(n=st.integers(6, 40), reads=st.floats(0, 200))
@settings(max_examples=20, deadline=None)
def test_small_reads_beside_a_burst_do_not_shorten_the_time_of_its_writes(
    n: int, reads: float
) -> None:
    """Of the busy time reads have their share of the bytes: next to none."""
    bursts, service_ms = 1.0, 1.2
    w, await_ms = n * bursts, (n + 1) * service_ms / 2
    device = (
        f"sda {reads:.2f} {4 * reads:.2f} 0.00 0.00 0.10 4.00 {w:.2f} {w * 4096:.2f} 0.00 0.00"
        f" {await_ms:.2f} 4096.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00"
        f" {w * await_ms / 1000:.2f} {w * service_ms / 10:.2f}\n"
    )
    assert classes(device)[WRITE].at_once == pytest.approx(n, rel=0.15)


def shown(columns: dict[str, float]) -> str:
    """Return columns of a disk as a row of sysstat 12."""
    kib = columns["wareq_bytes"] / KIB
    r, w, f = columns["r_per_s"], columns["w_per_s"], columns["f_per_s"]
    return (
        f"vdb {r:.2f} {8 * r:.2f} 0.00 0.00 {columns['r_await_ms']:.2f} 8.00"
        f" {w:.2f} {w * kib:.2f} {columns['wrqm_per_s']:.2f} 0.00"
        f" {columns['w_await_ms']:.2f} {kib:.2f} 0.00 0.00 0.00 0.00 0.00 0.00 {f:.2f}"
        f" {columns['f_await_ms']:.2f} {columns['aqu_sz']:.2f} {columns['util_pct']:.2f}\n"
    )


@pytest.mark.parametrize("is_cached", [True, False])
def test_a_disk_that_answers_from_its_cache_is_told_by_what_flushes_take(
    *, is_cached: bool
) -> None:
    """An arm of 7200 rpm with its cache, and without: what a sync takes is the platter's time."""
    device = f'profile = "sata-7200"\nwrite_cache = {str(is_cached).lower()}\n'
    _result, columns = run_logs(device, rate=24, files=4)
    recorded = text(shown(columns), heading=NEW, kernel="6.18.0")
    [load] = loads_of(seen_of(recorded))
    assert (load.cache_sign is CacheSign.BY_FLUSHES) is is_cached
    draft = draft_of(recorded)
    section = draft.sheet.sections["machine", "disk", "vdb"]
    answer_ms, write_ms = (
        parse_quantity(section[key].value, "time_ns") / 1e6 if key in section else 0.0
        for key in ("cache_write", "write")
    )
    assert (0 < answer_ms < 1) if is_cached else (answer_ms == 0)
    assert write_ms > 2  # of the platter, either way; half of the writes are of no bytes
    assert ("answers writes from its cache" in notes_of(draft)) is is_cached
    load_text(draft.sheet.text(""), Path("twin.toml"))


MIXTURE = f"""\
title = "Reads and writes that nobody syncs"
{SERVER}"""
MIXTURE += """\
profile = "sata-7200"
write_cache = {write_cache}
[machine.mount."/"]
type = "ext4"
device = "vdb"
[process.reads]
program = "transactions"
arrivals = "open"
rate = "20 /s"
concurrency = 64
reads = 1
read_size = "8 KiB"
direct = true
read_file = "/reads"
working_set = "100 GiB"
[process.writes]
program = "transactions"
arrivals = "open"
rate = "16 /s"
concurrency = 64
writes = 1
write_direct = true
write_size = "8 KiB"
write_pattern = "random"
write_file = "/writes"
write_files = 8
write_area = "10 GiB"
[run]
duration = "100 s"
[measure]
interval = "1 s"
families = ["transactions", "disk"]
"""


@pytest.mark.parametrize("is_cached", [True, False])
def test_writes_that_do_not_wait_for_reads_are_in_a_cache(*, is_cached: bool) -> None:
    """Nobody flushes: an arm that is busy with reads would make writes wait for them."""
    server = MIXTURE.format(write_cache=str(is_cached).lower())
    result = simulate(load_text(server, Path("mixture.toml")), 1)
    [disk] = compute_iostat(result.samples[30], result.samples[-1]).devices
    recorded = text(shown(device_columns(disk)), heading=NEW, kernel="6.18.0")
    [load] = loads_of(seen_of(recorded))
    assert (load.cache_sign is not None) is is_cached
    draft = draft_of(recorded)
    load_text(draft.sheet.text(""), Path("twin.toml"))
    priors = {one.path.rpartition(".")[2]: one for one in draft.priors}
    assert ("cache_write" in priors) is is_cached
    if is_cached:  # 9 ms of the platter, wherever that is
        assert priors["write"].low < 5e6 < 9e6 < priors["write"].high


def cached_row(
    r: float, r_ms: float, w: float, w_ms: float, f: float, f_ms: float, util: float
) -> str:
    """Return a row of sysstat 12 of an arm: reads, writes and flushes a second, what each takes."""
    return iostat_row("vdb", r=r, r_await=r_ms, w=w, w_await=w_ms, f=f, f_await=f_ms, util=util)


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        ((20, 10, 16, 0.2, 0, 0, 20), CacheSign.BY_READS),
        ((20, 10, 16, 0.8, 0, 0, 20), None),  # as long as a wait for a read
        ((1, 10, 16, 0.2, 0, 0, 20), None),  # hardly a read is there
        ((0, 0, 60, 5.5, 9, 30, 27), CacheSign.BY_FLUSHES),  # a flush writes seven of them
        ((40, 8, 30, 0.1, 15, 0.05, 32), None),  # what a battery keeps, no flush writes
        ((20, 10, 16, 0.7, 0.4, 20, 20), CacheSign.BY_READS),  # a journal's own flushes
        ((2, 20, 10, 0.1, 0, 0, 100), CacheSign.BY_READS),
    ],
)
def test_what_tells_that_a_disk_answers_from_its_cache(
    figures: tuple[float, ...], told: CacheSign | None
) -> None:
    [load] = loads_of(seen_of(text(cached_row(*figures), heading=NEW)))
    assert load.cache_sign is told


def test_where_the_work_behind_a_cache_is_not_known_no_limit_is_said() -> None:
    hidden, flushed = (
        seen_of(text(cached_row(*figures), heading=NEW))
        for figures in ((20, 10, 16, 0.2, 0, 0, 20), (0, 0, 60, 5.5, 9, 30, 27))
    )
    assert "vdb" not in limits_of(hidden)
    assert limits_of(flushed)["vdb"] == pytest.approx(90 / 27)


def test_a_disk_with_a_profile_has_the_cache_that_its_reads_tell() -> None:
    device = cached_row(20, 10, 16, 0.2, 0, 0, 20).replace("vdb", "sda")
    section = draft_of(text(device, heading=NEW)).sheet.sections["machine", "disk", "sda"]
    assert "profile" in section and section["write_cache"].value is True


def _priors(figures: tuple[float, ...]) -> dict[str, tuple[float, float]]:
    """Return the least and the most of what is fitted of the disk, ms."""
    priors = draft_of(text(cached_row(*figures), heading=NEW)).priors
    return {
        one.path.rpartition(".")[2]: (one.low / 1e6, one.high / 1e6)
        for one in priors
        if one.path.startswith("machine.disk") and one.dim == "time_ns"
    }


def test_a_write_behind_the_cache_takes_a_part_of_the_flush_that_writes_it() -> None:
    """By hand: 9 flushes/s of 30 ms write 60 places: 4.5 ms each, the platter's."""
    low, high = _priors((0, 0, 60, 5.5, 9, 30, 27))["write"]
    assert low < 4.5 < high and low * high == pytest.approx(4.5**2, rel=0.05)


def test_behind_a_cache_reads_of_programs_that_always_wait_take_what_the_busy_time_leaves() -> None:
    """Two readers: 100 reads/s of 20 ms on a full disk take 10 ms each."""
    read_low, read_high = _priors((100, 20, 10, 0.1, 0, 0, 100))["read"]
    assert read_low < 10 < read_high
    low, high = _priors((100, 20, 10, 0.1, 0, 0, 100))["write"]
    assert low < 5 and high == pytest.approx(11, rel=0.05)


def test_by_hand_what_writes_take_beside_their_flushes() -> None:
    """The opening text's: 49.8 writes/s of 3.6 ms with 25 flushes/s of 6.0 ms leave 0.6 ms."""
    printed = row(w=49.8, size_kib=4, flushes=25, w_await=3.6, util=15.7)
    [load] = loads_of(seen_of(text(printed.replace(" 1.00 ", " 6.00 ", 1), heading=NEW)))
    assert write_alone_ms(load.device.row) == pytest.approx(0.6, rel=0.05)
    assert load.cache_sign is CacheSign.BY_FLUSHES and load.flushes_wait
    beside = row(w=49.8, size_kib=4, flushes=25, w_await=3.6, util=25).replace(
        " 1.00 ", " 6.00 ", 1
    )
    reads = beside.replace(
        "sda 0.00 0.00 0.00 0.00 0.00 0.00", "vdb 8.00 64.00 0.00 0.00 16.00 8.00"
    )
    disk = draft_of(text(reads, heading=NEW)).sheet.sections["machine", "disk", "vdb"]
    read_ms = parse_quantity(disk["read"].value, "time_ns") / 1e6
    assert read_ms == pytest.approx(16 * 0.75)  # util / X is 4.3 ms, of flushes most
    [through] = loads_of(seen_of(text(row(w=32, size_kib=4, flushes=16, w_await=6.2), heading=NEW)))
    assert through.cache_sign is None


def test_the_area_of_an_arm_grows_with_data_that_stay() -> None:
    """Files that are synced and come and go take what is free; overwrites and reads have places."""

    def arms(figures: tuple[float, ...], merged: float = 0.0) -> list[str]:
        device = cached_row(*figures).replace(" 0.00 0.00 3.60", f" {merged:.2f} 0.00 3.60")
        return draft_of(text(device, heading=NEW)).left_open.arms

    overwritten = (0, 0, 50, 3.60, 25, 6, 15)
    assert arms(overwritten, merged=0.2) == ["machine.disk.vdb"]
    assert arms((20, 10, 16, 0.2, 0, 0, 20)) == ["machine.disk.vdb"]
    assert arms((0, 0, 37, 3.60, 25, 4, 13), merged=30) == []


def test_beside_a_flushers_writes_a_flush_takes_as_long_as_it_was_recorded() -> None:
    """A checkpoint's pages lie together, the log elsewhere: they have no one time of a write."""
    log = cached_row(0, 0, 50, 3.6, 25, 6, 15)
    both = cached_row(0, 0, 60, 5.5, 9, 30, 27).replace(" 0.00 0.00 5.50", " 20.00 0.00 5.50")
    [single], [mixed] = (loads_of(seen_of(text(one, heading=NEW))) for one in (log, both))
    assert {one.kind for one in mixed.classes} == {SYNC, WRITE}
    assert mixed.flushes_others and not single.flushes_others
    assert replace(single, classes=[replace(x, at_once=8) for x in single.classes]).flushes_others
    alone, beside = (
        {one.path.rpartition(".")[2]: one for one in draft_of(text(row, heading=NEW)).priors}
        for row in (log, both)
    )
    assert "cache_write" in alone and alone["flush"].low < 1e6
    assert "cache_write" not in beside and "turn" not in beside
    assert (beside["flush"].low, beside["flush"].high) == (7.5e6, 30e6)
    assert beside["write"].high == pytest.approx(1e6, rel=0.01)  # 5.5 - 30 / (60 / 9)


def test_what_a_flusher_writes_beside_fsyncs_is_not_held_up_by_a_full_device() -> None:
    """A database at full speed: its clients wait for the log, and a checkpoint for nobody."""
    full = row(w=140, size_kib=13, flushes=30, merged=1.6, w_await=21, util=99.5)
    customers = {one.kind: one.customers for one in classes_on(JOURNALLED, full)}
    assert customers[SYNC] is not None
    assert customers[WRITE] is None
    draft = draw_draft(seen_of(text(full, heading=NEW), JOURNALLED), 1)
    arrivals = draft.sheet.sections["process", "sda-writes"]["arrivals"]
    assert arrivals.value == "open"
    assert "nobody waits for a flusher" in arrivals.source


@pytest.mark.parametrize(("f_await", "flush_us"), [(0.06, 40), (0.3, 280), (0.02, 5)])
def test_the_way_to_a_device_is_a_part_of_what_a_flush_takes(
    f_await: float, flush_us: float
) -> None:
    """By hand: of 0.06 ms 0.02 are the way. Of 0.02 ms a quarter at least is the flush's own."""
    printed = iostat_row("vda", w=600, w_await=0.13, f=200, f_await=f_await, util=4)
    draft = draft_of(text(printed, heading=NEW, kernel="6.18.0", reports=20))
    assert not any(one.path == "machine.disk.vda.flush" for one in draft.priors)
    flush = draft.sheet.sections["machine", "disk", "vda"]["flush"]
    assert parse_quantity(str(flush.value), "time_ns") == flush_us * 1000
