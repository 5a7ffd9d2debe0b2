"""block_dump: the kernel's text, and that looking changes nothing and misses nothing."""

from pathlib import Path

import pytest

from calibration.validate.parts import rig_parts
from sim.machine import Machine, simulate
from sim.scenario.load import load_text
from sim.study.block_dump import BlockDump, counts_text
from sim.study.laboratory import run_once
from tests.user.mail import process
from tests.user.servers import scenario

MAILQ = process("mailq", "mailq", messages=2, size_min="8 KiB", size_max="8 KiB")
GOLDEN = """\
mailq(5): dirtied inode 114692 (tf.mailq.0) on sda
mailq(5): dirtied inode 114692 (tf.mailq.0) on sda
mailq(5): WRITE block 1916928 on sda
mailq(5): WRITE block 1916936 on sda
kjournald(2): WRITE block 4144 on sda
kjournald(2): WRITE block 4152 on sda
kjournald(2): WRITE block 4160 on sda
kjournald(2): WRITE block 4168 on sda
kjournald(2): WRITE block 4176 on sda
kjournald(2): WRITE block 4184 on sda
kjournald(2): WRITE block 4192 on sda
mailq(5): dirtied inode 114693 (tf.mailq.1) on sda
mailq(5): dirtied inode 114693 (tf.mailq.1) on sda
mailq(5): WRITE block 1916944 on sda
mailq(5): WRITE block 1916952 on sda
kjournald(2): WRITE block 4200 on sda
kjournald(2): WRITE block 4208 on sda
kjournald(2): WRITE block 4216 on sda
kjournald(2): WRITE block 4224 on sda
kjournald(2): WRITE block 4232 on sda
kjournald(2): WRITE block 4240 on sda
kjournald(2): WRITE block 4248 on sda
"""


@pytest.fixture(autouse=True)
def parts():
    """Have mailq, a program of the validation rigs."""
    with rig_parts():
        yield


def dumped(text: str, **more: object) -> tuple[BlockDump, Machine]:
    one = scenario(text, duration="4 s", **more)  # type: ignore[arg-type]
    dump = BlockDump(keep_lines=True)
    machines: list[Machine] = []

    def watch(machine: Machine) -> None:
        machines.append(machine)
        dump.attach(machine)

    simulate(one, 1, watch=watch)
    return dump, machines[0]


def test_the_lines_of_two_messages_are_as_the_kernel_prints_them() -> None:
    dump, _ = dumped(MAILQ)
    assert "\n".join(dump.lines or []) + "\n" == GOLDEN


def test_from_2_6_37_a_line_says_how_many_sectors() -> None:
    dump, _ = dumped(MAILQ, sets=('machine.kernel="2.6.38"',))
    writes = [line for line in dump.lines or [] if "WRITE" in line]
    assert writes and all(line.endswith(" sectors)") for line in writes)


def test_counts_by_process_add_up_to_the_lines() -> None:
    dump, _ = dumped(MAILQ)
    counts = [line.rpartition(": ") for line in counts_text(dump).splitlines()]
    assert sum(int(number) for _, _, number in counts) == len(dump.lines or [])
    assert counts[0][0].startswith("kjournald(")


@pytest.mark.parametrize("kind", ["ext3", "ext4", "xfs"])
def test_every_write_of_the_disk_has_a_line_of_somebody(kind: str) -> None:
    """Bios submitted = requests started + merges, on a disk that nothing else lies on."""
    kernel = "2.6.32"
    dump, machine = dumped(
        MAILQ, sets=(f'machine.mount."/".type="{kind}"', f'machine.kernel="{kernel}"')
    )
    stats = machine.disks[0].stats
    lines = sum(" WRITE block " in line for line in dump.lines or [])
    assert lines == stats.writes + stats.write_merges


def test_looking_changes_nothing() -> None:
    plain = scenario(MAILQ, duration="4 s")
    dump = BlockDump(keep_lines=True)
    assert simulate(plain, 1, watch=dump.attach).digest() == simulate(plain, 1).digest()


def test_the_figures_count_what_came_in_the_seconds_after_a_message() -> None:
    text = "\n".join(
        [
            process("exim", "exim"),
            process(
                "day",
                "smtp_day",
                via="lan",
                target="exim",
                accepted_per_day=40_000,
                rejected_per_day=0,
                profile="flat",
                warm_up="1 s",
                duration="10 s",
            ),
        ]
    )
    content = f"""\
title = "A small mail server"
uses = ["exim_io/exim.py", "exim_io/smtp_day.py"]
[machine]
kernel = "2.6.18"
cpus = 2
memory = "1 GiB"
disk.sda = {{ device = "ram", capacity = "4 GiB", latency = "2 ms", scheduler = "noop" }}
mount."/" = {{ type = "ext3", device = "sda" }}
[link.lan]
latency = "0.1 ms"
{text}
[run]
duration = "30 s"
[measure]
interval = "1 s"
begin = "day_begin"
end = "day_end"
families = ["mail", "blocks"]
"""
    figures = run_once(load_text(content, Path("small.toml")), 1).metrics
    assert figures["mail.accepted"] > 0
    assert figures["block_events.kjournald"] > 20
    assert figures["block_events.others"] > 0
    assert 50 < figures["block_events.kjournald_pct"] < 100
