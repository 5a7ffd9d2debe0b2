"""What host.txt says of a host."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.host import host_of, read_host
from calibration.record import record
from calibration.record_text import text_samples

TEXTS = {
    "uname -m": "x86_64\n",
    "/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
    "/proc/sys/kernel/hostname": "mail1\n",
    "/etc/os-release": 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "/proc/cpuinfo": "processor\t: 0\nmodel name\t: EPYC\ncpu MHz\t\t: 2596.1\n\nprocessor\t: 1\n",
    "/proc/meminfo": "MemTotal:        8000000 kB\nMemFree:  1 kB\n",
    "/proc/mounts": "/dev/dm-0 /var/spool ext4 rw,noatime 0 0\ntmpfs /tmp tmpfs rw 0 0\n",
    "/proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/dev/sdb1 partition\t2048\t1024\t-2\n",
    "/proc/sys/vm/dirty_ratio": "20\n",
    "/sys/block/sdb/size": "2048\n",
    "/sys/block/sdb/queue/scheduler": "none [mq-deadline] bfq\n",
    "/sys/block/sdb/queue/rotational": "1\n",
    "/sys/block/sdb/queue/read_ahead_kb": "128\n",
    "/sys/block/cciss!c0d0/size": "16\n",
    "/sys/block/dm-0/slaves": "cciss!c0d0p2\nsdb1\n",
    "/sys/block/dm-0/dm/name": "vg-spool\n",
    "/sys/block/dm-0/queue/scheduler": "none\n",
}


def test_a_host_is_described_by_its_texts() -> None:
    host = host_of(TEXTS)
    assert (host.kernel, host.hostname, host.arch) == ("6.1.0-18-amd64", "mail1", "x86_64")
    assert (host.cpus, host.cpu_model, host.cpu_mhz) == (2, "EPYC", 2596.1)
    assert host.memory_bytes == 8_000_000 * 1024
    assert host.distribution == "Debian GNU/Linux 12 (bookworm)"
    assert [(m.place, m.type, m.options) for m in host.mounts] == [
        ("/var/spool", "ext4", ("rw", "noatime")),
        ("/tmp", "tmpfs", ("rw",)),
    ]
    assert [(s.source, s.size_bytes, s.used_bytes) for s in host.swaps] == [
        ("/dev/sdb1", 2 << 20, 1 << 20)
    ]
    assert host.vm == {"dirty_ratio": 20}


def test_devices_are_described_by_sys() -> None:
    devices = host_of(TEXTS).devices
    disk = devices["sdb"]
    assert (disk.size_bytes, disk.is_rotational, disk.scheduler) == (1 << 20, True, "mq-deadline")
    assert (disk.read_ahead_bytes, disk.nr_requests) == (128 * 1024, None)
    assert devices["cciss/c0d0"].size_bytes == 8192


def test_a_volume_lies_on_the_disks_of_its_partitions() -> None:
    volume = host_of(TEXTS).devices["dm-0"]
    assert (volume.slaves, volume.volume, volume.scheduler) == (
        ("cciss/c0d0", "sdb"),
        "vg-spool",
        "none",
    )


def test_what_is_not_there_is_not_known() -> None:
    host = host_of({})
    assert (host.kernel, host.cpus, host.memory_bytes, host.devices) == (None, None, None, {})


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="no /proc/stat")
def test_this_host_can_be_read_back(tmp_path: Path) -> None:
    record(str(tmp_path / "out"), 1, 0)
    host = read_host(tmp_path / "out")
    assert host is not None
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert (host.kernel, host.facts()["kernel"]) == (release, release)
    assert host.cpus and host.memory_bytes
    assert len(text_samples((tmp_path / "out/host.txt").read_text().splitlines())) == 1


SWAPS = "Filename\tType\tSize\tUsed\tPriority\n"


def test_lines_that_are_no_swap_space_are_told_and_not_taken() -> None:
    glued = "/dev/sda2 partition 1024 0 -1\n==> 3 blocks major\n"
    host = host_of(TEXTS | {"/proc/swaps": SWAPS + glued, "/proc/meminfo": "MemTotal: 8x kB\n"})
    assert [swap.source for swap in host.swaps] == ["/dev/sda2"]
    assert host.memory_bytes is None
    assert host.unread == ("==> 3 blocks major", "MemTotal: 8x kB")


@given(st.text(alphabet="0123456789 .:\t\n-kBdevsa/", max_size=80))
def test_whatever_a_host_says_is_read_or_told(text: str) -> None:
    lines = [line for line in text.splitlines() if line.strip()]
    host = host_of(TEXTS | {"/proc/swaps": SWAPS + text})
    assert len(host.swaps) + len(host.unread) == len(lines)
    assert set(host.unread) <= set(lines)

    host = host_of(TEXTS | {"/proc/meminfo": f"MemTotal: {text}"})
    first = (text.splitlines() or [""])[0].strip()
    is_size = first.removesuffix("kB").strip().isdigit()
    assert (host.memory_bytes is not None) == is_size
    assert host.unread == ((f"MemTotal: {first}",) if first and not is_size else ())

    host = host_of(TEXTS | {"/proc/sys/vm/swappiness": text, "/sys/block/sdb/size": text})
    number = text.strip()
    is_number = number.removeprefix("-").isdigit()
    assert host.vm.get("swappiness") == (int(number) if is_number else None)
    size_bytes = host.devices["sdb"].size_bytes
    assert size_bytes == (int(number) * 512 if number.isdigit() else None)
    assert host_of(TEXTS | {"/proc/cpuinfo": text}).cpus is None  # no line says "processor"


EXT4_MOUNTS = "/dev/vda1 / ext4 rw 0 0\n/dev/mapper/vg-spool /spool ext4 rw 0 0\n"
JOURNALS = {
    "/proc/mounts": EXT4_MOUNTS + "/dev/vda2 /old ext3 rw 0 0\n/dev/vda3 /x xfs rw 0 0\n",
    "/sys/block/vda/size": "2048\n",
    "/sys/block/dm-0/dm/name": "vg-spool\n",
}


@pytest.mark.parametrize(
    ("names", "without"),
    [
        (None, []),  # not recorded
        ("", ["/", "/spool"]),
        ("vda1-8\n", ["/spool"]),
        ("dm-0-8\n", ["/"]),
        ("vda1-8\ndm-0-8\n", []),
        ("sdc\n", []),  # a journal on a device of its own: whose it is cannot be told
        ("vda2-8\n", ["/", "/spool"]),
    ],
)
def test_an_ext4_that_has_no_name_among_the_journals_has_no_journal(
    names: str | None, without: list[str]
) -> None:
    host = host_of(JOURNALS | ({} if names is None else {"/proc/fs/jbd2": names}))
    assert [one.place for one in host.mounts if host.lacks_journal(one)] == without


def test_the_names_of_journals_are_recorded_also_if_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "root/proc/fs/jbd2").mkdir(parents=True)
    (tmp_path / "root/proc/stat").write_text("cpu 0 0 0 0\n")
    record(str(tmp_path / "out"), 1, 0, root=str(tmp_path / "root"))
    host = read_host(tmp_path / "out")
    assert host is not None and host.journals == ()
