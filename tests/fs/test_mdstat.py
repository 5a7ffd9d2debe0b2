"""/proc/mdstat: as administrators know it."""

from sim.machine import Machine
from tests.user.servers import boot, run_for

DISK = (
    '[machine.disk.{}]\ndevice = "ram"\ncapacity = "1 GiB"\nlatency = "5 ms"\nqueue_depth = 1\n'
    'scheduler = "noop"\n'
)
ROOT = '[machine.mount."/"]\ntype = "tmpfs"\n'


def server(arrays: str) -> Machine:
    disks = "".join(DISK.format(f"sd{letter}") for letter in "bcdefgh")
    return boot(machine=disks + ROOT + arrays)


def test_a_server_without_arrays_has_none() -> None:
    assert server("").proc.read("mdstat") == "Personalities : \nunused devices: <none>\n"


def test_arrays_are_listed_the_latest_first() -> None:
    machine = server(
        '[machine.array.md0]\nlevel = 1\ndevices = ["sdb", "missing"]\n'
        '[machine.array.md1]\nlevel = 10\ndevices = ["sdc", "sdd", "sde"]\nlayout = "far"\n'
        '[machine.array.md2]\nlevel = 0\ndevices = ["sdf", "sdg"]\n'
        '[machine.array.dm-0]\nlevel = "striped"\ndevices = ["sdh"]\n'
    )
    assert machine.proc.read("mdstat") == (
        "Personalities : [raid1] [raid10] [raid0] \n"
        "md2 : active raid0 sdg[1] sdf[0]\n"
        "      2097024 blocks 64k chunks\n"
        "      \n"
        "md1 : active raid10 sde[2] sdd[1] sdc[0]\n"
        "      1572672 blocks 64K chunks 2 far-copies [3/3] [UUU]\n"
        "      \n"
        "md0 : active raid1 sdb[0]\n"
        "      1048512 blocks [2/1] [U_]\n"
        "      \n"
        "unused devices: <none>\n"
    )


def test_a_recovery_shows_its_progress_and_the_time_left() -> None:
    machine = server(
        '[machine.array.md0]\nlevel = 5\ndevices = ["sdb", "sdc", "sdd"]\n'
        'sync_action = "recover"\nrebuilding = "sdd"\n'
    )
    run_for(machine, 3)
    lines = machine.proc.read("mdstat").splitlines()
    assert lines[1:3] == [
        "md0 : active raid5 sdd[2] sdc[1] sdb[0]",
        "      2097024 blocks level 5, 64k chunk, algorithm 2 [3/2] [UU_]",
    ]
    position = machine.devices["md0"].sync
    done = (position.position - position.active_sectors) // 2
    share = done * 1000 // 1048512
    assert lines[3].startswith("      [" + "=" * (share // 50) + ">")
    assert f"]  recovery ={share // 10:3d}.{share % 10}% ({done}/1048512) finish=" in lines[3]
    assert lines[3].endswith("K/sec")


def test_when_it_is_done_all_members_are_up() -> None:
    machine = server(
        '[machine.array.md0]\nlevel = 1\ndevices = ["sdb", "sdc"]\n'
        'sync_action = "recover"\nrebuilding = "sdc"\n'
    )
    run_for(machine, 300)
    assert "[2/2] [UU]\n      \nunused" in machine.proc.read("mdstat")
