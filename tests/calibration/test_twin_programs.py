"""Who makes the load: programs that wait, counted, or a stream; which device, which file system."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.dataset import open_source
from calibration.host import host_of
from calibration.look import look
from calibration.look.tasks import CENSUS, Active
from calibration.twin.answers import load_words
from calibration.twin.commits import logs_like_xfs, waits_for_all
from calibration.twin.demands import (
    DIRECT,
    READ,
    SYNC,
    WRITE,
    NothingToTwin,
    busy_devices,
    loads_of,
)
from calibration.twin.draft import BOUNDS, Draft
from calibration.twin.fitting import draw_draft
from calibration.twin.questions import QuestionError, read_question
from calibration.twin.server import Server
from calibration.twin.sheet import Sheet
from sim.scenario.load import load_text
from sim.units import parse_quantity
from tests.calibration.test_twin_draft import NEW, draft_of, new_row, old_row, seen_of, text

SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
GROUND_TRUTH = SHARED / "groundtruth"
REVIEW = SHARED / "reviews/administrator"
needs_ground_truth = pytest.mark.skipif(
    not GROUND_TRUTH.is_dir(), reason=f"no {GROUND_TRUTH}: set IOTWIN_SHARED"
)
needs_review = pytest.mark.skipif(not REVIEW.is_dir(), reason=f"no {REVIEW}: set IOTWIN_SHARED")
# run -> the file system that it was on, and its programs: mailq's processes
WRITERS = {
    "c_mailq/ext3-p8-hdd7200.r1": ("ext3", 8),
    "c_mailq/ext3-p32-hdd7200.r1": ("ext3", 32),
    "c_mailq/ext4-p1-hdd7200.r1": ("ext4", 1),
    "c_mailq/ext4-p8-hdd7200.r1": ("ext4", 8),
    "c_mailq/ext4-p32-hdd7200.r1": ("ext4", 32),
    "c_mailq/xfs-p1-hdd7200.r1": ("xfs", 1),
    "c_mailq/xfs-p8-hdd7200.r1": ("xfs", 8),
    "c_mailq/xfs-p32-hdd7200.r1": ("xfs", 32),
}


def run_of(name: str) -> Draft:
    """Return the draft of a run's texts alone."""
    files = [str(GROUND_TRUTH / name / f"{tool}.txt.gz") for tool in ("iostat", "vmstat", "sar")]
    return draw_draft(look(open_source(files)), 1)


@needs_ground_truth
@pytest.mark.parametrize("name", WRITERS)
def test_writers_who_share_commits_and_their_file_system_are_found_in_texts_alone(
    name: str,
) -> None:
    draft = run_of(name)
    [load] = draft.loads
    [writers] = [one for one in load.classes if one.kind == SYNC]
    kind, programs = WRITERS[name]
    assert draft.server.places["loop0"].type == kind
    assert writers.customers == pytest.approx(programs, abs=1)


@needs_ground_truth
@pytest.mark.parametrize("jobs", [1, 4, 16])
def test_readers_of_a_full_loop_device_are_counted(jobs: int) -> None:
    [load] = run_of(f"a_randread/randread-jobs{jobs}-hdd7200.r1").loads
    [readers] = load.classes
    assert (readers.kind, readers.customers) == (READ, jobs)


def test_a_loop_device_on_a_recorded_disk_has_no_twin_of_its_own() -> None:
    rows = [old_row(name, r=90, w=0, size_kib=16, await_ms=8, util=70) for name in ("loop0", "sda")]
    assert [one.name for one in loads_of(seen_of(text("".join(rows))))] == ["sda"]


def test_a_loop_device_on_nothing_recorded_is_a_device() -> None:
    loop = old_row("loop0", r=90, w=0, size_kib=16, await_ms=8, util=70)
    idle = old_row("vda", r=0, w=1.2, size_kib=4, await_ms=1, util=0.1)
    [load] = [one for one in loads_of(seen_of(text(loop + idle))) if one.reads.rate_per_s > 1]
    assert load.name == "loop0"
    with pytest.raises(NothingToTwin):
        loads_of(seen_of(text(idle.replace("1.20", "0.20"))))


@given(rate=st.floats(30, 300), await_ms=st.floats(0.2, 3), cpu=st.floats(1, 60))
@settings(max_examples=20, deadline=None)
def test_a_stream_is_the_same_load_as_the_programs_that_could_make_it(
    rate: float, await_ms: float, cpu: float
) -> None:
    """Littles law: N = X (R + C + Z), so that the programs make as many requests as were seen."""
    row = old_row("nvme0n1", r=rate, w=0, size_kib=8, await_ms=await_ms, util=20)
    draft = draft_of(text(row, user=cpu, system=1))
    base = load_text(draft.sheet.text("x"), Path("t.toml"))
    plain = {one.path: one.value for one in base.parameters}
    asked = load_text(draft.sheet.text("x"), Path("t.toml"), sets=tuple(draft.left_open.others))
    values = {one.path: one.value for one in asked.parameters}
    prefix = "process.nvme0n1-reads"
    taken_ns = await_ms * 1e6 + plain[f"{prefix}.user"] + plain[f"{prefix}.system"]
    programs = values[f"{prefix}.concurrency"]
    cycle_s = (taken_ns + values[f"{prefix}.think_time"]) / 1e9
    made = programs / cycle_s
    assert values[f"{prefix}.arrivals"] == "closed"
    # A tenth of a program is the error of an estimate of their number.
    assert rate * (programs / (programs + 0.11)) <= made <= rate * 1.02
    assert "the interval holds both" in load_words(draft, 2)


def test_a_journals_own_commits_tell_an_overwritten_log_from_xfs() -> None:
    """By hand: every 5 s a commit that merges one block: 0.2 a second beside 100 writes."""
    assert not logs_like_xfs({"w_per_s": 100.0, "wrqm_per_s": 0.2})
    assert logs_like_xfs({"w_per_s": 100.0, "wrqm_per_s": 0.05})


@pytest.mark.parametrize(("most_asleep", "programs"), [(0, 1), (1, 1), (4, 4)])
def test_there_are_as_many_programs_as_slept_at_once(most_asleep: int, programs: int) -> None:
    """By hand: 20 reads a second of 20 ms are 0.4 programs; four of them pause for 180 ms."""
    row = old_row("sda", r=20, w=0, size_kib=8, await_ms=20, util=30)
    seen = seen_of(text(row, reports=20, user=0.5, system=0.5))
    told = Active(mean=0.44, error=0.02, source=CENSUS, readings=120, most_asleep=most_asleep)
    draft = draw_draft(replace(seen, system=replace(seen.system, tasks=told)), 1)
    values = dict(one.split("=") for one in draft.left_open.others)
    assert values["process.sda-reads.concurrency"] == str(programs)
    pause_ms = parse_quantity(values["process.sda-reads.think_time"], "time_ns") / 1e6
    cpu_ms = 1000 * 0.01 * 4 / 20
    assert pause_ms == pytest.approx(max(0, 1000 * programs / 20 - 20 - cpu_ms), rel=0.1)


def test_twice_the_load_of_a_full_device_is_twice_its_programs() -> None:
    draft = draft_of(text(old_row("sda", r=100, w=0, size_kib=8, await_ms=40, util=99)))
    assert load_words(draft, 2).startswith("Here the load is 4 programs that always wait")
    assert "twice the load is 8, who queue." in load_words(draft, 2)


def test_a_journal_that_merges_is_not_xfs_and_one_whose_flush_meets_nobody_is_ext3() -> None:
    """By hand: 340 writes/s at 100 % are 2.9 ms each; a flush of 0.1 ms met none of them."""
    row = {"w_per_s": 340.0, "wrqm_per_s": 268.0, "util_pct": 100.0, "f_await_ms": 0.1}
    assert not logs_like_xfs(row)
    assert waits_for_all(row, 8)
    assert not waits_for_all(row, 1)
    assert not waits_for_all({**row, "f_await_ms": 5.0}, 8)
    assert logs_like_xfs({"w_per_s": 187.0, "wrqm_per_s": 0.0})
    assert logs_like_xfs({"w_per_s": 1000.0, "wrqm_per_s": 0.9})
    assert not logs_like_xfs({"w_per_s": 187.0})


@given(size=st.floats(1, 1e4), key=st.sampled_from(sorted(BOUNDS)))
def test_a_prior_is_within_what_its_parameter_takes(size: float, key: str) -> None:
    draft = Draft(sheet=Sheet(), loads=[], server=Server())
    draft.prior(f"process.x.{key}", "number", size, 2, 2)
    [prior] = draft.priors
    least, most = BOUNDS[key]
    assert least <= prior.low < prior.high <= most


@needs_review
@pytest.mark.parametrize("name", ["rec1", "rec2", "ux_recA", "ux_recB"])
def test_a_virtual_machines_recording_becomes_a_scenario(name: str) -> None:
    """Of ux_recB a prior began at 348 bytes, below what a write may have."""
    draft = draw_draft(look(open_source([str(REVIEW / name)])), 1)
    base = load_text(draft.sheet.text("x"), Path("twin.toml"))
    bounds = {one.path: one.path.rpartition(".")[2] for one in base.parameters}
    for prior in draft.priors:
        least, most = BOUNDS.get(bounds[prior.path], (0, float("inf")))
        assert least <= prior.low < prior.high <= most, prior.path


@needs_review
def test_snapshots_with_counters_of_flushes_are_of_a_kernel_that_counts_them() -> None:
    draft = draw_draft(look(open_source([str(REVIEW / "diskstats-snap.txt")])), 1)
    kernel = draft.sheet.sections["machine",]["kernel"]
    assert kernel.source.endswith(
        "flushes are counted since Linux 5.5; the newest that is modelled"
    )
    assert not str(kernel.value).startswith("2.6")


def test_an_iostat_of_today_without_a_kernel_is_of_today() -> None:
    row = new_row("sda", w=30, size_kib=8, flushes=3)
    draft = draft_of(text(row, heading=NEW).partition("\n\n")[2])
    source = draft.sheet.sections["machine",]["kernel"].source
    assert "flushes are counted since Linux 5.5" in source


@pytest.mark.parametrize(("mounted", "name"), [("/dev/mapper/vg-srv", "sda"), ("none", "loop0")])
def test_where_its_file_is_mounted_from_says_what_a_loop_device_lies_on(
    mounted: str, name: str
) -> None:
    host = host_of(
        {
            "/proc/mounts": f"/dev/sda1 / ext4 rw 0 0\n{mounted} /srv ext4 rw 0 0\n",
            "/sys/block/loop0/size": "41943040\n",
            "/sys/block/loop0/loop/backing_file": "/srv/disk.img\n",
        }
    )
    rows = [old_row(one, r=90, w=0, size_kib=16, await_ms=8, util=70) for one in ("loop0", "sda")]
    seen = seen_of(text("".join(rows)))
    busy = [one.name for one in busy_devices(seen.devices, host)]
    assert (name in busy, "loop0" in busy) == (True, name == "loop0")


def test_a_disk_that_flushes_less_than_a_loop_device_does_not_carry_it() -> None:
    """Each flush of a loop device is an fsync of its file: 100 of them are no 20."""
    rows = {
        flushes: new_row("loop0", w=300, size_kib=8, flushes=100)
        + new_row("sda", w=400, size_kib=8, flushes=flushes)
        for flushes in (20, 120)
    }
    for flushes, found in rows.items():
        loads = loads_of(seen_of(text(found, heading=NEW, kernel="6.1.0")))
        assert ("loop0" in [one.name for one in loads]) == (flushes == 20)


@pytest.mark.parametrize(
    ("size_kib", "util", "kind"),
    [
        (8, 40, DIRECT),  # S = 1 ms: each write comes alone
        (8, 5, WRITE),  # S = 0.125 ms: 15 come together
        (256, 40, WRITE),  # large: a flusher's, or a copy's
    ],
)
def test_writes_that_come_by_themselves_went_past_the_page_cache(
    size_kib: float, util: float, kind: str
) -> None:
    """400 writes/s of 1 ms, none merged: a flusher would let 2000 come every 5 s."""
    row = new_row("sda", w=400, size_kib=size_kib, flushes=0.1, util=util)
    [load] = loads_of(seen_of(text(row, heading=NEW, kernel="6.1.0", reports=20)))
    assert [one.kind for one in load.classes] == [kind]


def test_a_journal_that_is_idle_has_no_hundreds_of_fsyncs_however_busy_the_disk() -> None:
    """0.42 flushes/s are 0.21 commits/s of 3 ms: 0.2 fsyncs, and 400 writes beside them."""
    row = new_row("sda", w=400, size_kib=8, flushes=0.42, util=57)
    [load] = loads_of(seen_of(text(row, heading=NEW, kernel="6.1.0", reports=20)))
    rates = {one.kind: one.rate_per_s for one in load.classes}
    assert rates.get(SYNC, 0.0) == pytest.approx(0.21, abs=0.02)
    assert rates[DIRECT] == pytest.approx(399, abs=1)


@pytest.mark.parametrize(
    ("queue_ms", "told"),
    [(10, "one program that always has one request"), (60, "of 6 programs .* load=0.167")],
)
def test_less_than_one_program_is_refused_with_the_least_part(queue_ms: float, told: str) -> None:
    draft = draft_of(text(old_row("sda", r=100, w=0, size_kib=8, await_ms=queue_ms, util=99)))
    with pytest.raises(QuestionError, match=told):
        read_question("load=0.1", draft)


@pytest.mark.parametrize(
    ("kernel", "queue", "closed"),
    [("6.1.0", 0.97, False), ("6.12.0", 0.97, True), ("6.1.0", 4.0, True), ("4.18.0", 0.97, True)],
)
def test_whole_jiffies_make_no_full_device_of_a_stream(
    kernel: str, queue: float, closed: bool
) -> None:
    """One request in flight on average: a stream leaves the device idle for 38 % of the time."""
    row = old_row("nvme0n1", r=925, w=0, size_kib=8, await_ms=1000 * queue / 925, util=91)
    [load] = loads_of(seen_of(text(row, kernel=kernel)))
    assert load.is_closed == closed
