"""Kinds of devices, volumes on disks, and the bottleneck: each rule applies where it should."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.dataset import Source
from calibration.host import BlockDevice
from calibration.look import look
from calibration.look.bottleneck import Seen, bottleneck
from calibration.look.cpus import CpuLook
from calibration.look.devices import ACCESS_MS, DeviceLook, busy_pct, device_look
from calibration.look.intervals import COUNTED
from calibration.look.stacking import stacks_of
from calibration.samples import Recording, Sample
from tests.calibration.look_rows import cpu_row, device_row, interval


def block(
    name: str, *, rotational: bool | None = None, slaves: tuple[str, ...] = ()
) -> BlockDevice:
    return BlockDevice(
        name=name,
        size_bytes=None,
        is_rotational=rotational,
        scheduler=None,
        nr_requests=None,
        read_ahead_bytes=None,
        request_bytes_max=None,
        write_cache=None,
        queue_depth=None,
        model=None,
        volume=None,
        slaves=slaves,
    )


def device(
    name: str,
    *,
    reads: float = 0,
    writes: float = 0,
    utilisation: float = 0.5,
    stretch: float = 2,
    size: float = 4096,
    merges: float = 0,
    known: BlockDevice | None = None,
) -> DeviceLook:
    row = device_row(
        r_per_s=reads,
        w_per_s=writes,
        utilisation=utilisation,
        stretch=stretch,
        skew=1,
        size_bytes=size,
        merges_per_s=merges,
    )
    return device_look(name, row, known)


@pytest.mark.parametrize("rpm", ACCESS_MS)
def test_a_disk_is_known_by_the_time_that_random_access_takes(rpm: int) -> None:
    rate = 1000 * 0.9 / ACCESS_MS[rpm]
    assert device("sda", reads=rate, utilisation=0.9).guess == f"disk, like {rpm} rpm"


@pytest.mark.parametrize(
    ("found", "guess"),
    [
        (device("nvme0n1", reads=5000), "NVMe SSD"),
        (device("zram0", writes=5000), "RAM, compressed"),
        (device("dm-0", writes=100), "volume on other devices"),
        (device("sda", reads=5000), "SSD"),
        (device("sda", reads=400), "SSD, or a disk with a cache"),
        (device("xvdj", reads=400), "virtual device: SSD or network volume"),
        (
            device("sda", reads=1, writes=400),
            "SSD, or a disk that caches writes or has them in sequence",
        ),
        (device("sda", reads=1, writes=400, known=block("sda", rotational=True)), "disk"),
        (
            device("vda", reads=1, writes=400, known=block("vda", rotational=True)),
            "SSD, or a disk that caches writes or has them in sequence",
        ),
        (
            device("sda", reads=9, utilisation=0.09, known=block("sda", rotational=False)),
            "SSD, or a disk with a cache",
        ),
        (
            device("loop0", reads=70, utilisation=0.9, known=block("loop0", rotational=False)),
            "disk, like 7200 rpm",
        ),
        (
            device("loop0", reads=400, utilisation=0.1, known=block("loop0", rotational=False)),
            "virtual device: SSD or network volume",
        ),
        (device("sda", reads=100, utilisation=0.9, size=1 << 20), "unknown"),
        (device("sda", reads=2, utilisation=0.02), "disk"),
        (device("sda", reads=100, utilisation=0.3), "disk, like 15000 rpm"),
    ],
)
def test_a_device_is_guessed_by_name_or_time(found: DeviceLook, guess: str) -> None:
    assert found.guess == guess
    assert found.reason


# -- Volumes.


@given(merged=st.floats(0, 1000), own=st.floats(10, 1000))
def test_what_volumes_hand_down_enters_their_disk(merged: float, own: float) -> None:
    entered = merged + own
    disk = device("sdb", writes=own, merges=merged)
    volume = device("dm-0", writes=entered)
    (stack,) = stacks_of([disk, volume], {})
    assert (stack.disk, stack.volumes, stack.is_known) == ("sdb", ("dm-0",), False)
    assert stack.unexplained == pytest.approx(0, abs=1e-9)


def test_sys_is_believed_where_it_was_recorded() -> None:
    devices = [device("sda", writes=100), device("sdb", writes=50), device("dm-0", writes=100)]
    known = {"dm-0": block("dm-0", slaves=("sdb",)), "sdb": block("sdb"), "sda": block("sda")}
    (stack,) = stacks_of(devices, known)
    assert (stack.disk, stack.is_known) == ("sdb", True)
    assert stack.unexplained == pytest.approx(-1)


def test_several_volumes_share_out_what_enters_their_disks() -> None:
    disks = [device("sda", writes=100), device("sdb", writes=50)]
    volumes = [device(f"dm-{i}", writes=rate) for i, rate in enumerate((60, 40, 50))]
    found = {stack.disk: stack.volumes for stack in stacks_of([*disks, *volumes], {})}
    assert found == {"sda": ("dm-0", "dm-1"), "sdb": ("dm-2",)}


def test_a_volume_that_is_too_busy_lies_on_no_disk() -> None:
    assert stacks_of([device("sda", writes=10), device("dm-0", writes=100)], {}) == []


# -- The bottleneck.


def cpus(busy: float = 0.1, iowait_pct: float = 0.0, steal: float = 0.0) -> CpuLook:
    return CpuLook(
        cpus=4,
        source="recorded",
        busy=busy,
        device=None,
        ratio=None,
        waiters=None,
        shares_pct={"iowait_pct": iowait_pct, "steal_pct": steal},
        placings=(),
        steps=None,
    )


def seen(
    cpu: CpuLook, *devices: DeviceLook, swap: tuple[str, ...] = (), load: float | None = None
) -> Seen:
    return Seen(cpu=cpu, devices=devices, swap_used_bytes=1e9, swap_devices=swap, load=load)


@given(rate=st.floats(1, 1e5), await_ms=st.floats(0.01, 100), counted=st.floats(0, 100))
def test_whole_jiffies_never_make_a_device_busier_than_a_stream_keeps_it(
    rate: float, await_ms: float, counted: float
) -> None:
    row = {"r_per_s": rate, "r_await_ms": await_ms, "util_pct": counted, COUNTED: 100.0}
    busy = busy_pct(row, "NVMe SSD")
    assert busy <= min(counted, 100 * rate * await_ms / 1000) + 1e-9
    assert busy_pct(row, "disk, like 7200 rpm") == counted
    assert busy_pct({**row, "r_per_s": 1000 * rate}, "NVMe SSD") >= busy


def test_a_fast_device_whose_jiffies_are_full_is_not() -> None:
    """By hand: 925 requests/s of 1.05 ms keep it busy 1 - exp(-0.97) = 62 % of the time."""
    row = {"r_per_s": 925.0, "r_await_ms": 1.05, "util_pct": 97.0, COUNTED: 100.0}
    told = bottleneck(seen(cpus(), device_look("nvme0n1", row, None)))
    assert told.resource == ""
    assert "nvme0n1 62 % busy" in told.sentence
    deep = {**row, "r_await_ms": 34.0, "util_pct": 100.0}
    assert bottleneck(seen(cpus(), device_look("nvme0n1", deep, None))).resource == "nvme0n1"


FULL_DISK = device("sda", writes=180, utilisation=0.97)
QUIET_DISK = device("sda", reads=200, utilisation=0.3)
SWAP_DISK = device("sdb", reads=200, utilisation=0.3)
VOLUME = device("dm-0", writes=900, utilisation=0.97)


@pytest.mark.parametrize(
    ("given_", "resource", "words"),
    [
        (seen(cpus(), FULL_DISK), "sda", "sda is full: 97 % busy at 180 requests/s"),
        (seen(cpus(), VOLUME, FULL_DISK), "sda", "sda is full"),
        (seen(cpus(), VOLUME), "dm-0", "dm-0 is full"),
        (seen(cpus(busy=0.97, steal=30), QUIET_DISK), "CPU", "30 % of it taken by the hypervisor"),
        (
            seen(cpus(iowait_pct=60), QUIET_DISK, SWAP_DISK, swap=("sdb",)),
            "memory",
            "50 % of all requests go to sdb",
        ),
        (seen(cpus(iowait_pct=60), QUIET_DISK), "response time", "few tasks wait"),
        (seen(cpus(iowait_pct=60)), "I/O", "No device was recorded"),
        (seen(cpus(), QUIET_DISK, load=37), "", "the load average is 37.0 on 4 CPUs"),
        (seen(cpus(), QUIET_DISK), "", "nothing that was recorded is full (sda 30 % busy"),
    ],
)
def test_the_bottleneck_is_the_first_rule_that_applies(
    given_: Seen, resource: str, words: str
) -> None:
    verdict = bottleneck(given_)
    assert verdict.resource == resource
    assert words in verdict.sentence


def test_what_is_full_at_times_is_told_though_the_mean_hides_it() -> None:
    intervals = [
        interval(dict(FULL_DISK.row if full else QUIET_DISK.row), cpu_row(0.1, 0.1))
        for full in (True, True, False, False, False, False)
    ]
    given_ = replace(seen(cpus(), QUIET_DISK), intervals=intervals)
    assert bottleneck(given_).sentence.startswith("sda is full (at least 90 % busy) in 2 of 6")
    assert bottleneck(replace(given_, intervals=intervals[1:])).resource == ""


# -- Load.


def loaded(load: float, running: float, blocked: float) -> Recording:
    values = {"load1": load, "procs_running": running, "procs_blocked": blocked}
    cpu = {"user_pct": 10.0, "idle_pct": 90.0}
    rows = [("system", "", values), ("cpu", "all", cpu)]
    return Recording(
        source="x",
        formats=("vmstat",),
        samples=tuple(
            Sample(
                time_s=1.0,
                kind=kind,
                name=name,
                column=column,
                value=value,
                since_boot=False,
                report=0,
                line=1,
            )
            for kind, name, columns in rows
            for column, value in columns.items()
        ),
    )


@pytest.mark.parametrize(
    ("load", "running", "blocked", "checks"),
    [(37, 0, 1, ["load"]), (3, 1, 1, []), (0.2, 0, 0, []), (8, 6, 2, [])],
)
def test_load_that_nothing_recorded_explains_is_noticed(
    load: float, running: float, blocked: float, checks: list[str]
) -> None:
    found = look(Source(name="x", recordings=(loaded(load, running, blocked),))).findings
    assert [one.check for one in found] == checks
