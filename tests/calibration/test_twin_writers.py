"""Who writes where flushes do not tell: a queue, dirty data and a rhythm, each alone."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calibration.dataset import Source, open_source
from calibration.look import Look, look
from calibration.readers import read_text
from calibration.twin.columns import columns_of_run
from calibration.twin.demands import DIRECT, READ, SYNC, WRITE, Load, loads_of
from calibration.twin.draft import Draft
from calibration.twin.fitting import Twin, draw_drafts, fit_best
from calibration.twin.report import writers_told
from calibration.twin.writers import REQUESTS_MAX, WAKES_S, Evidence, evidence_of
from sim.cli.main import cli
from sim.study.laboratory import Laboratory
from tests.calibration.test_twin_draft import NEW, OLD, seen_of, text

THROTTLED = "4.18.0"
UNTHROTTLED = "3.10.0"
SERVICE_MS = 4.0


def old(*, w: float, w_await: float, r: float = 0, merged: float = 0) -> str:
    """Return a row of sysstat 10 of a disk that is busy for 4 ms with each request of 8 KiB."""
    queue = (r * SERVICE_MS + w * w_await) / 1000
    mean = 1000 * queue / (r + w)
    return (
        f"sda 0.00 {merged:.2f} {r:.2f} {w:.2f} {8 * r:.2f} {8 * w:.2f} 16.00 {queue:.2f}"
        f" {mean:.2f} {SERVICE_MS:.2f} {w_await:.2f} {SERVICE_MS:.2f}"
        f" {SERVICE_MS * (r + w) / 10:.2f}\n"
    )


def new(*, w: float, w_await: float = 4.0) -> str:
    """Return a row of sysstat 12, whose flushes are counted; there are none."""
    return (
        f"sda 0.00 0.00 0.00 0.00 0.00 0.00 {w:.2f} {8 * w:.2f} {w:.2f} 50.00 {w_await:.2f} 8.00"
        f" 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 {w * w_await / 1000:.2f}"
        f" {w * SERVICE_MS / 10:.2f}\n"
    )


def recorded(row: str, *, kernel: str, heading: str = OLD) -> str:
    """Return what iostat printed, of a server without a waiting CPU, which tells as well."""
    return text(row, heading=heading, kernel=kernel, iowait=0.01)


def load_of(seen: Look) -> Load:
    [load] = loads_of(seen)
    return load


def kinds(seen: Look) -> tuple[list[str], list[str]]:
    """Return the kinds of the classes that write: the likeliest, and the others that are tried."""
    load = load_of(seen)
    first, second = ([x.kind for x in one if x.kind != READ] for one in (load.classes, load.doubt))
    return first, second


def told(seen: Look) -> Evidence | None:
    """Return the evidence about the only device."""
    load = load_of(seen)
    rate, size = load.writes.rate_per_s, load.writes.size_bytes
    return evidence_of(load.device, rate, size, seen.used, seen.source)


@given(w=st.floats(4, 100), r=st.floats(0, 100), share=st.floats(0.6, 1.2))
@settings(max_examples=30, deadline=None)
def test_writes_that_wait_as_those_of_a_flusher_are_left_to_one(
    w: float, r: float, share: float
) -> None:
    """The mean of n that come together to an idle disk takes (n + 1) S / 2."""
    together = min(round(w, 2) * WAKES_S, REQUESTS_MAX)
    await_ms = share * (together + 1) * SERVICE_MS / 2
    seen = seen_of(recorded(old(w=w, r=r, w_await=await_ms, merged=w), kernel=UNTHROTTLED))
    assert kinds(seen) == ([WRITE], [])


@given(w=st.floats(8, 100), r=st.floats(0, 100), waits=st.floats(1, 2))
@settings(max_examples=30, deadline=None)
def test_writes_that_hardly_wait_are_waited_for(w: float, r: float, waits: float) -> None:
    """A flusher would let 40 of them or more come together, which takes 20 times as long as one."""
    merged = recorded(old(w=w, r=r, w_await=waits * SERVICE_MS, merged=w), kernel=UNTHROTTLED)
    assert kinds(seen_of(merged)) == ([SYNC], [])
    bare = recorded(old(w=w, r=r, w_await=waits * SERVICE_MS), kernel=UNTHROTTLED)
    assert kinds(seen_of(bare)) == ([DIRECT], [SYNC])


def test_the_server_of_the_opening_text_has_fsyncs() -> None:
    """128 writes of 5.6 ms together take 361 ms on average; 10.3 ms are 3 % of that."""
    row = (
        "sda 0.00 38.00 66.00 28.00 670.00 270.00 20.00 0.85 9.00 8.40 10.30 5.60"
        f" {94 * 5.6 / 10:.2f}\n"
    )
    found = told(seen_of(text(row, kernel="2.6.32")))
    assert found is not None
    assert found.most == pytest.approx(10.3 / 361, rel=0.01)
    assert found.said.startswith("a flusher's writes come 128 at a time and would take 361 ms")


def test_throttled_writeback_makes_no_queue_that_tells() -> None:
    """From 4.10 on, and where a kernel is not known, a flusher's requests come a few at a time."""
    row = old(w=50, w_await=5, merged=50)
    assert told(seen_of(recorded(row, kernel=THROTTLED))) is None
    assert kinds(seen_of(recorded(row, kernel=THROTTLED))) == ([WRITE], [SYNC])
    unknown = recorded(new(w=50), kernel=THROTTLED, heading=NEW).partition("\n\n")[2]
    assert kinds(seen_of(unknown)) == ([WRITE], [SYNC])


def test_several_together_are_a_flushers_or_those_who_share_commits() -> None:
    """Ten together of 128: both are tried."""
    seen = seen_of(recorded(old(w=50, w_await=22, merged=50), kernel=UNTHROTTLED))
    assert kinds(seen) == ([WRITE], [SYNC])


@pytest.mark.parametrize(
    ("dirty_kib", "found"), [(300, ([SYNC], [])), (9000, ([WRITE], [])), (2000, ([WRITE], [SYNC]))]
)
def test_what_waits_for_a_flusher_is_dirty_for_half_a_minute(
    dirty_kib: int, found: tuple[list[str], list[str]]
) -> None:
    """Little's law: 50 writes/s of 8 KiB for 30 s are 12 MB, of which 5 make a flusher begin."""
    memory = "".join(
        f"{at} AM 900000 2100000 70.00 1000 2000 30000 10.00 500 400 {dirty_kib}\n"
        for at in ("10:00:05", "10:00:10")
    )
    sar = (
        "Linux 4.18.0 (web1) \t03/01/24 \t_x86_64_\t(4 CPU)\n\n10:00:00 AM kbmemfree kbmemused"
        f" %memused kbbuffers kbcached kbcommit %commit kbactive kbinact kbdirty\n{memory}"
    )
    recordings = (
        read_text(recorded(old(w=50, w_await=5, merged=50), kernel=THROTTLED), "iostat.txt"),
        read_text(sar, "sar.txt"),
    )
    assert not recordings[1].problems
    assert kinds(look(Source(name="web1", recordings=recordings, host=None))) == found


@pytest.mark.parametrize(
    ("writes", "found"),
    [([25] * 20, ([SYNC], [])), ([125, 0, 0, 0, 0] * 4, ([WRITE], []))],
)
def test_a_flusher_writes_in_one_of_five_seconds(
    writes: list[int], found: tuple[list[str], list[str]]
) -> None:
    """25 writes a second in the mean, on a kernel that throttles writeback."""
    assert kinds(rhythm(writes)) == found


def test_intervals_of_five_seconds_have_no_rhythm() -> None:
    assert told(rhythm([25] * 20, seconds=5)) is None


def rhythm(writes: list[int], seconds: int = 1) -> Look:
    """Return the look at an iostat of so many seconds an interval."""
    head = f"Linux {THROTTLED} (web1) \t03/01/24 \t_x86_64_\t(4 CPU)\n\n"
    reports = (
        f"03/01/24 10:{seconds * number // 60:02d}:{seconds * number % 60:02d}\n"
        "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n"
        f"          20.00    0.00    10.00    0.01    0.00   69.99\n\n{OLD}"
        f"{old(w=rate, r=10, w_await=SERVICE_MS, merged=rate)}\n"
        for number, rate in enumerate([0, *writes])
    )
    return seen_of(head + "".join(reports))


@given(w=st.floats(1.5, 100), r=st.floats(0, 100), w_await=st.floats(1, 1000))
@settings(max_examples=40, deadline=None)
def test_evidence_is_a_share_and_the_classes_have_all_writes(
    w: float, r: float, w_await: float
) -> None:
    assume(SERVICE_MS * (w + r) < 850)
    seen = seen_of(recorded(old(w=w, r=r, w_await=w_await), kernel=UNTHROTTLED))
    found = told(seen)
    assert found is None or 0 <= found.most <= 1
    load = load_of(seen)
    for classes in (load.classes, load.doubt or load.classes):
        rates = {one.kind: one.rate_per_s for one in classes}
        requests = rates.get(SYNC, 0) * 3 + rates.get(WRITE, 0) + rates.get(DIRECT, 0)
        if set(rates) - {READ}:
            assert requests == pytest.approx(load.writes.rate_per_s, rel=0.01)


def printed(folder: Path, *sets: str) -> Look:
    """Return the look at what iostat prints of the scenario `generic`."""
    options = [part for one in sets for part in ("--set", one)]
    command = ["exec", "generic", *options, "--at", "15s", "--", "iostat", "-t", "-c", "-m", "-x"]
    done = CliRunner().invoke(cli, [*command, "5", "9"], prog_name="iotwin")
    assert done.exit_code == 0, done.stderr
    path = folder / "server.txt"
    path.write_text(done.stdout)
    return look(open_source([str(path)]))


def fitted(drafts: Sequence[Draft], seen: Look, folder: Path, *, simulations: int) -> Twin:
    """Return the twin of the draft that comes nearest."""
    return fit_best(
        drafts,
        seen,
        folder,
        comment="a test\n",
        seed=1,
        simulations=simulations,
        laboratory=Laboratory(measure=columns_of_run),
    )


@pytest.mark.slow
def test_a_server_whose_commits_no_flush_tells_has_a_fair_twin(tmp_path: Path) -> None:
    """45 transactions a second, one in four of which commits; sysstat counts no flushes."""
    seen = printed(tmp_path)
    twin = fitted(draw_drafts(seen, 1), seen, tmp_path, simulations=32)
    assert twin.verdict.is_fair, twin.verdict.text
    [said] = writers_told(twin.draft)
    assert said.startswith("sda's writes are taken for synced: programs wait for a commit (derived")


@pytest.mark.slow
def test_where_nothing_tells_the_nearer_twin_is_taken_and_the_other_named(tmp_path: Path) -> None:
    """The same server on 4.18, which throttles writeback and whose sysstat counts no flushes."""
    modern = ("machine.kernel=4.18", "machine.disk.sda.scheduler=mq-deadline")
    seen = printed(tmp_path, *modern)
    drafts = draw_drafts(seen, 1)
    assert len(drafts) == 2
    twin = fitted(drafts, seen, tmp_path, simulations=24)
    assert SYNC in [one.kind for load in twin.draft.loads for one in load.classes]
    assert "its writes are taken for fsyncs; taken for writes, the twin is further off" in (
        twin.draft.choice
    )
