"""[machine.loop.NAME]: what is refused, and with which words."""

import pytest

from sim.toml.errors import ScenarioError
from tests.user.servers import scenario

LOOP = """\
[machine.disk.sda]
device = "ram"
capacity = "4 GiB"
scheduler = "noop"
[machine.loop.loop0]
file = "/images/disk.img"
size = "512 MiB"
[machine.mount."/"]
type = "ext3"
device = "sda"
[machine.mount."/mnt"]
type = "ext3"
device = "loop0"
"""


def told(machine: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        scenario(machine=machine)
    return str(caught.value)


def test_a_loop_device_is_a_file_and_a_size():
    spec = scenario(machine=LOOP).server.all("loop")["loop0"]
    assert (spec.file, spec.size_bytes, spec.queue.max_bytes) == (
        "/images/disk.img",
        512 << 20,
        512 << 10,
    )


@pytest.mark.parametrize(
    "before, after, said",
    [
        ('file = "/images/disk.img"', "", "lacks 'file'"),
        ('size = "512 MiB"', "", "lacks 'size'"),
        ('size = "512 MiB"', 'size = "0 B"', "loop0.size: must be at least 1 MiB"),
        ("/images/disk.img", "images", "images lies on no mounted file system (accepted: a path"),
        ("/images/disk.img", "/mnt/disk.img", "/mnt/disk.img lies on the device itself"),
        ('"512 MiB"', '"5 GiB"', "no room for /images/disk.img, got 5.36 GB"),
        ("machine.loop.loop0", "machine.loop.sda", "there is a device 'sda' already"),
        ('file = "/', 'offset = "1 MiB"\nfile = "/', "unknown key 'offset'"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(before, after, said):
    assert said in told(LOOP.replace(before, after))


def test_loop_devices_that_lie_on_each_other_are_refused():
    other = '[machine.loop.loop1]\nfile = "/mnt/x"\nsize = "2 MiB"\n'
    around = LOOP.replace("/images/disk.img", "/deep/x") + (
        other + '[machine.mount."/deep"]\ntype = "ext3"\ndevice = "loop1"\n'
    )
    assert "lies on the device itself" in told(around)


def test_files_have_to_fit_together():
    other = '[machine.loop.loop1]\nfile = "/b"\nsize = "3500 MiB"\n'
    assert "loop device 'loop1': no room for /b" in told(LOOP + other)
