"""What mkfs or mount would refuse is an error of the scenario, with its line."""

import re

import pytest

from sim.scenario import ScenarioError
from tests.user.servers import scenario

XFS = 'machine.mount."/".type="xfs"'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["delaylog=true"], "delaylog = true needs kernel 2.6.35 or later, this is 2.6.16"),
        (["crc=true"], "inodes of 512 bytes or more"),
        (["log='2 GiB'"], "at most 2097148 KiB"),
        (["log='1.5 GiB'"], "a log has 2048 to 131072 KiB"),
        (["log='1 MiB'"], "a log has 2048 to"),
        (["agcount=2000"], "a group has 4 MiB or more"),
        (["logbsize='33 KiB'"], 'not one of the choices, got "33 KiB" (accepted: 16384, 32768, '),
        (["logbufs=9"], "must be at most 8"),
        (["logbuf=4"], "did you mean 'logbufs'"),
    ],
)
def test_bad_options_of_xfs_are_refused_with_their_place(options: list[str], message: str) -> None:
    sets = [XFS, *(f'machine.mount."/".{option}' for option in options)]
    with pytest.raises(ScenarioError, match=re.escape(message)) as caught:
        scenario(sets=sets)
    assert "Traceback" not in str(caught.value)
    assert re.search(r"small\.toml:\d+|--set", str(caught.value))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (
            ['machine.mount."/".type="ext3"', 'machine.mount."/".max_batch_time="1 ms"'],
            "min_batch_time and max_batch_time are jbd2's (ext4: kernel 2.6.29; ext3 mounted by it:"
            " 4.3), this is 2.6.16",
        ),
        (
            ['machine.mount."/".type="ext3"', 'machine.mount."/".max_batch="1 ms"'],
            "did you mean 'max_batch_time'",
        ),
        (['machine.mount."/".type="ext3"', 'machine.mount."/".atime="strict"'], "strictatime"),
        (
            ['machine.mount."/".type="ext3"', 'machine.mount."/".journal="1 MiB"'],
            "a journal of 1048576 bytes (accepted: 4 to ",
        ),
        (
            ['machine.mount."/".type="ext3"', 'machine.mount."/".journal="38 GiB"'],
            "a journal of 40802189312 bytes (accepted: 4 to ",
        ),
    ],
)
def test_bad_options_of_ext3_are_refused_with_their_place(sets: list[str], message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)) as caught:
        scenario(sets=sets)
    assert re.search(r"small\.toml:\d+|--set", str(caught.value))


def test_a_device_too_small_for_xfs_is_refused() -> None:
    with pytest.raises(ScenarioError, match="8 MiB in 1 allocation groups hold no xfs"):
        scenario(sets=[XFS, 'machine.disk.sda.capacity="8 MiB"'])


def test_a_log_that_does_not_fit_into_an_allocation_group_is_refused() -> None:
    sets = [
        'machine.kernel="3.10"',
        'machine.mount."/".log="1.5 GiB"',
        'machine.disk.sda.capacity="4 GiB"',
    ]
    with pytest.raises(ScenarioError, match="does not fit into an allocation group"):
        scenario(sets=[XFS, *sets])


@pytest.mark.parametrize(("kind", "option"), [("xfs", "log"), ("ext4", "journal")])
def test_a_journal_larger_than_its_own_device_is_refused(kind: str, option: str) -> None:
    """Before, it was made as large as the device, and nothing was said."""
    sets = [
        'machine.kernel="3.10"',
        f'machine.mount."/".type="{kind}"',
        f'machine.mount."/".{option}="64 MiB"',
        'machine.disk.log.profile="sas-15k"',
        'machine.disk.log.capacity="32 MiB"',
        'machine.mount."/".journal_device="log"',
    ]
    with pytest.raises(ScenarioError, match="log has 32768 KiB, the journal that is asked for"):
        scenario(sets=sets)
