"""What only the rigs have, their disk and their programs: known while a run is simulated.

Models: the registry with the rigs' own parts in it, as a user's own parts come into it.
Linux counterpart: none.
Invariants: outside of `rig_parts()` nobody finds them: no scenario, no list of devices or programs.
Left out: nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from calibration.validate.cpuburn import RigCpuburn, RigCpuburnParams
from calibration.validate.emulated_disk import (
    Slowdisk,
    SlowdiskArmParams,
    SlowdiskSlotParams,
    SlowdiskVolumeParams,
)
from calibration.validate.mailq import Mailq, MailqParams
from calibration.validate.memtouch import Memtouch, MemtouchParams
from calibration.validate.pcread import Pcread, PcreadParams
from calibration.validate.smtp_load import SmtpLoad, SmtpLoadParams
from sim.registry import provisional, register, registered_by

_DEVICES: Final[tuple[tuple[str, type, str], ...]] = (
    ("slowdisk_arm", SlowdiskArmParams, "emulated disk with one arm"),
    ("slowdisk_slots", SlowdiskSlotParams, "emulated disk with slots"),
    ("slowdisk_volume", SlowdiskVolumeParams, "emulated volume with credits"),
)
_PROGRAMS: Final[tuple[tuple[str, type, type, str], ...]] = (
    ("rig_cpuburn", RigCpuburn, RigCpuburnParams, "computes; or reads and computes"),
    ("mailq", Mailq, MailqParams, "create, write, fsync, rename, unlink"),
    ("memtouch", Memtouch, MemtouchParams, "processes that touch memory at random"),
    ("pcread", Pcread, PcreadParams, "random reads through the page cache"),
    ("smtp_load", SmtpLoad, SmtpLoadParams, "mail at a rate, with retries"),
)
# Imported only then: with it comes sendmail, which is a case's program.
_FAILING_SENDMAIL: Final = "calibration.validate.failing_sendmail"


@contextmanager
def rig_parts() -> Iterator[None]:
    """Have the rigs' devices and programs in the registry, and forget them at the end."""
    with provisional():
        for name, params, doc in _DEVICES:
            register("device", name, params=params, doc=doc)(Slowdisk)
        for name, program, params, doc in _PROGRAMS:
            register("program", name, params=params, doc=doc)(program)
        registered_by(_FAILING_SENDMAIL, is_foreign=False)
        yield
