"""The draft of a twin: estimates that obey the laws, and a scenario that can be read."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.dataset import Source
from calibration.host import host_of
from calibration.look import Look, look
from calibration.readers import read_text
from calibration.twin.answers import load_words
from calibration.twin.columns import recorded_columns
from calibration.twin.commits import SINGLE_FLUSH
from calibration.twin.demands import READ, SYNC, WRITE, Class, NothingToTwin, loads_of
from calibration.twin.draft import Draft
from calibration.twin.fitting import draw_draft
from calibration.twin.page_costs import put_costs
from calibration.twin.server import nearest_kernel
from calibration.twin.sheet import Sheet, dotted
from calibration.twin.what_ifs import every_name, what_ifs_of
from sim.machine import simulate
from sim.scenario.load import load_text
from sim.units import parse_quantity
from tests.calibration.texts import iostat_row, samples_of_tasks, task

HEAD = "Linux {kernel} (web1) \t03/01/24 \t_x86_64_\t(4 CPU)\n\n"
CPU = """avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          {user:5.2f}    {nice:.2f}    {system:.2f}    {iowait:.2f}    0.00   {idle:.2f}

"""
OLD = (
    "Device:  rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await w_await"
    " svctm %util\n"
)
NEW = (
    "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz"
    " d/s dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util\n"
)
HOST = {
    "/proc/mounts": "/dev/mapper/vg-data /data xfs rw 0 0\n/dev/sda1 / ext4 rw 0 0\n",
    "/sys/block/sda/size": "41943040\n",
    "/sys/block/sda/queue/rotational": "0\n",
    "/sys/block/sda/queue/scheduler": "mq-deadline [kyber] none\n",
    "/sys/block/sda/slaves": "",
}


def old_row(name: str, *, r: float, w: float, size_kib: float, await_ms: float, util: float) -> str:
    """Return a row of sysstat 10, which shows no flushes."""
    queue = (r + w) * await_ms / 1000
    svctm = 10 * util / (r + w) if r + w else 0
    return (
        f"{name} 0.00 0.00 {r:.2f} {w:.2f} {r * size_kib:.2f} {w * size_kib:.2f}"
        f" {2 * size_kib:.2f} {queue:.2f} {await_ms:.2f} {await_ms:.2f} {await_ms:.2f}"
        f" {svctm:.2f} {util:.2f}\n"
    )


def new_row(name: str, *, w: float, size_kib: float, flushes: float, util: float = 5) -> str:
    """Return a row of sysstat 12 of a device that is written to."""
    return iostat_row(name, w=w, w_await=1, f=flushes, f_await=0.5, util=util, kib=size_kib)


def text(
    row: str,
    *,
    heading: str = OLD,
    reports: int = 4,
    kernel: str = "3.10.0",
    user: float = 20,
    nice: float = 0,
    system: float = 10,
    iowait: float = 5,
) -> str:
    """Return what iostat printed; the first report is since boot."""
    idle = 100 - user - nice - system - iowait
    cpu = CPU.format(user=user, nice=nice, system=system, iowait=iowait, idle=idle)
    return HEAD.format(kernel=kernel) + (cpu + heading + row + "\n") * reports


def seen_of(recorded: str, host: dict[str, str] | None = None) -> Look:
    """Return the look at a text."""
    recording = read_text(recorded, "iostat.txt")
    about = host_of(host) if host is not None else None
    return look(Source(name="web1", recordings=(recording,), host=about))


def draft_of(recorded: str, host: dict[str, str] | None = None) -> Draft:
    """Return the draft of a text."""
    return draw_draft(seen_of(recorded, host), 1)


def one_class(recorded: str) -> Class:
    """Return the only class of the only device."""
    [load] = loads_of(seen_of(recorded))
    [only] = load.classes
    return only


def notes_of(draft: Draft) -> str:
    return "\n".join(draft.notes)


@pytest.mark.parametrize(
    ("device", "reads_per_s", "gains"), [("vda", 80, True), ("vda", 900, False), ("sda", 80, False)]
)
def test_what_a_slow_virtual_disk_lies_on_may_choose_among_those_who_wait(
    device: str, reads_per_s: float, *, gains: bool
) -> None:
    """A disk of the machine's own has an arm in the model; a fast one has none."""
    await_ms = 950 / reads_per_s
    printed = old_row(device, r=reads_per_s, w=0, size_kib=4, await_ms=await_ms, util=95)
    draft = draft_of(text(printed))
    priors = {one.path: (one.low, one.high) for one in draft.priors}
    found = priors.get(f"machine.disk.{device}.queue_gain")
    assert found == ((0.0, 0.4) if gains else None)


@given(rate=st.floats(5, 5000), size_kib=st.integers(1, 64), await_ms=st.floats(0.1, 2))
@settings(max_examples=30, deadline=None)
def test_reads_are_a_class_of_the_recorded_rate_and_size(
    rate: float, size_kib: int, await_ms: float
) -> None:
    found = one_class(
        text(old_row("sda", r=rate, w=0, size_kib=size_kib, await_ms=await_ms, util=40))
    )
    assert found.kind == READ
    assert found.rate_per_s == pytest.approx(rate, abs=0.01)
    assert found.size_bytes == pytest.approx(size_kib * 1024, rel=0.02, abs=512)
    assert found.customers is None


@given(rate=st.floats(20, 2000), customers=st.integers(2, 60))
@settings(max_examples=30, deadline=None)
def test_a_full_device_has_customers_as_littles_law_says(rate: float, customers: int) -> None:
    await_ms = 1000 * customers / rate
    found = one_class(text(old_row("sda", r=rate, w=0, size_kib=8, await_ms=await_ms, util=99)))
    assert found.customers == pytest.approx(customers, abs=0.6)


@given(rate=st.floats(1, 300), size_kib=st.floats(4, 100))
@settings(max_examples=30, deadline=None)
def test_two_flushes_are_an_fsync_and_its_bytes_are_what_the_journal_leaves(
    rate: float, size_kib: float
) -> None:
    journal_kib = 12.0
    row = new_row("sda", w=3 * rate, size_kib=(size_kib + journal_kib) / 3, flushes=2 * rate)
    found = one_class(text(row, heading=NEW, kernel="5.15.0"))
    assert found.kind == SYNC
    assert found.rate_per_s == pytest.approx(rate, rel=0.02)
    assert found.size_bytes == pytest.approx(size_kib * 1024, rel=0.05, abs=1000)


def test_without_flushes_the_writes_are_left_to_writeback() -> None:
    """Busy for 0.2 ms with each, which takes 1 ms: nine come together."""
    row = new_row("sda", w=50, size_kib=16, flushes=0, util=1)
    assert one_class(text(row, heading=NEW, kernel="5.15.0")).kind == WRITE


def burst_row(*, n: int, bursts: float, size_kib: int, service_ms: float) -> str:
    """Return a row of a device to which n writes come together so many times a second."""
    w, await_ms = n * bursts, (n + 1) * service_ms / 2
    return (
        f"sda 0.00 0.00 0.00 0.00 0.00 0.00 {w:.2f} {w * size_kib:.2f} 0.00 0.00 {await_ms:.2f}"
        f" {size_kib:.2f} 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 {w * await_ms / 1000:.2f}"
        f" {w * service_ms / 10:.2f}\n"
    )


@given(n=st.integers(5, 60), bursts=st.floats(0.3, 2), service_ms=st.floats(0.5, 2))
@settings(max_examples=20, deadline=None)
def test_large_writes_that_wait_for_each_other_on_an_idle_device_come_together(
    n: int, bursts: float, service_ms: float
) -> None:
    row = burst_row(n=n, bursts=bursts, size_kib=1024, service_ms=service_ms)
    found = one_class(text(row, heading=NEW, kernel="6.1.0"))
    assert (found.kind, found.customers) == (WRITE, None)
    assert found.at_once == pytest.approx(min(n, 5 * n * bursts), rel=0.1)
    assert found.rate_per_s * found.at_once == pytest.approx(n * bursts, rel=0.01)


def test_what_comes_together_is_written_back_at_once_and_short_requests_lie_apart() -> None:
    row = burst_row(n=20, bursts=1, size_kib=512, service_ms=1)
    host = HOST | {"/sys/block/sda/queue/max_sectors_kb": "4096\n"}
    sections = draft_of(text(row, heading=NEW, kernel="6.1.0"), host).sheet.sections
    writes = sections["process", "sda-writes"]
    assert (writes["writes"].value, writes["writeback"].value) == (20, 1)
    assert writes["write_pattern"].value == "random"
    whole = burst_row(n=20, bursts=1, size_kib=4096, service_ms=1)
    sections = draft_of(text(whole, heading=NEW, kernel="6.1.0"), host).sheet.sections
    # 80 MB/s, appended for minutes, would fill the disk of 20 GiB.
    assert sections["process", "sda-writes"]["write_pattern"].value == "sequential"


@pytest.mark.parametrize(("reads", "size_kib"), [(0, 512), (300, 171)])
def test_how_many_requests_of_a_burst_are_served_at_a_time_is_fitted_where_no_arm_is(
    reads: int, size_kib: int
) -> None:
    """By hand: 600 reads/s of 2 ms at 6 % util, half of it theirs: 20 come together, or more."""
    w, util = 200, 6
    row = (
        f"vda {2 * reads:.2f} {2 * reads * 8:.2f} 0.00 0.00 2.00 8.00 {w:.2f} {w * size_kib:.2f}"
        f" 0.00 0.00 6.00 {size_kib:.2f} 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00"
        f" {(2 * reads * 2 + w * 6) / 1000:.2f} {util:.2f}\n"
    )
    draft = draft_of(text(row, heading=NEW, kernel="6.18.0"))
    [load] = draft.loads
    assert load.has_bursts
    fitted = {one.path: one for one in draft.priors}
    servers = fitted.get("machine.disk.vda.servers")
    if not reads:  # Large writes alone may be those of a disk in sequence.
        assert load.device.guess == "unknown" and servers is None
        return
    assert servers is not None and (servers.low, servers.high) == (1, 16)
    together = draft.sheet.sections["process", "vda-reads"]["together"].value
    assert isinstance(together, float) and together > 20
    groups = load.reads.rate_per_s / together
    assert draft.measured_s == round(min(600 / groups, 25_000 / (2 * reads + w)))


@pytest.mark.parametrize(("kernel", "is_new"), [("4.19.0", False), ("5.15.0", True)])
def test_pages_cost_what_they_do_on_cpus_of_the_kernels_time(kernel: str, is_new: bool) -> None:
    row = burst_row(n=20, bursts=1, size_kib=4096, service_ms=1)
    sections = draft_of(text(row, heading=NEW, kernel=kernel)).sheet.sections
    assert ("page_copy" in sections.get(("machine", "vfs"), {})) == is_new


@pytest.mark.parametrize("kernel", ["4.19.0", "5.15.0"])
def test_what_was_measured_on_the_host_is_what_its_twin_pays(kernel: str) -> None:
    row = burst_row(n=20, bursts=1, size_kib=4096, service_ms=1)
    costs = {"syscall_ns": 72.4, "page_copy_cold_ns": 610.0, "fork_child_ns": 140_000.0}
    sheet = Sheet()
    put_costs(sheet, kernel, {"/": "ext4"}, costs, bulk=False)
    assert sheet.sections["machine", "vfs"]["page_copy"].value == "610 ns"
    assert sheet.sections["machine", "syscall"]["entry"].value == "72 ns"
    assert sheet.sections["machine", "syscall"]["fork_child"].value == "100 us"
    source = sheet.sections["machine", "vfs"]["page_copy"].source
    assert source == "recording: measured on the host: costs.txt, page_copy_cold_ns"
    seen = seen_of(text(row, heading=NEW, kernel=kernel), HOST)
    assert seen.source.host is not None
    own = replace(seen, source=replace(seen.source, host=replace(seen.source.host, costs=costs)))
    draft = draw_draft(own, 1)
    read = load_text(draft.sheet.text(""), Path("web1.twin.toml"))
    assert read.server.core["vfs"].page_copy_ns == 610
    assert read.omissions == ()


def test_single_writes_are_left_to_the_flusher() -> None:
    row = burst_row(n=1, bursts=20, size_kib=1024, service_ms=2)
    assert one_class(text(row, heading=NEW, kernel="6.1.0")).at_once == 1


@pytest.mark.parametrize(("iowait", "kind"), [(10.0, SYNC), (0.5, WRITE)])
def test_where_flushes_are_not_recorded_iowait_tells_and_it_is_said(
    iowait: float, kind: str
) -> None:
    row = old_row("sda", r=0, w=100, size_kib=8, await_ms=40, util=40)
    found = one_class(text(row, iowait=iowait))
    assert found.kind == kind
    assert found.reason.startswith("assumed: flushes are not recorded")


@pytest.mark.parametrize("kernel", ["2.6.18", "6.8.0"])
@pytest.mark.parametrize("name", ["vda", "nvme0n1", "xvdf", "sdb", "mmcblk0", "cciss/c0d0"])
def test_a_device_of_any_name_becomes_a_scenario_with_all_its_what_ifs(
    name: str, kernel: str
) -> None:
    row = old_row(name, r=90, w=30, size_kib=16, await_ms=1.2, util=11)
    draft = draft_of(text(row, kernel=kernel))
    draft.sheet.what_ifs += what_ifs_of(draft)
    text_of = draft.sheet.text("a test")
    base = load_text(text_of, Path("twin.toml"))
    assert list(base.server.all("disk")) == [name]
    names = [one.name for one in base.what_ifs]
    assert {"ssd", "double_load", "half_load", "double_cpus"} <= set(names) <= set(every_name())
    assert draft.memory_unknown.startswith("not known from this recording: how many of the 90")
    assert not {"double_memory", "half_memory"} & set(names)
    for what_if in names:
        other = load_text(text_of, Path("twin.toml"), what_if=what_if)
        assert (other.server, other.processes) != (base.server, base.processes), what_if


def test_every_parameter_of_a_draft_has_a_source_that_says_what_it_is() -> None:
    draft = draft_of(text(old_row("sda", r=90, w=30, size_kib=16, await_ms=1.2, util=11)))
    scenario = load_text(draft.sheet.text("a test"), Path("twin.toml"))
    paths = {one.path for one in scenario.parameters}
    assert {prior.path for prior in draft.priors} <= paths


@pytest.mark.parametrize(
    ("util", "reads_per_s", "measured_s"),
    [
        (4, 400, 25),  # a second of 4 % in 25 s
        (0.4, 4, 60),  # no longer than a minute
        (4, 5000, 6),  # nor with more requests than a fit's bursts have: the fit's own length
        (90, 90, 28),
    ],
)
def test_a_device_is_busy_for_a_second_in_the_runs_of_an_answer(
    util: float, reads_per_s: float, measured_s: float
) -> None:
    await_ms = 10 * util / reads_per_s
    row = old_row("vda", r=reads_per_s, w=0, size_kib=8, await_ms=await_ms, util=util)
    draft = draft_of(text(row))
    duration = f"run.duration={draft.settle_s + measured_s} s"
    assert draft.asked_run == (duration, "measure.interval=100 ms")


@pytest.mark.parametrize(("await_ms", "counts"), [(0.1, True), (2.8, True), (3.0, False)])
def test_what_serves_a_device_may_forget_if_that_counts(await_ms: float, counts: bool) -> None:
    """By hand: to leave C6 of Sapphire Rapids takes 0.29 ms, a tenth of 2.9 ms."""
    row = old_row("vda", r=90, w=0, size_kib=8, await_ms=await_ms, util=9 * await_ms)
    priors = {one.path.rpartition(".")[2]: one for one in draft_of(text(row)).priors}
    assert ("refill" in priors) == ("cache_life" in priors) == counts
    if counts:
        assert (priors["refill"].low, priors["refill"].high) == (0, 290_000)
        assert (priors["cache_life"].low, priors["cache_life"].high) == (350_000, 11_000_000)


@pytest.mark.parametrize(
    ("await_ms", "profile"), [(5.6, "sas-15k"), (7.6, "sas-10k"), (12.8, "sata-7200")]
)
def test_a_disk_with_an_arm_gets_the_profile_of_its_speed(await_ms: float, profile: str) -> None:
    row = old_row("sda", r=50, w=0, size_kib=8, await_ms=await_ms, util=5 * await_ms)
    scenario = load_text(draft_of(text(row)).sheet.text(""), Path("twin.toml"))
    assert scenario.server.all("disk")["sda"].profile == profile


def test_what_was_not_recorded_is_told() -> None:
    notes = notes_of(draft_of(text(old_row("sda", r=90, w=0, size_kib=8, await_ms=1, util=9))))
    for what in (
        "memory: not recorded",
        "mounts not recorded",
        "size not recorded",
        "elevator and queue not recorded",
    ):
        assert what in notes


def test_what_the_host_says_is_used_and_what_is_replaced_is_told() -> None:
    row = old_row("sda", r=90, w=30, size_kib=8, await_ms=1, util=12)
    host = {
        path: said.replace(" ext4 ", " jfs ").replace("kyber", "adios")
        for path, said in HOST.items()
    }
    draft = draft_of(text(row, kernel="6.1.0-13-amd64"), host)
    assert draft.server.kernel == "6.1.0-13-amd64"
    assert draft.server.places["sda"].path == "/"
    assert "jfs is not modelled; ext4 instead" in notes_of(draft)
    assert "elevator adios is not modelled" in notes_of(draft)
    assert draft.server.substituted == {"sda"}


def test_the_load_of_a_disk_goes_through_the_volume_that_has_most_of_it() -> None:
    host = HOST | {
        "/sys/block/dm-0/dm/name": "vg-data\n",
        "/sys/block/dm-0/slaves": "sda2\n",
        "/sys/block/dm-0/size": "20971520\n",
    }
    rows = old_row("sda", r=90, w=30, size_kib=8, await_ms=1, util=12) + old_row(
        "dm-0", r=80, w=30, size_kib=8, await_ms=1.1, util=12
    )
    draft = draft_of(text(rows), host)
    scenario = load_text(draft.sheet.text(""), Path("twin.toml"))
    assert scenario.server.all("mount")["/data"].device == "dm-0"
    assert scenario.server.all("volume")["dm-0"].on == "sda"


@pytest.mark.parametrize(
    ("said", "nearest"),
    [
        ("6.18.44-fc-v669", "6.18.44-fc-v669"),
        ("5.4.0+", "5.4.0"),
        ("2.4.21-4.EL", "2.6.0"),
        ("99.1", "7.2"),
        ("unknown", "7.2"),
    ],
)
def test_the_nearest_kernel_is_taken(said: str, nearest: str) -> None:
    assert nearest_kernel(said) == nearest


def test_iostat_with_svctm_and_without_a_kernel_is_of_its_time() -> None:
    plain = text(old_row("sda", r=90, w=0, size_kib=8, await_ms=1, util=9)).partition("\n\n")[2]
    draft = draft_of(plain)
    assert draft.server.kernel == "2.6.32"
    assert "kernel: not recorded" in notes_of(draft)


def test_tps_alone_is_shared_by_bytes_and_has_no_response_time() -> None:
    heading = "Device:            tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn\n"
    draft = draft_of(text("sda 100.00 600.00 200.00 3000 1000\n", heading=heading))
    reads, writes = draft.loads[0].reads, draft.loads[0].writes
    assert (reads.rate_per_s, writes.rate_per_s) == (75, 25)
    seen = seen_of(text("sda 100.00 600.00 200.00 3000 1000\n", heading=heading))
    columns = recorded_columns(seen, draft.loads, draft.server)
    assert not [one for one in columns if "await" in one.name or "util" in one.name]


def test_niced_time_is_a_class_in_the_background() -> None:
    row = old_row("sda", r=90, w=0, size_kib=8, await_ms=1, util=9)
    sections = draft_of(text(row, nice=40)).sheet.sections
    niced = sections["process", "niced"]
    assert (niced["nice"].value, niced["counted"].value) == (19, False)
    assert ("process", "niced") not in draft_of(text(row)).sheet.sections


def test_full_cpus_are_a_closed_class() -> None:
    row = old_row("sda", r=90, w=0, size_kib=8, await_ms=1, util=9)
    draft = draft_of(text(row, user=80, system=19, iowait=0.5))
    computing = draft.sheet.sections["process", "computing"]
    assert computing["arrivals"].value == "closed"
    assert "CPU: full" in notes_of(draft)
    assert (computing["user"].value, computing["system"].value) == ("8.080808 ms", "1.919192 ms")


@pytest.mark.parametrize("kind", ["ext3", "ext4", "xfs"])
def test_a_file_system_that_is_modelled_is_taken_and_the_others_are_asked(kind: str) -> None:
    row = old_row("sda", r=90, w=30, size_kib=8, await_ms=1, util=12)
    host = {path: said.replace(" ext4 ", f" {kind} ") for path, said in HOST.items()}
    draft = draft_of(text(row, kernel="6.1.0-13-amd64"), host)
    mounted = draft.sheet.sections["machine", "mount", "/"]["type"]
    assert (mounted.value, mounted.source) == (kind, "recording: /proc/mounts")
    assert draft.server.substituted == set()
    names = {one.name for one in what_ifs_of(draft)}
    assert names <= set(every_name())
    assert names & {"ext3", "ext4", "xfs", "tmpfs"} == {"ext3", "ext4", "xfs", "tmpfs"} - {kind}
    assert ("data_writeback" in names) == (kind != "xfs")


def test_a_disk_whose_flushes_take_long_has_a_cache() -> None:
    row = iostat_row("sda", w=60, w_await=4, f=30, f_await=9, util=60, kib=15)
    draft = draft_of(text(row, heading=NEW, kernel="5.15.0"))
    assert draft.sheet.sections["machine", "disk", "sda"]["write_cache"].value is True
    columns = recorded_columns(seen_of(text(row, heading=NEW)), draft.loads, draft.server)
    assert "sda f_per_s" in {one.metric for one in columns}


def test_a_disk_whose_flushes_take_nothing_has_none_and_is_not_held_to_its_flushes() -> None:
    row = iostat_row("sda", w=60, w_await=9, f=30, f_await=0.1, util=60, kib=15)
    draft = draft_of(text(row, heading=NEW, kernel="5.15.0"))
    assert draft.sheet.sections["machine", "disk", "sda"]["write_cache"].value is False
    assert "a flush takes 0.1 ms, a write 9 ms" in draft.server.left_out["sda f_per_s"]
    columns = recorded_columns(seen_of(text(row, heading=NEW)), draft.loads, draft.server)
    assert "sda f_per_s" not in {one.metric for one in columns}


@given(commits=st.floats(5, 60), writers=st.integers(2, 16))
@settings(max_examples=20, deadline=None)
def test_writers_that_share_commits_are_counted_by_what_commits_do_not_write(
    commits: float, writers: int
) -> None:
    writes = (writers + 2) * commits
    row = iostat_row(
        "sda", w=writes, w_await=500 / commits, f=2 * commits, f_await=900, util=99, kib=15
    )
    found = one_class(text(row, heading=NEW, kernel="5.15.0"))
    assert found.rate_per_s == pytest.approx(writers * commits, rel=0.02)
    assert (found.customers or 0) >= writers


def test_one_flush_for_three_writes_and_no_queue_is_a_single_fsync() -> None:
    row = iostat_row("sda", w=103, w_await=0.4, f=34.5, f_await=1, util=10, kib=15)
    draft = draft_of(text(row, heading=NEW, kernel="6.18.0"))
    [only] = draft.loads[0].classes
    assert (only.rate_per_s, only.promise) == (pytest.approx(34.5), SINGLE_FLUSH)
    assert "no journal, or FUA" in draft.server.left_out["sda f_per_s"]


def test_few_reads_of_a_full_disk_are_no_customer_of_their_own() -> None:
    row = (
        "sda 2.80 11.20 0.00 0.00 10.00 4.00 194.00 3100.00 0.00 0.00 5.00 16.00"
        " 0.00 0.00 0.00 0.00 0.00 0.00 129.00 0.10 1.01 99.00\n"
    )
    reads, writes = loads_of(seen_of(text(row, heading=NEW)))[0].classes
    assert (reads.kind, reads.customers, writes.customers) == (READ, None, 1)


def test_what_is_read_may_be_all_of_the_disk() -> None:
    row = old_row("sda", r=72, w=0, size_kib=4, await_ms=13.4, util=97)
    [prior] = [one for one in draft_of(text(row)).priors if one.path.endswith("working_set")]
    assert prior.high > 0.85 * 500e9
    assert prior.low <= 2**30


def test_a_small_disk_holds_what_is_read_and_written() -> None:
    host = HOST | {"/sys/block/sda/size": str(4 * 2**30 // 512)}
    row = old_row("sda", r=90, w=30, size_kib=8, await_ms=1, util=12)
    draft = draft_of(text(row, kernel="6.1.0"), host)
    sheet = draft.sheet.text("")
    sheet = sheet.replace('duration = "75 s"', 'duration = "1 s"')
    sheet = sheet.replace('interval = "5 s"', 'interval = "1 s"')
    simulated = load_text(sheet, Path("t.toml"))
    assert simulate(simulated, 1).samples


def test_tmpfs_can_be_asked_of_a_twin_that_reads_and_writes() -> None:
    row = old_row("sda", r=900, w=300, size_kib=8, await_ms=1, util=12)
    draft = draft_of(text(row, kernel="6.1.0-13-amd64"), HOST)
    draft.sheet.what_ifs += what_ifs_of(draft)
    at_once = tuple(f"process.{name}.start=0 s" for name in draft.streams)
    asked = load_text(
        draft.sheet.text(""), Path("t.toml"), what_if="tmpfs", sets=("run.duration=5 s", *at_once)
    )
    done = simulate(asked, 1)
    assert sum(one.name == "transaction_ns" for one in done.records) > 4500


def test_half_the_load_and_half_the_service_time_are_multiples() -> None:
    """So that they are half of what each member of an ensemble has."""
    row = old_row("sda", r=90, w=30, size_kib=16, await_ms=1.2, util=11)
    asked = {one.name: one.values for one in what_ifs_of(draft_of(text(row)))}
    assert {key.split(".")[-1] for key in asked["half_load"]} == {"load_scale"}
    assert asked["device_twice_as_fast"] == {"machine.disk.sda.service_scale": 0.5}


def test_an_idle_recording_is_refused_with_what_it_has() -> None:
    row = old_row("sda", r=0.1, w=0.2, size_kib=8, await_ms=1, util=0.1)
    with pytest.raises(NothingToTwin, match=r"no busy device: sda 0.3 requests/s; record while"):
        draft_of(text(row))


def test_a_single_interval_is_refused() -> None:
    row = old_row("sda", r=90, w=0, size_kib=8, await_ms=1, util=9)
    with pytest.raises(NothingToTwin, match="1 interval of figures: a twin needs two or more"):
        draft_of(text(row, reports=2))


def test_no_more_than_three_devices_are_twinned_the_busiest() -> None:
    rows = "".join(
        old_row(f"sd{letter}", r=90, w=0, size_kib=8, await_ms=1, util=util)
        for letter, util in zip("abcde", (9, 60, 30, 10, 50), strict=True)
    )
    assert [load.name for load in loads_of(seen_of(text(rows)))] == ["sdb", "sde", "sdc"]


names = st.from_regex(r"[ -!#-\[\]-~]{1,12}", fullmatch=True)  # a key with " or \ is no name here
values = st.one_of(st.integers(-(2**40), 2**40), st.booleans(), names, st.floats(-1e12, 1e12))


@given(rows=st.dictionaries(names, st.tuples(values, st.one_of(st.just(""), names))), section=names)
def test_a_sheet_reads_back_as_it_was_filled_in(
    rows: dict[str, tuple[str | int | float | bool, str]], section: str
) -> None:
    sheet = Sheet()
    for key, (value, source) in rows.items():
        sheet.put_path(dotted("machine", section, key), value, source)
    found = tomllib.loads(sheet.text("of two\nlines"))
    told = found.get("machine", {}).get(section, {})
    assert set(told) == set(rows)
    for key, (value, source) in rows.items():
        assert told[key] == ({"value": value, "source": source} if source else value)


def full_disk(reads_per_s: list[float]) -> str:
    """Return a text of a full disk: 190 writes/s of one writer, and so many reads/s of 125 ms."""
    rows = [
        f"sda {r:.2f} {4 * r:.2f} 0.00 0.00 125.00 4.00 190.00 3040.00 0.00 0.00 5.00 16.00"
        f" 0.00 0.00 0.00 0.00 0.00 0.00 120.00 0.10 {0.95 + r / 8:.2f} 98.00\n"
        for r in reads_per_s
    ]
    cpu = CPU.format(user=5, nice=0, system=5, iowait=45, idle=45)
    return HEAD.format(kernel="6.1.0") + "".join(cpu + NEW + row + "\n" for row in rows)


@pytest.mark.parametrize(
    ("reads_per_s", "customers"),
    [([0, 34, 0, 0, 0, 0, 0], None), ([0, 0, 0, 9, 9, 9, 9], 1), ([0, 24, 24, 24, 24], 3)],
)
def test_who_reads_a_full_disk_now_and_then_is_no_customer_who_waits_for_it(
    reads_per_s: list[float], customers: int | None
) -> None:
    [load] = loads_of(seen_of(full_disk(reads_per_s)))
    by_kind = {one.kind: one.customers for one in load.classes}
    assert by_kind == {READ: customers, SYNC: 1}


def test_only_writes_into_the_page_cache_run_through_the_whole_warm_up() -> None:
    """Dirty pages expire after 30 s; readers need five seconds to fill their queue."""
    row = old_row("sda", r=900, w=20, size_kib=512, await_ms=40, util=12)
    draft = draft_of(text(row, kernel="6.1.0-13-amd64", iowait=0.5), HOST)
    sections = draft.sheet.sections
    assert draft.settle_s == 40
    assert sections["process", "sda-reads"]["start"].value == "35 s"
    assert "start" not in sections["process", "sda-writes"]


@pytest.mark.parametrize(
    ("device", "flushes", "w_await", "turns"),
    [
        ("vda", 26, 6.5, True),
        ("vda", 0, 6.5, False),  # nobody syncs
        ("vda", 26, 0.2, False),  # its cache answers
        ("sda", 26, 6.5, False),  # a disk of the machine's own has a whole arm in the model
    ],
)
def test_an_arm_behind_a_virtual_disk_turns_if_syncs_may_go_on_where_the_last_one_ended(
    device: str, flushes: float, w_await: float, *, turns: bool
) -> None:
    row = iostat_row("sda", w=40, w_await=w_await, f=flushes, f_await=0.5, util=24, kib=15)
    draft = draft_of(text(row.replace("sda", device), heading=NEW, kernel="5.15.0"))
    priors = {one.path: (one.low, one.high) for one in draft.priors}
    found = priors.get(f"machine.disk.{device}.turn")
    assert found == ((60e9 / 15_000, pytest.approx(60e9 / 5400)) if turns else None)


def log_text(util: float = 16, w_await: float = 4) -> str:
    """Return iostat's text of a log on ext4: 24 fdatasyncs a second, and a commit every 5 s."""
    row = iostat_row("sda", w=48, w_await=w_await, f=24, f_await=0.3, util=util, kib=15)
    merging = row.replace("720.00 0.00", "192.00 0.20").replace(" 15.00 ", " 4.00 ")
    return text(merging.replace("sda", "vda"), heading=NEW, kernel="5.15.0")


def overwritten() -> Draft:
    """Return the draft of a log of which nobody knows whose it is."""
    return draft_of(log_text())


def with_writer(recorded: str, command: str, flags: int = 0, seen: int = 4) -> Draft:
    """Return a draft if a recorder saw that command asleep at so many of eight samples."""
    samples = samples_of_tasks(*[task(command, flags=flags)] * seen, *[""] * (8 - seen))
    recordings = (read_text(recorded, "iostat.txt"), read_text(samples, "proc.txt"))
    return draw_draft(look(Source(name="web1", recordings=recordings)), 1)


def test_a_log_may_be_one_or_one_of_each_program_at_every_load() -> None:
    draft = overwritten()
    assert draft.left_open.logs == ["vda-fsyncs"]
    path = "process.vda-fsyncs.write_files"
    assert {(one.low, one.high) for one in draft.priors if one.path == path} == {(1, 8)}
    programs = dict(one.split("=") for one in draft.left_open.others)
    # At eight times the load each program has one, too.
    assert programs[path] == str(8 * int(programs["process.vda-fsyncs.concurrency"]))
    half, twice = (load_words(draft, times) for times in (0.5, 2))
    assert "or half as many programs run, each with a log of its own" in half
    assert "or twice as many programs wait for theirs" in twice


def test_a_database_server_has_one_log_for_all_its_clients() -> None:
    """Who is seen asleep tells whose log it is; a program of no name that is known does not."""
    draft = with_writer(log_text(), "postgres")
    process = draft.sheet.sections["process", "vda-fsyncs"]
    assert (process["write_files"].value, process["group_commit"].value) == (1, True)
    assert not any("write_files" in one.path for one in draft.priors)
    assert not any("write_files" in one for one in draft.left_open.others)
    assert (draft.left_open.logs, draft.left_open.one_log) == ([], [])
    said = "vda: most tasks seen in D are postgres's, which is taken for one log that all clients"
    assert said in notes_of(draft)
    tmpfs = next(one.values for one in what_ifs_of(draft) if one.name == "tmpfs")
    assert tmpfs["process.vda-fsyncs.write_area"] == "16 MiB"
    assert with_writer(log_text(), "python").left_open.logs == ["vda-fsyncs"]
    assert with_writer(log_text(), "postgres", seen=3).left_open.logs == ["vda-fsyncs"]
    # A kernel's thread of such a name is no server.
    assert with_writer(log_text(), "postgres", 0x00200000).left_open.logs == ["vda-fsyncs"]


def test_who_sleeps_for_another_disk_is_not_taken_for_a_log_s_writer() -> None:
    """By hand: the log has 0.19 requests in flight, the other disk's reads 0.45."""
    reads = iostat_row("vdb", r=90, r_await=5, util=45)
    assert with_writer(log_text(), "postgres").left_open.logs == []
    both = log_text().replace("vda ", f"{reads}vda ")
    assert with_writer(both, "postgres").left_open.logs == ["vda-fsyncs"]


def test_a_full_disk_with_one_log_has_no_file_for_each_of_those_who_wait() -> None:
    full = log_text(util=98, w_await=40)
    assert overwriters(draft_of(full)) == (8 * 2, None)
    draft = with_writer(full, "postgres")
    assert overwriters(draft) == (1, True)
    # Who waits for the one who writes it is in no queue: there may be four times as many.
    path = "process.vda-fsyncs.concurrency"
    [prior] = [one for one in draft.priors if one.path == path]
    assert prior.high == pytest.approx(
        4 * (draft.sheet.sections["process", "vda-fsyncs"]["concurrency"].value)
    )


def overwriters(draft: Draft) -> tuple[object, object]:
    """Return the files that programs write who always wait, and whether one writes for all."""
    process = draft.sheet.sections["process", "vda-fsyncs"]
    assert process["arrivals"].value == "closed"
    together = process.get("group_commit")
    return process["write_files"].value, None if together is None else together.value


def test_all_logs_that_are_asked_for_are_in_a_quarter_of_the_memory_of_tmpfs() -> None:
    draft = overwritten()
    values = next(one.values for one in what_ifs_of(draft) if one.name == "tmpfs")
    area = parse_quantity(str(values["process.vda-fsyncs.write_area"]), "bytes")
    most = int(
        dict(one.split("=") for one in draft.left_open.others)["process.vda-fsyncs.write_files"]
    )
    memory = draft.sheet.sections["machine",]["memory"].value
    assert 8 * area <= most * area <= parse_quantity(str(memory), "bytes") / 4
    assert area <= 2**24
